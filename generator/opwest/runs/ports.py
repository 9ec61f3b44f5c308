# SPDX-License-Identifier: Apache-2.0
"""Serial devices of boards, by pyserial: selection, presence, permission and use by other programs."""

from __future__ import annotations

import contextlib
import errno
import importlib.util
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from opwest.base import commands
from opwest.runs.link import LinkError

_POLL_SECONDS = 0.1
_DEFAULT_BAUD = 115200
"""The baud rate of a pseudo terminal has no effect, but pyserial sets one."""
READ_SECONDS = 0.05
"""The longest wait of one read: pyserial configures a device again when the timeout changes."""
_LOCKED = (errno.EAGAIN, errno.EACCES)
_PREFIX = "\\\\.\\"
"""Of a device in the notation of Windows."""


def need_serial() -> None:
    """Raise LinkError without the package for serial devices."""
    if importlib.util.find_spec("serial") is None:
        raise LinkError(
            "missing Python package: pyserial is required to connect to a board", "run pip install pyserial"
        )


def serial_devices(*, usb_only: bool = True) -> list[str]:
    """Return the serial devices of this machine: paths, or names such as COM3."""
    from serial.tools import list_ports

    return sorted(str(port.device) for port in list_ports.comports() if port.vid is not None or not usb_only)


def choose_device(given: str | None) -> str:
    """Return the given device, else the only device found."""
    if given is not None:
        return given
    devices = serial_devices()
    if len(devices) == 1:
        return devices[0]
    if not devices:
        raise LinkError("no serial device of a board found", "plug in the board, or give its device: --serial DEV")
    raise LinkError(f"several serial devices found: {', '.join(devices)}", "select the board's device: --serial DEV")


def is_present(device: str) -> bool:
    """Whether a device exists."""
    if os.name != "nt":
        return Path(device).exists()
    name = device.removeprefix(_PREFIX).upper()  # devices of Windows are not files
    return name in map(str.upper, serial_devices(usb_only=False))


def wait_for_device(device: str, seconds: float) -> None:
    """Wait until a device exists: the USB device of some boards disappears during start-up."""
    end = time.monotonic() + seconds
    while not is_present(device):
        if time.monotonic() >= end:
            waited = f" within {seconds:g} s" if seconds else ""
            raise LinkError(f"serial device '{device}' not found{waited}", _others(device))
        time.sleep(_POLL_SECONDS)


def check_device(device: str) -> None:
    """Raise LinkError if a device does not exist, is in use, or cannot be opened."""
    if not is_present(device):
        raise LinkError(f"serial device '{device}' not found", _others(device))
    holders = list(_holders(device))
    if holders:
        raise LinkError(f"serial device '{device}' is in use by {', '.join(holders)}", "end that program")
    open_device(device, 0).close()


def open_device(device: str, seconds: float, baud: int | None = None) -> Any:
    """Return the open serial.Serial of a device, which no other program can open; `seconds` limit a write.

    Without a baud rate the device is a pseudo terminal. Raises LinkError.
    """
    import serial

    try:
        return serial.Serial(
            device, _DEFAULT_BAUD if baud is None else baud, timeout=READ_SECONDS, write_timeout=seconds, exclusive=True
        )
    except ValueError as error:  # also from systems that accept only some rates
        raise LinkError(f"--baud: the serial device '{device}' does not support the baud rate {baud}") from error
    except OSError as error:
        raise _unusable(device, error) from error


def _unusable(device: str, error: OSError) -> LinkError:
    """Return the error for a device that pyserial cannot open; on Windows it has no number but a text."""
    text = str(error)
    is_locked = "exclusively lock" in text and error.errno in _LOCKED
    if is_locked:
        return LinkError(f"serial device '{device}' is locked by another program")
    if error.errno is None and text.startswith("Could not configure port"):
        return LinkError(f"'{device}' is not a serial device")
    if error.errno == errno.EBUSY or (error.errno is None and "PermissionError" in text):
        return LinkError(f"serial device '{device}' is in use by another program", "end that program")
    if error.errno == errno.EACCES:
        join = commands.joining_group(device)
        hint = None if join is None else f"join its group with '{join}' and log in again"
        return LinkError(f"permission denied for serial device '{device}'", hint)
    if error.errno in (errno.ENOENT, errno.ENXIO, errno.ENODEV) or (
        error.errno is None and "FileNotFoundError" in text
    ):
        return LinkError(f"serial device '{device}' not found", _others(device))
    reason = text if error.errno is None else os.strerror(error.errno)
    return LinkError(f"cannot open serial device '{device}': {reason}")


def _others(device: str) -> str:
    """Return the hint for a missing device."""
    devices = [name for name in serial_devices() if name != device]
    others = f"found: {', '.join(devices)}" if devices else "found no other device"
    return f"check that the board is plugged in; {others}"


def _holders(device: str) -> Iterator[str]:
    """Yield the other programs that have a device open, as far as /proc (of Linux) is readable."""
    path = os.path.realpath(device)
    for process in Path("/proc").glob("[0-9]*"):
        if int(process.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            for link in (process / "fd").iterdir():
                if str(link.readlink()) == path:
                    name = (process / "comm").read_text(encoding="utf-8", errors="replace").strip()
                    yield f"{name} (process {process.name})"
                    break
