# SPDX-License-Identifier: Apache-2.0
"""The places of the files of `application.sources` in an application.

A file is copied to src/. A header that another file includes with a directory (`#include "data/inputs.h"`,
`#include "../include/inputs.h"`) is copied to where that file includes it from, so that no source has to change.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath

from opwest.model.headers import normal, quoted_includes
from opwest.objects.languages import SOURCE_SUFFIXES

_ROOT = PurePosixPath("src")
_OTHERS = frozenset(("models", "modules", "tests", "boards", "build"))
"""Directories of an application with other content."""


def places(files: Mapping[str, bytes]) -> dict[str, list[str]]:
    """Return the paths in the application of each file, by its path relative to the manifest.

    A header is also copied to src/ itself if an include of its plain name cannot be resolved otherwise.
    """
    found: dict[str, dict[str, None]] = {name: {} for name in files}
    plain: set[str] = set()
    # A header by its own place, after a file that includes it.
    waiting = [(name, str(_ROOT / PurePosixPath(name).name)) for name in files if not _is_header(name)]
    for name, place in waiting:
        found[name][place] = None
    while waiting:
        name, place = waiting.pop()
        for _line, include in quoted_includes(files[name]):
            header = normal(PurePosixPath(name).parent / include)
            if header not in files:
                plain.add(PurePosixPath(include).name)
                continue
            wanted = normal(PurePosixPath(place).parent / include)
            if wanted not in found[header] and _is_allowed(wanted):
                found[header][wanted] = None
                waiting.append((header, wanted))
    for name, every in found.items():
        flat = str(_ROOT / PurePosixPath(name).name)
        if not every or PurePosixPath(name).name in plain:
            every[flat] = None
    return {name: list(every) for name, every in found.items()}


def _is_header(name: str) -> bool:
    return not name.endswith((*SOURCE_SUFFIXES, ".S"))


def _is_allowed(place: str) -> bool:
    """Whether a path is in a directory of the application that has no other content."""
    parts = PurePosixPath(place).parts
    return len(parts) > 1 and parts[0] not in _OTHERS and not any(part.startswith(".") for part in parts)
