# SPDX-License-Identifier: Apache-2.0
"""The first format of the lock, whose bases are in other files; the next generation writes the present format.

`.opwest/bases.json` contains the bases as lists of lines, before it `.opwest/base/PATH.base` contained one base each.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from opwest.base.files import is_inside
from opwest.project import disk

BASES: Final = f"{disk.OWN}/bases.json"


class Users(NamedTuple):
    """The user's files of a lock, the checksums and the texts of their bases."""

    names: frozenset[str]
    bases: Mapping[str, str]
    texts: Mapping[str, str]


def users_of(directory: Path, value: Mapping[str, Any]) -> Users | None:
    """Return the user's files of a lock, the checksums and the texts of their bases; None if they are damaged."""
    user, sums = value.get("user"), value.get("bases", {})
    if not isinstance(user, list) or not all(is_inside(path) for path in user):
        return None
    if not isinstance(sums, dict) or not all(is_inside(path) and disk.is_digest(sums[path]) for path in sums):
        return None
    bases = _read(directory / BASES)
    texts = {path: text for path, text in bases.items() if disk.has_digest(text, sums.get(path))}
    for path in sums.keys() - texts.keys():
        if disk.look(directory, _old_place(path)) == sums[path]:
            text = disk.decoded((directory / _old_place(path)).read_bytes())
            texts |= {} if text is None else {path: text}
    return Users(frozenset(user), sums, texts)


def places(paths: Iterable[str]) -> Iterator[str]:
    """Yield the files that contained the bases of some files."""
    yield BASES
    yield from map(_old_place, sorted(paths))


def _old_place(path: str) -> str:
    return f"{disk.OWN}/base/{path}.base"


def _read(place: Path) -> dict[str, str]:
    try:
        value = json.loads(place.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(value, dict):
        return {}
    texts = {}
    for path, lines in value.items():
        if isinstance(lines, list) and all(isinstance(line, str) for line in lines):
            texts[path] = "\n".join(lines)
    return texts
