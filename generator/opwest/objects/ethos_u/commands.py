# SPDX-License-Identifier: Apache-2.0
"""The commands of Ethos-U55 and U65: codes, lengths, and the bits and values of their parameters.

Source: the technical reference manuals of Ethos-U55 and U65, chapter "Command stream". A command is one word, or two if
bits 15 and 14 are 1: the code is in bits 9 to 0, the parameter in bits 31 to 16, the second word is the data.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import product

from opwest.base.frozen_dataclass import dataclass
from opwest.objects.ethos_u.payload import U55, U65

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
    return [sum(values) for values in product(*choices)]


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
    """Return the error for invalid values of a command, or None."""
    parameter = word >> 16
    if parameter & ~command.bits or (command.values is not None and parameter not in command.values):
        return f"the parameter {parameter:#x} of {command.name} is invalid"
    if command.data_bits is not None and data & ~command.data_bits:
        return f"the data {data:#x} of {command.name} is invalid"
    return None


Registers = Mapping[str, int]
"""The values by the name of the register, without NPU_SET_; addresses are signed."""
_BRICK = 16
"""Channels of a brick of NHCWB16."""
_INTERNAL = 1 << 8
"""Of a DMA region: the NPU's own memory."""
_BROADCAST_H, _BROADCAST_W, _BROADCAST_C, _IS_SCALAR = 1, 2, 4, 0x80
"""Bits of IFM2_BROADCAST."""
_UNARY = (5, 6, 7)
"""The modes of ELEMENTWISE with one operand: LRELU, ABS, CLZ."""
_REDUCE_SUM = 2
"""The mode of POOL that adds the channels."""
_FEATURE_MAP = ("REGION", "BASE0", "STRIDE_X", "STRIDE_Y", "STRIDE_C", "PRECISION", "WIDTH0_M1", "HEIGHT0_M1")
_OFM = (*(f"OFM_{name}" for name in _FEATURE_MAP), "OFM_WIDTH_M1", "OFM_HEIGHT_M1", "OFM_DEPTH_M1")
_IFM = (*(f"IFM_{name}" for name in _FEATURE_MAP), "IFM_DEPTH_M1", "IFM_UPSCALE")
_PADDING = ("IFM_PAD_TOP", "IFM_PAD_LEFT", "IFM_PAD_RIGHT", "IFM_PAD_BOTTOM")
_KERNEL = ("KERNEL_WIDTH_M1", "KERNEL_HEIGHT_M1", "KERNEL_STRIDE", *_PADDING)
_WEIGHTS = ("WEIGHT_REGION", "WEIGHT_BASE", "WEIGHT_LENGTH", "SCALE_REGION", "SCALE_BASE", "SCALE_LENGTH")
_BLOCK_OPERATIONS = ("CONV", "DEPTHWISE", "POOL", "ELEMENTWISE")
_DMA = ("DMA0_SRC_REGION", "DMA0_SRC", "DMA0_DST_REGION", "DMA0_DST", "DMA0_LEN")


@dataclass(frozen=True)
class MemoryAccess:
    """One access to a region: the bytes from `begin` up to `end`."""

    what: str
    region: int
    begin: int
    end: int
    writes: bool = False


def needed(operation: str, mode: int, registers: Registers) -> tuple[str, ...]:
    """Return the registers that an operation uses here; `operation` is a name without NPU_OP_."""
    if operation == "DMA_START":
        return _DMA
    common = (*_OFM, *_IFM)
    if operation in ("CONV", "DEPTHWISE"):
        second = [name.replace("_", "1_", 1) for name in _WEIGHTS if not name.endswith("REGION")]
        return (*common, *_KERNEL, *_WEIGHTS, *(second if registers.get("PARALLEL_MODE") else ()))
    if operation == "POOL":
        return (*common, *_KERNEL)
    if operation == "ELEMENTWISE" and mode not in _UNARY:
        is_scalar = registers.get("IFM2_BROADCAST", 0) & _IS_SCALAR
        return (*common, "IFM2_BROADCAST", *(() if is_scalar else (f"IFM2_{name}" for name in _FEATURE_MAP)))
    return common if operation == "ELEMENTWISE" else ()


def uses(operation: str, mode: int, registers: Registers) -> Iterator[MemoryAccess]:
    """Yield the accesses of an operation whose registers are all set."""
    if operation == "DMA_START":
        for what, name, writes in (("source", "SRC", False), ("destination", "DST", True)):
            region, begin = registers[f"DMA0_{name}_REGION"], registers[f"DMA0_{name}"]
            if not region & _INTERNAL:
                yield MemoryAccess(f"the {what} of the DMA", region & 7, begin, begin + registers["DMA0_LEN"], writes)
    elif operation in _BLOCK_OPERATIONS:
        yield from _block_uses(operation, mode, registers)


def _block_uses(operation: str, mode: int, registers: Registers) -> Iterator[MemoryAccess]:
    width, height, depth = (registers[f"OFM_{axis}_M1"] + 1 for axis in ("WIDTH", "HEIGHT", "DEPTH"))
    element = 1 << (registers["OFM_PRECISION"] >> 1 & 3)
    yield from _feature_map("OFM", registers, width, height, depth, element, writes=True)
    in_depth = registers["IFM_DEPTH_M1"] + 1
    if operation != "CONV" and (operation, mode) != ("POOL", _REDUCE_SUM):
        in_depth = min(depth, in_depth)
    in_width, in_height = width, height
    if operation != "ELEMENTWISE":
        in_width, in_height = _before_kernel(registers, width, height)
    if registers["IFM_UPSCALE"]:
        in_width, in_height = -(-in_width // 2), -(-in_height // 2)
    yield from _feature_map("IFM", registers, in_width, in_height, in_depth, _input_bytes(registers, "IFM"))
    if operation == "ELEMENTWISE" and mode not in _UNARY:
        flags = registers["IFM2_BROADCAST"]
        if not flags & _IS_SCALAR:
            second = (
                1 if flags & _BROADCAST_W else width,
                1 if flags & _BROADCAST_H else height,
                1 if flags & _BROADCAST_C else depth,
            )
            yield from _feature_map("IFM2", registers, *second, _input_bytes(registers, "IFM2"))
    if operation in ("CONV", "DEPTHWISE"):
        for core in ("", "1") if registers.get("PARALLEL_MODE") else ("",):
            for kind, what in (("WEIGHT", "the weights"), ("SCALE", "the scales")):
                begin = registers[f"{kind}{core}_BASE"]
                yield MemoryAccess(what, registers[f"{kind}_REGION"], begin, begin + registers[f"{kind}{core}_LENGTH"])


def _input_bytes(registers: Registers, name: str) -> int:
    """Return the bytes of an element."""
    return 1 << (registers[f"{name}_PRECISION"] >> 2 & 3)


def _before_kernel(registers: Registers, width: int, height: int) -> tuple[int, int]:
    """Return the minimum width and height of the input of windows with these results."""
    stride = registers["KERNEL_STRIDE"]
    across = 1 + (stride & 1 | stride >> 5 & 2)
    down = 1 + (stride >> 1 & 1 | stride >> 8 & 2)
    wide = (width - 1) * across + registers["KERNEL_WIDTH_M1"] + 1
    high = (height - 1) * down + registers["KERNEL_HEIGHT_M1"] + 1
    wide -= registers["IFM_PAD_LEFT"] + registers["IFM_PAD_RIGHT"]
    high -= registers["IFM_PAD_TOP"] + registers["IFM_PAD_BOTTOM"]
    return max(wide, 1), max(high, 1)


def _feature_map(
    name: str, registers: Registers, width: int, height: int, depth: int, element: int, *, writes: bool = False
) -> Iterator[MemoryAccess]:
    """Yield the extents of the tiles: tile 0 is at the left and above, 1 right of it, 2 below, 3 below 1."""
    is_bricks = registers[f"{name}_PRECISION"] >> 6 & 1
    stride_y = registers[f"{name}_STRIDE_Y"]
    stride_x = _BRICK * element if is_bricks else registers[f"{name}_STRIDE_X"]
    stride_c = registers[f"{name}_STRIDE_C"] if is_bricks else _BRICK * element
    left = min(width, registers[f"{name}_WIDTH0_M1"] + 1)
    for tile, columns in ((0, left), (1, width - left)):
        if not columns:
            continue
        above = min(height, registers.get(f"{name}_HEIGHT{tile}_M1", height) + 1)
        for number, rows in ((tile, above), (tile + 2, height - above)):
            if not rows:
                continue
            base = registers.get(f"{name}_BASE{number}")
            if base is None:
                continue
            bricks = (depth - 1) // _BRICK
            steps = ((rows - 1) * stride_y, (columns - 1) * stride_x, bricks * stride_c)
            row = min(depth, _BRICK) * element if is_bricks else (depth - bricks * _BRICK) * element
            begin = base + sum(min(step, 0) for step in steps)
            end = base + sum(max(step, 0) for step in steps) + row
            yield MemoryAccess(f"the {name}", registers[f"{name}_REGION"], begin, end, writes)
