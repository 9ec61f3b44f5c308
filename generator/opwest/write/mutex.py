# SPDX-License-Identifier: Apache-2.0
"""One writer at a time: an exclusive lock on `.opwest/mutex`."""

from __future__ import annotations

import contextlib
import importlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from opwest.diagnostics import Diagnostic, OpwestError

from . import disk

WAIT_SECONDS = 10.0
_PAUSE_SECONDS = 0.05


def _import_fcntl() -> ModuleType | None:
    try:
        return importlib.import_module("fcntl")
    except ImportError:  # Windows
        return None


_fcntl = _import_fcntl()


@contextlib.contextmanager
def held(directory: Path) -> Iterator[None]:
    """Hold the mutex of `directory`, whose `.opwest` exists; wait for another holder up to a timeout."""
    place = directory / disk.MUTEX
    deadline = time.monotonic() + WAIT_SECONDS
    take = _take_exclusively if _fcntl is None else _take_flock
    while (handle := take(place)) is None:
        if time.monotonic() >= deadline:
            hint = "wait for it to finish"
            if _fcntl is None:
                hint += f"; if no opwest is running, delete {place}"
            raise OpwestError([Diagnostic("error", f"another opwest process is writing {directory}", hint=hint)])
        time.sleep(_PAUSE_SECONDS)
    try:
        yield
    finally:
        os.close(handle)
        if _fcntl is None:
            place.unlink(missing_ok=True)


def _open(place: Path, flags: int) -> int:
    if not os.path.lexists(place):
        disk._step(f"create {place}")
    return os.open(place, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | flags, 0o666)


def _take_flock(place: Path) -> int | None:
    """Return the locked file, None while another process holds it; the system releases it with the process."""
    handle = _open(place, 0)
    try:
        assert _fcntl is not None
        _fcntl.flock(handle, _fcntl.LOCK_EX | _fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(handle), place.stat()):  # the file was not deleted during the wait
            return handle
    except (BlockingIOError, FileNotFoundError):
        pass
    except BaseException:
        os.close(handle)
        raise
    os.close(handle)
    return None


def _take_exclusively(place: Path) -> int | None:
    """Return the created file, None while it exists; it remains if its holder is killed."""
    try:
        return _open(place, os.O_EXCL)
    except FileExistsError:
        return None
