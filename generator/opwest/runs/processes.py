# SPDX-License-Identifier: Apache-2.0
"""The endings of host programs: run without their output, and describe how they ended."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from opwest.base.frozen_dataclass import dataclass
from opwest.base.processes import signal_name
from opwest.render.tables.layout import HOOK, NO_STEP, STATUS_NO_DEVICE

_SANITIZER = re.compile(r"runtime error: |ERROR: AddressSanitizer")
_SHOWN = 12
"""Lines of a sanitizer's report."""
_KEPT = 1 << 16
"""Bytes of standard error."""
MAX_OUTPUT = 1 << 26
"""Bytes of the standard output of an application, for --json."""
_RESULT = re.compile(r"failed(?: -?\d{1,10}){5}|error .*|done")
_MAX_ERRNO = 4095


@dataclass(frozen=True)
class Termination:
    """How a program ended."""

    code: int
    result: str
    """The last line of its result: done, `failed` with the status, `error` with a reason; empty without a result."""
    measures: list[str]
    errors: str
    """The end of its standard error."""

    @property
    def is_done(self) -> bool:
        """Whether the program ended as it should."""
        return self.code == 0 and self.result == "done"


@dataclass(frozen=True)
class Status:
    """The content of struct opwest_status after a failed call, and the result of the call."""

    result: int
    step: int
    code: int
    hook: int
    device: int

    def text(self, model: Mapping[str, Any]) -> str:
        """Return the error message for a model of the record."""
        names, devices = model["steps"], model["devices"]
        text = f"{model['name']}_run returned {self.result}"
        if 0 < -self.result <= _MAX_ERRNO:
            text += f" ({os.strerror(-self.result)})"
        is_known = self.step < len(names) or self.step == NO_STEP.value
        is_device = self.device < len(devices) or self.device == STATUS_NO_DEVICE.value
        if not self.code or not is_known or not is_device or self.hook >= len(HOOK.members):
            return f"{text}, and the status in its workspace is damaged"
        if self.step < len(names):
            text += f" in step {self.step} ({names[self.step]})"
        if self.hook and self.device < len(devices):
            text += f": {HOOK.members[self.hook]} of device {devices[self.device]} returned {self.code}"
        elif self.hook:
            text += f": invalid {HOOK.members[self.hook]}"
        elif self.step < len(names):
            text += f": the operator returned {self.code}"
        return text


def run_program(command: Sequence[str], report: Path, environment: Mapping[str, str] | None) -> Termination:
    """Run the program of a model, which writes its result to `report`, without its standard output."""
    with subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    ) as running:
        assert running.stderr is not None
        try:
            errors = _end(running.stderr)
        except BaseException:
            running.kill()
            raise
    try:
        lines = report.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    is_whole = bool(lines) and _RESULT.fullmatch(lines[-1]) is not None
    text = errors.decode(errors="replace")
    return Termination(running.returncode, lines[-1] if is_whole else "", lines[:-1], text)


def run_application(program: Path, environment: Mapping[str, str] | None, *, keep: bool) -> tuple[int, str | None]:
    """Run an application; return its exit code and, with `keep`, its output up to one byte above MAX_OUTPUT."""
    with subprocess.Popen([program], env=environment, stdout=subprocess.PIPE if keep else None) as running:
        output = None
        try:
            if running.stdout is not None:
                output = running.stdout.read(MAX_OUTPUT + 1).decode(errors="replace")
                if len(output) > MAX_OUTPUT:
                    running.kill()
            running.wait()
        except BaseException:
            running.kill()
            raise
    return running.returncode, output


def _end(stream: IO[bytes]) -> bytes:
    """Read to the end; return the last bytes."""
    kept = b""
    while part := stream.read1(_KEPT):  # type: ignore[attr-defined]
        kept = (kept + part)[-_KEPT:]
    return kept


def sanitizer_report(output: str) -> str | None:
    """Return the first lines of a sanitizer's report in the output of a program; None without one."""
    lines = output.splitlines()
    first = next((i for i, line in enumerate(lines) if _SANITIZER.search(line)), None)
    if first is None:
        return None
    return "\n".join(f"  {line}" for line in lines[first : first + _SHOWN] if line.strip())


def termination_text(returncode: int) -> str:
    """Return how a program ended."""
    by = signal_name(returncode)
    return f"the program was terminated by {by}" if by else f"the program returned {returncode}"
