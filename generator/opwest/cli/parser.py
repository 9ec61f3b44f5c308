# SPDX-License-Identifier: Apache-2.0
"""The command line's parser: commands, options, what they are called in help."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import NoReturn

from opwest import __version__
from opwest.cli import commands
from opwest.cli.report_options import add_report_options

_DESCRIPTION = """\
Turns compiled operators and a device manifest into a Zephyr application.

  opwest inspect conv.o                         what an object holds, and whether it can be linked
  opwest init conv.o dense.o                    a first manifest.yaml, with marks where objects do not tell
  opwest import tvm model.tflite -o model       a manifest, operators and constants from a TFLite or ONNX model
  opwest import mlf model.tar -o model          the same from microTVM's Model Library Format
  opwest check manifest.yaml                    every fault of a manifest, with its line
  opwest generate manifest.yaml -o app          the application; then: west build -b BOARD app
  opwest report app -o report.html              memory, schedule and sizes as a page to look at
  opwest update app                             the application again, with what you changed since
  opwest run app --host                         the same code on this machine, without Zephyr
  opwest run app --board B --input x=x.npy      on a board, in QEMU or on native_sim
  opwest plan buffers.csv --capacity 1048576    a memory plan for a table of buffers
"""


class _Parser(argparse.ArgumentParser):
    """A parser whose errors can be told as JSON."""

    def error(self, message: str) -> NoReturn:
        """Report wrong usage."""
        raise UsageError(self, message)


class UsageError(Exception):
    """Wrong usage, and the parser that can say what is right."""

    def __init__(self, origin: _Parser, message: str) -> None:
        super().__init__(message)
        self.origin = origin
        self.message = message


def parser(program: str = "opwest") -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    top = _Parser(prog=program, description=_DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter)
    top.add_argument("--version", action="version", version=f"opwest {__version__}")
    verbs = top.add_subparsers(title="commands", dest="command", metavar="COMMAND", required=True)

    generate = verbs.add_parser("generate", help="write a Zephyr application", description=commands.generate.__doc__)
    generate.add_argument(
        "manifests",
        metavar="MANIFEST",
        nargs="+",
        type=Path,
        help="device manifest; several make one application",
    )
    generate.add_argument(
        "-o",
        "--output",
        metavar="DIR",
        type=Path,
        required=True,
        help="the application's folder: new, empty, or opwest's own",
    )
    generate.add_argument(
        "--runtime",
        choices=("vendored", "module"),
        default="vendored",
        help="vendored (default): copy the runtime into the application; module: take it from the workspace",
    )
    generate.add_argument(
        "--metadata",
        choices=("c", "llvm"),
        default="c",
        help="c (default): run, metadata and registry as C sources; llvm: as one object per target",
    )
    _add_zephyr(generate)
    generate.add_argument(
        "--template",
        metavar="DIR",
        type=Path,
        help="templates of your own, which replace single files of opwest's; updates remember the folder",
    )
    generate.add_argument(
        "--layout",
        choices=("application", "model"),
        default="application",
        help="application (default); model: the models alone, each a Zephyr module (opwest_add_model() uses it)",
    )
    generate.add_argument(
        "--inputs", metavar="FILE", type=Path, help="write the path of every file that was read, one a line"
    )
    _add_json(generate)
    generate.set_defaults(function=commands.generate)

    _add_update(verbs.add_parser("update", help="make projects again", description=commands.update.__doc__))

    check = verbs.add_parser("check", help="check a manifest and its objects", description=commands.check.__doc__)
    check.add_argument(
        "manifests",
        metavar="MANIFEST",
        nargs="+",
        type=Path,
        help="device manifest; several as one application",
    )
    check.add_argument(
        "--schedule",
        action="store_true",
        help="show the steps as a timeline: devices, where they are waited for, live bytes",
    )
    _add_zephyr(check)
    _add_json(check)
    check.set_defaults(function=commands.check)

    init = verbs.add_parser("init", help="draft a manifest from objects", description=commands.init.__doc__)
    init.add_argument(
        "files", metavar="FILE", nargs="+", type=Path, help=".o, .a, .ll, .bc or .c; of several targets too"
    )
    init.add_argument(
        "-o",
        "--output",
        metavar="MANIFEST",
        type=Path,
        default=Path("manifest.yaml"),
        help="the manifest to write, which must not exist (default: manifest.yaml); - is standard output",
    )
    init.add_argument("--model", metavar="NAME", help="the model's name (default: that of the file or its folder)")
    init.add_argument(
        "--target",
        metavar="NAME",
        action="append",
        default=[],
        help="what the files were compiled for, or IR is to be compiled for; repeatable (default: guessed)",
    )
    _add_json(init)
    init.set_defaults(function=commands.init)

    _add_import(verbs.add_parser("import", help="make a manifest from what other compilers read or wrote"))

    inspect = verbs.add_parser("inspect", help="show what objects hold", description=commands.inspect.__doc__)
    inspect.add_argument("files", metavar="FILE", nargs="+", type=Path, help=".o, .a or .c")
    _add_json(inspect)
    inspect.set_defaults(function=commands.inspect)

    report = verbs.add_parser("report", help="show a project as a page", description=commands.report.__doc__)
    add_report_options(report)
    _add_json(report)
    report.set_defaults(function=commands.report)

    run = verbs.add_parser("run", help="run a generated application", description=commands.run.__doc__)
    run.add_argument("directory", metavar="DIR", type=Path, help="a folder that `opwest generate` wrote")
    where = run.add_mutually_exclusive_group(required=True)
    where.add_argument(
        "--host", action="store_true", help="compile for this machine with $CC (default cc) and run here"
    )
    where.add_argument(
        "--board",
        metavar="BOARD",
        help="build with west, then start native_sim or QEMU, or flash a board, and run there",
    )
    run.add_argument("--model", metavar="NAME", help="which model, where there are several")
    run.add_argument(
        "--input",
        metavar="NAME=FILE.npy",
        action="append",
        default=[],
        help="an input; without any, --host runs the application's own main()",
    )
    run.add_argument("--output-dir", metavar="DIR", type=Path, help="where the outputs go, one NAME.npy each")
    run.add_argument("--repeat", metavar="N", type=_count, default=1, help="run so many times, for the figures")
    run.add_argument("--profile", action="store_true", help="show what each step takes")
    run.add_argument("--output-profile", metavar="FILE", type=Path, help="the same as JSON, in a file")
    run.add_argument("--bits", type=int, choices=(32, 64), help="build with -m32 or -m64 (default: the compiler's own)")
    _add_board(run)
    _add_json(run)
    run.set_defaults(function=commands.run)

    _add_plan(verbs.add_parser("plan", help="plan a table of buffers", description=commands.plan.__doc__))

    targets = verbs.add_parser("targets", help="list the named targets", description=commands.targets.__doc__)
    _add_json(targets)
    targets.set_defaults(function=commands.targets)
    return top


def _add_plan(plan: argparse.ArgumentParser) -> None:
    plan.add_argument(
        "file", metavar="FILE.csv", type=Path, help="a table in MiniMalloc's format: id,lower,upper,size[,alignment]"
    )
    plan.add_argument(
        "--capacity",
        metavar="N",
        type=_count,
        help="bytes to keep to: the first plan that fits ends the search (default: as few as possible)",
    )
    plan.add_argument(
        "-o", "--output", metavar="FILE.csv", type=Path, help="write the table with offsets; the file must not exist"
    )
    plan.add_argument(
        "--planner", choices=("greedy", "search"), default="search", help="search (default), or greedy alone"
    )
    plan.add_argument(
        "--nodes",
        metavar="N",
        type=_count,
        default=1_000_000,
        help="how long to search, in nodes, of which a second has some twenty thousand (default: 1000000)",
    )
    _add_json(plan)
    plan.set_defaults(function=commands.plan)


def _add_update(update: argparse.ArgumentParser) -> None:
    update.add_argument(
        "directories", metavar="DIR", nargs="+", type=Path, help="a folder that `opwest generate` wrote"
    )
    what = update.add_mutually_exclusive_group()
    what.add_argument("--dry-run", action="store_true", help="show what would change as a diff, and write nothing")
    what.add_argument(
        "--check", action="store_true", help="exit with 1 where anything would change, say what, and write nothing"
    )
    update.add_argument(
        "--manifest",
        metavar="FILE",
        type=Path,
        action="append",
        default=[],
        help="where the manifest is now; repeatable, to name all of a project (default: as remembered)",
    )
    template = update.add_mutually_exclusive_group()
    template.add_argument(
        "--template", metavar="DIR", type=Path, help="templates of your own from now on (default: as remembered)"
    )
    template.add_argument("--no-template", action="store_true", help="opwest's own templates from now on")
    _add_zephyr(update)
    _add_json(update)
    update.set_defaults(function=commands.update)


def _add_import(command: argparse.ArgumentParser) -> None:
    kinds = command.add_subparsers(title="kinds", dest="kind", metavar="KIND", required=True)
    tvm = kinds.add_parser("tvm", help="a TFLite or ONNX model, through TVM", description=commands.import_tvm.__doc__)
    tvm.add_argument("file", metavar="MODEL", type=Path, help="a .tflite or .onnx file")
    tvm.add_argument(
        "-o", "--output", metavar="DIR", type=Path, required=True, help="the folder to write: new, or empty"
    )
    tvm.add_argument(
        "--target",
        metavar="NAME",
        action="append",
        default=[],
        help="compile objects for this target (`opwest targets` lists them); repeatable (default: C, for any target)",
    )
    tvm.add_argument("--model", metavar="NAME", help="the model's name (default: that of the file)")
    tvm.add_argument(
        "--vectors",
        metavar="N",
        type=_vector_count,
        default=8,
        help="how many golden vectors to write (default: 8; 0: none)",
    )
    _add_json(tvm)
    tvm.set_defaults(function=commands.import_tvm)
    mlf = kinds.add_parser("mlf", help="what microTVM exported", description=commands.import_mlf.__doc__)
    mlf.add_argument(
        "file", metavar="MODEL", type=Path, help="a Model Library Format tar, or the folder it was unpacked to"
    )
    mlf.add_argument(
        "-o", "--output", metavar="DIR", type=Path, required=True, help="the folder to write: new, or empty"
    )
    mlf.add_argument("--model", metavar="NAME", help="the model's name (default: that of the module, or of the file)")
    mlf.add_argument("--module", metavar="NAME", help="the module to import, where the archive holds several")
    mlf.add_argument(
        "--target", metavar="NAME", help="what compiled objects were made for (default: as they show themselves)"
    )
    mlf.add_argument(
        "--tensor",
        metavar="NAME=[DTYPE:]SHAPE",
        action="append",
        default=[],
        help="an input or output of which the folder lacks the shape (image=1,8,8) or type (out=int8:1,12); repeatable",
    )
    _add_json(mlf)
    mlf.set_defaults(function=commands.import_mlf)


def _vector_count(text: str) -> int:
    value = int(text)
    if not 0 <= value <= 1000:
        raise argparse.ArgumentTypeError("must be 0 to 1000")
    return value


def _add_zephyr(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--board",
        metavar="BOARD",
        action="append",
        default=[],
        help="emit what this board needs too, beside those of the manifest; repeatable",
    )
    command.add_argument(
        "--zephyr-version",
        metavar="VERSION",
        help="the Zephyr that will build (default: that of the workspace at hand, if any); boards are checked with it",
    )
    command.add_argument(
        "--zephyr-base",
        metavar="DIR",
        type=Path,
        help="the Zephyr tree (default: $ZEPHYR_BASE, or the workspace around the current folder)",
    )


def _add_board(command: argparse.ArgumentParser) -> None:
    board = command.add_argument_group("with --board")
    board.add_argument(
        "--reference",
        metavar="NAME=FILE.npy",
        action="append",
        default=[],
        help="what an output should be: its error is shown",
    )
    board.add_argument("--serial", metavar="DEV", help="the board's serial device (default: the only one there is)")
    board.add_argument("--baud", metavar="N", type=_count, default=115200, help="its speed (default: 115200)")
    board.add_argument(
        "--timeout", metavar="S", type=_seconds, default=30.0, help="how long to wait for any answer (default: 30)"
    )
    board.add_argument(
        "--build-dir", metavar="DIR", type=Path, help="the build folder (default: DIR/build/run_BOARD...)"
    )
    board.add_argument("--no-build", action="store_true", help="take the image that is in the build folder")
    board.add_argument("--no-flash", action="store_true", help="the board runs the image already")
    board.add_argument(
        "--zephyr-base", metavar="DIR", type=Path, help="the Zephyr tree (default: as for generate, or ~/zephyrproject)"
    )


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be 1 or more")
    return number


def _seconds(text: str) -> float:
    number = float(text)
    if not 0 < number < 86400:
        raise argparse.ArgumentTypeError("must be a time in seconds")
    return number


def _add_json(command: argparse.ArgumentParser) -> None:
    command.add_argument("--json", action="store_true", help="print JSON on standard output, diagnostics included")
