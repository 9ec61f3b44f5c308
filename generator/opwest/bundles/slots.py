# SPDX-License-Identifier: Apache-2.0
"""The slot of a bundle: an address, or a partition of a Zephyr build."""

from __future__ import annotations

import re
from pathlib import Path

from opwest.base.diagnostics import Diagnostics, Location
from opwest.base.frozen_dataclass import dataclass
from opwest.bundles.devicetree import TreeError, partition
from opwest.bundles.format import HEADER_SIZE, IMAGE_ALIGN

_NUMBER = r"0[xX][0-9a-fA-F]+|[0-9]+"
_ADDRESS = re.compile(rf"({_NUMBER})(?::({_NUMBER})([kKmM]?))?")
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20}


@dataclass(frozen=True, slots=True)
class Slot:
    """The place of a bundle in memory."""

    address: int
    size: int | None
    """Bytes; None if unknown."""


def read_slot(text: str, build: Path | None, faults: Diagnostics) -> Slot | None:
    """Return a slot: `ADDRESS[:SIZE]`, or a partition by node label or label; None after an error."""
    found = _ADDRESS.fullmatch(text)
    if found is not None:
        size = int(found[2], 0) * _UNITS[found[3].lower()] if found[2] else None
        slot = Slot(int(found[1], 0), size)
    elif re.match(r"[0-9]", text):
        faults.error(f"invalid slot {text!r}", expected="ADDRESS, ADDRESS:SIZE such as 0x80000:64K, or a partition")
        return None
    elif build is None:
        faults.error(f"--slot: partition {text!r} requires the build that defines it", expected="--build DIR")
        return None
    else:
        made = _of_partition(text, build, faults)
        if made is None:
            return None
        slot = made
    is_aligned = slot.address % IMAGE_ALIGN == 0
    if not is_aligned:
        faults.error(f"--slot: address 0x{slot.address:x} is misaligned", expected=f"a multiple of {IMAGE_ALIGN}")
    is_large = slot.size is None or slot.size > HEADER_SIZE
    if not is_large:
        faults.error(f"--slot: the slot has {slot.size} bytes", expected=f"more than {HEADER_SIZE}")
    return slot if is_aligned and is_large else None


def _of_partition(name: str, build: Path, faults: Diagnostics) -> Slot | None:
    path = build / "zephyr" / "zephyr.dts"
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        faults.error(
            f"cannot read the devicetree of the build: {error.strerror}",
            Location(str(path)),
            hint="--build is a build directory of west; with sysbuild, its directory of the application",
        )
        return None
    try:
        address, size = partition(text, name)
    except TreeError as error:
        faults.error(error.message, Location(str(path), error.line, 1 if error.line else 0), hint=error.hint)
        return None
    return Slot(address, size)
