# SPDX-License-Identifier: Apache-2.0
"""The merge bases of a project, in one file: `.opwest/bases.json`.

It maps the path of each of the user's files that opwest rendered to the lines that opwest had rendered when the file
was written or last merged. The lock has the checksum of each. Files that no merge can help have none: those that are
no text, and copies of files of the user's own.
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
    """Return the text of a file, None where it is none."""
    if b"\0" in content:
        return None
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return None


def to_bytes(texts: Mapping[str, str]) -> bytes:
    """Return the file's content: a line of JSON for each line, so that version control shows what changed."""
    return to_json({path: text.split("\n") for path, text in texts.items()})


def read_bases(directory: Path, sums: Mapping[str, str]) -> dict[str, str]:
    """Return the text of every base whose checksum is the lock's; one that was damaged is left out."""
    found = _read(directory / BASES)
    texts = {path: text for path, text in found.items() if disk.digest(text.encode(errors="replace")) == sums.get(path)}
    for path in sums.keys() - texts.keys():
        if disk.look(directory, old_place(path)) == sums[path]:
            text = decoded((directory / old_place(path)).read_bytes())
            texts |= {} if text is None else {path: text}
    return texts


def old_place(path: str) -> str:
    """Return where an earlier opwest kept the base of a file, in a file of its own."""
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
