# SPDX-License-Identifier: Apache-2.0
"""The memory that an operation of Ethos-U55 and U65 accesses, from the registers that commands have set.

Sources: the technical reference manuals, chapters "Feature maps" (tiles, strides, NHCWB16) and "Command stream". The
width and height of an IFM are in no register: they follow from the OFM, the kernel and the padding, and are at least
what is computed here. Weights are read completely.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from opwest.records import dataclass

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
class Use:
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
        second = "PARALLEL_MODE" in registers and registers["PARALLEL_MODE"]
        return (*common, *_KERNEL, *_WEIGHTS, *(_second_core(_WEIGHTS) if second else ()))
    if operation == "POOL":
        return (*common, *_KERNEL)
    if operation == "ELEMENTWISE":
        return common if mode in _UNARY else (*common, "IFM2_BROADCAST", *_second_operand(registers))
    return ()


def uses(operation: str, mode: int, registers: Registers) -> Iterator[Use]:
    """Yield the accesses of an operation whose needed registers are set."""
    if operation == "DMA_START":
        for what, name, writes in (("source", "SRC", False), ("destination", "DST", True)):
            region, begin = registers[f"DMA0_{name}_REGION"], registers[f"DMA0_{name}"]
            if not region & _INTERNAL:
                yield Use(f"the {what} of the DMA", region & 7, begin, begin + registers["DMA0_LEN"], writes)
    elif operation in _BLOCK_OPERATIONS:
        yield from _block_uses(operation, mode, registers)


def _second_core(names: tuple[str, ...]) -> Iterator[str]:
    return (one.replace("_", "1_", 1) for one in names if not one.endswith("REGION"))


def _second_operand(registers: Registers) -> tuple[str, ...]:
    if registers.get("IFM2_BROADCAST", 0) & _IS_SCALAR:
        return ()
    return tuple(f"IFM2_{name}" for name in _FEATURE_MAP)


def _block_uses(operation: str, mode: int, registers: Registers) -> Iterator[Use]:
    width, height, depth = (registers[f"OFM_{one}_M1"] + 1 for one in ("WIDTH", "HEIGHT", "DEPTH"))
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
                yield Use(what, registers[f"{kind}_REGION"], begin, begin + registers[f"{kind}{core}_LENGTH"])


def _input_bytes(registers: Registers, name: str) -> int:
    """Return the bytes of an element."""
    return 1 << (registers[f"{name}_PRECISION"] >> 2 & 3)


def _before_kernel(registers: Registers, width: int, height: int) -> tuple[int, int]:
    """Return the least width and height of the input of windows with these results."""
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
) -> Iterator[Use]:
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
            yield Use(f"the {name}", registers[f"{name}_REGION"], begin, end, writes)
