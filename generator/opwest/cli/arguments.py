# SPDX-License-Identifier: Apache-2.0
"""Declare arguments of commands, and the options of the output that all commands have."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from opwest.base.diagnostics import Diagnostics
from opwest.base.result import Result

_Number = TypeVar("_Number", int, float)


class Arguments:
    """Declares the arguments of a command, or those of a group of its options. `target` is the parser or the group.

    `usage` is the name of an argument and that of its value, such as `--board BOARD`.
    """

    def __init__(self, target: argparse._ActionsContainer) -> None:
        self.target = target

    def group(self, title: str) -> Arguments:
        """Add a group of options with a title in the help."""
        return Arguments(self.target.add_argument_group(title))

    def exclusive(self, *, required: bool = False) -> Arguments:
        """Add a group of options that exclude each other."""
        return Arguments(self.target.add_mutually_exclusive_group(required=required))

    def value(self, usage: str, help: str, type: Any = None, **more: Any) -> argparse.Action:
        """Add an argument with a value."""
        name, _, metavar = usage.partition(" ")
        return self.target.add_argument(name, metavar=metavar, help=help, type=type, **more)

    def values(self, usage: str, help: str, type: Any = None, **more: Any) -> argparse.Action:
        """Add a repeatable option; without it, the value is an empty list."""
        return self.value(usage, help, type, action="append", default=[], **more)

    def path(self, usage: str, help: str, **more: Any) -> argparse.Action:
        """Add an argument whose value is a path."""
        name, _, metavar = usage.partition(" ")
        return self.target.add_argument(name, metavar=metavar, help=help, type=Path, **more)

    def output(self, metavar: str, help: str, **more: Any) -> argparse.Action:
        """Add the path `--output`."""
        return self.target.add_argument("-o", "--output", metavar=metavar, help=help, type=Path, **more)

    def choice(self, name: str, choices: Sequence[str], help: str, default: str | None = None) -> argparse.Action:
        """Add an option with one of several words as its value."""
        return self.target.add_argument(name, choices=choices, help=help, default=default)

    def flag(self, *names: str, help: str) -> argparse.Action:
        """Add an option without a value; without it, the value is False."""
        return self.target.add_argument(*names, action="store_true", help=help)


def number_of(text: str, kind: type[_Number], expected: str, least: float, below: float = math.inf) -> _Number:
    """Return a number in a range. Raises ArgumentTypeError."""
    try:
        number = kind(text)
    except ValueError:
        number = kind(-1)
    if not least <= number < below:
        raise argparse.ArgumentTypeError(f"'{text}'; expected {expected}")
    return number


def add_command(
    commands: Any,
    name: str,
    help: str,
    function: Callable[[argparse.Namespace, Diagnostics], Result],
    add_arguments: Callable[[Arguments], None],
) -> None:
    """Add a command with its own arguments and the options of the output. The docstring of `function` is its help."""
    command = commands.add_parser(name, help=help, description=function.__doc__)
    command.set_defaults(function=function)
    arguments = Arguments(command)
    add_arguments(arguments)
    add_output(arguments)


def add_output(command: Arguments) -> None:
    """Add the options of the output."""
    group = command.group("output")
    add_json(group)
    group.choice(
        "--color",
        ("auto", "always", "never"),
        "colours in diagnostics (default: auto: on a terminal)",
    )
    amount = group.exclusive()
    amount.flag("-q", "--quiet", help="print errors only")
    amount.flag("-v", "--verbose", help="print stages, commands and times on standard error")


def add_json(command: Arguments) -> None:
    """Add --json."""
    command.flag("--json", help="print one JSON object, including diagnostics")


def check_output_options(options: argparse.Namespace, faults: Diagnostics) -> None:
    """Report options of the output that have no effect."""
    given = vars(options)
    for name in ("quiet", "color"):
        if given["json"] and given.get(name):
            faults.error(f"--{name} has no effect with --json")
    for name in ("dry_run", "schedule"):
        if is_quiet(options) and given.get(name):
            faults.error(f"{option_of(name)} has no effect with --quiet")


def option_of(name: str) -> str:
    """Return an option as users write it, from the name of its value."""
    return f"--{name.replace('_', '-')}"


def is_quiet(options: argparse.Namespace) -> bool:
    """Whether only errors are printed."""
    return bool(vars(options).get("quiet"))


def is_verbose(options: argparse.Namespace) -> bool:
    """Whether commands and stages are printed."""
    return bool(vars(options).get("verbose"))


def progress_of(options: argparse.Namespace) -> Callable[[str], None]:
    """Return the function that prints a line of progress on standard error; with --quiet, it prints nothing."""

    def show(text: str) -> None:
        if not (options.quiet or options.json):
            print(f"opwest: {text}", file=sys.stderr, flush=True)

    return show
