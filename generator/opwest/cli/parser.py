# SPDX-License-Identifier: Apache-2.0
"""The parser of the command line: commands, options and their help."""

from __future__ import annotations

import argparse
import functools
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

from opwest import __version__
from opwest.cli import commands
from opwest.cli.bundle_options import add_bundle_options, add_install_options
from opwest.cli.import_options import add_import
from opwest.cli.other_options import (
    add_check,
    add_doctor_options,
    add_generate,
    add_json,
    add_output,
    add_report_options,
    add_update,
)
from opwest.cli.run_options import add_board, add_comparison, add_connection, add_device, add_host, add_runs, count

_DESCRIPTION = """\
Generate a Zephyr application from compiled operators and a device manifest.

  opwest inspect conv.o                         print symbols, sizes and ABI of an object
  opwest init conv.o dense.o                    draft a manifest.yaml
  opwest import model.tflite -o model           import a trained model, TFLite or ONNX
  opwest import mlf model.tar -o model          import a model in microTVM's Model Library Format
  opwest check manifest.yaml                    report every error in a manifest, with its line
  opwest generate manifest.yaml -o app          generate the application; then: west build -b BOARD app
  opwest tune model --board mps2/an386          measure the variants of its layers, in QEMU or on a board
  opwest report app -o report.html              show memory, schedule and sizes as a page
  opwest update app                             generate the application again, keeping your changes
  opwest run app --host                         run the application on this machine, without Zephyr
  opwest run app --board B --input x=x.npy      run it on a board, in QEMU or on native_sim
  opwest call app --board B OPERATOR --arg x=x.npy   call one operator there
  opwest bundle manifest.yaml --slot 0x80000 --target cortex-m3 --key key.pem -o model.bundle   replace it in the field
  opwest inspect app/build/zephyr/zephyr.elf    print the models of an image
  opwest new-driver my_npu                      write the driver of an accelerator, with tests
  opwest plan buffers.csv --capacity 1048576    plan memory for a table of buffers
  opwest doctor                                 print what each feature lacks on this machine
"""


class _Parser(argparse.ArgumentParser):
    """A parser that raises UsageError, so that errors can be printed as JSON."""

    def error(self, message: str) -> NoReturn:
        """Raise UsageError."""
        raise UsageError(self, message)


class UsageError(Exception):
    """Wrong usage, with the parser that prints the correct usage."""

    def __init__(self, origin: _Parser, message: str) -> None:
        super().__init__(message)
        self.origin = origin
        self.message = message


class _Cores:
    """The names of the cores, read on use: most commands need no table of processors."""

    def __iter__(self) -> Iterator[str]:
        from opwest.objects.targets import measured_cores

        return iter(measured_cores())

    def __contains__(self, name: object) -> bool:
        return name in list(self)


@functools.cache
def parser(program: str = "opwest") -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    top = _Parser(prog=program, description=_DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter)
    top.add_argument("--version", action="version", version=f"opwest {__version__}", help="print the version")
    verbs = top.add_subparsers(title="commands", dest="command", metavar="COMMAND", required=True)

    add_generate(
        verbs.add_parser("generate", help="generate a Zephyr application", description=commands.generate.__doc__)
    )
    add_update(verbs.add_parser("update", help="generate projects again", description=commands.update.__doc__))
    add_check(verbs.add_parser("check", help="check a manifest and its objects", description=commands.check.__doc__))
    _add_init(verbs.add_parser("init", help="draft a manifest from objects", description=commands.init.__doc__))
    add_import(verbs.add_parser("import", help="import a model or the output of another compiler"))
    _add_tune(verbs.add_parser("tune", help="measure the variants of layers", description=commands.tune.__doc__))
    inspect = verbs.add_parser("inspect", help="print the content of objects", description=commands.inspect.__doc__)
    inspect.add_argument(
        "files",
        metavar="FILE",
        nargs="+",
        type=Path,
        help="a .o, .a, .c, .h, .cc, .cpp, .cxx, .ll or .bc file, or a linked image",
    )
    inspect.add_argument(
        "--target",
        metavar="NAME",
        help="judge the files for a target of 'opwest targets' (default: each for its own machine and ABI)",
    )
    inspect.add_argument(
        "--libc",
        choices=("host", "picolibc", "newlib", "minimal"),
        help="the C library of the firmware (default: picolibc; on the build machine, its own)",
    )
    add_output(inspect)
    inspect.set_defaults(function=commands.inspect)
    report = verbs.add_parser("report", help="generate a report", description=commands.report.__doc__)
    add_report_options(report)
    add_output(report)
    report.set_defaults(function=commands.report)
    _add_run(verbs.add_parser("run", help="run a generated application", description=commands.run.__doc__))
    _add_bundle(
        verbs.add_parser("bundle", help="make, sign, verify and install bundles", description=commands.bundle.__doc__)
    )
    _add_call(verbs.add_parser("call", help="call one operator on a board", description=commands.call.__doc__))
    _add_plan(
        verbs.add_parser(
            "plan", help="plan memory for a table of buffers or a model", description=commands.plan.__doc__
        )
    )
    _add_new_driver(
        verbs.add_parser(
            "new-driver", help="write the driver of an accelerator", description=commands.new_driver.__doc__
        )
    )
    doctor = verbs.add_parser("doctor", help="print what each feature lacks", description=commands.doctor.__doc__)
    add_doctor_options(doctor)
    add_output(doctor)
    doctor.set_defaults(function=commands.doctor)
    targets = verbs.add_parser("targets", help="list the named targets", description=commands.targets.__doc__)
    add_json(targets)
    targets.set_defaults(function=commands.targets)
    return top


def _add_new_driver(new_driver: argparse.ArgumentParser) -> None:
    new_driver.add_argument("name", metavar="NAME", help="prefix of its C functions and files, such as my_npu")
    new_driver.add_argument(
        "-o", "--output", metavar="DIR", type=Path, help="a new or empty directory (default: the name)"
    )
    new_driver.add_argument(
        "--compatible",
        metavar="VENDOR,DEVICE",
        help="compatible of its devicetree nodes (default: vnd,NAME; vnd is Zephyr's prefix for tests)",
    )
    add_output(new_driver)
    new_driver.set_defaults(function=commands.new_driver)


def _add_tune(tune: argparse.ArgumentParser) -> None:
    tune.add_argument("folder", metavar="DIR", type=Path, help="the output of 'opwest import' of a trained model")
    where = tune.add_mutually_exclusive_group(required=True)
    where.add_argument(
        "--board",
        metavar="BOARD",
        help="measure for a board of Zephyr: on it with --serial, otherwise on its core in QEMU",
    )
    where.add_argument("--core", choices=_Cores(), help="measure on a core, in QEMU")
    tune.add_argument(
        "--wait-states",
        metavar="N",
        type=count,
        help="also print what constants of layers in RAM save, if each load from flash takes N more cycles",
    )
    tune.add_argument(
        "--cmsis-nn",
        metavar="DIR",
        type=Path,
        help="also measure CMSIS-NN in this directory, for 'opwest import --with cmsis-nn' (default: not measured)",
    )
    tune.add_argument(
        "--zephyr-base", metavar="DIR", type=Path, help="Zephyr tree with the board (default: that of the workspace)"
    )
    add_device(tune.add_argument_group("on a board"), "serial device of the board: measure by its cycle counter")
    add_output(tune)
    tune.set_defaults(function=commands.tune)


def _add_init(init: argparse.ArgumentParser) -> None:
    init.add_argument(
        "files",
        metavar="FILE",
        nargs="+",
        type=Path,
        help="a .o, .a, .c, .h, .cc, .cpp, .cxx, .ll or .bc file, for any target",
    )
    init.add_argument(
        "-o",
        "--output",
        metavar="MANIFEST",
        type=Path,
        default=Path("manifest.yaml"),
        help="manifest to write, which must not exist (default: manifest.yaml); - is standard output",
    )
    init.add_argument("--model", metavar="NAME", help="name of the model (default: name of the file or its directory)")
    init.add_argument(
        "--target",
        metavar="NAME",
        action="append",
        default=[],
        help="target of the files, or target to compile IR for; repeatable (default: guessed)",
    )
    init.add_argument(
        "--symbols",
        metavar="PATTERN",
        action="append",
        default=[],
        help="functions that become operators, such as 'conv*'; repeatable (default: all that can be operators)",
    )
    add_output(init)
    init.set_defaults(function=commands.init)


def _add_run(run: argparse.ArgumentParser) -> None:
    run.add_argument("directory", metavar="DIR", type=Path, help="application generated by opwest")
    where = run.add_mutually_exclusive_group(required=True)
    where.add_argument("--host", action="store_true", help="compile with $CC (default: cc) and run on this machine")
    where.add_argument(
        "--board",
        metavar="BOARD",
        help="build with west and run on native_sim, in QEMU or on a board",
    )
    add_runs(run)
    add_comparison(run)
    add_host(run)
    add_board(run)
    add_output(run)
    run.set_defaults(function=commands.run, operator=None)


def _add_call(call: argparse.ArgumentParser) -> None:
    call.add_argument("directory", metavar="DIR", type=Path, help="application generated by opwest")
    call.add_argument("operator", metavar="OPERATOR", help="operator of the manifest")
    call.add_argument("--board", metavar="BOARD", required=True, help="board, QEMU target or native_sim")
    call.add_argument("--model", metavar="NAME", help="model of the operator, if there are several")
    call.add_argument(
        "--arg",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="argument that the operator reads: FILE.npy, or the number of a scalar; repeatable",
    )
    call.add_argument("--device", metavar="NAME", help="device of the operator (default: the only one that fits)")
    call.add_argument("--output-dir", metavar="DIR", type=Path, help="directory for the results, one NAME.npy each")
    call.add_argument("--repeat", metavar="N", type=count, help="call N times (default: 1)")
    add_connection(call.add_argument_group("connection"))
    add_output(call)
    call.set_defaults(function=commands.call, check_steps=False, profile=False, output_profile=None)


def _add_bundle(bundle: argparse.ArgumentParser) -> None:
    add_bundle_options(bundle)
    add_install_options(bundle)
    add_output(bundle)
    bundle.set_defaults(function=commands.bundle)


def _add_plan(plan: argparse.ArgumentParser) -> None:
    plan.add_argument(
        "file",
        metavar="FILE",
        type=Path,
        help="table in MiniMalloc's format: id,lower,upper,size[,alignment][,offset]; or a manifest (.yaml, .yml)",
    )
    plan.add_argument(
        "--capacity",
        metavar="N",
        type=count,
        help="limit of a table in bytes: stop at the first plan that fits (default: minimise)",
    )
    plan.add_argument(
        "-o",
        "--output",
        metavar="PATH",
        type=Path,
        help="write the table with offsets to a new file; for a manifest, to a directory, POOL.csv for every pool",
    )
    plan.add_argument(
        "--no-offsets", action="store_true", help="with -o and a manifest: write the tables without offsets"
    )
    plan.add_argument(
        "--planner",
        choices=("greedy", "search"),
        help="search, or greedy only (default: search for a table, that of the manifest for a manifest)",
    )
    plan.add_argument(
        "--nodes",
        metavar="N",
        type=count,
        help="limit of the search for a table, in nodes, about 20000 per second (default: 1000000)",
    )
    plan.add_argument("--variant", metavar="NAME", help="variant of a manifest's model (default: the base)")
    add_output(plan)
    plan.set_defaults(function=commands.plan)
