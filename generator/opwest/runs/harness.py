# SPDX-License-Identifier: Apache-2.0
"""Host programs: the one that runs a model on given arrays, and the application; how they end."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from opwest.base import timing
from opwest.base.diagnostics import Diagnostics, fail
from opwest.base.frozen_dataclass import dataclass
from opwest.base.processes import signal_name
from opwest.project.templates import read_own_templates
from opwest.render.tables.layout import HOOK, NO_STEP, STATUS_NO_DEVICE
from opwest.render.templates.renderer import Renderer
from opwest.runs.arrays import Runs
from opwest.runs.compile import HostCompiler, build_program
from opwest.runs.project_data import tensors_of

_SANITIZER = re.compile(r"runtime error: |ERROR: AddressSanitizer")
_SHOWN = 12
"""Lines of a sanitizer's report."""
_KEPT = 1 << 16
"""The most bytes of standard error that are kept: the last ones."""
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
        command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as running:
        assert running.stderr is not None
        errors = b""
        try:
            while part := running.stderr.read1(_KEPT):  # type: ignore[attr-defined]
                errors = (errors + part)[-_KEPT:]
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


def own_renderer() -> Renderer:
    """Return a renderer of opwest's own templates."""
    return Renderer(read_own_templates(), Diagnostics())


def run_harness(
    project: Path,
    record: Mapping[str, Any],
    model: Mapping[str, Any],
    compiler: HostCompiler,
    runs: Runs,
    *,
    cmsis_nn: Path | None = None,
    stops: Sequence[Mapping[str, Any]] = (),
) -> tuple[list[Path], list[str]]:
    """Build the program in the directory of the compiler and run it on the inputs of `runs`.

    Return the raw files of the inputs, the outputs and, with `stops`, of their tensors; and the lines with the
    measurements. With streams, the files of the outputs contain those of all runs, otherwise those of the last one.
    `cmsis_nn` is the directory of CMSIS-NN, for operators that call it. `stops` are rows of the record's stops with
    `place` and `size` of each tensor. Raises OpwestError.
    """
    harness = _Harness(project, record, model, runs, cmsis_nn)
    ending = harness.run(compiler, stops)
    if ending.code != 0 or ending.result != "done":
        raise harness.failure(ending, compiler)
    return harness.files(compiler.work, stops), ending.measures


def main_source(
    model: Mapping[str, Any], runs: Runs, stops: Sequence[Mapping[str, Any]], *, measures: bool, trace: bool
) -> bytes:
    """Return the main program for a model of a project's record."""
    inputs, outputs = tensors_of(model, "input"), tensors_of(model, "output")
    rows = [
        {**t, "position": i, "buffer": buffer_of(t), "streamed": t["name"] in runs.streams and t["role"] == "input"}
        for i, t in enumerate([*inputs, *outputs])
    ]
    return own_renderer()(
        "host/main.c",
        model=model["name"],
        macro=model["macro"],
        runs=runs.count,
        measures=measures,
        has_streams=bool(runs.streams),
        tensors=rows,
        inputs=", ".join(t["buffer"] for t in rows if t["role"] == "input" and not t["placed"]) or "0",
        outputs=", ".join(t["buffer"] for t in rows if t["role"] == "output" and not t["placed"]) or "0",
        stops=stops,
        trace=trace,
        pools=model.get("pools", ()),
    )


@dataclass(frozen=True)
class _Harness:
    """The program that runs a model."""

    project: Path
    record: Mapping[str, Any]
    model: Mapping[str, Any]
    inputs: Runs
    cmsis_nn: Path | None

    def files(self, work: Path, stops: Sequence[Mapping[str, Any]]) -> list[Path]:
        """Return the raw files of the inputs, the outputs, and, with `stops`, of the results of steps."""
        tensors = [*tensors_of(self.model, "input"), *tensors_of(self.model, "output")]
        return [*(work / f"{t['role']}_{t['name']}.bin" for t in tensors), *([work / "steps.bin"] if stops else [])]

    def run(
        self, compiler: HostCompiler, stops: Sequence[Mapping[str, Any]] = (), trace: Path | None = None
    ) -> Termination:
        """Build and run. `trace` is a file for the step that follows the last finished one."""
        model, runs, work = self.model, self.inputs, compiler.work
        source = work / "host_main.c"
        source.write_bytes(main_source(model, runs, stops, measures=compiler.measures, trace=trace is not None))
        program, report = compiler.program("harness"), work / "report.txt"
        build_program(self.project, {**self.record, "models": [model]}, compiler, [source], program, self.cmsis_nn)
        files = self.files(work, stops)
        for tensor, path in zip(tensors_of(model, "input"), files, strict=False):
            path.write_bytes(runs.arrays[tensor["name"]].tobytes())
        command = [str(path) for path in (program, *files, *([trace] if trace else ()), report)]
        with timing.command(command):
            return run_program(command, report, environment(compiler))

    def failure(self, ending: Termination, compiler: HostCompiler) -> Exception:
        """Return the error of a program that has not finished."""
        changed = changed_input(self.project, compiler)
        if changed is not None:
            return changed
        shown = sanitizer_report(ending.errors)
        if shown is not None:
            return fail(f"the sanitizer reported a fault:\n{shown}", self.project)
        kind, _, rest = ending.result.partition(" ")
        if kind == "failed":
            return fail(Status(*map(int, rest.split())).text(self.model), self.project)
        if kind == "error":
            return fail(f"the program of model '{self.model['name']}' failed: {rest}", self.project)
        if kind == "done":
            return fail(f"{termination_text(ending.code)} after the run", self.project)
        is_exit = signal_name(ending.code) is None
        how = f"the program exited with code {ending.code}" if is_exit else termination_text(ending.code)
        return fail(
            how + self._place(ending.code, compiler),
            self.project,
            expected="operators that return" if is_exit else None,
            hint=None if is_exit or compiler.sanitize else "--sanitize reports the first wrong access to memory",
        )

    def _place(self, code: int, compiler: HostCompiler) -> str:
        """Return the step that ended the program, from a second run that records steps; empty if it ends otherwise."""
        again = compiler.work / "again"
        again.mkdir()
        trace = again / "trace.txt"
        own = HostCompiler(again, compiler.bits, check_steps=True, sanitize=bool(compiler.sanitize))
        ending = self.run(own, trace=trace)
        try:
            step = int(trace.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return ""
        names = self.model["steps"]
        return f" in step {step} ({names[step]})" if ending.code == code and step < len(names) else ""


def environment(compiler: HostCompiler) -> dict[str, str]:
    """Return the environment of the program: leaks are not reported, because emulated devices live until its end."""
    given = {**os.environ, "OPWEST_INPUT_CHANGE": str(_change_file(compiler))}
    if compiler.sanitize:
        given["ASAN_OPTIONS"] = f"detect_leaks=0:{given.get('ASAN_OPTIONS', '')}"
        given["UBSAN_OPTIONS"] = f"print_stacktrace=1:{given.get('UBSAN_OPTIONS', '')}"
    return given


def _change_file(compiler: HostCompiler) -> Path:
    return compiler.work.absolute() / "input_change.txt"


def changed_input(project: Path, compiler: HostCompiler) -> Exception | None:
    """Return the error of a step that wrote an input or a constant; None without one."""
    try:
        text = _change_file(compiler).read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return None
    return fail(
        text.strip(),
        project,
        expected="an operator that writes only arguments with direction: out, inout or scratch",
        hint="declare the argument with direction: out, or inout if the operator also reads it; or do not write it",
    )


def buffer_of(tensor: Mapping[str, Any]) -> str:
    """Return the C expression of a tensor's memory in the harness."""
    name: str = tensor["buffer"]
    return f"workspace.{tensor['role']}.{tensor.get('member', tensor['name'])}" if tensor["placed"] else name
