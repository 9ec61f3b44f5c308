# SPDX-License-Identifier: Apache-2.0
"""Commands and responses of Zephyr's shell over a serial device: response lines that start with @opwest."""

from __future__ import annotations

import re
import time

from opwest.runs.link import (
    LOCKED_HINT,
    NO_SERVICE_HINT,
    Action,
    LinkError,
    LostError,
    Report,
    Served,
    Tensor,
    UnknownCommandError,
    check_tensor,
    check_version,
    printable,
    raise_if_stopped,
)
from opwest.runs.ports import open_device
from opwest.runs.profile import Profile, parse_measures

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
        return [answer.decode(errors="replace") for answer in _ANSWER.findall(self._received)]

    def timeout_error(self, awaited: str, seconds: float) -> LinkError:
        """Return the error for a missing response."""
        text = printable(self._received)
        last = f"received {text!r} last" if text else "received nothing"
        return LinkError(f"{self.device}: timeout after {seconds:g} s waiting for {awaited}; {last}", NO_SERVICE_HINT)

    def _drain(self) -> None:
        """Discard what has been received; tests replace it."""
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


_ATTEMPTS = 3
_AGAIN_SECONDS = 1.0


class ShellLink(ShellConnection):
    """The shell of an image with the service of models. Implements Link."""

    _chunk = 1
    """The largest part of a tensor in a command, bytes."""

    def describe(self) -> list[Served]:
        """Wait for the image and return its models."""
        end = time.monotonic() + self.timeout
        while True:
            left = end - time.monotonic()
            if left <= 0:
                raise self.timeout_error("the response to 'opwest describe'", self.timeout)
            lines = self.ask("describe", min(left, _AGAIN_SECONDS), b"end")
            if lines is not None:
                models = self._models(lines)
                if models is not None:
                    return models

    def _models(self, lines: list[str]) -> list[Served] | None:
        """Return the models in a response, None if a line is lost."""
        models: list[tuple[str, list[Tensor]]] = []
        count = None
        for line in lines:
            try:
                kind, *words = line.split()
                if kind == "service":
                    version, count, self._chunk = map(int, words)
                    check_version(version, self.device)
                elif kind == "model":
                    models.append((words[0], []))
                elif kind in ("input", "output", "buffer", "arguments"):
                    name, dtype, size, *shape = words
                    tensor = Tensor(name, kind, dtype, int(size), tuple(map(int, shape)))
                    check_tensor(tensor, self.device)
                    models[-1][1].append(tensor)
            except (ValueError, IndexError):
                return None
        if count != len(models):
            return None
        return [Served(index, name, tuple(tensors)) for index, (name, tensors) in enumerate(models)]

    def act(self, model: Served, action: Action) -> Report:
        """Open, run or close a model."""
        return self._report(f"{action.name.lower()} {model.name}")

    def run_until(self, model: Served, point: int) -> Report:
        """Run a model until a point ends, or continue a stopped run; point 0 is the end of the run."""
        return self._report(f"until {model.name} {point}", stop=f"stopped {point}")

    def call(self, model: Served, operator: int, device: int) -> Report:
        """Call an operator of an open model on the written argument memory; `device` may be NO_DEVICE."""
        return self._report(f"call {model.name} {operator} {device}")

    def _report(self, command: str, stop: str | None = None) -> Report:
        """Send an action, once; return its result. `stop` is the response of a run that has stopped."""
        lines = self.ask(command, self.timeout, b"done|error" if stop is None else b"done|stopped|error")
        if lines is None:
            raise self.timeout_error(f"the end of 'opwest {command}'", self.timeout)
        try:
            kind, *words = lines[-1].split()
            if lines[-1].strip() == stop:
                return Report(0, "", 0, "", "", "", -1, 0, stopped=True)
            if kind != "done":
                raise ValueError
            result, error, code, hook, device, operator, step, nanoseconds = ("" if w == "-" else w for w in words)
            return Report(int(result), error, int(code), hook, device, operator, int(step), int(nanoseconds))
        except ValueError:
            raise LinkError(f"{self.device}: unexpected response to 'opwest {command}': {lines[-1]!r}") from None

    def write(self, model: Served, tensor: int, offset: int, data: bytes) -> int:
        """Write the first bytes of `data` to a tensor; return the number of bytes written."""
        data = data[: self._chunk]
        name = model.tensors[tensor].name
        what = f"write {model.name} {name} {offset} {data.hex()}"
        self._ask_again(what, f"'opwest write' of input '{name}' at {offset}", rf"wrote {offset} {len(data)}")
        return len(data)

    def read(self, model: Served, tensor: int, offset: int) -> bytes:
        """Return the bytes of a tensor from `offset` on, as many as one response holds."""
        name = model.tensors[tensor].name
        awaited = f"'opwest read' of tensor '{name}' at {offset}"
        for _ in range(_ATTEMPTS):
            match = self._ask_again(f"read {model.name} {name} {offset}", awaited, rf"data {offset} (\d+) ([0-9a-f]*)")
            size, text = match.groups()
            if len(text) == 2 * int(size):  # otherwise characters were lost
                return bytes.fromhex(text)
        raise LinkError(f"{self.device}: truncated responses to {awaited}")

    def measures(self, model: Served) -> Profile:
        """Return the measurements of a model's run since the model was opened."""
        lines: list[str] | None = None
        for _ in range(_ATTEMPTS):
            lines = self.ask(f"measures {model.name}", self.timeout / _ATTEMPTS, b"end|error")
            profile = parse_measures(lines) if lines is not None else None
            if profile is not None:
                return profile
        if lines is None:
            raise self.timeout_error(f"the end of 'opwest measures {model.name}'", self.timeout)
        raise LinkError(f"{self.device}: truncated responses to 'opwest measures {model.name}'")

    def _ask_again(self, command: str, awaited: str, expected: str) -> re.Match[str]:
        """Send a repeatable command until the response matches."""
        lines: list[str] | None = None
        for _ in range(_ATTEMPTS):
            lines = self.ask(command, self.timeout / _ATTEMPTS, b"wrote|data|error")
            if lines is not None:
                match = re.fullmatch(expected, lines[-1])
                if match:
                    return match
        if lines is None:
            raise self.timeout_error(f"the response to {awaited}", self.timeout)
        raise LinkError(f"{self.device}: unexpected response to {awaited}: {lines[-1]!r}")
