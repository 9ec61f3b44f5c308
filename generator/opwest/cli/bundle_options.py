# SPDX-License-Identifier: Apache-2.0
"""The options of `opwest bundle`."""

from __future__ import annotations

import argparse
from pathlib import Path

from opwest.cli.run_options import count


def add_bundle_options(bundle: argparse.ArgumentParser) -> None:
    """Add the file and the options, except for those of the output and of the installation."""
    bundle.add_argument(
        "file", metavar="FILE", nargs="?", type=Path, help="manifest to make a bundle of, or a bundle to sign or verify"
    )
    bundle.add_argument("-o", "--output", metavar="FILE", type=Path, help="bundle to write")
    making = bundle.add_argument_group("making a bundle")
    making.add_argument(
        "--slot",
        metavar="SLOT",
        help="slot of the bundle: ADDRESS, ADDRESS:SIZE such as 0x80000:64K, or with --build a partition (its node "
        "label or its label)",
    )
    making.add_argument("--llext", action="store_true", help="make an image that Zephyr's LLEXT loads, for any slot")
    making.add_argument(
        "--build",
        metavar="DIR",
        type=Path,
        help="build of the firmware: its compiler, its options, its target, its partitions",
    )
    making.add_argument(
        "--target", metavar="NAME", help="target of 'opwest targets' or of the manifest (default: the only one)"
    )
    making.add_argument(
        "--cc",
        metavar="COMMAND",
        help="C compiler (default: that of --build, or arm-none-eabi-gcc, riscv64-unknown-elf-gcc, cc)",
    )
    making.add_argument(
        "--variant", metavar="NAME", help="variant of the model (default: the base, or that of --build)"
    )
    making.add_argument(
        "--model-version", metavar="VERSION", help="version of the model: MAJOR.MINOR.PATCH (default: 0.0.0)"
    )
    making.add_argument(
        "--vectors", metavar="N", type=count, help="include at most N golden vectors of each file (default: 10)"
    )
    making.add_argument(
        "--steps",
        action="store_true",
        help="include the results of all steps of the first golden vector, from a run on this machine, so that "
        "firmware finds the first step that differs",
    )
    making.add_argument(
        "--observable",
        action="store_true",
        help="let firmware observe the steps, so that results can be sent to it later (--check-steps)",
    )
    making.add_argument(
        "--header", metavar="DIR", type=Path, help="also write MODEL_bundle.h and MODEL.h, for the firmware, to DIR"
    )
    making.add_argument(
        "--depfile", metavar="FILE", type=Path, help="write the input files to FILE as dependencies of FILE without .d"
    )
    keys = bundle.add_argument_group("signatures")
    keys.add_argument(
        "--key",
        metavar="FILE",
        type=Path,
        action="append",
        default=[],
        help="sign with a private key of Ed25519 (PEM, PKCS #8); repeatable, up to 4; on a bundle, add a signature",
    )
    keys.add_argument("--unsigned", action="store_true", help="make a bundle without a signature, to sign it later")
    keys.add_argument("--verify", action="store_true", help="check the format and the signatures of a bundle")
    keys.add_argument(
        "--public-key",
        metavar="FILE",
        type=Path,
        action="append",
        default=[],
        help="with --verify: a key that may have signed it (PEM); repeatable",
    )
    keys.add_argument(
        "--export-key", metavar="FILE", type=Path, help="print the public key of a PEM file as C, for the firmware"
    )
