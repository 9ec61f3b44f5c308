# SPDX-License-Identifier: Apache-2.0
"""Write one new file."""

from __future__ import annotations

from pathlib import Path

from opwest.diagnostics import Diagnostic, Location, OpwestError


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
