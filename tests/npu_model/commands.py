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
    0x100: ("IFM_PAD_TOP", 0xFF),
    0x101: ("IFM_PAD_LEFT", 0xFF),
    0x102: ("IFM_PAD_RIGHT", 0xFF),
    0x103: ("IFM_PAD_BOTTOM", 0xFF),
    0x104: ("IFM_DEPTH_M1", 0xFFFF),
    0x105: ("IFM_PRECISION", 0xC3CD),
    0x107: ("IFM_UPSCALE", 3),
    0x109: ("IFM_ZERO_POINT", 0xFFFF),
    0x10A: ("IFM_WIDTH0_M1", 0xFFFF),
    0x10B: ("IFM_HEIGHT0_M1", 0xFFFF),
    0x10C: ("IFM_HEIGHT1_M1", 0xFFFF),
    0x10D: ("IFM_IB_END", 0x3F),
    0x10F: ("IFM_REGION", 7),
    0x111: ("OFM_WIDTH_M1", 0xFFFF),
    0x112: ("OFM_HEIGHT_M1", 0xFFFF),
    0x113: ("OFM_DEPTH_M1", 0xFFFF),
    0x114: ("OFM_PRECISION", 0xC1C7),
    0x115: ("OFM_BLK_WIDTH_M1", 0x3F),
    0x116: ("OFM_BLK_HEIGHT_M1", 0x1F),
    0x117: ("OFM_BLK_DEPTH_M1", 0x7F),
    0x118: ("OFM_ZERO_POINT", 0xFFFF),
    0x11A: ("OFM_WIDTH0_M1", 0xFFFF),
    0x11B: ("OFM_HEIGHT0_M1", 0xFFFF),
    0x11C: ("OFM_HEIGHT1_M1", 0xFFFF),
    0x11F: ("OFM_REGION", 7),
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
    0x189: ("IFM2_ZERO_POINT", 0xFFFF),
    0x18A: ("IFM2_WIDTH0_M1", 0xFFFF),
    0x18B: ("IFM2_HEIGHT0_M1", 0xFFFF),
    0x18C: ("IFM2_HEIGHT1_M1", 0xFFFF),
    0x18D: ("IFM2_IB_START", 0x3F),
    0x18F: ("IFM2_REGION", 7),
}
"""Registers that the parameter is written to: code to name and mask."""

_ADDRESS = 0xFF
WIDE = {
    **{0x000 + i: (f"IFM_BASE{i}", _ADDRESS) for i in range(4)},
    **{0x004 + i: (f"IFM_STRIDE_{axis}", 0xFFFF) for i, axis in enumerate("XYC")},
    **{0x010 + i: (f"OFM_BASE{i}", _ADDRESS) for i in range(4)},
    **{0x014 + i: (f"OFM_STRIDE_{axis}", 0xFFFF) for i, axis in enumerate("XYC")},
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
    **{0x080 + i: (f"IFM2_BASE{i}", _ADDRESS) for i in range(4)},
    **{0x084 + i: (f"IFM2_STRIDE_{axis}", 0xFFFF) for i, axis in enumerate("XYC")},
}
"""Registers that the payload is written to, the parameter above it: code to name and mask of the parameter."""


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
