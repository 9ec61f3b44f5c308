# SPDX-License-Identifier: Apache-2.0
"""The NPUs of the Ethos-U series, by the names that Vela and Zephyr use.

Source: the technical reference manuals of Ethos-U55, U65 and U85, register CONFIG.
"""

from __future__ import annotations

from opwest.records import dataclass

FAMILY = "ethos-u"
"""The start of the types of devices that are such NPUs."""
_PRODUCTS = {"u55": 0, "u65": 1, "u85": 2}
"""The field `product` of CONFIG."""
_MACS = {"u55": (32, 64, 128, 256), "u65": (128, 256, 512), "u85": (128, 256, 512, 1024, 2048)}
"""Multiplications per cycle."""


@dataclass(frozen=True)
class Npu:
    """One configuration of an NPU."""

    name: str
    """As in `--accelerator-config` of Vela: ethos-u55-128."""
    product: int
    macs: int
    """Multiplications per cycle."""


NPUS = {
    name: Npu(name, _PRODUCTS[series], macs)
    for series, choices in _MACS.items()
    for macs in choices
    for name in [f"{FAMILY.removesuffix('u')}{series}-{macs}"]
}
"""All configurations by name."""
U55, U65, U85 = _PRODUCTS.values()


def is_npu(device_type: str | None) -> bool:
    """Return whether the type of a device names an NPU of the series, known or not: `ethos-u`, `ethos-u55-128`."""
    return device_type is not None and device_type.startswith(FAMILY)


def npu_of_config(word: int) -> Npu | None:
    """Return the NPU that a value of CONFIG describes: product in bits 31 to 28, log2 of the MACs in bits 3 to 0."""
    return next((one for one in NPUS.values() if (one.product, one.macs) == (word >> 28, 1 << (word & 15))), None)
