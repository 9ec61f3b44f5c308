# SPDX-License-Identifier: Apache-2.0
"""The parser of the command line: commands, options and their help."""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, NoReturn

from opwest import __version__
from opwest.base.diagnostics import Diagnostics, nearest, similar
from opwest.base.result import Result, table_lines
from opwest.cli import commands
from opwest.cli.arguments import Arguments, add_command, add_json
from opwest.cli.model_options import add_quantise, add_tune
from opwest.cli.run_options import add_call, add_run, count

_DESCRIPTION = """\
Generate a Zephyr application from a trained model, or from compiled operators and a device manifest.

  opwest import model.tflite -o model           import a model of TFLite, PyTorch or ONNX
  opwest init libops.a ops.h                    draft a manifest.yaml for compiled operators
  opwest check manifest.yaml                    report every error in a manifest, with its line
  opwest generate manifest.yaml -o app          generate the application; then: west build -b BOARD app
  opwest run app                                run it on this machine, without Zephyr
  opwest run app --board B --input x=x.npy      run it on a board, in QEMU or on native_sim
  opwest report app -o report.html              show memory, schedule and sizes as a page
"""
MAIN_COMMANDS: Final = ("import", "init", "check", "generate", "run", "report")
"""The commands in `opwest --help`, in the order of their use. `opwest more` lists the others."""


class _Parser(argparse.ArgumentParser):
    """A parser that raises UsageError, so that errors can be printed as JSON."""

    def error(self, message: str) -> NoReturn:
        """Raise UsageError."""
        raise UsageError(self, message)

    def format_usage(self) -> str:
        """Return the required arguments as one line: the help describes the options."""
        return f"usage: {self._line()}\n"

    def format_help(self) -> str:
        """Return the help, with that line as its usage."""
        self.usage = self._line().replace("%", "%%")
        return super().format_help()

    def _line(self) -> str:
        """Return a line such as `opwest generate -o DIR [options] MANIFEST [MANIFEST ...]`."""
        formatter = self._get_formatter()
        exclusive = [group for group in self._mutually_exclusive_groups if group.required]
        words = [self.prog]
        for group in exclusive:
            flags = (f"{a.option_strings[0]} {formatter._format_args(a, a.dest.upper())}" for a in group._group_actions)
            words.append(f"({' | '.join(flags)})")
        for action in self._actions:
            if action.required and action.option_strings:
                words.append(f"{action.option_strings[0]} {formatter._format_args(action, action.dest.upper())}")
        if any(action.option_strings and not action.required for action in self._actions):
            words.append("[options]")
        for action in self._get_positional_actions():
            words.append(formatter._format_args(action, str(action.metavar or action.dest)))
        return " ".join(words)


class UsageError(Exception):
    """Wrong usage, with the parser that prints the correct usage, and what to do."""

    def __init__(self, origin: argparse.ArgumentParser, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.origin = origin
        self.message = message
        self.hint = hint


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
    names = [first] if first in COMMANDS else MAIN_COMMANDS
    for name in names:
        COMMANDS[name](verbs, name)
    if names is MAIN_COMMANDS:
        others = ", ".join(name for name in command_names() if name not in (*MAIN_COMMANDS, "more"))
        top.epilog = f"more: {others}\n\n'opwest more' describes them; 'opwest COMMAND --help' lists the options."
    return top


def parse(program: str, words: Sequence[str]) -> argparse.Namespace:
    """Return the options of a command line. Raises UsageError, with a suggestion for a misspelt command or option."""
    first = words[0] if words else None
    top = parser(program, first)
    if first is not None and not first.startswith("-"):
        if first not in COMMANDS:
            hint = similar(first, command_names()) or "'opwest --help' and 'opwest more' list the commands"
            raise UsageError(top, f"unknown command {first!r}", hint)
        command = _parser_of(top, words)
        if command.prog == f"{program} import":  # the words name no kind, and no model that shows it
            command = _import_of_any_kind(program)
            command.parse_known_args(words[1:])
            raise _unknown_kind(command, words)
        _refuse_unknown_options(command, words)
        if "--" in words and command.get_default("cmake") is not None:
            end = words.index("--")
            options = top.parse_args(words[:end])
            options.cmake = tuple(words[end + 1 :])
            return options
    return top.parse_args(words)


def _import_of_any_kind(program: str) -> argparse.ArgumentParser:
    """Return the parser for the help of `opwest import`: the options of all trained models."""
    from opwest.cli.import_options import add_every

    kinds = "'opwest import KIND MODEL' sets the kind: tflite, torch, onnx, vela (Ethos-U), mlf (microTVM)."
    text = f"{commands.import_trained.__doc__}\n{kinds}"
    command = _Parser(prog=f"{program} import", description=text)
    add_every(Arguments(command))
    return command


def _unknown_kind(command: argparse.ArgumentParser, words: Sequence[str]) -> UsageError:
    """Return the error for an import whose kind is not known."""
    from opwest.cli.import_options import KINDS

    listed = "tflite, torch, onnx, vela and mlf"
    hint = similar(words[1], KINDS) or f"the kinds are {listed}: opwest import KIND MODEL -o DIR"
    return UsageError(command, f"unknown kind of model: {words[1]!r}", hint)


def _parser_of(top: argparse.ArgumentParser, words: Sequence[str]) -> argparse.ArgumentParser:
    """Return the parser of the command, and of its kind of import."""
    for word in words:
        choices = next((action.choices for action in top._actions if isinstance(action.choices, dict)), {})
        if word not in choices:
            break
        top = choices[word]
    return top


def _refuse_unknown_options(command: argparse.ArgumentParser, words: Sequence[str]) -> None:
    """Raise UsageError for the first unknown option. The parser itself reports missing arguments before it."""
    known = command._option_string_actions
    if any(action.nargs == argparse.REMAINDER for action in command._actions):
        return
    for word in words:
        name = word.partition("=")[0]
        if word == "--":
            return
        if name.startswith("--") and not any(option.startswith(name) for option in known):
            options = [option for option in known if option.startswith("--")]
            hint = similar(name, options) or f"'{command.prog} --help' lists the options"
            if f"{words[0]} {name[2:]}" in COMMANDS:
                hint = f"did you mean '{command.prog} {name[2:]}'?"
            raise UsageError(command, f"unknown option '{name}'", hint)


def _command(
    help: str,
    function: Callable[[argparse.Namespace, Diagnostics], Result],
    add_arguments: Callable[[Arguments], None],
) -> Callable[[Any, str], None]:
    """Return a function that declares a command."""
    return lambda verbs, name: add_command(verbs, name, help, function, add_arguments)


def _add_import(verbs: Any, name: str) -> None:
    from opwest.cli.import_options import add_import  # takes long to import, as that of bundles

    add_import(verbs.add_parser(name, help="import a trained model, or the output of another compiler"))


def _add_bundle(bundle: Arguments) -> None:
    from opwest.cli.bundle_options import add_bundle

    add_bundle(bundle)


def _board_action(verbs: Any, name: str) -> None:
    from opwest.cli.bundle_options import BOARD_ACTIONS, add_board_action

    action = name.removeprefix("bundle ")
    add = functools.partial(add_board_action, action=action)
    add_command(verbs, name, BOARD_ACTIONS[action], commands.bundle_on_board, add)


def _list(help: str, function: Callable[[argparse.Namespace, Diagnostics], Result]) -> Callable[[Any, str], None]:
    """Return a function that declares a command that prints a list: its only option is --json."""

    def declare(verbs: Any, name: str) -> None:
        command = verbs.add_parser(name, help=help, description=function.__doc__)
        add_json(Arguments(command))
        command.set_defaults(function=function)

    return declare


def _add_completion(completion: Arguments) -> None:
    completion.target.add_argument("shell", choices=("bash", "zsh", "fish"), help="the shell")


def _more(_options: argparse.Namespace, _faults: Diagnostics) -> Result:
    """List the commands that `opwest --help` does not list."""
    rows = {name: help_of(name) for name in COMMANDS if name not in MAIN_COMMANDS and name != "more"}
    lines = table_lines([[f"opwest {name}", text] for name, text in rows.items()])
    return Result("\n".join(lines), [{"command": name, "help": text} for name, text in rows.items()])


def command_names() -> list[str]:
    """Return the names of all commands; an action of a command is part of its command."""
    return [name for name in COMMANDS if " " not in name]


def help_of(name: str) -> str:
    """Return the help of a command in one line."""
    top = _Parser(prog="opwest")
    verbs = top.add_subparsers()
    COMMANDS[name](verbs, name)
    return str(verbs._choices_actions[0].help)


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
        "--firmware ELF",
        "linked image (build/zephyr/zephyr.elf) or build directory, for sizes; selects the variant that it contains; "
        "repeatable",
        Path,
    )
    report.path("--compare REPORT", "earlier report of any format, to show the differences")
    report.values(
        "--fail-on FIGURE=LIMIT",
        "exit code 1 if a figure exceeds a limit: arena=+5%%, flash=+1024 (since --compare), ram=65536 (at most); "
        "separated by commas, repeatable",
    )
    report.value(
        "--variant NAME", "variant to report, of the models that have it (default: that of --firmware, else the base)"
    )
    report.value("--target NAME", "report the variant for a target, such as cortex-m4f")
    report.value("--board BOARD", "report the variant for a board of the Zephyr workspace")
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
        ("auto", "vendored", "module"),
        "auto (default): as before, for a new application the Zephyr module opwest if the west workspace lists it, "
        "else a copy; vendored: copy the runtime into the application; module: use the workspace's module",
        default="auto",
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


COMMANDS: Final[dict[str, Callable[[Any, str], None]]] = {
    "import": _add_import,
    "init": _command("draft a manifest from compiled operators", commands.init, _add_init),
    "check": _command("check a manifest and its objects", commands.check, _add_check),
    "generate": _command("generate a Zephyr application", commands.generate, _add_generate),
    "run": _command("run an application on this machine, in QEMU or on a board", commands.run, add_run),
    "report": _command("show memory, schedule and sizes as a page", commands.report, _add_report),
    "update": _command("generate applications again, and merge your changes", commands.update, _add_update),
    "tune": _command("measure the variants of a model's layers, in QEMU or on a board", commands.tune, add_tune),
    "quantise": _command("make an integer model from a float model and samples", commands.quantise, add_quantise),
    "call": _command("call one operator on a board", commands.call, add_call),
    "bundle": _command("make, sign and verify bundles: models outside of the firmware", commands.bundle, _add_bundle),
    **dict.fromkeys(
        [f"bundle {action}" for action in ("install", "list", "confirm", "roll-back", "check-steps")], _board_action
    ),
    "inspect": _command(
        "print symbols, sizes and ABI of objects, or the models of an image", commands.inspect, _add_inspect
    ),
    "plan": _command("plan memory for a table of buffers or a model", commands.plan, _add_plan),
    "new-driver": _command("write the driver of an accelerator, with tests", commands.new_driver, _add_new_driver),
    "doctor": _command("print what each feature lacks on this machine", commands.doctor, _add_doctor),
    "targets": _list("list the named targets", commands.targets),
    "completion": _command("print the completion of commands for a shell", commands.completion, _add_completion),
    "more": _list("list the commands besides those of --help", _more),
}
