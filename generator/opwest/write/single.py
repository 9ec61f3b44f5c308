# SPDX-License-Identifier: Apache-2.0
"""Replace one file outside of a project: a migrated manifest."""

from __future__ import annotations

import os
from pathlib import Path

from . import disk
from .faults import system_faults


def replace_file(place: Path, content: bytes, suffix: str) -> Path:
    """Replace the content of `place` atomically; return the path of the backup in the same directory."""
    with system_faults(place, "cannot replace the file", "the file is unchanged"):
        target = Path(os.path.realpath(place))
        old = target.read_bytes()
        copy, number = place.with_name(f"{place.name}.{suffix}"), 1
        while os.path.lexists(copy) and not (copy.is_file() and copy.read_bytes() == old):
            number += 1
            copy = place.with_name(f"{place.name}.{suffix}-{number}")
        if not os.path.lexists(copy):
            _put(copy, old, target)
        _put(target, content, target)
    return copy


def _put(place: Path, content: bytes, mode_of: Path) -> None:
    draft = place.with_name(f".{place.name}.opwest-draft")
    if os.path.lexists(draft):  # left by an interrupted run
        disk.remove(draft)
    disk.write(draft, content, mode_of=mode_of)
    disk.replace(draft, place)
    disk.sync_directories([place.parent])
