# SPDX-License-Identifier: Apache-2.0
"""The options of `opwest run` and `opwest call`: this machine, a board, and the connection to it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from opwest.base.diagnostics import Diagnostics

_DEFAULTS: Final = {"repeat": 1, "baud": 115200, "timeout": 30.0}
"""The defaults of options that are errors where they have no effect, also with the value of the default."""


def set_defaults(options: argparse.Namespace) -> None:
    """Set the options that were not given to their defaults; `given` are the names of the others."""
    options.given = frozenset(name for name, value in vars(options).items() if value)
    for name, value in _DEFAULTS.items():
        if getattr(options, name, None) is None:
            setattr(options, name, value)


def check_run_options(options: argparse.Namespace, faults: Diagnostics) -> None:
    """Report options of `opwest run` that have no effect with the others."""
    for action in options.board_actions if options.host else options.host_actions:
        compares = action.dest == "cmsis_nn" and options.check_steps  # with a run on this machine
        if _is_given(options, action) and not compares:
            faults.error(f"{action.option_strings[0]} requires {'--board' if options.host else '--host'}")
    if options.tolerance and not options.reference and not options.check_steps:
        faults.error("--tolerance requires --reference" + ("" if options.host else " or --check-steps"))
    if options.labels and not options.dataset:
        faults.error("--labels requires --dataset")
    for option, is_given in (("--stream", options.stream), ("--repeat", options.repeat is not None)):
        if options.dataset and is_given:
            faults.error(f"--dataset excludes {option}", hint="the cases define the number of runs")
    if options.stream and options.repeat is not None:
        faults.error("--stream excludes --repeat", hint="the frames define the number of runs")
    if options.host:
        needed = ("input", "stream", "dataset", "reference", "output_dir", "profile", "output_profile")
        if not any(getattr(options, name) for name in needed):
            for name in ("model", "repeat"):
                if getattr(options, name) is not None:
                    faults.error(
                        f"--{name} has no effect on the application's main()",
                        hint="--input, --stream, --reference, --output-dir and --profile run a model without main()",
                    )
        return
    check_connection_options(options, faults)
    if options.check_steps:
        if options.cmsis_nn is not None and options.reference:
            faults.error("--cmsis-nn has no effect with --reference: the model does not run on this machine")
        for option, is_given in (
            ("--stream", options.stream),
            ("--output-dir", options.output_dir),
            ("--repeat", options.repeat is not None),
            ("--profile", options.profile),
            ("--output-profile", options.output_profile),
        ):
            if is_given:
                faults.error(f"--check-steps excludes {option}")


def check_connection_options(options: argparse.Namespace, faults: Diagnostics) -> None:
    """Report options of the connection that have no effect with the others."""
    if options.no_build and options.no_flash and options.serial and options.zephyr_base is not None:
        faults.error("--zephyr-base has no effect with --no-build, --no-flash and --serial: Zephyr is not used")
    if options.board.startswith("native_"):
        if options.baud is not None:
            faults.error(f"--baud has no effect on board '{options.board}'")
        if options.no_flash and options.serial is None:  # with --serial, the image runs already
            faults.error(f"--no-flash has no effect on board '{options.board}' without --serial")


def check_tune_options(options: argparse.Namespace, faults: Diagnostics) -> None:
    """Report options of `opwest tune` that have no effect with the others."""
    if options.serial is None:
        for name in ("baud", "timeout"):
            if getattr(options, name) is not None:
                faults.error(f"--{name} requires --serial")
        return
    if options.board is None:
        faults.error("--serial requires --board", hint="--core measures in QEMU")
    if options.wait_states is not None:
        faults.error("--wait-states excludes --serial", hint="only QEMU counts the loads from flash")
    if options.cmsis_nn is not None:
        faults.error("--cmsis-nn excludes --serial", hint="CMSIS-NN is measured in QEMU: leave out --serial")


def _is_given(options: argparse.Namespace, action: argparse.Action) -> bool:
    return bool(getattr(options, action.dest) != action.default)


def add_comparison(command: argparse.ArgumentParser) -> None:
    """Add the options of references."""
    add = command.add_argument
    add(
        "--reference",
        metavar="NAME=FILE.npy",
        action="append",
        default=[],
        help="expected output, or FILE.npz with outputs by name; a difference beyond the tolerance is exit code 1",
    )
    add(
        "--tolerance",
        metavar="[NAME=]ABS[,REL]",
        action="append",
        default=[],
        help="with --reference or --check-steps: the largest error ABS + REL * |reference| that is no difference, of "
        "one tensor or of all; repeatable (default: that of the manifest's tests, else 0)",
    )


def add_runs(run: argparse.ArgumentParser) -> None:
    """Add the options of the inputs, the outputs and the number of runs."""
    run.add_argument("--model", metavar="NAME", help="model to run, if there are several")
    run.add_argument(
        "--input",
        metavar="NAME=FILE.npy",
        action="append",
        default=[],
        help="content of an input, or FILE.npz with inputs by name; without --input, --stream, --reference, "
        "--output-dir and --profile, --host runs the application's main()",
    )
    run.add_argument(
        "--stream",
        metavar="NAME=FILE.npy",
        action="append",
        default=[],
        help="frames of an input, as first dimension: one run per frame in one workspace; keep the outputs of all runs",
    )
    run.add_argument("--output-dir", metavar="DIR", type=Path, help="directory for the outputs, one NAME.npy each")
    run.add_argument(
        "--repeat",
        metavar="N",
        type=count,
        help="run N times on the same inputs, keep the last outputs (default: 1)",
    )
    run.add_argument("--profile", action="store_true", help="measure every step")
    run.add_argument("--output-profile", metavar="FILE", type=Path, help="write the measurements to FILE as JSON")


def add_host(command: argparse.ArgumentParser) -> None:
    """Add the options of a run on this machine."""
    add = command.add_argument_group("with --host").add_argument
    actions = [
        add("--bits", type=int, choices=(32, 64), help="compile with -m32 or -m64"),
        add(
            "--sanitize",
            action="store_true",
            help="compile with AddressSanitizer and UndefinedBehaviorSanitizer (gcc or clang), and stop at a fault",
        ),
        add(
            "--cmsis-nn",
            metavar="DIR",
            type=Path,
            help="CMSIS-NN, for operators that call it, also with --check-steps (default: $CMSIS_NN, or the module of "
            "the Zephyr workspace)",
        ),
        add(
            "--dataset",
            metavar="FILE.npz",
            action="append",
            default=[],
            help="cases of all inputs, as first dimension, or NAME=FILE.npy: one run each, without state",
        ),
        add(
            "--labels",
            metavar="[NAME=]FILE.npy",
            help="with --dataset: the class of each case; print the accuracy of output NAME (default: the only one)",
        ),
    ]
    command.set_defaults(host_actions=actions)


def add_board(command: argparse.ArgumentParser) -> None:
    """Add the options of a run on a board."""
    group = command.add_argument_group("with --board")
    add = group.add_argument
    actions = [
        add(
            "--check-steps",
            action="store_true",
            help="stop after every step, compare its results with those of this machine or of --reference, and print "
            "the first difference (exit code 1)",
        ),
        *add_connection(group),
    ]
    command.set_defaults(board_actions=actions)


def add_connection(group: argparse._ArgumentGroup) -> list[argparse.Action]:
    """Add the options of an image and the connection to it."""
    add = group.add_argument
    return [
        *add_device(group, "serial device of the board (default: the only one found)"),
        add("--build-dir", metavar="DIR", type=Path, help="build directory (default: DIR/build/run_BOARD...)"),
        add("--no-build", action="store_true", help="use the existing image of the build directory"),
        add("--no-flash", action="store_true", help="do not flash: the board already runs the image"),
        add(
            "--zephyr-base", metavar="DIR", type=Path, help="Zephyr tree (default: as for generate, or ~/zephyrproject)"
        ),
    ]


def add_device(group: argparse._ArgumentGroup, serial: str) -> list[argparse.Action]:
    """Add the options of the serial device. `serial`: the help of --serial."""
    add = group.add_argument
    return [
        add("--serial", metavar="DEV", help=serial),
        add("--baud", metavar="N", type=count, help="baud rate (default: 115200)"),
        add(
            "--timeout",
            metavar="S",
            type=_seconds,
            help="timeout for a response in seconds (default: 30)",
        ),
    ]


def count(text: str) -> int:
    """Return a number of repetitions. Raises ArgumentTypeError below 1."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("expected 1 or more")
    return number


def _seconds(text: str) -> float:
    number = float(text)
    if not 0 < number < 86400:
        raise argparse.ArgumentTypeError("expected a time in seconds")
    return number
