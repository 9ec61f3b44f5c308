# SPDX-License-Identifier: Apache-2.0
"""The host program that runs a model on given arrays."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from opwest.base import timing
from opwest.base.diagnostics import Diagnostics
from opwest.base.frozen_dataclass import dataclass
from opwest.base.processes import signal_name
from opwest.project.templates import read_own_templates
from opwest.render.templates.renderer import Renderer
from opwest.runs.arrays import Runs
from opwest.runs.compile import HostCompiler, build_program, fail
from opwest.runs.processes import Status, Termination, run_program, sanitizer_report, termination_text
from opwest.runs.project_data import tensors_of


def own_renderer() -> Renderer:
    """Return a renderer of opwest's own templates."""
    return Renderer(read_own_templates(), Diagnostics())


def run_harness(
    project: Path,
    record: Mapping[str, Any],
    model: Mapping[str, Any],
    compiler: HostCompiler,
    work: Path,
    runs: Runs,
    *,
    cmsis_nn: Path | None = None,
    stops: Sequence[Mapping[str, Any]] = (),
) -> tuple[list[Path], list[str]]:
    """Build the program in `work` and run it on the inputs of `runs`.

    Return the raw files of the inputs, the outputs and, with `stops`, of their tensors; and the lines with the
    measurements. With streams, the files of the outputs contain those of all runs, otherwise those of the last one.
    `cmsis_nn` is the directory of CMSIS-NN, for operators that call it. `stops` are rows of the record's stops with
    `place` and `size` of each tensor. Raises OpwestError.
    """
    harness = _Harness(project, record, model, runs, cmsis_nn)
    ending = harness.run(compiler, work, stops)
    if not ending.is_done:
        raise harness.failure(ending, compiler, work)
    return harness.files(work, stops), ending.measures


@dataclass(frozen=True)
class _Harness:
    """The program that runs a model."""

    project: Path
    record: Mapping[str, Any]
    model: Mapping[str, Any]
    inputs: Runs
    cmsis_nn: Path | None

    def files(self, work: Path, stops: Sequence[Mapping[str, Any]] = ()) -> list[Path]:
        """Return the raw files of the inputs, the outputs, and, with `stops`, of the results of steps."""
        tensors = [*tensors_of(self.model, "input"), *tensors_of(self.model, "output")]
        return [*(work / f"{t['role']}_{t['name']}.bin" for t in tensors), *([work / "steps.bin"] if stops else [])]

    def run(
        self, compiler: HostCompiler, work: Path, stops: Sequence[Mapping[str, Any]] = (), trace: Path | None = None
    ) -> Termination:
        """Build and run. `trace` is a file for the step that follows the last finished one."""
        model, runs = self.model, self.inputs
        inputs, outputs = tensors_of(model, "input"), tensors_of(model, "output")
        rows = [
            {**t, "position": i, "buffer": buffer_of(t), "streamed": t["name"] in runs.streams and t["role"] == "input"}
            for i, t in enumerate([*inputs, *outputs])
        ]
        source = work / "host_main.c"
        source.write_bytes(
            own_renderer()(
                "host/main.c",
                model=model["name"],
                macro=model["macro"],
                runs=runs.count,
                measures=compiler.measures,
                has_streams=bool(runs.streams),
                tensors=rows,
                inputs=", ".join(t["buffer"] for t in inputs if not t["placed"]) or "0",
                outputs=", ".join(t["buffer"] for t in outputs if not t["placed"]) or "0",
                stops=stops,
                trace=trace is not None,
                pools=model.get("pools", ()),
            )
        )
        program, report = compiler.program("harness"), work / "report.txt"
        build_program(self.project, {**self.record, "models": [model]}, compiler, [source], program, self.cmsis_nn)
        files = self.files(work, stops)
        for tensor, path in zip(inputs, files, strict=False):
            path.write_bytes(runs.arrays[tensor["name"]].tobytes())
        command = [str(path) for path in (program, *files, *([trace] if trace else ()), report)]
        with timing.command(command):
            return run_program(command, report, environment(compiler))

    def failure(self, ending: Termination, compiler: HostCompiler, work: Path) -> Exception:
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
            how + self._place(ending.code, compiler, work),
            self.project,
            expected="operators that return" if is_exit else None,
            hint=None if is_exit or compiler.sanitize else "--sanitize reports the first wrong access to memory",
        )

    def _place(self, code: int, compiler: HostCompiler, work: Path) -> str:
        """Return the step that ended the program, from a second run that records steps; empty if it ends otherwise."""
        again = work / "again"
        again.mkdir()
        trace = again / "trace.txt"
        own = HostCompiler(again, compiler.bits, check_steps=True, sanitize=bool(compiler.sanitize))
        ending = self.run(own, again, trace=trace)
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
        hint="declare the argument with direction: inout, or do not write it in the operator",
    )


def buffer_of(tensor: Mapping[str, Any]) -> str:
    """Return the C expression of a tensor's memory in the harness."""
    name: str = tensor["buffer"]
    return f"workspace.{tensor['role']}.{tensor.get('member', tensor['name'])}" if tensor["placed"] else name
