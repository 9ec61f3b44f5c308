# SPDX-License-Identifier: Apache-2.0
"""The host program that runs a model on given arrays."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from opwest import activity
from opwest.host.arrays import Runs
from opwest.host.compile import HostCompiler, build_program, fail
from opwest.host.own_templates import own_renderer
from opwest.host.project_data import tensors_of
from opwest.render.records.layout import HOOK
from opwest.system.processes import signal_name

_SANITIZER = re.compile(r"runtime error: |ERROR: AddressSanitizer")
_SHOWN = 12
"""Lines of a sanitizer's report."""


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
) -> tuple[list[Path], str]:
    """Build the program in `work` and run it on the inputs of `runs`.

    Return the raw files of the inputs, the outputs and, with `stops`, of their tensors; and the standard output. With
    streams, the files of the outputs contain those of all runs, otherwise those of the last one.
    `cmsis_nn` is the directory of CMSIS-NN, for operators that call it. `stops` are rows of the record's stops with
    `place` and `size` of each tensor. Raises OpwestError.
    """
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
            has_streams=bool(runs.streams),
            tensors=rows,
            inputs=", ".join(t["buffer"] for t in inputs if not t["placed"]) or "0",
            outputs=", ".join(t["buffer"] for t in outputs if not t["placed"]) or "0",
            stops=stops,
            pools=model.get("pools", ()),
        )
    )
    program = compiler.program("harness")
    build_program(project, {**record, "models": [model]}, compiler, [source], program, cmsis_nn)
    paths = [work / f"{row['role']}_{row['name']}.bin" for row in rows]
    for tensor, path in zip(inputs, paths, strict=False):
        path.write_bytes(runs.arrays[tensor["name"]].tobytes())
    if stops:
        paths.append(work / "steps.bin")
    with activity.command([program, *paths]):
        done = subprocess.run(
            [program, *paths],
            check=False,
            capture_output=True,
            text=True,
            encoding="utf-8",
            errors="replace",
            env=environment(compiler),
        )
    if done.returncode != 0:
        raise _sanitized(project, done.stderr) or _failure(project, model, done)
    return paths, done.stdout


def environment(compiler: HostCompiler) -> dict[str, str] | None:
    """Return the environment of the program: leaks are not reported, because emulated devices live until its end."""
    if not compiler.sanitize:
        return None
    given = os.environ
    return {
        **given,
        "ASAN_OPTIONS": f"detect_leaks=0:{given.get('ASAN_OPTIONS', '')}",
        "UBSAN_OPTIONS": f"print_stacktrace=1:{given.get('UBSAN_OPTIONS', '')}",
    }


def _sanitized(project: Path, output: str) -> Exception | None:
    """Return the error of a sanitizer in the output of a program, with its first lines; None without one."""
    lines = output.splitlines()
    first = next((i for i, line in enumerate(lines) if _SANITIZER.search(line)), None)
    if first is None:
        return None
    shown = "\n".join(f"  {line}" for line in lines[first : first + _SHOWN] if line.strip())
    return fail(f"the sanitizer reported a fault:\n{shown}", project)


def ended(returncode: int) -> str:
    """Return how a program ended."""
    by = signal_name(returncode)
    return f"the program was terminated by {by}" if by else f"the program returned {returncode}"


def buffer_of(tensor: Mapping[str, Any]) -> str:
    """Return the C expression of a tensor's memory in the harness."""
    name: str = tensor["buffer"]
    return f"workspace.{tensor['role']}.{tensor.get('member', tensor['name'])}" if tensor["placed"] else name


def _failure(project: Path, model: Mapping[str, Any], done: subprocess.CompletedProcess[str]) -> Exception:
    """Return the error of a failed harness; with exit code 3, its last line has the result, step and code of `run`."""
    last = done.stderr.strip().splitlines()[-1] if done.stderr.strip() else ""
    if done.returncode == 3:
        rc, step, code, hook, device = (int(word) for word in last.split())
        names, devices = model["steps"], model["devices"]
        where = f" in step {step} ({names[step]})" if step < len(names) else ""
        if hook and device < len(devices):
            where += f": {HOOK.members[hook]} of device {devices[device]} returned {code}"
        elif hook:
            where += f": invalid {HOOK.members[hook]}"
        elif where:
            where += f": the operator returned {code}"
        return fail(f"{model['name']}_run returned {rc} ({os.strerror(-rc)}){where}", project)
    return fail(f"{ended(done.returncode)} {last}".strip(), project)
