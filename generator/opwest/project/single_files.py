# SPDX-License-Identifier: Apache-2.0
"""Write one new file."""

from __future__ import annotations

import os
from pathlib import Path

from opwest.base.diagnostics import Diagnostic, Location, OpwestError
from opwest.project import disk
from opwest.project.disk import system_faults


def write_new(path: Path, text: str, hint: str) -> None:
    """Write a file that must not exist, and create its directory. `hint` is for the error if it exists."""
    refuse_existing(path, hint)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("x", encoding="utf-8", newline="\n")
    except FileExistsError:  # created meanwhile, or a file in place of a directory
        raise _fault(path, "a file with this name exists", "the name of a new file", hint) from None
    except OSError as error:
        raise _fault(path, f"cannot write the file: {error.strerror}") from None
    try:
        with file:
            file.write(text)
    except OSError as error:
        path.unlink(missing_ok=True)
        raise _fault(path, f"cannot write the file: {error.strerror}") from None


def refuse_existing(path: Path, hint: str) -> None:
    """Raise OpwestError if `path` exists."""
    if path.exists() or path.is_symlink():
        raise _fault(path, "the file exists and is not overwritten", "the name of a new file", hint)


def _fault(path: Path, message: str, expected: str | None = None, hint: str | None = None) -> OpwestError:
    return OpwestError([Diagnostic("error", message, Location(str(path)), expected, hint)])


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
