# SPDX-License-Identifier: Apache-2.0
"""What each command does and prints. The docstrings are the commands' help."""

from __future__ import annotations

import argparse
from dataclasses import replace

from opwest import pipeline
from opwest.diagnostics import Diagnostic, Diagnostics, Location, OpwestError
from opwest.request import Request
from opwest.result import Result
from opwest.targets import named_targets
from opwest.zephyr.options import ZephyrOptions


def generate(options: argparse.Namespace, faults: Diagnostics) -> Result:
    """Write a complete Zephyr application. Run again, it updates what is opwest's and leaves alone what is yours."""
    request = Request(
        tuple(options.manifests),
        options.output,
        vendored=options.runtime == "vendored",
        metadata=options.metadata,
        layout=options.layout,
        template=options.template,
        zephyr=_zephyr(options),
        inputs=options.inputs,
    )
    done = pipeline.run(request, faults).written
    lines = [
        f"{options.output}: {len(done.written)} files written, {len(done.removed)} removed, {done.unchanged} unchanged"
    ]
    if done.kept:
        lines.append(f"{len(done.kept)} files of yours left alone")
    return Result(
        "\n".join(lines),
        {
            "directory": str(options.output),
            "written": list(done.written),
            "removed": list(done.removed),
            "unchanged": done.unchanged,
            "kept": list(done.kept),
        },
    )


def update(options: argparse.Namespace, faults: Diagnostics) -> Result:
    """Make projects again from their manifests, with this opwest and the options and templates that they remember.

    Files of opwest are replaced; yours are merged with what is new, and get markers where both changed the same lines.
    """
    from opwest.cli.update import update as update_projects

    return update_projects(options, faults, _zephyr)


def _zephyr(options: argparse.Namespace) -> ZephyrOptions:
    """Return what the command line, or the workspace around us, says of Zephyr."""
    from opwest.zephyr.version import parse_version
    from opwest.zephyr.workspace import find_workspace

    workspace = find_workspace(options.zephyr_base)
    if options.zephyr_base is not None and (workspace is None or workspace.version is None):
        raise OpwestError([Diagnostic("error", f"{options.zephyr_base} is no Zephyr tree: it has no VERSION")])
    if workspace is not None and "output" in options:  # an application may have boards of its own
        workspace = replace(workspace, roots=(options.output,))
    version = None
    if options.zephyr_version is not None:
        version = parse_version(options.zephyr_version)
        if version is None:
            message = f"--zephyr-version {options.zephyr_version!r} is no version"
            raise OpwestError([Diagnostic("error", message, expected="for example 4.2 or 3.7.1")])
        if workspace is not None and workspace.version is not None and workspace.version.pair != version.pair:
            workspace = None  # it is about another Zephyr
    return ZephyrOptions(tuple(options.board), version, workspace)


def check(options: argparse.Namespace, faults: Diagnostics) -> Result:
    """Check manifests and their objects as `generate` would, write nothing, and show what would be made.

    Where something is at fault, only the table of objects is shown: which can be exported, and why the others can't.
    """
    from opwest.cli.exportability import table
    from opwest.cli.schedule import schedule_rows, timeline
    from opwest.cli.summary import summary, summary_json
    from opwest.model.exportability import exportability

    request = Request(tuple(options.manifests), zephyr=_zephyr(options))
    found = pipeline.run(request, faults, "plan").found
    texts, values = [], []
    for model, plan, objects, _ in found:
        rows = exportability(model, objects)
        if not faults.has_errors:
            texts.append(f"{summary(model, plan)}\n\n{table(rows)}")
            values.append({**summary_json(model, plan), "exportability": rows})
            if options.schedule:
                texts.append(timeline(model, plan))
                values[-1]["schedule"] = schedule_rows(model, plan)
        elif rows:
            texts.append(f"{model.name}: the objects, as far as they were read\n\n{table(rows)}")
            values.append({"model": model.name, "exportability": rows})
    return Result("\n\n".join(texts), values or None)


def inspect(options: argparse.Namespace, faults: Diagnostics) -> Result:
    """Show the machine, the ABI, the symbols and the sizes of objects, and whether each can be linked as it is."""
    from opwest.objects.facts import ObjectError
    from opwest.objects.inspect import inspect_object
    from opwest.objects.report import as_json, as_text

    texts, values = [], []
    for path in options.files:
        try:
            item = inspect_object(path)
        except ObjectError as error:
            faults.error(error.message, Location(str(path)), expected=error.expected, hint=error.hint)
            continue
        texts.append(as_text(str(path), item))
        values.append(as_json(str(path), item))
    return Result("\n\n".join(texts), values or None)


def init(options: argparse.Namespace, faults: Diagnostics) -> Result:
    """Draft a manifest from compiled operators: symbols, and signatures from debug information, C or LLVM IR.

    FILL_IN marks what they do not tell. `opwest check` lists what is left to fill in.
    """
    from opwest.cli.init import draft

    return draft(options, faults)


def import_tvm(options: argparse.Namespace, faults: Diagnostics) -> Result:
    """Turn a TFLite or ONNX model into a folder of a manifest, operators, constants and golden vectors, through TVM.

    The operators are C, compiled for whatever is built; with --target they are objects. It needs the packages of
    `pip install 'opwest[tvm]'`.
    """
    from opwest.cli.imports import import_tvm as convert

    return convert(options, faults)


def report(options: argparse.Namespace, faults: Diagnostics) -> Result:
    """Show what was planned, measured and checked as one page: memory over time, the schedule, flash and RAM.

    The page needs nothing else: no network, no scripts of others. It can be compared with an earlier one.
    """
    from opwest.cli.report import report as make

    return make(options, faults)


def import_mlf(options: argparse.Namespace, faults: Diagnostics) -> Result:
    """Make a manifest with operators and constants from a model in microTVM's Model Library Format.

    A tar of TVM 0.8 to 0.18, or the folder that one was unpacked to. Needs no TVM.
    """
    from opwest.cli.imports import import_mlf as convert

    return convert(options, faults)


def run(options: argparse.Namespace, faults: Diagnostics) -> Result:
    """Run a generated application, on this machine or under Zephyr: once on your arrays, or its own main()."""
    if options.host:
        from opwest.host.run import run_on_host

        return run_on_host(options, faults)
    from opwest.board.run import run_on_board

    return run_on_board(options, faults)


def plan(options: argparse.Namespace, faults: Diagnostics) -> Result:
    """Plan memory for a table of buffers (CSV: id,lower,upper,size), as the generator does it for a model.

    Without a capacity the plan is made as small as the search can; the exit code is 1 where a capacity is exceeded.
    """
    from opwest.cli.plan import plan as plan_table

    return plan_table(options, faults)


def targets(options: argparse.Namespace, faults: Diagnostics) -> Result:
    """List the named targets: what an object may be compiled for, and the Zephyr configuration that selects each."""
    table = named_targets()
    lines = []
    for name, entry in table.items():
        abi = " ".join(str(entry[k]) for k in ("machine", "arch", "float_abi") if k in entry)
        conditions = " ".join(f"{symbol}={value}" for symbol, value in entry["kconfig"].items())
        lines.append(f"{name:<18} {abi:<38} {conditions}")
    return Result("\n".join(lines), table)
