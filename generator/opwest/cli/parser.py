# SPDX-License-Identifier: Apache-2.0
"""The parser of the command line: commands, options and their help."""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

from opwest import __version__
from opwest.base.diagnostics import Diagnostics, nearest
from opwest.base.result import Result
from opwest.cli import commands
from opwest.cli.arguments import Arguments, add_command, add_json
from opwest.cli.run_options import add_call, add_device, add_run, count, flash_option
from opwest.objects.flash import FORM

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
def parser(program: str = "opwest", first: str | None = None) -> argparse.ArgumentParser:
    """Return the parser of the command line.

    `first` is the first word of the arguments. If it is a command, or --version, the parser has no other commands: to
    declare all takes a part of the time of small commands.
    """
    top = _Parser(prog=program, description=_DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter)
    top.add_argument("--version", action="version", version=f"opwest {__version__}", help="print the version")
    if first == "--version":
        return top
    verbs = top.add_subparsers(title="commands", dest="command", metavar="COMMAND", required=True)
    for name, declare in COMMANDS.items():
        if first == name or first not in COMMANDS:
            declare(verbs, name)
    return top


def _command(
    help: str,
    function: Callable[[argparse.Namespace, Diagnostics], Result],
    add_arguments: Callable[[Arguments], None],
) -> Callable[[Any, str], None]:
    """Return a function that declares a command."""
    return lambda verbs, name: add_command(verbs, name, help, function, add_arguments)


def _add_import(verbs: Any, name: str) -> None:
    from opwest.cli.import_options import add_import  # takes long to import, as that of bundles

    add_import(verbs.add_parser(name, help="import a model or the output of another compiler"))


def _add_bundle(bundle: Arguments) -> None:
    from opwest.cli.bundle_options import add_bundle

    add_bundle(bundle)


def _add_targets(verbs: Any, name: str) -> None:
    targets = verbs.add_parser(name, help="list the named targets", description=commands.targets.__doc__)
    add_json(Arguments(targets))
    targets.set_defaults(function=commands.targets)


def _add_inspect(inspect: Arguments) -> None:
    inspect.path("files FILE", "a .o, .a, .c, .h, .cc, .cpp, .cxx, .ll or .bc file, or a linked image", nargs="+")
    inspect.value(
        "--target NAME",
        "judge the files for a target of 'opwest targets' (default: each for its own machine and ABI)",
    )
    inspect.choice(
        "--libc",
        ("host", "picolibc", "newlib", "minimal"),
        "the C library of the firmware (default: picolibc; on the build machine, its own)",
    )


def _add_new_driver(new_driver: Arguments) -> None:
    new_driver.value("name NAME", "prefix of its C functions and files, such as my_npu")
    new_driver.output("DIR", "a new or empty directory (default: the name)")
    new_driver.value(
        "--compatible VENDOR,DEVICE",
        "compatible of its devicetree nodes (default: vnd,NAME; vnd is Zephyr's prefix for tests)",
    )


def _add_tune(tune: Arguments) -> None:
    tune.path("folder DIR", "the output of 'opwest import' of a trained model")
    where = tune.exclusive(required=True)
    where.value("--board BOARD", "measure for a board of Zephyr: on it with --serial, otherwise on its core in QEMU")
    where.target.add_argument("--core", choices=_Cores(), help="measure on a core, in QEMU")
    tune.value(
        "--flash FLASH",
        f"flash of operators and constants in QEMU: {FORM} (default: that of the manifest, else that of the board, "
        "else that which the import assumes)",
        flash_option,
    )
    tune.path(
        "--cmsis-nn DIR",
        "also measure CMSIS-NN in this directory, for 'opwest import --with cmsis-nn' (default: not measured)",
    )
    tune.path("--zephyr-base DIR", "Zephyr tree with the board (default: that of the workspace)")
    add_device(tune.group("on a board"), "serial device of the board: measure by its cycle counter")


def _add_init(init: Arguments) -> None:
    init.path("files FILE", "a .o, .a, .c, .h, .cc, .cpp, .cxx, .ll or .bc file, for any target", nargs="+")
    init.output(
        "MANIFEST",
        "manifest to write, which must not exist (default: manifest.yaml); - is standard output",
        default=Path("manifest.yaml"),
    )
    init.value("--model NAME", "name of the model (default: name of the file or its directory)")
    init.values("--target NAME", "target of the files, or target to compile IR for; repeatable (default: guessed)")
    init.values(
        "--symbols PATTERN",
        "functions that become operators, such as 'conv*'; repeatable (default: all that can be operators)",
    )


def _add_plan(plan: Arguments) -> None:
    plan.path(
        "file FILE",
        "table in MiniMalloc's format: id,lower,upper,size[,alignment][,offset]; or a manifest (.yaml, .yml)",
    )
    plan.value("--capacity N", "limit of a table in bytes: stop at the first plan that fits (default: minimise)", count)
    plan.output(
        "PATH",
        "write the table with offsets to a new file; for a manifest, to a directory, POOL.csv for every pool",
    )
    plan.flag("--no-offsets", help="with -o and a manifest: write the tables without offsets")
    plan.choice(
        "--planner",
        ("greedy", "search"),
        "search, or greedy only (default: search for a table, that of the manifest for a manifest)",
    )
    plan.value(
        "--nodes N",
        "limit of the search for a table, in nodes, about 20000 per second (default: 1000000)",
        count,
    )
    plan.value("--variant NAME", "variant of a manifest's model (default: the base)")


def _add_doctor(doctor: Arguments) -> None:
    doctor.value("features FEATURE", "feature to examine (default: all)", _feature, nargs="*")


def _feature(name: str) -> str:
    """Return the name of a feature. Raises ArgumentTypeError for an unknown one."""
    from opwest.doctor.features import FEATURES  # only names of features need it

    names = [feature.name for feature in FEATURES]
    if name not in names:
        raise argparse.ArgumentTypeError(f"unknown feature {name!r}: {nearest(name, names)}")
    return name


def _add_report(report: Arguments) -> None:
    report.path("paths DIR", "application generated by opwest, or manifests", nargs="+")
    report.output("FILE", "file of the report; - is standard output")
    report.choice(
        "--format",
        ("html", "svg", "json"),
        "html: page; svg: picture of memory maps and schedule; json: data (default: by suffix of FILE, or html)",
    )
    report.values(
        "--profile FILE", "measurements written by 'opwest run' with --json or --output-profile; repeatable", Path
    )
    report.values(
        "--firmware ELF", "linked image (build/zephyr/zephyr.elf) to read the model's sizes from; repeatable", Path
    )
    report.path("--compare REPORT", "earlier report of any format, to show the differences")
    report.values(
        "--fail-on FIGURE=LIMIT",
        "exit code 1 if a figure exceeds a limit: arena=+5%%, flash=+1024 (since --compare), ram=65536 (at most); "
        "separated by commas, repeatable",
    )
    report.value("--variant NAME", "variant to report, of the models that have it (default: the base)")
    report.path(
        "--sbom FILE",
        "write the bill of materials of the application (SPDX 2.3: JSON for the suffix .json, else tag-value)",
    )
    report.path("--zephyr-spdx FILE", "document build.spdx of 'west spdx', whose image the bill of materials refers to")
    assert isinstance(report.target, argparse.ArgumentParser)
    report.target.set_defaults(usage_error=report.target.error)


def _add_generate(generate: Arguments) -> None:
    _add_manifests(generate)
    generate.output("DIR", "output directory: new, empty, or generated by opwest", required=True)
    generate.choice(
        "--runtime",
        ("vendored", "module"),
        "vendored (default): copy the runtime into the application; module: use the workspace's Zephyr module",
        default="vendored",
    )
    generate.choice(
        "--metadata",
        ("c", "llvm"),
        "form of run, metadata and registry: c (default): C sources; llvm: one object per target",
        default="c",
    )
    generate.values(
        "--target NAME",
        "with --metadata=llvm, a target of the models that have only C sources; repeatable (default: the targets "
        "of their boards, and those that they declare)",
    )
    _add_zephyr(generate)
    generate.path("--template DIR", "directory of templates that replace those of opwest; recorded for updates")
    generate.choice(
        "--layout",
        ("application", "model"),
        "application (default); model: only the models, each as a Zephyr module for opwest_add_model()",
        default="application",
    )
    generate.path("--inputs FILE", "write the paths of all input files to FILE, one per line")
    generate.path(
        "--depfile FILE",
        "write the input files to FILE as dependencies for make and ninja, of the target FILE without .d",
    )


def _add_check(check: Arguments) -> None:
    _add_manifests(check)
    check.flag(
        "--schedule", help="print a timeline of steps, devices, waits and live bytes, and a bound on the latency"
    )
    check.path(
        "--profile FILE",
        "with --schedule: the bound on the latency with the longest durations of a profile, in cycles "
        "(see 'opwest run --output-profile')",
    )
    check.flag("--each", help="check each manifest alone (default: all of one application)")
    _add_zephyr(check)


def _add_update(update: Arguments) -> None:
    update.path("directories DIR", "application generated by opwest", nargs="+")
    what = update.exclusive()
    what.flag("--dry-run", help="print the changes as a diff; write nothing")
    what.flag("--check", help="list the changes, write nothing; exit code 1 if there are any")
    update.values(
        "--manifest FILE",
        "path of a moved manifest; repeatable, for all manifests of a project (default: as recorded)",
        Path,
    )
    template = update.exclusive()
    template.path("--template DIR", "use the templates of DIR from now on (default: as recorded)")
    template.flag("--no-template", help="use the templates of opwest from now on")
    _add_zephyr(update)


def _add_manifests(command: Arguments) -> None:
    command.path("manifests MANIFEST", "device manifest; several manifests form one application", nargs="+")


def _add_zephyr(command: Arguments) -> None:
    command.values("--board BOARD", "additional board, besides those of the manifest; repeatable")
    command.value(
        "--zephyr-version VERSION",
        "version of Zephyr for the build, used to check boards (default: version of the workspace, if any)",
    )
    command.path("--zephyr-base DIR", "Zephyr tree (default: $ZEPHYR_BASE, or the workspace of the current directory)")


COMMANDS: dict[str, Callable[[Any, str], None]] = {
    "generate": _command("generate a Zephyr application", commands.generate, _add_generate),
    "update": _command("generate projects again", commands.update, _add_update),
    "check": _command("check a manifest and its objects", commands.check, _add_check),
    "init": _command("draft a manifest from objects", commands.init, _add_init),
    "import": _add_import,
    "tune": _command("measure the variants of layers", commands.tune, _add_tune),
    "inspect": _command("print the content of objects", commands.inspect, _add_inspect),
    "report": _command("generate a report", commands.report, _add_report),
    "run": _command("run a generated application", commands.run, add_run),
    "bundle": _command("make, sign, verify and install bundles", commands.bundle, _add_bundle),
    "call": _command("call one operator on a board", commands.call, add_call),
    "plan": _command("plan memory for a table of buffers or a model", commands.plan, _add_plan),
    "new-driver": _command("write the driver of an accelerator", commands.new_driver, _add_new_driver),
    "doctor": _command("print what each feature lacks", commands.doctor, _add_doctor),
    "targets": _add_targets,
}
