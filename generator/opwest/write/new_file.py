# SPDX-License-Identifier: Apache-2.0
"""Write one file that was not there before."""

from __future__ import annotations

from pathlib import Path

from opwest.diagnostics import Diagnostic, Location, OpwestError


def write_new(path: Path, text: str, hint: str) -> None:
    """Write a file that must not exist; `hint` says what to do where it does. Its folder is made."""
    refuse_existing(path, hint)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("x", encoding="utf-8", newline="\n")
    except FileExistsError:  # made meanwhile, or a file where a folder is needed
        raise _fault(path, "a file is in the way", "a file that does not exist", hint) from None
    except OSError as error:
        raise _fault(path, f"the file can't be written: {error.strerror}") from None
    try:
        with file:
            file.write(text)
    except OSError as error:
        path.unlink(missing_ok=True)
        raise _fault(path, f"the file can't be written: {error.strerror}") from None


def refuse_existing(path: Path, hint: str) -> None:
    """Raise OpwestError where there is something at `path` already."""
    if path.exists() or path.is_symlink():
        raise _fault(path, "the file exists already, and is left as it is", "a file that does not exist", hint)


def _fault(path: Path, message: str, expected: str | None = None, hint: str | None = None) -> OpwestError:
    return OpwestError([Diagnostic("error", message, Location(str(path)), expected, hint)])
