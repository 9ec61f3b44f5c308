# SPDX-License-Identifier: Apache-2.0
"""Suggest an existing path for a missing one."""

from __future__ import annotations

import os
from itertools import islice
from pathlib import Path

_MAX_COUNT = 10_000
"""The entries of a directory that are compared."""
_ALIKE = 0.8
"""The least similarity of two names (difflib's ratio): conv.o and conv.c are alike, missing.o and state.o are not."""


def hint_for(path: Path, shown: str | None = None) -> str | None:
    """Return the hint "did you mean …?" for a path that does not exist; None if it exists or nothing is alike.

    `shown` is the path as the user wrote it, if it differs.
    """
    if _exists(path):
        return None
    missing, rest = path, Path()
    while missing != missing.parent and not _exists(missing.parent):
        missing, rest = missing.parent, missing.name / rest
    shown = str(path) if shown is None else shown
    tail = str(missing.name / rest)
    if missing.name == ".." or not shown.endswith(tail):
        return None
    import difflib  # only commands that report a fault need it

    for name in difflib.get_close_matches(missing.name, _names(missing.parent), n=3, cutoff=_ALIKE):
        if _exists(missing.parent / name / rest):
            return f"did you mean {shown.removesuffix(tail) + str(name / rest)!r}?"
    return None


def _names(folder: Path) -> list[str]:
    """Return the names in a directory; none if it cannot be read."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in islice(entries, _MAX_COUNT))
    except (OSError, ValueError):
        return []


def _exists(path: Path) -> bool:
    return os.path.exists(path)  # noqa: PTH110 - it never raises
