# SPDX-License-Identifier: Apache-2.0
"""The commands. Their docstrings are the text of `--help`.

Each command imports its modules when it runs: importing all of them takes longer than generating a small model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opwest.base.diagnostics import Diagnostics, OpwestError, fail
from opwest.base.result import Result

if TYPE_CHECKING:
    import argparse

    from opwest.zephyr.workspace import ZephyrOptions


def generate(options: argparse.Namespace, faults: Diagnostics) -> Result:
    """Generate a complete Zephyr application. A repeated run replaces the generated files and keeps your own."""
    from opwest import pipeline
    from opwest.project.request import Request

    if options.target and options.metadata != "llvm":
        raise fail("--target requires --metadata=llvm")
    _warn_of_base(options, faults)
    request = Request(
        tuple(options.manifests),
        options.output,
        vendored=options.runtime == "vendored",
        metadata=options.metadata,
        targets=tuple(dict.fromkeys(options.target)),
        layout=options.layout,
        template=options.template,
        zephyr=_zephyr(options),
        inputs=options.inputs,
        depfile=options.depfile,
    )
    done = pipeline.run(request, faults).written
    lines = [
        f"{options.output}: {len(done.written)} files written, {len(done.removed)} removed, {done.unchanged} unchanged"
    ]
    if done.kept:
        lines.append(f"{len(done.kept)} user files kept")
    return Result(
        "\n".join(lines),
        {
            "directory": str(options.output),
            "written": list(done.written),
            "removed": list(done.removed),
            "unchanged_count": done.unchanged,
            "kept": list(done.kept),
        },
    )


def update(options: argparse.Namespace, faults: Diagnostics) -> Result:
    """Generate projects again from their manifests, with the recorded options and templates.

    Generated files are replaced. Files that you may edit are merged, with conflict markers where both sides changed the
    same lines.
    """
    from opwest.cli.update import update as update_projects

    _warn_of_base(options, faults)
    return update_projects(options, faults, _zephyr)


def _warn_of_base(options: argparse.Namespace, faults: Diagnostics) -> None:
    """Warn about a ZEPHYR_BASE that is no Zephyr tree."""
    from opwest.zephyr.workspace import fault_of_base

    wrong = fault_of_base() if options.zephyr_base is None else None
    if wrong is not None:
        faults.warning(wrong, hint="boards, modules and Kconfig symbols are not checked")


def _zephyr(options: argparse.Namespace) -> ZephyrOptions:
    """Return the boards, version and workspace of Zephyr from the command line, or from the current workspace."""
    from dataclasses import replace

    from opwest.zephyr.version import parse_version
    from opwest.zephyr.workspace import ZephyrOptions, find_workspace

    workspace = find_workspace(options.zephyr_base)
    if options.zephyr_base is not None and (workspace is None or workspace.version is None):
        raise fail(f"'{options.zephyr_base}' is not a Zephyr tree: missing file 'VERSION'")
    if workspace is not None and "output" in options:  # an application may define boards
        workspace = replace(workspace, roots=(options.output,))
    version = None
    if options.zephyr_version is not None:
        version = parse_version(options.zephyr_version)
        if version is None:
            message = f"invalid --zephyr-version {options.zephyr_version!r}"
            raise fail(message, expected="a version, such as 4.2 or 3.7.1")
        if workspace is not None and workspace.version is not None and workspace.version.pair != version.pair:
            if options.zephyr_base is not None:
                message = f"--zephyr-base has no effect: '{options.zephyr_base}' is Zephyr {workspace.version}"
                raise fail(message, expected=f"Zephyr {version}, as --zephyr-version")
            workspace = None  # the current workspace has another version of Zephyr
    return ZephyrOptions(tuple(options.board), version, workspace)


def check(options: argparse.Namespace, faults: Diagnostics) -> Result:
    """Check manifests and their objects like `generate`, without writing files, and print a summary.

    With errors, print only the table of objects: whether each can be exported, and if not, why.
    """
    from opwest import pipeline
    from opwest.cli.check import MeasuredLatency, schedule_json, summary, summary_json, timeline
    from opwest.cli.inspect import table
    from opwest.model.checks.exportability import exportability, rows_json
    from opwest.model.checks.signatures import note_unverified
    from opwest.project.request import Request

    if options.profile is not None and not options.schedule:
        raise fail("--profile requires --schedule")
    _warn_of_base(options, faults)
    zephyr, examinations = _zephyr(options), []
    for manifests in [(path,) for path in options.manifests] if options.each else [tuple(options.manifests)]:
        own = Diagnostics()
        try:
            examinations += pipeline.run(Request(manifests, zephyr=zephyr), own, "plan").examinations
        except OpwestError as error:
            for diagnostic in error.diagnostics:
                own.add(diagnostic)
        for diagnostic in own:
            faults.add(diagnostic)
        faults.sources |= own.sources
    measured = None
    if options.profile is not None and not faults.has_errors:
        measured = MeasuredLatency(options.profile, [examination.model for examination in examinations], faults)
    texts, values = [], []
    for model, plan, objects, _ in examinations:
        rows = exportability(model, objects)
        if not faults.has_errors:
            note_unverified(faults, model)
            texts.append(f"{summary(model, plan)}\n\n{table(rows)}")
            values.append({**summary_json(model, plan), "exportability": rows_json(rows)})
            if options.schedule:
                latency = measured.bound(model, plan.schedule) if measured else plan.schedule.latency
                texts.append(timeline(model, plan, latency))
                values[-1].update(schedule_json(model, plan, latency))
        elif rows:
            texts.append(f"{model.label}: objects\n\n{table(rows)}")
            variant = model.variant.name if model.variant else None
            values.append({"model": model.name, "variant": variant, "exportability": rows_json(rows)})
    return Result("\n\n".join(texts), values or None)


def inspect(options: argparse.Namespace, faults: Diagnostics) -> Result:
    """Print machine, ABI, symbols and sizes of objects, C sources and LLVM IR, and whether they can be linked.

    Each file is judged alone, as 'check' judges it in a manifest without other files.
    """
    from opwest.cli.inspect import inspect as inspect_files

    return inspect_files(options, faults)


def bundle(options: argparse.Namespace, faults: Diagnostics) -> Result:
    """Make a bundle: a model that firmware replaces in the field, linked for one slot of its flash.

    FILE is a manifest, or a bundle to sign or verify. The image contains all functions that it calls. The commands
    'opwest bundle install', 'list', 'confirm', 'roll-back' and 'check-steps' use the bundles of a board.
    """
    from opwest.cli.bundle import bundle as do
    from opwest.cli.bundle_options import check_bundle_options

    check_bundle_options(options, faults)
    return do(options, faults)


def bundle_on_board(options: argparse.Namespace, faults: Diagnostics) -> Result:
    """Install and manage bundles on a board: of --serial, or one that is built and started first, of --board."""
    from opwest.bundles.install import on_board
    from opwest.cli.bundle_options import check_board_options

    check_board_options(options, faults)
    return on_board(options, faults)


def init(options: argparse.Namespace, faults: Diagnostics) -> Result:
    """Draft a manifest from compiled operators: symbols, and signatures from debug information, C or LLVM IR.

    FILL_IN marks missing information. `opwest check` lists the remaining marks.
    """
    from opwest.cli.drafting import draft

    return draft(options, faults)


def new_driver(options: argparse.Namespace, faults: Diagnostics) -> Result:
    """Write a driver of an accelerator: a Zephyr module with an emulated device and the conformance suite.

    It builds and passes the suite as written. Replace the registers by those of your device.
    """
    from opwest.cli.drafting import new_driver as write

    return write(options, faults)


def import_trained(options: argparse.Namespace, faults: Diagnostics) -> Result:
    """Import a trained model without TVM or TensorFlow: integer operators are exact, and written as C.

    'opwest import MODEL' picks the kind of import by the file.
    """
    from opwest.cli.imports import import_trained as convert

    return convert(options, faults)


def import_tvm(_options: argparse.Namespace, _faults: Diagnostics) -> Result:
    """Print what replaces `opwest import tvm`."""
    raise fail(
        "TFLite and ONNX files are not imported through TVM",
        hint="run opwest import MODEL; for a Relax module, call opwest.frontends.tvm.import_module in Python",
    )


def tune(options: argparse.Namespace, faults: Diagnostics) -> Result:
    """Measure all variants of the layers of an imported model; store the costs in its tuning.yaml.

    They run in QEMU, or with --serial on a board. DIR is the output of 'opwest import' of a TFLite or ONNX model.
    'opwest import --tuning DIR/tuning.yaml' chooses the variants by these costs, without QEMU and boards.
    """
    from opwest.cli.run_options import check_tune_options, set_defaults
    from opwest.cli.tune import tune_import

    check_tune_options(options, faults)
    faults.raise_if_errors()
    set_defaults(options)
    return tune_import(options, faults)


def report(options: argparse.Namespace, faults: Diagnostics) -> Result:
    """Generate a report of one page: memory over time, schedule, flash and RAM, measurements.

    The page is self-contained: no network, no external scripts. It can show the differences from an earlier report.
    """
    from opwest.cli.report import report as make

    return make(options, faults)


def import_vela(options: argparse.Namespace, faults: Diagnostics) -> Result:
    """Import a model that Arm's Vela compiled for an Ethos-U NPU: write a manifest, programs, operators and constants.

    Vela is not required. Operators that it left on the processor are imported as `opwest import tflite` does.
    """
    from opwest.cli.imports import import_vela as convert

    return convert(options, faults)


def import_mlf(options: argparse.Namespace, faults: Diagnostics) -> Result:
    """Import a model in microTVM's Model Library Format: write a manifest, operators and constants.

    The input is a tar file of TVM 0.8 to 0.18, or its unpacked directory. TVM is not required.
    """
    from opwest.cli.imports import import_mlf as convert

    return convert(options, faults)


def run(options: argparse.Namespace, faults: Diagnostics) -> Result:
    """Run a generated application on this machine or under Zephyr, on given arrays or with its own main()."""
    from opwest.cli.run_options import check_run_options, set_defaults

    check_run_options(options, faults)
    faults.raise_if_errors()
    set_defaults(options)
    if options.host:
        from opwest.runs.host import run_on_host

        return run_on_host(options, faults)
    from opwest.runs.board import run_on_board

    return run_on_board(options, faults)


def call(options: argparse.Namespace, faults: Diagnostics) -> Result:
    """Call one operator of a generated application under Zephyr, by name, on given arguments."""
    from opwest.cli.run_options import check_connection_options, set_defaults
    from opwest.runs.call import call_on_board

    check_connection_options(options, faults)
    faults.raise_if_errors()
    set_defaults(options)
    return call_on_board(options, faults)


def plan(options: argparse.Namespace, faults: Diagnostics) -> Result:
    """Plan memory for a table of buffers (CSV: id,lower,upper,size), as the generator does for a model.

    Without --capacity, search for the smallest plan. The exit code is 1 if the plan exceeds the capacity. The offsets
    of a table with a column 'offset' are verified. For a manifest, print the plan of its model; -o writes the tables.
    """
    if options.file.suffix in (".yaml", ".yml"):
        from opwest.cli.plan import plan_model

        return plan_model(options, faults)
    from opwest.cli.plan import plan as plan_table

    return plan_table(options, faults)


def doctor(options: argparse.Namespace, faults: Diagnostics) -> Result:
    """Print what this machine has, and what each feature lacks, with the command that installs it.

    The exit code is 0 if the named features work; without names, if the basic features do: generate, update, report.
    """
    from opwest.cli.doctor import doctor as examine

    return examine(options)


def targets(options: argparse.Namespace, faults: Diagnostics) -> Result:
    """List the named targets: machine and ABI of their objects, and the Zephyr configuration that selects each."""
    from opwest.objects.targets import named_targets

    table = named_targets()
    lines = []
    for name, entry in table.items():
        abi = " ".join(str(entry[k]) for k in ("machine", "arch", "float_abi") if k in entry)
        conditions = " ".join(f"{symbol}={value}" for symbol, value in entry["kconfig"].items())
        lines.append(f"{name:<18} {abi:<38} {conditions}")
    return Result("\n".join(lines), [{"name": name, **entry} for name, entry in table.items()])


def completion(options: argparse.Namespace, faults: Diagnostics) -> Result:
    """Print the completion of commands and options for a shell.

    bash: eval "$(opwest completion bash)" in ~/.bashrc. zsh: the same in ~/.zshrc, after compinit.
    fish: opwest completion fish > ~/.config/fish/completions/opwest.fish
    """
    from argcomplete.shell_integration import shellcode

    script = str(shellcode(["opwest"], shell=options.shell)).strip()
    return Result(script, {"shell": options.shell, "script": script}, is_content=True)
