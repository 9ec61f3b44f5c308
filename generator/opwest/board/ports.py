# SPDX-License-Identifier: Apache-2.0
"""Serial devices of boards: selection, presence, permission and use by other programs."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

from opwest.board.link import LinkError

_POLL_SECONDS = 0.1


def serial_devices() -> list[str]:
    """Return the paths of the USB serial devices of this machine."""
    from serial.tools import list_ports

    return sorted(str(port.device) for port in list_ports.comports() if port.vid is not None)


def choose_device(given: str | None) -> str:
    """Return the given device, else the only device found."""
    if given is not None:
        return given
    found = serial_devices()
    if len(found) == 1:
        return found[0]
    if not found:
        raise LinkError("no serial device of a board found", "plug in the board, or give its device: --serial DEV")
    raise LinkError(f"several serial devices found: {', '.join(found)}", "select the board's device: --serial DEV")


def wait_for_device(device: str, seconds: float) -> None:
    """Wait until a device exists: the USB device of some boards disappears during start-up."""
    end = time.monotonic() + seconds
    while not Path(device).exists():
        if time.monotonic() >= end:
            waited = f" within {seconds:g} s" if seconds else ""
            raise LinkError(f"serial device '{device}' not found{waited}", _others(device))
        time.sleep(_POLL_SECONDS)


def check_device(device: str) -> None:
    """Raise LinkError if a device does not exist, is in use, or cannot be opened."""
    if not Path(device).exists():
        raise LinkError(f"serial device '{device}' not found", _others(device))
    holders = list(_holders(device))
    if holders:
        raise LinkError(f"serial device '{device}' is in use by {', '.join(holders)}", "end that program")
    try:
        file = os.open(device, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
    except OSError as error:
        raise _unusable(device, error) from error
    try:
        if not os.isatty(file):
            raise LinkError(f"'{device}' is not a serial device")
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise LinkError(f"serial device '{device}' is locked by another program") from error
    finally:
        os.close(file)


def _unusable(device: str, error: OSError) -> LinkError:
    if error.errno == errno.EACCES:
        return LinkError(
            f"permission denied for serial device '{device}'",
            "join its group with 'sudo usermod -aG dialout $USER' and log in again",
        )
    if error.errno == errno.EBUSY:
        return LinkError(f"serial device '{device}' is in use by another program")
    if error.errno in (errno.ENOENT, errno.ENXIO, errno.ENODEV):
        return LinkError(f"serial device '{device}' not found", _others(device))
    return LinkError(f"cannot open serial device '{device}': {error.strerror}")


def _others(device: str) -> str:
    """Return the hint for a missing device."""
    found = [name for name in serial_devices() if name != device]
    others = f"found: {', '.join(found)}" if found else "found no other device"
    return f"check that the board is plugged in; {others}"


def _holders(device: str) -> Iterator[str]:
    """Yield the other programs that have a device open, as far as /proc is readable."""
    path = os.path.realpath(device)
    for process in Path("/proc").glob("[0-9]*"):
        if int(process.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            for link in (process / "fd").iterdir():
                if str(link.readlink()) == path:
                    yield f"{(process / 'comm').read_text().strip()} (process {process.name})"
                    break
