# SPDX-License-Identifier: Apache-2.0
"""The options of `opwest run` and `opwest call`: this machine, a board, and the connection to it."""

from __future__ import annotations

import argparse
import math
from pathlib import Path


def add_host(command: argparse.ArgumentParser) -> None:
    """Add the options of a run on this machine."""
    add = command.add_argument_group("with --host").add_argument
    actions = [
        add("--bits", type=int, choices=(32, 64), help="compile with -m32 or -m64"),
        add(
            "--cmsis-nn",
            metavar="DIR",
            type=Path,
            help="CMSIS-NN, for operators that call it, also with --check-steps (default: $CMSIS_NN, or the module of "
            "the Zephyr workspace)",
        ),
    ]
    command.set_defaults(host_actions=actions)


def add_board(command: argparse.ArgumentParser) -> None:
    """Add the options of a run on a board."""
    group = command.add_argument_group("with --board")
    add = group.add_argument
    actions = [
        add(
            "--reference",
            metavar="NAME=FILE.npy",
            action="append",
            default=[],
            help="expected output; print the error against it",
        ),
        add(
            "--check-steps",
            action="store_true",
            help="stop after every step, compare its results with those of this machine or of --reference, and print "
            "the first difference (exit code 1)",
        ),
        add(
            "--tolerance",
            metavar="X",
            type=_tolerance,
            default=0.0,
            help="with --check-steps: largest error that is no difference (default: 0)",
        ),
        *add_connection(group),
    ]
    command.set_defaults(board_actions=actions)


def add_connection(group: argparse._ArgumentGroup) -> list[argparse.Action]:
    """Add the options of an image and the connection to it."""
    add = group.add_argument
    return [
        add("--serial", metavar="DEV", help="serial device of the board (default: the only one found)"),
        add("--baud", metavar="N", type=count, default=115200, help="baud rate (default: 115200)"),
        add(
            "--timeout",
            metavar="S",
            type=_seconds,
            default=30.0,
            help="timeout for a response in seconds (default: 30)",
        ),
        add("--build-dir", metavar="DIR", type=Path, help="build directory (default: DIR/build/run_BOARD...)"),
        add("--no-build", action="store_true", help="use the existing image of the build directory"),
        add("--no-flash", action="store_true", help="do not flash: the board already runs the image"),
        add(
            "--zephyr-base", metavar="DIR", type=Path, help="Zephyr tree (default: as for generate, or ~/zephyrproject)"
        ),
    ]


def count(text: str) -> int:
    """Return a number of repetitions. Raises ArgumentTypeError below 1."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("expected 1 or more")
    return number


def _tolerance(text: str) -> float:
    number = float(text)
    if not 0 <= number < math.inf:
        raise argparse.ArgumentTypeError("expected 0 or more")
    return number


def _seconds(text: str) -> float:
    number = float(text)
    if not 0 < number < 86400:
        raise argparse.ArgumentTypeError("expected a time in seconds")
    return number
