# SPDX-License-Identifier: Apache-2.0
"""One writer at a time: an exclusive lock on `.opwest/mutex`."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

from opwest.diagnostics import Diagnostic, OpwestError
from opwest.system.locks import lock, unlock

from . import disk

WAIT_SECONDS = 10.0
_PAUSE_SECONDS = 0.05


@contextlib.contextmanager
def held(directory: Path) -> Iterator[None]:
    """Hold the mutex of `directory`, whose `.opwest` exists; wait for another holder up to a timeout."""
    place = directory / disk.MUTEX
    deadline = time.monotonic() + WAIT_SECONDS
    while (handle := _take(place)) is None:
        if time.monotonic() >= deadline:
            message = f"another opwest process is writing {directory}"
            raise OpwestError([Diagnostic("error", message, hint="wait for it to finish")])
        time.sleep(_PAUSE_SECONDS)
    try:
        yield
    finally:
        unlock(handle)
        os.close(handle)


def _take(place: Path) -> int | None:
    """Return the locked file, None while another process holds it."""
    if not os.path.lexists(place):
        disk._step(f"create {place}")
    handle = os.open(place, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
    try:
        # Otherwise the file was deleted during the wait.
        if lock(handle) and os.path.samestat(os.fstat(handle), place.stat()):
            return handle
    except FileNotFoundError:
        pass
    except BaseException:
        os.close(handle)
        raise
    os.close(handle)
    return None
