# SPDX-License-Identifier: Apache-2.0
"""Exclusive locks of open files, which the system releases when the process ends.

The package filelock has the same two implementations, but its import loads asyncio: 80 ms, a third of the time of
`opwest generate`.
"""

from __future__ import annotations

import contextlib
import errno
import os
import time
from collections.abc import Callable

from opwest.base.commands import module

_fcntl = module("fcntl")
_msvcrt = module("msvcrt")
_HELD = (errno.EACCES, errno.EAGAIN, errno.EDEADLK)


def lock(handle: int) -> bool:
    """Lock an open file; return whether no other process holds its lock. Closing the file releases the lock."""
    try:
        if _fcntl is not None:
            _fcntl.flock(handle, _fcntl.LOCK_EX | _fcntl.LOCK_NB)
        else:
            os.lseek(handle, 0, os.SEEK_SET)
            _msvcrt.locking(handle, _msvcrt.LK_NBLCK, 1)  # the byte need not exist
    except OSError as error:
        if error.errno in _HELD:
            return False
        raise
    return True


def unlock(handle: int) -> None:
    """Release the lock before the file is closed: Windows may do so only some time after the end of the process."""
    if _fcntl is None:
        with contextlib.suppress(OSError):
            os.lseek(handle, 0, os.SEEK_SET)
            _msvcrt.locking(handle, _msvcrt.LK_UNLCK, 1)


_CAN_BE_IN_USE = os.name == "nt"
_PAUSES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
"""Seconds between the attempts."""


def retried(operation: Callable[[], object]) -> None:
    """Replace, rename or delete a file.

    Windows refuses this while a virus scanner, an indexer or an editor has the file open, mostly for an instant;
    other systems do not. Raises the last PermissionError.
    """
    for pause in _PAUSES if _CAN_BE_IN_USE else ():
        try:
            operation()
        except PermissionError:
            time.sleep(pause)
        else:
            return
    operation()
