# SPDX-License-Identifier: Apache-2.0
"""The commands. Their docstrings are the text of `--help`.

Each command imports its modules when it runs: importing all of them takes longer than generating a small model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opwest.base.diagnostics import Diagnostics, fail
from opwest.base.result import Result, counted

if TYPE_CHECKING:
    import argparse
    from pathlib import Path


def generate(options: argparse.Namespace, faults: Diagnostics) -> Result:
    """Generate a complete Zephyr application. A repeated run replaces the generated files and keeps your own."""
    from opwest.api.calls import collecting
    from opwest.api.generate import generate as generate_application

    done = collecting(generate_application, faults)(
        options.manifests,
        output=options.output,
        runtime=options.runtime,
        metadata=options.metadata,
        target=options.target,
        board=options.board,
        zephyr_version=options.zephyr_version,
        zephyr_base=options.zephyr_base,
        template=options.template,
        layout=options.layout,
        inputs=options.inputs,
        depfile=options.depfile,
    )
    lines = [
        f"{done.directory}: {counted(len(done.written), 'file')} written, {len(done.removed)} removed, "
        f"{done.unchanged} unchanged"
    ]
    if done.kept:
        lines.append(f"{len(done.kept)} user files kept")
    lines.append(f"runtime: {_runtime(done.runtime, done.runtime_module)}")
    return Result(
        "\n".join(lines),
        {
            "directory": str(done.directory),
            "written": list(done.written),
            "removed": list(done.removed),
            "unchanged_count": done.unchanged,
            "kept": list(done.kept),
            "runtime": done.runtime,
            "runtime_module": None if done.runtime_module is None else str(done.runtime_module),
        },
    )


def _runtime(runtime: str, module: Path | None) -> str:
    """Return where an application gets the runtime from, for people."""
    if runtime == "vendored":
        return "copied to modules/opwest"
    return f"the Zephyr module opwest in {module}" if module else "the Zephyr module opwest, which the build must have"


def update(options: argparse.Namespace, faults: Diagnostics) -> Result:
    """Generate projects again from their manifests, with the recorded options and templates.

    Generated files are replaced. Files that you may edit are merged, with conflict markers where both sides changed the
    same lines.
    """
    from opwest.cli.update import update as update_projects

    return update_projects(options, faults)


def check(options: argparse.Namespace, faults: Diagnostics) -> Result:
    """Check manifests and their objects like `generate`, without writing files, and print a summary.

    With errors, print only the table of objects: whether each can be exported, and if not, why.
    """
    from opwest.cli.check import check as check_manifests

    return check_manifests(options, faults)


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

    return do(options, faults)


def bundle_on_board(options: argparse.Namespace, faults: Diagnostics) -> Result:
    """Install and manage bundles on a board: of --serial, or one that is built and started first, of --board."""
    from opwest.bundles.install import on_board
    from opwest.cli.bundle_options import board_request

    return on_board(board_request(options, faults), faults)


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

    They run in QEMU, or with --serial on a board. DIR is the output of 'opwest import' of a trained model.
    'opwest import --tuning DIR/tuning.yaml' chooses the variants by these costs, without QEMU and boards.
    """
    from opwest.cli.tune import tune as tune_layers

    return tune_layers(options, faults)


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
    from opwest.cli.run import run as run_application

    return run_application(options, faults)


def call(options: argparse.Namespace, faults: Diagnostics) -> Result:
    """Call one operator of a generated application under Zephyr, by name, on given arguments."""
    from opwest.cli.run import call as call_operator

    return call_operator(options, faults)


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
    try:
        from argcomplete.shell_integration import shellcode
    except ImportError:
        from opwest.base.system import pip_command

        raise fail("completion requires the Python package argcomplete", hint=pip_command(["argcomplete"])) from None
    script = str(shellcode(["opwest"], shell=options.shell)).strip()
    return Result(script, {"shell": options.shell, "script": script}, is_content=True)
