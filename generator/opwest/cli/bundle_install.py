# SPDX-License-Identifier: Apache-2.0
"""The options of `opwest bundle` that concern a board: installation, list, confirmation, roll-back, steps."""

from __future__ import annotations

import argparse
from pathlib import Path

from opwest.base.diagnostics import Diagnostics
from opwest.base.result import Result
from opwest.cli.run_options import add_connection, check_connection_options, set_defaults

_ACTIONS = ("install", "list", "confirm", "roll_back", "check_steps")
_WITH_BOARD = ("application", "build_dir", "no_build", "no_flash", "zephyr_base")


def add_install_options(bundle: argparse.ArgumentParser) -> None:
    """Add the options of a board."""
    group = bundle.add_argument_group("on a board")
    what = group.add_mutually_exclusive_group()
    what.add_argument(
        "--install",
        metavar="FILE",
        nargs="+",
        type=Path,
        help="send a bundle and make it the current model: one file for each slot, of which the fitting one is sent",
    )
    what.add_argument("--list", action="store_true", help="print the slots and their models")
    what.add_argument("--confirm", action="store_true", help="confirm the model that is being tried")
    what.add_argument("--roll-back", action="store_true", help="return to the previous model")
    what.add_argument(
        "--check-steps",
        action="store_true",
        help="print the first step that differs from the results in the bundle, or from a run of MANIFEST on this "
        "machine (exit code 1)",
    )
    add = group.add_argument
    add("--board", metavar="BOARD", help="build the application and start or flash it first, for a board of Zephyr")
    add("--application", metavar="DIR", type=Path, help="with --board: the application")
    add(
        "--transport",
        choices=("smp", "shell"),
        help="commands over SMP or the shell of the image (default: shell for native_sim, otherwise smp)",
    )
    add(
        "--group",
        metavar="N",
        type=_group,
        help="command group of the image (default: CONFIG_OPWEST_BUNDLE_SMP_GROUP of the build, or 28536)",
    )
    add_connection(group)


def is_install(options: argparse.Namespace) -> bool:
    """Whether the options request something of a board."""
    return any(getattr(options, name) for name in _ACTIONS)


def install(options: argparse.Namespace, faults: Diagnostics) -> Result:
    """Do what the options request of a board."""
    from opwest.bundles.install import on_board

    if options.file is not None and not options.check_steps:
        action = next(name for name in _ACTIONS if getattr(options, name)).replace("_", "-")
        faults.error(
            f"'{options.file}' has no effect with --{action}",
            expected=f"opwest bundle --{action}{' FILE...' if options.install else ''}",
        )
    if options.board is None:
        if options.serial is None:
            faults.error("no board is given", expected="--serial DEV, or --board BOARD --application DIR")
        for name in _WITH_BOARD:
            if getattr(options, name):
                faults.error(f"--{name.replace('_', '-')} requires --board")
    else:
        if options.application is None:
            faults.error("--board requires --application", expected="the directory of the application")
        elif not (options.application / "CMakeLists.txt").is_file():
            faults.error(f"'{options.application}' is not an application: no CMakeLists.txt found")
        check_connection_options(options, faults)
    if options.group is not None and options.transport == "shell":
        faults.error("--group has no effect with --transport shell")
    faults.raise_if_errors()
    set_defaults(options)
    return on_board(options, faults)


def _group(text: str) -> int:
    """Return the number of a command group. Raises ArgumentTypeError."""
    if not text.isdecimal() or not 64 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError(f"'{text}' is no command group; expected a number from 64 to 65535")
    return int(text)
