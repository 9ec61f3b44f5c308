# SPDX-License-Identifier: Apache-2.0
"""Windows of convolutions and pools: sizes of results, padding. Source: TFLite's kernels/padding.h."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.graph.spec import Operator, Result, specify
from opwest.compiler.graph.types import Node, Unsupported
from opwest.compiler.semantics.fixed_point import one_quantization
from opwest.compiler.semantics.movement import MOVED, integers

MAX_LINES = 1 << 16
"""The most rows or columns."""


def _resize(node: Node) -> Sequence[Result]:
    data, sizes = node.input(0), integers(node, 1)
    if len(data.shape) != 4 or len(sizes) != 2 or not 1 <= min(sizes) <= max(sizes) <= MAX_LINES:
        raise Unsupported(
            f"size {sizes} for shape {list(data.shape)}", f"two numbers from 1 to {MAX_LINES} for 4 dimensions"
        )
    if node.options["align_corners"] and node.options["half_pixel_centers"]:
        raise Unsupported("align_corners with half_pixel_centers", "one of them")
    return [(data.dtype, (data.shape[0], *sizes, data.shape[3]))]


_RESIZE_OPTIONS = {"align_corners": False, "half_pixel_centers": False}
specify(
    Operator("RESIZE_NEAREST_NEIGHBOR", _resize, (f"{MOVED} int32",), _RESIZE_OPTIONS, known=(1,)),
    Operator(
        "RESIZE_BILINEAR",
        _resize,
        tuple(f"{dtype} int32" for dtype in ("float32", "int8", "uint8", "int16")),
        _RESIZE_OPTIONS,
        known=(1,),
    ),
)


def nearest(node: Node, axis: int) -> tuple[int, ...]:
    """Return the source row or column of each row (axis 1) or column (axis 2) of a RESIZE_NEAREST_NEIGHBOR."""
    options, sizes = node.options, (node.input(0).shape[axis], node.output.shape[axis])
    return tuple(nearest_places(*sizes, options["align_corners"], options["half_pixel_centers"]).tolist())


def _scale(size: int, count: int, is_aligned: bool) -> Any:
    if is_aligned and count > 1:
        return np.float32(size - 1) / np.float32(count - 1)
    return np.float32(size) / np.float32(count)


def nearest_places(size: int, count: int, is_aligned: bool, is_half: bool) -> Any:
    """Return the source elements of RESIZE_NEAREST_NEIGHBOR, from `size` elements to `count`."""
    at = (np.arange(count, dtype=np.float32) + np.float32(is_half / 2)) * _scale(size, count, is_aligned)
    places = np.floor(at.astype(np.float64) + (0.5 if is_aligned else 0))
    return np.clip(places, 0, size - 1).astype(np.int64)


def linear_places(size: int, count: int, is_aligned: bool, is_half: bool) -> Any:
    """Return the float32 positions of RESIZE_BILINEAR in the data. Source: ComputeInterpolationValues."""
    at, scale, half = np.arange(count, dtype=np.float32), _scale(size, count, is_aligned), np.float32(0.5)
    return (at + half) * scale - half if is_half else at * scale


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
    size, count = node.input(0).shape[axis], node.output.shape[axis]
    at = linear_places(size, count, node.options["align_corners"], node.options["half_pixel_centers"])
    low = np.maximum(np.floor(at), np.float32(0))
    after = np.minimum(np.ceil(at).astype(np.int64), size - 1)
    weights = at - low
    rests = np.float32(1) - weights
    columns = (low.astype(np.int64), after, weights, rests)
    return Line(*(tuple(column.tolist()) for column in columns))


@dataclass(frozen=True)
class Window:
    """Windows over rows and columns."""

    size: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    before: tuple[int, int]
    """Padded rows above and columns to the left."""
    result: tuple[int, int]
    """Rows and columns of the result."""

    @property
    def is_pointwise(self) -> bool:
        """Whether each window is one pixel, and each pixel of an image without further ones a window."""
        return self.size == self.stride == (1, 1) and self.before == (0, 0)

    def reach(self, axis: int) -> int:
        """Return the rows (axis 0) or columns from the first to the last one of a window."""
        return (self.size[axis] - 1) * self.dilation[axis] + 1

    def span(self, axis: int) -> int:
        """Return the rows or columns from the first one of the first window to the last one of the last window."""
        return (self.result[axis] - 1) * self.stride[axis] + self.reach(axis)

    def is_padded(self, image: tuple[int, int]) -> bool:
        """Whether a window reaches outside of an image."""
        return any(self.pads(image))

    def pads(self, image: tuple[int, int]) -> tuple[bool, bool]:
        """Return whether a window reaches outside of an image by rows, and by columns."""
        down, over = (self.before[axis] > 0 or self.span(axis) - self.before[axis] > image[axis] for axis in range(2))
        return down, over

    def inside(self, axis: int, length: int) -> tuple[int, int]:
        """Return the first window inside of an image with `length` rows or columns, and the end of these windows."""
        first = -(-self.before[axis] // self.stride[axis])
        last = (length - self.reach(axis) + self.before[axis]) // self.stride[axis] + 1
        return first, max(first, min(last, self.result[axis]))

    def has_data(self, image: tuple[int, int]) -> bool:
        """Whether each window reaches the rows and columns of an image; otherwise one is completely in the padding.

        The gaps of a dilated window count as parts of it.
        """
        return all(
            before < self.reach(axis) and (self.result[axis] - 1) * self.stride[axis] - before < image[axis]
            for axis, before in enumerate(self.before)
        )


def row_of(before: int, length: int, total: int) -> tuple[int, int, int]:
    """Return the elements of a padded row of `total` elements: padding, data of at most `length`, padding.

    Windows can be in the padding only: then there is no data, whatever `before` is.
    """
    first = min(before, total)
    inside = min(length, total - first)
    return first, inside, total - first - inside


def window_of(node: Node, size: tuple[int, int], image: tuple[int, int]) -> Window:
    """Return the windows of an operator over an image of rows and columns. Raises Unsupported.

    The option `padding` is SAME, VALID, or the numbers of rows above, columns to the left, rows below and columns to
    the right.
    """
    stride = (int(node.options["stride_h"]), int(node.options["stride_w"]))
    dilation = (int(node.options.get("dilation_h_factor", 1)), int(node.options.get("dilation_w_factor", 1)))
    if min(*stride, *dilation, *size) < 1:
        raise Unsupported(f"window {list(size)}, stride {list(stride)}, dilation {list(dilation)}", "at least 1 each")
    padding = node.options["padding"]
    reach = [(length - 1) * d + 1 for length, d in zip(size, dilation, strict=True)]
    before, result = [], []
    for axis in range(2):
        if padding == "SAME":
            count = -(-image[axis] // stride[axis])
            before.append(max(0, (count - 1) * stride[axis] + reach[axis] - image[axis]) // 2)
        elif padding == "VALID":
            count = -(-(image[axis] - reach[axis] + 1) // stride[axis])
            before.append(0)
        else:
            first, last = padding[axis], padding[axis + 2]
            count = (image[axis] + first + last - reach[axis]) // stride[axis] + 1
            before.append(first)
        if count < 1:
            raise Unsupported(f"window {list(size)} over {list(image)} has no result")
        result.append(count)
    return Window(size, stride, dilation, (before[0], before[1]), (result[0], result[1]))


def window(node: Node) -> Window:
    """Return the windows of a pool."""
    data = node.input(0).shape
    size = (int(node.options["filter_height"]), int(node.options["filter_width"]))
    return window_of(node, size, (data[1], data[2]))


def _pool(node: Node) -> Sequence[Result]:
    data = node.input(0)
    if len(data.shape) != 4:
        raise Unsupported(f"data {list(data.shape)}", "4 dimensions")
    windows = window(node)
    if not windows.has_data((data.shape[1], data.shape[2])):
        raise Unsupported(f"padding {list(node.options['padding'])}: a window has no element of the data")
    if data.dtype != "float32":
        source, target = one_quantization(data), one_quantization(node.output)
        if abs(source.scale - target.scale) > 1e-6 * max(source.scale, target.scale) or source.zero != target.zero:
            raise Unsupported(
                f"'{data.name}' and '{node.output.name}' have different scales or zero points", "equal ones"
            )
    return [(data.dtype, (data.shape[0], *windows.result, data.shape[3]))]


_OPTIONS = {
    "padding": "SAME",
    "stride_w": 1,
    "stride_h": 1,
    "filter_width": 1,
    "filter_height": 1,
    "fused_activation_function": "NONE",
}
_DILATION = {"dilation_w_factor": 1, "dilation_h_factor": 1}
"""Of models from ONNX only."""
specify(
    Operator("AVERAGE_POOL_2D", _pool, ("float32", "int8", "uint8", "int16"), _OPTIONS),
    Operator("MAX_POOL_2D", _pool, ("float32", "int8", "uint8", "int16"), {**_OPTIONS, **_DILATION}),
    Operator("L2_POOL_2D", _pool, ("float32",), _OPTIONS),
)
