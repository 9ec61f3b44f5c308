# SPDX-License-Identifier: Apache-2.0
"""Convert errors of the operating system to diagnostics."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

from opwest.diagnostics import Diagnostic, Location, OpwestError


@contextlib.contextmanager
def system_faults(directory: Path, what: str, hint: str | None = None) -> Iterator[None]:
    """Convert an OSError to an OpwestError."""
    try:
        yield
    except OSError as error:
        place = error.filename2 or error.filename
        where = os.fsdecode(place) if isinstance(place, str | bytes | os.PathLike) else str(directory)
        reason = error.strerror or str(error)
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            hint = f"{hint or ''}; free some space".removeprefix("; ")
        raise fault(Path(where), f"{what}: {reason}", hint) from error


def fault(place: Path, message: str, hint: str | None) -> OpwestError:
    """Return an error with one location."""
    return OpwestError([Diagnostic("error", message, Location(str(place)), hint=hint)])
