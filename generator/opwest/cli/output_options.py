# SPDX-License-Identifier: Apache-2.0
"""The options of all commands: the form and the amount of output."""

from __future__ import annotations

import argparse

from opwest.diagnostics import Diagnostics


def add_output(command: argparse.ArgumentParser) -> None:
    """Add the options."""
    group = command.add_argument_group("output")
    add_json(group)
    group.add_argument(
        "--color",
        choices=("auto", "always", "never"),
        help="colours and lines of files in diagnostics (default: auto: on a terminal, unless NO_COLOR is set, or if "
        "CLICOLOR_FORCE is set)",
    )
    amount = group.add_mutually_exclusive_group()
    amount.add_argument("-q", "--quiet", action="store_true", help="print errors only")
    amount.add_argument(
        "-v", "--verbose", action="store_true", help="print commands, stages and their times on standard error"
    )


def add_json(command: argparse._ActionsContainer) -> None:
    """Add --json."""
    command.add_argument("--json", action="store_true", help="print JSON, including diagnostics, on standard output")


def check_output_options(options: argparse.Namespace, faults: Diagnostics) -> None:
    """Report options of the output that have no effect."""
    given = vars(options)
    for name in ("quiet", "color"):
        if given["json"] and given.get(name):
            faults.error(f"--{name} has no effect with --json")
    for name, option in (("dry_run", "--dry-run"), ("schedule", "--schedule")):
        if is_quiet(options) and given.get(name):
            faults.error(f"{option} has no effect with --quiet")


def is_quiet(options: argparse.Namespace) -> bool:
    """Whether only errors are printed."""
    return bool(vars(options).get("quiet"))


def is_verbose(options: argparse.Namespace) -> bool:
    """Whether commands and stages are printed."""
    return bool(vars(options).get("verbose"))
