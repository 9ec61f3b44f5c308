# SPDX-License-Identifier: Apache-2.0
"""The merge bases of a project, in one file: `.opwest/bases.json`.

It maps the path of each rendered user's file to the lines that opwest had rendered when the file was written or last
merged. The lock contains the checksum of each. Files that cannot be merged have no base: files that are not text, and
copies of the user's files.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from . import disk
from .lock import to_json

BASES: Final = f"{disk.OWN}/bases.json"
_FOLDER: Final = f"{disk.OWN}/base"


def decoded(content: bytes) -> str | None:
    """Return a file's content as text, None if it is not text."""
    if b"\0" in content:
        return None
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return None


def to_bytes(texts: Mapping[str, str]) -> bytes:
    """Return the file's content: a line of JSON for each line, for readable diffs in version control."""
    return to_json({path: text.split("\n") for path, text in texts.items()})


def read_bases(directory: Path, sums: Mapping[str, str]) -> dict[str, str]:
    """Return the text of every base with the checksum in the lock, without damaged ones."""
    found = _read(directory / BASES)
    texts = {path: text for path, text in found.items() if disk.digest(text.encode(errors="replace")) == sums.get(path)}
    for path in sums.keys() - texts.keys():
        if disk.look(directory, old_place(path)) == sums[path]:
            text = decoded((directory / old_place(path)).read_bytes())
            texts |= {} if text is None else {path: text}
    return texts


def old_place(path: str) -> str:
    """Return the path of the base of a file in earlier versions of opwest, which used one file per base."""
    return f"{_FOLDER}/{path}.base"


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
