# SPDX-License-Identifier: Apache-2.0
"""`opwest run --host`: run the emitted code on this machine, on given arrays or with the application's main()."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

from opwest.base import timing
from opwest.base.diagnostics import Diagnostics, fail
from opwest.base.result import Result
from opwest.model.types.dtypes import DTYPES, numbers_from
from opwest.objects.facts import SOURCE_SUFFIXES
from opwest.runs.arrays import (
    accuracy_line,
    classes_of,
    keep_outputs,
    make_folder,
    read_labels,
    read_references,
    read_runs,
)
from opwest.runs.compare import differences, read_tolerances
from opwest.runs.compile import HostCompiler, build_program
from opwest.runs.harness import MAX_OUTPUT, changed_input, environment, run_application, run_harness, termination_text
from opwest.runs.profile import is_profiled, keep_profile, parse_measures
from opwest.runs.project_data import choose_model, required_record, tensors_of


def run_on_host(options: argparse.Namespace, faults: Diagnostics) -> Result:
    """Build and run. With inputs, return the outputs; without, run the application's main()."""
    project: Path = options.directory
    if str(project).startswith("-"):  # a compiler would parse its files as options
        project = project.absolute()
    record = required_record(project)
    if options.model is not None:
        choose_model(options.model, project, record)  # report an unknown name in every mode
    with tempfile.TemporaryDirectory(prefix="opwest-") as work:
        profile = is_profiled(options)
        compiler = HostCompiler(Path(work), options.bits, profile=profile, sanitize=options.sanitize)
        if options.input or options.stream or options.dataset or options.reference or options.output_dir or profile:
            return _run_model(options, project, record, compiler, faults)
        return _run_application(options, project, record, compiler)


def _run_application(
    options: argparse.Namespace, project: Path, record: dict[str, Any], compiler: HostCompiler
) -> Result:
    sources = sorted(p for p in (project / "src").glob("*") if p.suffix in (*SOURCE_SUFFIXES, ".S"))
    if not sources:
        raise fail("no source file in src/", project, hint="give --input to run the model without an application")
    program = compiler.program("application")
    build_program(project, record, compiler, sources, program, options.cmsis_nn)
    with timing.command([program]):
        code, output = run_application(program, environment(compiler), keep=options.json)
    sys.stdout.flush()
    if output is not None and len(output) > MAX_OUTPUT:
        raise fail(f"the application printed more than {MAX_OUTPUT >> 20} MiB", project, hint="omit --json")
    if code != 0:
        raise changed_input(project, compiler) or fail(termination_text(code), project)
    return Result("", {"exit_code": 0, "stdout": output})


def _run_model(
    options: argparse.Namespace, project: Path, record: dict[str, Any], compiler: HostCompiler, faults: Diagnostics
) -> Result:
    model = choose_model(options.model, project, record)
    inputs, outputs = tensors_of(model, "input"), tensors_of(model, "output")
    if options.dataset and model.get("state_bytes"):
        faults.error(
            f"--dataset: model '{model['name']}' has state", hint="--stream runs the frames of one sequence in order"
        )
    runs = read_runs(options.input, [*options.stream, *options.dataset], options.repeat, inputs, faults)
    target, _, path = (options.labels or "").rpartition("=")
    labels = read_labels(Path(path) if path else None, target or None, outputs, runs.count, faults)
    references = read_references(options.reference, outputs, runs, faults)
    tolerances = read_tolerances(options.tolerance, model, references, faults)
    faults.raise_if_errors()
    if options.output_dir:
        make_folder(options.output_dir)
    paths, measures = run_harness(project, record, model, compiler, runs, cmsis_nn=options.cmsis_nn)
    frames = [runs.count] if runs.streams else []
    results = {
        tensor["name"]: numbers_from(path.read_bytes(), DTYPES[tensor["dtype"]], [*frames, *tensor["shape"]])
        for tensor, path in zip(outputs, paths[len(inputs) :], strict=True)
    }
    lines = keep_outputs(results, outputs, options.output_dir, frames=bool(runs.streams))
    errors = differences(results, references, tolerances)
    lines += [f"{name}: {error.as_text()}" for name, error in errors.items()]
    shown: dict[str, Any] = {
        "model": model["name"],
        "outputs": {name: array.tolist() for name, array in results.items()},
        "errors": {name: error.as_json() for name, error in errors.items()},
        "clock": "host",
    }
    if labels is not None:
        name, classes = labels
        line, shown["accuracy"] = accuracy_line(name, classes_of(results[name]), classes)
        lines.append(line)
    if compiler.measures:
        profile = parse_measures(measures)
        if profile is None:
            raise fail(f"the measurements of model '{model['name']}' are damaged: {measures!r:.300}", project)
        profile = profile.labelled(model["name"], "host", "host", model["devices"])
        lines += keep_profile(profile, options.output_profile)
        shown["profile"] = profile.as_json()
    return Result("\n".join(lines), shown, status=int(any(error.beyond for error in errors.values())))
