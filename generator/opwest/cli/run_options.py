# SPDX-License-Identifier: Apache-2.0
"""The options of `opwest run` and `opwest call`: this machine, a board, and the connection to it."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from opwest.base.diagnostics import Diagnostics
from opwest.cli.arguments import Arguments, number_of, option_of
from opwest.objects.flash import Flash, flash_of_text

if TYPE_CHECKING:
    from opwest.runs.places import Udp

PLACES: Final = ("serial", "udp", "ble")
"""The options that name the place of an image."""
_CMAKE: Final = re.compile(r"-D([\w+.-]+)(?::[A-Z]+)?=.*", re.DOTALL)
_SET: Final = ("BOARD", "OPWEST_RUNTIME", "OPWEST_SERVICES", "QEMU_PTY", "SHIELD", "SNIPPET")
_DEFAULTS: Final = {"repeat": 1, "baud": 115200, "timeout": 30.0}
"""The defaults of options that are errors where they have no effect, also with the value of the default."""


def set_defaults(options: argparse.Namespace) -> None:
    """Set the options that were not given to their defaults; `given` are the names of the others."""
    options.given = frozenset(name for name, value in vars(options).items() if value)
    for name, value in _DEFAULTS.items():
        if getattr(options, name, None) is None:
            setattr(options, name, value)


def check_run_options(options: argparse.Namespace, faults: Diagnostics) -> None:
    """Report options of `opwest run` that have no effect with the others. Without --board, it is this machine."""
    options.host = options.board is None
    for action in options.board_actions if options.host else options.host_actions:
        compares = action.dest == "cmsis_nn" and options.check_steps  # with a run on this machine
        if getattr(options, action.dest) != action.default and not compares:
            flag = action.option_strings[0]
            faults.error(f"{flag} requires --board" if options.host else f"{flag} cannot be used with --board")
    if options.host and options.cmake:
        faults.error("options of CMake require --board")
    if options.tolerance and not options.reference and not options.check_steps:
        faults.error("--tolerance requires --reference" + ("" if options.host else " or --check-steps"))
    if options.labels and not options.dataset:
        faults.error("--labels requires --dataset")
    for name in ("stream", "repeat"):
        if options.dataset and getattr(options, name):
            faults.error(f"--dataset excludes --{name}", hint="the cases define the number of runs")
    if options.stream and options.repeat:
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
        for name in ("stream", "output_dir", "repeat", "profile", "output_profile"):
            if getattr(options, name):
                faults.error(f"--check-steps excludes {option_of(name)}")


def check_connection_options(options: argparse.Namespace, faults: Diagnostics) -> None:
    """Report options of the connection that have no effect with the others."""
    where = next((name for name in PLACES if getattr(options, name) is not None), None)
    if options.no_build and options.no_flash and where and options.zephyr_base is not None:
        faults.error(f"--zephyr-base has no effect with --no-build, --no-flash and --{where}: Zephyr is not used")
    if options.no_build:
        for name in ("shield", "snippet"):
            if getattr(options, name):
                faults.error(f"--{name} has no effect with --no-build")
        if options.cmake:
            faults.error("options of CMake have no effect with --no-build")
    check_cmake_options(options.cmake, faults)
    if where in ("udp", "ble") and options.baud is not None:
        faults.error(f"--baud has no effect with --{where}")
    elif options.board.startswith("native_") and options.baud is not None:
        faults.error(f"--baud has no effect on board '{options.board}'")
    if options.board.startswith("native_"):
        if options.ble is not None:
            faults.error(f"--ble has no effect on board '{options.board}'")
        if options.no_flash and where is None:  # with a place, the image runs already
            faults.error(f"--no-flash has no effect on board '{options.board}' without --serial or --udp")


def check_cmake_options(words: Sequence[str], faults: Diagnostics) -> None:
    """Report words after `--` that are no options of CMake, and options that the command sets."""
    for word in words:
        match = _CMAKE.fullmatch(word)
        if match is None:
            faults.error(f"'{word}' after -- is no option of CMake", expected="-DNAME=VALUE, such as -DCONFIG_FPU=y")
        elif match[1] in _SET:
            hint = {"BOARD": "--board B", "SHIELD": "--shield S", "SNIPPET": "--snippet S"}.get(match[1])
            faults.error(f"-D{match[1]} cannot be given: the command sets it", expected=hint)


def check_tune_options(options: argparse.Namespace, faults: Diagnostics) -> None:
    """Report options of `opwest tune` that have no effect with the others."""
    if options.serial is None:
        for name in ("baud", "timeout"):
            if getattr(options, name) is not None:
                faults.error(f"--{name} requires --serial")
        return
    if options.board is None:
        faults.error("--serial requires --board", hint="--core measures in QEMU")
    if options.flash is not None:
        faults.error("--flash excludes --serial", hint="only QEMU models the flash: the board has its own")
    if options.cmsis_nn is not None:
        faults.error("--cmsis-nn excludes --serial", hint="CMSIS-NN is measured in QEMU: leave out --serial")


def add_run(run: Arguments) -> None:
    """Add the options of `opwest run`."""
    _add_application(run)
    where = run.exclusive()
    where.flag("--host", help="compile with $CC (default: cc) and run on this machine (default)")
    where.value("--board BOARD", "build with west and run on native_sim, in QEMU or on a board")
    run.value("--model NAME", "model to run, if there are several")
    run.values(
        "--input NAME=FILE.npy",
        "content of an input, or FILE.npz with inputs by name; without --input, --stream, --reference, "
        "--output-dir and --profile, the application's main() runs on this machine",
    )
    run.values(
        "--stream NAME=FILE.npy",
        "frames of an input, as first dimension: one run per frame in one workspace; keep the outputs of all runs",
    )
    run.path("--output-dir DIR", "directory for the outputs, one NAME.npy each")
    run.value("--repeat N", "run N times on the same inputs, keep the last outputs (default: 1)", count)
    run.flag("--profile", help="measure every step")
    run.path("--output-profile FILE", "write the measurements to FILE as JSON")
    run.values(
        "--reference NAME=FILE.npy",
        "expected output, or FILE.npz with outputs by name; a difference beyond the tolerance is exit code 1",
    )
    run.values(
        "--tolerance [NAME=]ABS[,REL]",
        "with --reference or --check-steps: the largest error ABS + REL * |reference| that is no difference, of "
        "one tensor or of all; repeatable (default: that of the manifest's tests, else 0)",
    )
    host_actions, board_actions = _add_host(run.group("on this machine")), _add_board(run.group("with --board"))
    run.target.set_defaults(operator=None, host_actions=host_actions, board_actions=board_actions)


def add_call(call: Arguments) -> None:
    """Add the options of `opwest call`."""
    _add_application(call)
    call.value("operator OPERATOR", "operator of the manifest")
    call.value("--board BOARD", "board, QEMU target or native_sim", required=True)
    call.value("--model NAME", "model of the operator, if there are several")
    call.values("--arg NAME=VALUE", "argument that the operator reads: FILE.npy, or the number of a scalar; repeatable")
    call.value("--device NAME", "device of the operator (default: the only one that fits)")
    call.path("--output-dir DIR", "directory for the results, one NAME.npy each")
    call.value("--repeat N", "call N times (default: 1)", count)
    add_connection(call.group("connection"))
    call.target.set_defaults(check_steps=False, profile=False, output_profile=None)


def _add_application(command: Arguments) -> None:
    command.path("directory DIR", "application generated by opwest")


def _add_host(host: Arguments) -> list[argparse.Action]:
    """Add the options of a run on this machine."""
    return [
        host.target.add_argument("--bits", type=int, choices=(32, 64), help="compile with -m32 or -m64"),
        host.flag(
            "--sanitize",
            help="compile with AddressSanitizer and UndefinedBehaviorSanitizer (gcc or clang), and stop at a fault",
        ),
        host.path(
            "--cmsis-nn DIR",
            "CMSIS-NN, for operators that call it, also with --check-steps (default: $CMSIS_NN, or the module of "
            "the Zephyr workspace)",
        ),
        host.values(
            "--dataset FILE.npz",
            "cases of all inputs, as first dimension, or NAME=FILE.npy: one run each, without state",
        ),
        host.value(
            "--labels [NAME=]FILE.npy",
            "with --dataset: the class of each case; print the accuracy of output NAME (default: the only one)",
        ),
    ]


def _add_board(board: Arguments) -> list[argparse.Action]:
    """Add the options of a run on a board."""
    return [
        board.flag(
            "--check-steps",
            help="stop after every step, compare its results with those of this machine or of --reference, and print "
            "the first difference (exit code 1)",
        ),
        *add_connection(board),
    ]


def add_connection(group: Arguments) -> list[argparse.Action]:
    """Add the options of an image and the connection to it. Words after `--` are options of CMake."""
    group.target.set_defaults(cmake=())
    group.target.description = "Words after -- are options of CMake, such as -- -DCONFIG_LOG=y."
    where = group.exclusive()
    return [
        _add_serial(where, "serial device of the board (default: the only one found)"),
        where.value("--udp HOST[:PORT]", "reach the image over UDP (default port: 1337)", _udp),
        where.value("--ble NAME", "reach the image over Bluetooth: the name or address of the device"),
        *_add_rate(group),
        group.path("--build-dir DIR", "build directory (default: DIR/build/run_BOARD...)"),
        group.flag("--no-build", help="use the existing image of the build directory"),
        group.flag("--no-flash", help="do not flash: the board already runs the image"),
        group.values("--shield SHIELD", "build with a shield of Zephyr; repeatable"),
        group.values("--snippet SNIPPET", "build with a snippet of Zephyr; repeatable"),
        group.path("--zephyr-base DIR", "Zephyr tree (default: as for generate, or ~/zephyrproject)"),
    ]


def add_device(group: Arguments, serial: str) -> list[argparse.Action]:
    """Add the options of the serial device. `serial`: the help of --serial."""
    return [_add_serial(group, serial), *_add_rate(group)]


def _add_serial(group: Arguments, serial: str) -> argparse.Action:
    return group.value("--serial DEV", serial)


def _add_rate(group: Arguments) -> list[argparse.Action]:
    return [
        group.value("--baud N", "baud rate (default: 115200)", count),
        group.value("--timeout S", "timeout for a response in seconds (default: 30)", _seconds),
    ]


def _udp(text: str) -> Udp:
    """Return the place of --udp. Raises ArgumentTypeError for an invalid one."""
    from opwest.runs.places import udp_place  # only commands with the option need it

    return udp_place(text)


def count(text: str) -> int:
    """Return a number of repetitions. Raises ArgumentTypeError below 1."""
    return number_of(text, int, "1 or more", 1)


def flash_option(text: str) -> Flash:
    """Return a flash. Raises ArgumentTypeError for an invalid one."""
    try:
        return flash_of_text(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _seconds(text: str) -> float:
    return number_of(text, float, "a time in seconds", sys.float_info.min, 86400)
