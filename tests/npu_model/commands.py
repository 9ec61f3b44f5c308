# SPDX-License-Identifier: Apache-2.0
"""The commands of an Ethos-U55: codes, names, and the bits of the parameter that each uses.

A command is a word of 32 bits: bits 0 to 9 the code, 14 and 15 the payload (0: none, 1: a further word), 16 to 31 the
parameter. Commands without a payload and with one have codes of their own. Source: the register description of Vela
(ethos_u55_regs).
"""

from collections.abc import Iterator
from dataclasses import dataclass

from npu_model.faults import Invalid

OPERATIONS = {
    0x000: ("NPU_OP_STOP", 0xFFFF),
    0x001: ("NPU_OP_IRQ", 0xFFFF),
    0x002: ("NPU_OP_CONV", 0),
    0x003: ("NPU_OP_DEPTHWISE", 0),
    0x005: ("NPU_OP_POOL", 7),
    0x006: ("NPU_OP_ELEMENTWISE", 0x3F),
    0x010: ("NPU_OP_DMA_START", 0),
    0x011: ("NPU_OP_DMA_WAIT", 0xF),
    0x012: ("NPU_OP_KERNEL_WAIT", 3),
    0x013: ("NPU_OP_PMU_MASK", 1),
}
"""Code to name and mask of the parameter."""

SETTINGS = {
    **{0x100 + i: (f"IFM_PAD_{side}", 0xFF) for i, side in enumerate(("TOP", "LEFT", "RIGHT", "BOTTOM"))},
    0x104: ("IFM_DEPTH_M1", 0xFFFF),
    0x105: ("IFM_PRECISION", 0xC3CD),
    0x107: ("IFM_UPSCALE", 3),
    0x10D: ("IFM_IB_END", 0x3F),
    **{0x111 + i: (f"OFM_{axis}_M1", 0xFFFF) for i, axis in enumerate(("WIDTH", "HEIGHT", "DEPTH"))},
    0x114: ("OFM_PRECISION", 0xC1C7),
    0x115: ("OFM_BLK_WIDTH_M1", 0x3F),
    0x116: ("OFM_BLK_HEIGHT_M1", 0x1F),
    0x117: ("OFM_BLK_DEPTH_M1", 0x7F),
    0x120: ("KERNEL_WIDTH_M1", 0xFFFF),
    0x121: ("KERNEL_HEIGHT_M1", 0xFFFF),
    0x122: ("KERNEL_STRIDE", 0x0FFF),
    0x123: ("PARALLEL_MODE", 1),
    0x124: ("ACC_FORMAT", 3),
    0x125: ("ACTIVATION", 0x701F),
    0x126: ("ACTIVATION_MIN", 0xFFFF),
    0x127: ("ACTIVATION_MAX", 0xFFFF),
    0x128: ("WEIGHT_REGION", 7),
    0x129: ("SCALE_REGION", 7),
    0x12D: ("AB_START", 0x3F),
    0x12F: ("BLOCKDEP", 3),
    0x130: ("DMA0_SRC_REGION", 0x0707),
    0x131: ("DMA0_DST_REGION", 0x0707),
    0x180: ("IFM2_BROADCAST", 0xC7),
    0x181: ("IFM2_SCALAR", 0xFFFF),
    0x185: ("IFM2_PRECISION", 0xCD),
    0x18D: ("IFM2_IB_START", 0x3F),
    **{code: (f"{name}_ZERO_POINT", 0xFFFF) for code, name in ((0x109, "IFM"), (0x118, "OFM"), (0x189, "IFM2"))},
    **{
        first + i: (f"{name}_{field}", 7 if field == "REGION" else 0xFFFF)
        for first, name in ((0x10A, "IFM"), (0x11A, "OFM"), (0x18A, "IFM2"))
        for i, field in ((0, "WIDTH0_M1"), (1, "HEIGHT0_M1"), (2, "HEIGHT1_M1"), (5, "REGION"))
    },
}
"""Registers that the parameter is written to: code to name and mask."""

_ADDRESS = 0xFF
_MAPS = ((0x000, "IFM"), (0x010, "OFM"), (0x080, "IFM2"))
WIDE = {
    **{first + i: (f"{name}_BASE{i}", _ADDRESS) for first, name in _MAPS for i in range(4)},
    **{first + 4 + i: (f"{name}_STRIDE_{axis}", 0xFFFF) for first, name in _MAPS for i, axis in enumerate("XYC")},
    0x020: ("WEIGHT_BASE", _ADDRESS),
    0x021: ("WEIGHT_LENGTH", 0),
    0x022: ("SCALE_BASE", _ADDRESS),
    0x023: ("SCALE_LENGTH", 0),
    0x024: ("OFM_SCALE", 0x3F),
    0x025: ("OPA_SCALE", 0x3F),
    0x026: ("OPB_SCALE", 0),
    0x030: ("DMA0_SRC", _ADDRESS),
    0x031: ("DMA0_DST", _ADDRESS),
    0x032: ("DMA0_LEN", _ADDRESS),
}
"""Registers that the payload is written to, the parameter above it: code to name and mask of the parameter."""


class Registers(dict[str, int]):
    """Values by name. Reading one that no command has set raises Invalid: what it has after a reset is not used."""

    def __missing__(self, name: str) -> int:
        raise Invalid(f"no command has set {name}")


def signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) & 1 else value


@dataclass(frozen=True)
class Command:
    """One command. `position` is its byte in the payload of the driver; a wide value has 48 bits."""

    position: int
    name: str
    is_operation: bool
    parameter: int
    value: int


def commands(words: list[int], start: int) -> Iterator[Command]:
    """Yield the commands of a stream up to NPU_OP_STOP. `start` is the byte in the payload of the first word.

    Raises Invalid for an unknown command, reserved bits, a missing payload, a missing stop, and words after the stop.
    """
    at = 0
    while at < len(words):
        word, position = words[at], start + 4 * at
        code, parameter = word & 0x3FF, word >> 16
        if word & 0x3C00 or word & 0x8000:
            raise Invalid(f"0x{word & 0xFFFF:04X} is not a command: reserved bits are set", position)
        wide = bool(word & 0x4000)
        table = WIDE if wide else OPERATIONS if code in OPERATIONS else SETTINGS
        if code not in table:
            raise Invalid(f"0x{word & 0xFFFF:04X} is not a command of an Ethos-U55", position)
        name, mask = table[code]
        shown = name if table is OPERATIONS else f"NPU_SET_{name}"
        if parameter & ~mask:
            raise Invalid(f"the parameter 0x{parameter:X} has bits outside of 0x{mask:X}", position, shown)
        if wide and at + 1 == len(words):
            raise Invalid("the stream ends before the payload of the command", position, shown)
        value = words[at + 1] | parameter << 32 if wide else parameter
        at += 2 if wide else 1
        yield Command(position, name, table is OPERATIONS, parameter, value)
        if name == "NPU_OP_STOP":
            if at != len(words):
                raise Invalid(f"{len(words) - at} words follow NPU_OP_STOP", start + 4 * at)
            return
    raise Invalid("the stream ends without NPU_OP_STOP", start + 4 * len(words))
