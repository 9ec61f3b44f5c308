# SPDX-License-Identifier: Apache-2.0
"""The commands of Ethos-U55 and U65: codes, lengths, and the bits and values of their parameters.

Source: the technical reference manuals of Ethos-U55 and U65, chapter "Command stream". A command is one word, or two if
bits 15 and 14 are 1: the code is in bits 9 to 0, the parameter in bits 31 to 16, the second word is the data.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product

from opwest.ethos_u.npus import U55, U65
from opwest.records import dataclass

HAS_DATA = 1 << 14
"""The bit of a command with a second word, in the first one; such commands have codes of their own."""
REGIONS = 8
"""The number of base pointers."""


@dataclass(frozen=True)
class Command:
    """One command."""

    name: str
    bits: int
    """The bits that the parameter can have."""
    values: frozenset[int] | None = None
    """The values that the parameter can have; None: any within the bits."""
    data_bits: int | None = None
    """The bits that the data can have; None: there is no data."""


def _fields(spec: str) -> int:
    """Return the bits of fields, given as `first-last` or one bit."""
    bits = 0
    for part in spec.split():
        low, _, high = part.partition("-")
        bits |= (1 << int(high or low) + 1) - (1 << int(low))
    return bits


_OPERATIONS = {
    0x000: ("STOP", "0-15", None),
    0x001: ("IRQ", "0-15", None),
    0x002: ("CONV", "", None),
    0x003: ("DEPTHWISE", "", None),
    0x005: ("POOL", "0-2", range(3)),
    0x006: ("ELEMENTWISE", "0-5", range(10)),
    0x010: ("DMA_START", "", None),
    0x011: ("DMA_WAIT", "0-3", None),
    0x012: ("KERNEL_WAIT", "0-1", None),
    0x013: ("PMU_MASK", "0", None),
}
_ANY = "0-15"
_REGION = "0-2"


def _combined(*fields: tuple[int, Iterable[int]]) -> list[int]:
    """Return the values of a parameter with fields, given by their first bits and their values."""
    choices = [[value << low for value in values] for low, values in fields]
    return [sum(one) for one in product(*choices)]


_IFM_PRECISION = _combined((0, (0, 1)), (2, range(3)), (6, (0, 1)), (8, range(3)), (14, range(3)))
"""Sign, bytes (8, 16, 32 bits), layout (NHWC, NHCWB16), scaled operand, rounding."""
_IFM2_PRECISION = _combined((0, (0, 1)), (2, range(3)), (6, (0, 1)))
_OFM_PRECISION = _combined((0, (0, 1)), (1, range(3)), (6, (0, 1)), (8, (0, 1)), (14, range(3)))
"""As of an IFM, at other bits; bit 8: one scale for all channels."""
_ACTIVATION = _combined((0, (0, 3, 4, *range(16, 24))), (12, (0, 2, 3, 5)))
"""The function (none, tanh, sigmoid, tables 0 to 7), and the range of the result."""
_DMA_REGION = "0-2 8-10"
"""The region, or with bit 8 the NPU's own memory; the number of dimensions."""
_SETTINGS = {
    0x100: ("IFM_PAD_TOP", "0-6", None),
    0x101: ("IFM_PAD_LEFT", "0-6", None),
    0x102: ("IFM_PAD_RIGHT", "0-7", None),
    0x103: ("IFM_PAD_BOTTOM", "0-7", None),
    0x104: ("IFM_DEPTH_M1", _ANY, None),
    0x105: ("IFM_PRECISION", "0 2-3 6 8-9 14-15", _IFM_PRECISION),
    0x107: ("IFM_UPSCALE", "0-1", range(3)),
    0x109: ("IFM_ZERO_POINT", _ANY, None),
    0x10A: ("IFM_WIDTH0_M1", _ANY, None),
    0x10B: ("IFM_HEIGHT0_M1", _ANY, None),
    0x10C: ("IFM_HEIGHT1_M1", _ANY, None),
    0x10D: ("IFM_IB_END", "0-5", None),
    0x10F: ("IFM_REGION", _REGION, None),
    0x111: ("OFM_WIDTH_M1", _ANY, None),
    0x112: ("OFM_HEIGHT_M1", _ANY, None),
    0x113: ("OFM_DEPTH_M1", _ANY, None),
    0x114: ("OFM_PRECISION", "0-2 6 8 14-15", _OFM_PRECISION),
    0x115: ("OFM_BLK_WIDTH_M1", "0-5", None),
    0x116: ("OFM_BLK_HEIGHT_M1", "0-4", None),
    0x117: ("OFM_BLK_DEPTH_M1", "0-6", None),
    0x118: ("OFM_ZERO_POINT", _ANY, None),
    0x11A: ("OFM_WIDTH0_M1", _ANY, None),
    0x11B: ("OFM_HEIGHT0_M1", _ANY, None),
    0x11C: ("OFM_HEIGHT1_M1", _ANY, None),
    0x11F: ("OFM_REGION", _REGION, None),
    0x120: ("KERNEL_WIDTH_M1", _ANY, None),
    0x121: ("KERNEL_HEIGHT_M1", _ANY, None),
    0x122: ("KERNEL_STRIDE", "0-6 9", None),
    0x124: ("ACC_FORMAT", "0-1", range(3)),
    0x125: ("ACTIVATION", "0-4 12-14", _ACTIVATION),
    0x126: ("ACTIVATION_MIN", _ANY, None),
    0x127: ("ACTIVATION_MAX", _ANY, None),
    0x128: ("WEIGHT_REGION", _REGION, None),
    0x129: ("SCALE_REGION", _REGION, None),
    0x12D: ("AB_START", "0-5", None),
    0x12F: ("BLOCKDEP", "0-1", None),
    0x130: ("DMA0_SRC_REGION", _DMA_REGION, None),
    0x131: ("DMA0_DST_REGION", _DMA_REGION, None),
    0x132: ("DMA0_SIZE0", _ANY, None),
    0x133: ("DMA0_SIZE1", _ANY, None),
    0x180: ("IFM2_BROADCAST", "0-2 6-7", None),
    0x181: ("IFM2_SCALAR", _ANY, None),
    0x185: ("IFM2_PRECISION", "0 2-3 6", _IFM2_PRECISION),
    0x189: ("IFM2_ZERO_POINT", _ANY, None),
    0x18A: ("IFM2_WIDTH0_M1", _ANY, None),
    0x18B: ("IFM2_HEIGHT0_M1", _ANY, None),
    0x18C: ("IFM2_HEIGHT1_M1", _ANY, None),
    0x18D: ("IFM2_IB_START", "0-5", None),
    0x18F: ("IFM2_REGION", _REGION, None),
}
_ADDRESSES = {
    **{base + i: f"{name}_BASE{i}" for base, name in ((0x00, "IFM"), (0x10, "OFM"), (0x80, "IFM2")) for i in range(4)},
    **{
        base + 4 + i: f"{name}_STRIDE_{axis}"
        for base, name in ((0x00, "IFM"), (0x10, "OFM"), (0x80, "IFM2"))
        for i, axis in enumerate("XYC")
    },
    0x20: "WEIGHT_BASE",
    0x22: "SCALE_BASE",
    0x30: "DMA0_SRC",
    0x31: "DMA0_DST",
    0x32: "DMA0_LEN",
}
"""Codes of commands with data that are addresses or differences of addresses: 32 bits on U55, 40 bits on U65."""
_SECOND_CORE = {0x90: "WEIGHT1_BASE", 0x92: "SCALE1_BASE", 0x33: "DMA0_SKIP0", 0x34: "DMA0_SKIP1"}
_WORD = (1 << 32) - 1
_LENGTH_BITS = (1 << 20) - 1


def _table(npu: int) -> Iterator[tuple[int, Command]]:
    """Yield the commands of a product with their codes, those with data with HAS_DATA."""
    for code, (name, bits, values) in (*_OPERATIONS.items(), *_SETTINGS.items()):
        kind = "OP" if code in _OPERATIONS else "SET"
        yield code, Command(f"NPU_{kind}_{name}", _fields(bits), None if values is None else frozenset(values))
    extension = 0 if npu == U55 else 0xFF
    addresses = _ADDRESSES if npu == U55 else _ADDRESSES | _SECOND_CORE
    for code, name in addresses.items():
        yield code | HAS_DATA, Command(f"NPU_SET_{name}", extension, None, _WORD)
    yield 0x21 | HAS_DATA, Command("NPU_SET_WEIGHT_LENGTH", 0, None, _WORD)
    yield 0x23 | HAS_DATA, Command("NPU_SET_SCALE_LENGTH", 0, None, _LENGTH_BITS)
    yield 0x24 | HAS_DATA, Command("NPU_SET_OFM_SCALE", 0x3F, None, _WORD)
    yield 0x25 | HAS_DATA, Command("NPU_SET_OPA_SCALE", 0x3F, None, _WORD)
    yield 0x26 | HAS_DATA, Command("NPU_SET_OPB_SCALE", 0, None, 0xFFFF)
    if npu == U65:
        yield 0x123, Command("NPU_SET_PARALLEL_MODE", 1)
        yield 0x91 | HAS_DATA, Command("NPU_SET_WEIGHT1_LENGTH", 0, None, _WORD)
        yield 0x93 | HAS_DATA, Command("NPU_SET_SCALE1_LENGTH", 0, None, _LENGTH_BITS)


COMMANDS = {npu: dict(_table(npu)) for npu in (U55, U65)}
"""By product: the commands by bits 15 to 0 of their first word."""


def fault_of(word: int, data: int, command: Command) -> str | None:
    """Return what is wrong with the values of a command, or None."""
    parameter = word >> 16
    if parameter & ~command.bits or (command.values is not None and parameter not in command.values):
        return f"the parameter {parameter:#x} of {command.name} is invalid"
    if command.data_bits is not None and data & ~command.data_bits:
        return f"the data {data:#x} of {command.name} is invalid"
    return None
