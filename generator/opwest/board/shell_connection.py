# SPDX-License-Identifier: Apache-2.0
"""Commands and responses of Zephyr's shell over a serial device: response lines that start with @opwest."""

from __future__ import annotations

import re
import time

from opwest.board.link import (
    LOCKED_HINT,
    NO_SERVICE_HINT,
    LinkError,
    LostError,
    UnknownCommandError,
    printable,
    raise_if_stopped,
)
from opwest.board.ports import open_device

_ANSWER = re.compile(rb"@opwest ([^\r\n]*)\r?\n")
_UNKNOWN = re.compile(rb"opwest: command not found|Please specify a subcommand|wrong parameter count")
_LOCKED = re.compile(rb"@opwest error -13 EACCES\b")
_ESCAPES = re.compile(rb"\x1b\[[0-9;]*[A-Za-z]")
_KEPT = 1 << 16


class ShellConnection:
    """The shell behind a serial device; without a baud rate, the device is a pseudo terminal."""

    def __init__(self, device: str, timeout: float, baud: int | None = None) -> None:
        self.device = device
        self.timeout = timeout
        self._received = b""
        self._port = open_device(device, timeout, baud)

    def disconnect(self) -> None:
        """Close the device."""
        self._port.close()

    def ask(self, command: str, seconds: float, last: bytes) -> list[str] | None:
        """Send a command; return the lines of its response up to the one that starts with `last`, None on a timeout.

        Input received earlier, such as late responses, is discarded. The caller decides whether to repeat the command.
        """
        self._drain()
        self._received = b""
        self._send(f"\nopwest {command}\n".encode())
        end = time.monotonic() + seconds
        final = re.compile(rb"@opwest (?:" + last + rb")\b[^\r\n]*\r?\n")
        while not final.search(self._received):
            if _LOCKED.search(self._received):
                break
            if _UNKNOWN.search(self._received):
                raise UnknownCommandError(
                    f"the image on '{self.device}' has no opwest service: its shell has no command 'opwest "
                    f"{command.split()[0]}'",
                    NO_SERVICE_HINT,
                )
            raise_if_stopped(self._received, f"the response to 'opwest {command.split()[0]}'")
            left = end - time.monotonic()
            if left <= 0:
                return None
            self._receive(left)
        if _LOCKED.search(self._received):
            raise LinkError(f"the opwest service of the image on '{self.device}' is locked", LOCKED_HINT)
        return [found.decode(errors="replace") for found in _ANSWER.findall(self._received)]

    def timeout_error(self, awaited: str, seconds: float) -> LinkError:
        """Return the error for a missing response."""
        text = printable(self._received)
        last = f"received {text!r} last" if text else "received nothing"
        return LinkError(f"{self.device}: timeout after {seconds:g} s waiting for {awaited}; {last}", NO_SERVICE_HINT)

    def _drain(self) -> None:
        while self._receive(0):
            pass

    def _receive(self, seconds: float) -> bool:
        """Append the input of at most `seconds`; return whether there was any."""
        end = time.monotonic() + seconds
        try:
            while not (waiting := self._port.in_waiting):
                if time.monotonic() >= end:
                    return False
                if first := self._port.read(1):  # waits at most READ_SECONDS
                    return self._append(first + self._port.read(self._port.in_waiting))
            return self._append(self._port.read(waiting))
        except OSError as error:
            raise self._lost_error() from error

    def _append(self, data: bytes) -> bool:
        self._received = _ESCAPES.sub(b"", self._received + data)[-_KEPT:]
        return True

    def _send(self, data: bytes) -> None:
        try:
            self._port.write(data)
        except OSError as error:
            from serial import SerialTimeoutException

            if isinstance(error, SerialTimeoutException):
                raise LinkError(
                    f"{self.device}: cannot send a command within {self.timeout:g} s: the image does not read its UART"
                ) from error
            raise self._lost_error() from error

    def _lost_error(self) -> LinkError:
        return LostError(f"lost the serial device '{self.device}': the board was unplugged or the image exited")
