# SPDX-License-Identifier: Apache-2.0
"""The service over Zephyr's shell: text commands, and response lines that start with @opwest."""

from __future__ import annotations

import re
import time

from opwest.board.link import Action, LinkError, Report, Served, Tensor, check_tensor, check_version
from opwest.board.shell_connection import ShellConnection
from opwest.host.profile import Profile, parse_measures

_ATTEMPTS = 3
_AGAIN_SECONDS = 1.0


class ShellLink:
    """The shell behind a serial device. Implements Link."""

    def __init__(self, device: str, timeout: float) -> None:
        self.device = device
        self._timeout = timeout
        self._chunk = 1
        self._connection = ShellConnection(device, timeout)
        self._ask = self._connection.ask

    def describe(self) -> list[Served]:
        """Wait for the image and return its models."""
        end = time.monotonic() + self._timeout
        while True:
            left = end - time.monotonic()
            if left <= 0:
                raise self._connection.timeout_error("the response to 'opwest describe'", self._timeout)
            lines = self._ask("describe", min(left, _AGAIN_SECONDS), b"end")
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
        lines = self._ask(command, self._timeout, b"done|error" if stop is None else b"done|stopped|error")
        if lines is None:
            raise self._connection.timeout_error(f"the end of 'opwest {command}'", self._timeout)
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
            found = self._ask_again(f"read {model.name} {name} {offset}", awaited, rf"data {offset} (\d+) ([0-9a-f]*)")
            size, text = found.groups()
            if len(text) == 2 * int(size):  # otherwise characters were lost
                return bytes.fromhex(text)
        raise LinkError(f"{self.device}: truncated responses to {awaited}")

    def measures(self, model: Served) -> Profile:
        """Return the measurements of a model's run since the model was opened."""
        lines: list[str] | None = None
        for _ in range(_ATTEMPTS):
            lines = self._ask(f"measures {model.name}", self._timeout / _ATTEMPTS, b"end|error")
            profile = parse_measures(lines) if lines is not None else None
            if profile is not None:
                return profile
        if lines is None:
            raise self._connection.timeout_error(f"the end of 'opwest measures {model.name}'", self._timeout)
        raise LinkError(f"{self.device}: truncated responses to 'opwest measures {model.name}'")

    def disconnect(self) -> None:
        """Close the device."""
        self._connection.disconnect()

    def _ask_again(self, command: str, awaited: str, expected: str) -> re.Match[str]:
        """Send a repeatable command until the response matches."""
        lines: list[str] | None = None
        for _ in range(_ATTEMPTS):
            lines = self._ask(command, self._timeout / _ATTEMPTS, b"wrote|data|error")
            if lines is not None:
                found = re.fullmatch(expected, lines[-1])
                if found:
                    return found
        if lines is None:
            raise self._connection.timeout_error(f"the response to {awaited}", self._timeout)
        raise LinkError(f"{self.device}: unexpected response to {awaited}: {lines[-1]!r}")
