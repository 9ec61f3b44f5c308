# SPDX-License-Identifier: Apache-2.0
"""The options of `opwest bundle`."""

from __future__ import annotations

import argparse
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from opwest.base.diagnostics import Diagnostics
from opwest.cli.arguments import Arguments, option_of
from opwest.cli.run_options import PLACES, add_connection, connection_of, count

if TYPE_CHECKING:
    from opwest.bundles.install import BoardRequest

_WITH_BOARD = ("application", "build_dir", "no_build", "no_flash", "zephyr_base", "shield", "snippet", "cmake")


def board_request(options: argparse.Namespace, faults: Diagnostics) -> BoardRequest:
    """Return the request of a board action. Raises OpwestError for options that have no effect with the others."""
    from opwest.api.run import check_connection
    from opwest.bundles.install import BoardRequest

    if options.board is None:
        if all(getattr(options, name) is None for name in PLACES):
            expected = "--serial DEV, --udp HOST, --ble NAME, or --board BOARD --application DIR"
            faults.error("no board is given", expected=expected)
        for name in _WITH_BOARD:
            if getattr(options, name):
                what = "options of CMake require" if name == "cmake" else f"{option_of(name)} requires"
                faults.error(f"{what} --board")
    else:
        if options.application is None:
            faults.error("--board requires --application", expected="the directory of the application")
        elif not (options.application / "CMakeLists.txt").is_file():
            faults.error(f"'{options.application}' is not an application: no CMakeLists.txt found")
        check_connection(options.board, vars(options), faults)
    if options.transport == "shell" and (options.udp is not None or options.ble is not None):
        faults.error("--transport shell requires a serial device")
    if options.group is not None and options.transport == "shell":
        faults.error("--group has no effect with --transport shell")
    if options.variant is not None and options.manifest is None:
        faults.error("--variant requires a manifest")
    faults.raise_if_errors()
    names = ("action", "files", "manifest", "variant", "transport", "group")
    return BoardRequest(
        options.application or Path(),
        options.board or "",
        **connection_of(options),
        **{name: getattr(options, name) for name in names},
    )


def _group(text: str) -> int:
    """Return the number of a command group. Raises ArgumentTypeError."""
    if not text.isdecimal() or not 64 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError(f"'{text}' is no command group; expected a number from 64 to 65535")
    return int(text)


def add_bundle(bundle: Arguments) -> None:
    """Add the options of `opwest bundle`."""
    bundle.path("file FILE", "manifest to make a bundle of, or a bundle to sign or verify", nargs="?")
    bundle.output("FILE", "bundle to write")
    making = bundle.group("making a bundle")
    making.value(
        "--slot SLOT",
        "slot of the bundle: ADDRESS, ADDRESS:SIZE such as 0x80000:64K, or with --build a partition (its node "
        "label or its label)",
    )
    making.flag("--llext", help="make an image that Zephyr's LLEXT loads, for any slot")
    making.path("--build DIR", "build of the firmware: its compiler, its options, its target, its partitions")
    making.value("--target NAME", "target of 'opwest targets' or of the manifest (default: the only one)")
    making.value(
        "--cc COMMAND", "C compiler (default: that of --build, or arm-none-eabi-gcc, riscv64-unknown-elf-gcc, cc)"
    )
    making.value("--variant NAME", "variant of the model (default: the base, or that of --build)")
    making.value("--model-version VERSION", "version of the model: MAJOR.MINOR.PATCH (default: 0.0.0)")
    making.value("--vectors N", "include at most N golden vectors of each file (default: 10)", count)
    making.flag(
        "--steps",
        help="include the results of all steps of the first golden vector, from a run on this machine, so that "
        "firmware finds the first step that differs",
    )
    making.flag(
        "--observable",
        help="let firmware observe the steps, so that results can be sent to it later (bundle check-steps)",
    )
    making.path("--header DIR", "also write MODEL_bundle.h and MODEL.h, for the firmware, to DIR")
    making.path("--depfile FILE", "write the input files to FILE as dependencies of FILE without .d")
    keys = bundle.group("signatures")
    keys.values(
        "--key FILE",
        "sign with a private key of Ed25519 (PEM, PKCS #8); repeatable, up to 4; on a bundle, add a signature",
        Path,
    )
    keys.flag("--unsigned", help="make a bundle without a signature, to sign it later")
    keys.flag("--verify", help="check the format and the signatures of a bundle")
    keys.values("--public-key FILE", "with --verify: a key that may have signed it (PEM); repeatable", Path)
    keys.path("--export-key FILE", "print the public key of a PEM file as C, for the firmware")


BOARD_ACTIONS = MappingProxyType(
    {
        "install": "send a bundle to a board and make it the current model",
        "list": "print the slots of a board and their models",
        "confirm": "confirm the model that a board tries",
        "roll-back": "return to the previous model of a board",
        "check-steps": "print the first step on a board whose result differs",
    }
)
"""What a host asks of a board: the commands `opwest bundle ACTION`, with their help."""


def add_board_action(board: Arguments, action: str) -> None:
    """Add the options of an action on a board."""
    if action == "install":
        board.path("files FILE", "bundle: one for each slot, of which the fitting one is sent", nargs="+")
    if action == "check-steps":
        board.path(
            "manifest MANIFEST", "compare with a run of it on this machine (default: with the bundle)", nargs="?"
        )
        board.value("--variant NAME", "variant of the manifest's model (default: the base)")
    board.target.set_defaults(action=action, **{"files": []} if action != "install" else {})
    if action != "check-steps":
        board.target.set_defaults(manifest=None, variant=None)
    board.value("--board BOARD", "build the application and start or flash it first, for a board of Zephyr")
    board.path("--application DIR", "with --board: the application")
    board.choice(
        "--transport",
        ("smp", "shell"),
        "commands over SMP or the shell of the image (default: shell for native_sim, otherwise smp)",
    )
    board.value(
        "--group N",
        "command group of the image (default: CONFIG_OPWEST_BUNDLE_SMP_GROUP of the build, or 28536)",
        _group,
    )
    add_connection(board)
