# SPDX-License-Identifier: Apache-2.0
"""`opwest run --host`: the emitted code on this machine, fed with arrays or with the application's own main()."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from opwest.diagnostics import Diagnostics
from opwest.host.compile import HostCompiler, build_program, fail
from opwest.host.profile import keep_profile, parse_measures
from opwest.host.project_data import choose_model, keep_outputs, make_folder, project_record, read_inputs, tensors_of
from opwest.model.dtypes import DTYPES
from opwest.model.elements import numbers_from
from opwest.render.templates.environment import render
from opwest.result import Result

HOOKS = ("operator", "ready", "activate", "open", "close", "deactivate", "sync", "cache")
"""enum opwest_hook of the runtime."""


def run_on_host(options: argparse.Namespace, faults: Diagnostics) -> Result:
    """Build and run; with inputs return the outputs, without any let the application print what it prints."""
    project: Path = options.directory
    if str(project).startswith("-"):  # compilers would take its files for options
        project = project.absolute()
    record = project_record(project)
    if record is None:
        raise fail(
            "this is not a folder that opwest generated",
            project,
            hint="opwest generate MANIFEST -o DIR makes one",
        )
    if options.model is not None:
        choose_model(options.model, project, record)  # an unknown name is a fault, whatever else is asked for
    with tempfile.TemporaryDirectory(prefix="opwest-") as work:
        profile = options.profile or options.output_profile is not None
        compiler = HostCompiler(Path(work), options.bits, profile=profile)
        if options.input or options.output_dir or profile:
            return _run_model(options, project, record, compiler, Path(work), faults)
        return _run_application(options, project, record, compiler, Path(work))


def _run_application(
    options: argparse.Namespace, project: Path, record: dict[str, Any], compiler: HostCompiler, work: Path
) -> Result:
    sources = sorted((project / "src").glob("*.c")) + sorted((project / "src").glob("*.S"))
    if not sources:
        raise fail("there is no source in src/", project, hint="give --input to run the model without an application")
    program = work / "application"
    build_program(project, record, compiler, sources, program)
    done = subprocess.run(
        [program], check=False, stdout=subprocess.PIPE if options.json else None, text=True, errors="replace"
    )
    sys.stdout.flush()
    if done.returncode != 0:
        raise fail(_ended(done.returncode), project)
    return Result("", {"returncode": 0, "stdout": done.stdout})


def _ended(returncode: int) -> str:
    if returncode < 0:
        import signal

        return f"the program was ended by {signal.Signals(-returncode).name}"
    return f"the program returned {returncode}"


def _run_model(
    options: argparse.Namespace,
    project: Path,
    record: dict[str, Any],
    compiler: HostCompiler,
    work: Path,
    faults: Diagnostics,
) -> Result:
    model = choose_model(options.model, project, record)
    inputs, outputs = tensors_of(model, "input"), tensors_of(model, "output")
    arrays = read_inputs(options.input, inputs, faults)
    faults.raise_if_errors()
    if options.output_dir:
        make_folder(options.output_dir)
    harness = work / "host_main.c"
    rows = [{**t, "position": i + 1, "buffer": _buffer(t)} for i, t in enumerate([*inputs, *outputs])]
    harness.write_bytes(
        render(
            "host/main.c",
            model=model["name"],
            macro=model["macro"],
            repeat=options.repeat,
            tensors=rows,
            inputs=", ".join(t["buffer"] for t in inputs if not t["placed"]) or "0",
            outputs=", ".join(t["buffer"] for t in outputs if not t["placed"]) or "0",
        )
    )
    program = work / "harness"
    build_program(project, {**record, "models": [model]}, compiler, [harness], program)
    paths = [work / f"{row['role']}_{row['name']}.bin" for row in rows]
    for tensor, path in zip(inputs, paths, strict=False):
        path.write_bytes(arrays[tensor["name"]].tobytes())
    done = subprocess.run([program, *paths], check=False, capture_output=True, text=True, errors="replace")
    if done.returncode != 0:
        raise _failure(project, model, done)
    results = {
        tensor["name"]: numbers_from(path.read_bytes(), DTYPES[tensor["dtype"]], tensor["shape"])
        for tensor, path in zip(outputs, paths[len(inputs) :], strict=True)
    }
    lines = keep_outputs(results, {t["name"]: t["dtype"] for t in outputs}, options.output_dir)
    values = {name: array.tolist() for name, array in results.items()}
    told: dict[str, Any] = {"model": model["name"], "outputs": values}
    if compiler.profile:
        profile = parse_measures(
            line.removeprefix("@opwest ") for line in done.stdout.splitlines() if line.startswith("@opwest ")
        )
        if profile is None:
            raise fail(f"the program of model {model['name']} told no measures; it printed {done.stdout!r}", project)
        profile = profile.labelled(model["name"], "host", "host", model["devices"])
        lines += keep_profile(profile, options.output_profile)
        told["profile"] = profile.as_json()
    return Result("\n".join(lines), told)


def _buffer(tensor: dict[str, Any]) -> str:
    """Return the C expression of a tensor's memory in the harness."""
    name: str = tensor["buffer"]
    return f"workspace.{tensor['role']}.{tensor['name']}" if tensor["placed"] else name


def _failure(project: Path, model: dict[str, Any], done: subprocess.CompletedProcess[str]) -> Exception:
    """Return the error for a harness that failed: code 3 comes with what `run` returned, the step and its code."""
    last = done.stderr.strip().splitlines()[-1] if done.stderr.strip() else ""
    if done.returncode == 3:
        rc, step, code, hook, device = (int(word) for word in last.split())
        names, devices = model["steps"], model["devices"]
        where = f" in step {step} ({names[step]})" if step < len(names) else ""
        if hook:
            where += f": {HOOKS[hook]} of device {devices[device]} returned {code}"
        elif where:
            where += f", whose operator returned {code}"
        return fail(f"{model['name']}_run returned {rc} ({os.strerror(-rc)}){where}", project)
    return fail(f"{_ended(done.returncode)} {last}".strip(), project)
