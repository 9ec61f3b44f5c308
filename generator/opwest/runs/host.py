# SPDX-License-Identifier: Apache-2.0
"""Run the emitted code on this machine, on given arrays or with the application's main()."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from opwest.base import timing
from opwest.base.diagnostics import Diagnostics, fail
from opwest.model.types.dtypes import DTYPES, numbers_from
from opwest.objects.facts import SOURCE_SUFFIXES
from opwest.runs.arrays import classes_of, make_folder, read_labels, read_references, read_runs, write_outputs
from opwest.runs.compare import differences, read_tolerances
from opwest.runs.compile import HostCompiler, build_program
from opwest.runs.harness import MAX_OUTPUT, changed_input, environment, run_application, run_harness, termination_text
from opwest.runs.options import RunOptions
from opwest.runs.profile import is_profiled, keep_profile, parse_measures
from opwest.runs.project_data import choose_model, required_record, tensors_of
from opwest.runs.results import Accuracy, Run


def run_on_host(options: RunOptions, faults: Diagnostics) -> Run:
    """Build and run. With inputs, return the outputs; without, run the application's main()."""
    project = options.directory
    if str(project).startswith("-"):  # a compiler would parse its files as options
        project = project.absolute()
    record = required_record(project)
    if options.model is not None:
        choose_model(options.model, project, record)  # report an unknown name in every mode
    with tempfile.TemporaryDirectory(prefix="opwest-") as work:
        profile = is_profiled(options)
        compiler = HostCompiler(Path(work), options.bits, profile=profile, sanitize=options.sanitize)
        if runs_model(options):
            return _run_model(options, project, record, compiler, faults)
        return _run_application(options, project, record, compiler)


def runs_model(options: RunOptions) -> bool:
    """Whether the options request a run of a model, in place of the application's main()."""
    arrays = (options.inputs, options.streams, options.dataset, options.references)
    return any(arrays) or options.output_dir is not None or is_profiled(options)


def _run_application(options: RunOptions, project: Path, record: dict[str, Any], compiler: HostCompiler) -> Run:
    sources = sorted(p for p in (project / "src").glob("*") if p.suffix in (*SOURCE_SUFFIXES, ".S"))
    if not sources:
        raise fail("no source file in src/", project, hint="give --input to run the model without an application")
    program = compiler.program("application")
    build_program(project, record, compiler, sources, program, options.cmsis_nn)
    with timing.command([program]):
        code, output = run_application(program, environment(compiler), keep=options.capture)
    sys.stdout.flush()
    if output is not None and len(output) > MAX_OUTPUT:
        raise fail(
            f"the application printed more than {MAX_OUTPUT >> 20} MiB",
            project,
            hint="omit --json, or capture in Python",
        )
    if code != 0:
        raise changed_input(project, compiler) or fail(termination_text(code), project)
    return Run(None, stdout=output)


def _run_model(
    options: RunOptions, project: Path, record: dict[str, Any], compiler: HostCompiler, faults: Diagnostics
) -> Run:
    model = choose_model(options.model, project, record)
    inputs, outputs = tensors_of(model, "input"), tensors_of(model, "output")
    if options.dataset and model.get("state_bytes"):
        faults.error(
            f"--dataset: model '{model['name']}' has state", hint="--stream runs the frames of one sequence in order"
        )
    runs = read_runs(options.inputs, [*options.streams, *options.dataset], options.repeat, inputs, faults)
    labels = read_labels(options.labels, outputs, runs.count, faults)
    references = read_references(options.references, outputs, runs, faults)
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
    files = write_outputs(results, options.output_dir)
    accuracy = profile = None
    if labels is not None:
        name, classes = labels
        accuracy = Accuracy(name, int((classes_of(results[name]) == classes).sum()), len(classes))
    if compiler.measures:
        profile = parse_measures(measures)
        if profile is None:
            raise fail(f"the measurements of model '{model['name']}' are damaged: {measures!r:.300}", project)
        profile = profile.labelled(model["name"], "host", "host", model["devices"], None)
        keep_profile(profile, options.output_profile)
    return Run(
        model["name"],
        results,
        {tensor["name"]: tensor["dtype"] for tensor in outputs},
        files,
        differences=differences(results, references, tolerances),
        accuracy=accuracy,
        profile=profile,
        profile_file=options.output_profile,
        labels={tensor["name"]: tuple(tensor.get("labels") or ()) for tensor in outputs},
        frames=bool(runs.streams),
        variant=None,
    )
