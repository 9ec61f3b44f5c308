#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write a program for the emulated accelerator: its kernels, and the scaling of their results.

    make_program.py branch_a.onpu dense,id=1,multiplier=77,shift=12 relu,id=2 conv2d,id=3,shift=7,least=0

Keys: id (0), multiplier (1), shift (0), input_zero (0), output_zero (0), least (-128), most (127).
npu_emul_program.c documents the file.
"""

from __future__ import annotations

import argparse
import struct
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

KINDS = {"dense": 1, "conv2d": 2, "add": 3, "relu": 4}
INT8 = (-128, 127)
RANGES = {
    "id": (0, 2**16 - 1),
    "multiplier": (1, 2**31 - 1),
    "shift": (0, 47),
    "input_zero": INT8,
    "output_zero": INT8,
    "least": INT8,
    "most": INT8,
}
DEFAULTS = {"id": 0, "multiplier": 1, "shift": 0, "input_zero": 0, "output_zero": 0, "least": -128, "most": 127}
MAX_KERNELS = 256
HEADER = struct.Struct("<4sHHII")
KERNEL = struct.Struct("<HBBibbbbI")


def kernel_bytes(kind: str, settings: Mapping[str, int]) -> bytes:
    """Return the entry of one kernel; raise ValueError for values that the device rejects."""
    if kind not in KINDS:
        raise ValueError(f"unknown kind {kind!r}, expected one of {', '.join(KINDS)}")
    for key, value in settings.items():
        if key not in RANGES:
            raise ValueError(f"unknown key {key!r} of {kind}, expected one of {', '.join(RANGES)}")
        least, most = RANGES[key]
        if not least <= value <= most:
            raise ValueError(f"{key}={value} of {kind} is not in {least}..{most}")
    s = {**DEFAULTS, **settings}
    if s["least"] > s["most"]:
        raise ValueError(f"least={s['least']} of {kind} is above most={s['most']}")
    zeros = (s["input_zero"], s["output_zero"], s["least"], s["most"], 0)
    return KERNEL.pack(s["id"], KINDS[kind], s["shift"], s["multiplier"], *zeros)


def make_program(kernels: Sequence[tuple[str, Mapping[str, int]]]) -> bytes:
    """Return a program of kernels, each its kind and its keys."""
    if not 1 <= len(kernels) <= MAX_KERNELS:
        raise ValueError(f"{len(kernels)} kernels, expected 1 to {MAX_KERNELS}")
    ids = [settings.get("id", 0) for _, settings in kernels]
    twice = sorted({number for number in ids if ids.count(number) > 1})
    if twice:
        raise ValueError(f"id={twice[0]} is defined twice")
    body = b"".join(kernel_bytes(kind, settings) for kind, settings in kernels)
    return HEADER.pack(b"ONPU", 1, len(kernels), HEADER.size + len(body), 0) + body


def parse_kernel(text: str) -> tuple[str, dict[str, int]]:
    """Return the kind and the keys of `dense,id=1,shift=7`."""
    kind, *pairs = text.split(",")
    settings: dict[str, int] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or key in settings:
            raise ValueError(f"{pair!r} in {text!r}: expected key=number, each key once")
        settings[key] = int(value, 0)
    return kind, settings


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the program described by the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("output", type=Path, help="the file to write")
    parser.add_argument("kernel", nargs="+", help="kind and keys: dense,id=1,shift=7")
    options = parser.parse_args(arguments)
    try:
        program = make_program([parse_kernel(text) for text in options.kernel])
    except ValueError as fault:
        parser.error(str(fault))
    options.output.write_bytes(program)
    return 0


if __name__ == "__main__":
    sys.exit(main())
