# SPDX-License-Identifier: Apache-2.0
"""Serial devices: whether one is there, may be used and is free, and which one a board is behind."""

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
    """Return the serial devices of this machine that a board may be behind, by path."""
    from serial.tools import list_ports

    return sorted(str(port.device) for port in list_ports.comports() if port.vid is not None)


def choose_device(given: str | None) -> str:
    """Return the device that was asked for, else the only one there is."""
    if given is not None:
        return given
    found = serial_devices()
    if len(found) == 1:
        return found[0]
    if not found:
        raise LinkError("no serial device of a board was found", "plug the board in, or name its device: --serial DEV")
    raise LinkError(f"there are several serial devices: {', '.join(found)}", "name the board's: --serial DEV")


def wait_for_device(device: str, seconds: float) -> None:
    """Wait until a device is there: some boards take theirs away while they start."""
    end = time.monotonic() + seconds
    while not Path(device).exists():
        if time.monotonic() >= end:
            waited = f" (waited {seconds:g} s for it)" if seconds else ""
            raise LinkError(f"the serial device {device} is not there{waited}", _others(device))
        time.sleep(_POLL_SECONDS)


def check_device(device: str) -> None:
    """Say it in one sentence if a device can't be used."""
    if not Path(device).exists():
        raise LinkError(f"the serial device {device} is not there", _others(device))
    holders = list(_holders(device))
    if holders:
        raise LinkError(f"the serial device {device} is busy: {', '.join(holders)} has it open", "end that program")
    try:
        file = os.open(device, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
    except OSError as error:
        raise _unusable(device, error) from error
    try:
        if not os.isatty(file):
            raise LinkError(f"{device} is no serial device")
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise LinkError(f"the serial device {device} is busy: another program has locked it") from error
    finally:
        os.close(file)


def _unusable(device: str, error: OSError) -> LinkError:
    if error.errno == errno.EACCES:
        return LinkError(
            f"you may not use the serial device {device}", "join its group: sudo usermod -aG dialout $USER, log in anew"
        )
    if error.errno == errno.EBUSY:
        return LinkError(f"the serial device {device} is busy: another program has it open")
    if error.errno in (errno.ENOENT, errno.ENXIO, errno.ENODEV):
        return LinkError(f"the serial device {device} is not there", _others(device))
    return LinkError(f"the serial device {device} can't be opened: {error.strerror}")


def _others(device: str) -> str:
    """Return what to do about a device that is absent."""
    found = [name for name in serial_devices() if name != device]
    there = f"there is: {', '.join(found)}" if found else "there is no other"
    return f"is the board plugged in? {there}"


def _holders(device: str) -> Iterator[str]:
    """Yield other programs that have a device open, as far as this user may see."""
    wanted = os.path.realpath(device)
    for process in Path("/proc").glob("[0-9]*"):
        if int(process.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            for link in (process / "fd").iterdir():
                if str(link.readlink()) == wanted:
                    yield f"{(process / 'comm').read_text().strip()} (process {process.name})"
                    break
