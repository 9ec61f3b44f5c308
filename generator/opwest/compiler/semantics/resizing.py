# SPDX-License-Identifier: Apache-2.0
"""Images of another size.

Sources in TFLite: internal/reference/resize_nearest_neighbor.h, internal/reference/resize_bilinear.h: float32 numbers
for float32 and uint8, fixed-point numbers with 10 binary places for int8 and int16.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.graph.spec import Operator, Result, specify
from opwest.compiler.graph.types import Node, Unsupported
from opwest.compiler.semantics.movement import MOVED, integers

MOST_LINES = 1 << 16
"""The most rows or columns."""


def _resize(node: Node) -> Sequence[Result]:
    data, sizes = node.input(0), integers(node, 1)
    if len(data.shape) != 4 or len(sizes) != 2 or not 1 <= min(sizes) <= max(sizes) <= MOST_LINES:
        raise Unsupported(
            f"size {sizes} for shape {list(data.shape)}", f"two numbers from 1 to {MOST_LINES} for 4 dimensions"
        )
    if node.options["align_corners"] and node.options["half_pixel_centers"]:
        raise Unsupported("align_corners with half_pixel_centers", "one of them")
    return [(data.dtype, (data.shape[0], *sizes, data.shape[3]))]


_OPTIONS = {"align_corners": False, "half_pixel_centers": False}
specify(
    Operator("RESIZE_NEAREST_NEIGHBOR", _resize, (f"{MOVED} int32",), _OPTIONS, known=(1,)),
    Operator(
        "RESIZE_BILINEAR",
        _resize,
        tuple(f"{dtype} int32" for dtype in ("float32", "int8", "uint8", "int16")),
        _OPTIONS,
        known=(1,),
    ),
)


def nearest(node: Node, axis: int) -> tuple[int, ...]:
    """Return the source row or column of each row (axis 1) or column (axis 2) of a RESIZE_NEAREST_NEIGHBOR."""
    size, count = node.input(0).shape[axis], node.output.shape[axis]
    is_aligned, is_half = node.options["align_corners"], node.options["half_pixel_centers"]
    if is_aligned and count > 1:
        scale = np.float32(size - 1) / np.float32(count - 1)
    else:
        scale = np.float32(size) / np.float32(count)
    found = []
    for i in range(count):
        real = float((np.float32(i) + np.float32(0.5 if is_half else 0.0)) * scale)
        place = math.floor(real + 0.5) if is_aligned else math.floor(real)
        found.append(max(0, min(place, size - 1)))
    return tuple(found)


@dataclass(frozen=True)
class Line:
    """The rows or columns of a RESIZE_BILINEAR, by that of the result."""

    first: tuple[int, ...]
    second: tuple[int, ...]
    weights: tuple[int | float, ...]
    """The weight of `second`: in units of 1/1024, or float32."""
    rests: tuple[int | float, ...]
    """The weight of `first`."""


def line(node: Node, axis: int) -> Line:
    """Return the rows (axis 1) or columns (axis 2)."""
    is_fixed = node.output.dtype in ("int8", "int16")
    return _fixed_line(node, axis) if is_fixed else _float_line(node, axis)


def _fixed_line(node: Node, axis: int) -> Line:
    """Source: ComputeInterpolationValuesInteger; C divides towards zero."""
    size, count = node.input(0).shape[axis], node.output.shape[axis]
    scale = ((1 << 10) * size + count // 2) // count
    if node.options["align_corners"] and count > 1:
        scale = ((1 << 10) * (size - 1) + (count - 1) // 2) // (count - 1)
    first, second, weights = [], [], []
    for i in range(count):
        place = i * scale + (scale // 2 - (1 << 9) if node.options["half_pixel_centers"] else 0)
        # A scale that was rounded up can lead outside of the image, where TFLite reads foreign memory.
        first.append(min(max(int(place / 1024), 0), size - 1))
        second.append(min(int((place + 1023) / 1024), size - 1))
        weights.append(place - 1024 * first[-1])
    return Line(tuple(first), tuple(second), tuple(weights), tuple(1024 - w for w in weights))


def _float_line(node: Node, axis: int) -> Line:
    """Source: ComputeInterpolationValues, in float32."""
    size, count = node.input(0).shape[axis], node.output.shape[axis]
    scale = np.float32(size) / np.float32(count)
    if node.options["align_corners"] and count > 1:
        scale = np.float32(size - 1) / np.float32(count - 1)
    first, second, weights, rests = [], [], [], []
    half, one = np.float32(0.5), np.float32(1)
    for i in range(count):
        place = (np.float32(i) + half) * scale - half if node.options["half_pixel_centers"] else np.float32(i) * scale
        low = max(math.floor(place), 0)
        first.append(low)
        second.append(min(math.ceil(place), size - 1))
        weight = np.float32(place - np.float32(low))
        weights.append(float(weight))
        rests.append(float(one - weight))
    return Line(tuple(first), tuple(second), tuple(weights), tuple(rests))
