# SPDX-License-Identifier: Apache-2.0
"""Commands and responses of Zephyr's shell over a serial device: response lines that start with @opwest."""

from __future__ import annotations

import fcntl
import os
import re
import select
import termios
import time
import tty

from opwest.board.link import LOCKED_HINT, NO_SERVICE_HINT, LinkError, LostError, UnknownCommandError, printable

_ANSWER = re.compile(rb"@opwest ([^\r\n]*)\r?\n")
_UNKNOWN = re.compile(rb"opwest: command not found|Please specify a subcommand|wrong parameter count")
_LOCKED = re.compile(rb"@opwest error -13 EACCES\b")
_ESCAPES = re.compile(rb"\x1b\[[0-9;]*[A-Za-z]")
_KEPT = 1 << 16


_SLOWEST_SHOWN = 9600
_RATES = sorted(int(name[1:]) for name in vars(termios) if re.fullmatch(r"B[1-9]\d*", name))


class ShellConnection:
    """The shell behind a serial device; without a baud rate, the device keeps its own."""

    def __init__(self, device: str, timeout: float, baud: int | None = None) -> None:
        self.device = device
        self.timeout = timeout
        self._received = b""
        if baud is not None and baud not in _RATES:
            raise LinkError(
                f"--baud: unsupported baud rate {baud}",
                f"this machine supports {', '.join(str(rate) for rate in _RATES if rate >= _SLOWEST_SHOWN)}",
            )
        try:
            self._file = os.open(device, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
        except OSError as error:
            raise LinkError(f"cannot open the serial device '{device}': {error.strerror}") from error
        try:
            self._set_up(baud)
        except BaseException:
            os.close(self._file)
            raise

    def _set_up(self, baud: int | None) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            tty.setraw(self._file, termios.TCSANOW)
            if baud is None:
                return
            speed = getattr(termios, f"B{baud}")
            attributes = termios.tcgetattr(self._file)
            attributes[tty.ISPEED] = attributes[tty.OSPEED] = speed
            termios.tcsetattr(self._file, termios.TCSANOW, attributes)
            accepted = termios.tcgetattr(self._file)[tty.OSPEED]  # tcsetattr succeeds if it can set anything
        except OSError as error:
            raise LinkError(f"cannot open the serial device '{self.device}': {error.strerror}") from error
        except termios.error as error:
            raise LinkError(f"cannot open the serial device '{self.device}': {error.args[-1]}") from error
        if accepted != speed:
            raise LinkError(f"--baud: the serial device '{self.device}' does not support the baud rate {baud}")

    def disconnect(self) -> None:
        """Close the device."""
        os.close(self._file)

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
        try:
            if not select.select([self._file], [], [], seconds)[0]:
                return False
            data = os.read(self._file, 4096)
        except BlockingIOError:
            return False
        except OSError as error:
            raise self._lost_error() from error
        if not data:
            raise self._lost_error()
        self._received = _ESCAPES.sub(b"", self._received + data)[-_KEPT:]
        return True

    def _send(self, data: bytes) -> None:
        end = time.monotonic() + self.timeout
        while data:
            left = end - time.monotonic()
            if left <= 0:
                raise LinkError(
                    f"{self.device}: cannot send a command within {self.timeout:g} s: the image does not read its UART"
                )
            try:
                if select.select([], [self._file], [], left)[1]:
                    data = data[os.write(self._file, data) :]
            except BlockingIOError:
                continue
            except OSError as error:
                raise self._lost_error() from error

    def _lost_error(self) -> LinkError:
        return LostError(f"lost the serial device '{self.device}': the board was unplugged or the image exited")
