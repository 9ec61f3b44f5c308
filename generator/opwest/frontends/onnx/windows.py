# SPDX-License-Identifier: Apache-2.0
"""Windows of convolutions and pools: strides, dilations, padding. Source: onnx/docs/Operators.md, Conv, MaxPool."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.base.result import counted
from opwest.compiler.graph.types import Shape, Unsupported
from opwest.frontends.onnx.translation import Order, channels_last, permuted
from opwest.frontends.onnx.values import Op


def image_padding(op: Op, image: Sequence[int], kernel: Sequence[int]) -> tuple[dict[str, Any], tuple[int, ...]]:
    """Return TFLite's options of strides, dilations and padding, and the rows and columns that ceil_mode adds.

    One spatial dimension becomes the columns of an image with one row.
    """
    rank = len(image)
    strides = list(op.get("strides", [1] * rank))
    dilations = list(op.get("dilations", [1] * rank))
    given = list(op.get("kernel_shape", kernel))
    if given != list(kernel) or len(strides) != rank or len(dilations) != rank:
        raise Unsupported(
            f"kernel_shape {given}, strides {strides}, dilations {dilations} for {counted(rank, 'dimension')}"
        )
    if min(*strides, *dilations, *kernel) < 1:
        raise Unsupported(f"kernel_shape {given}, strides {strides}, dilations {dilations}", "at least 1 each")
    before, after, extra = [], [], []
    pads = list(op.get("pads", [0] * (2 * rank)))
    if len(pads) != 2 * rank or min(pads, default=0) < 0:
        raise Unsupported(f"pads {pads}", f"{2 * rank} numbers of at least 0")
    automatic = op.get("auto_pad", "NOTSET")
    for axis in range(rank):
        reach = (kernel[axis] - 1) * dilations[axis] + 1
        first, last = pads[axis], pads[axis + rank]
        if automatic in ("SAME_UPPER", "SAME_LOWER"):
            count = -(-image[axis] // strides[axis])
            total = max(0, (count - 1) * strides[axis] + reach - image[axis])
            first = total // 2 if automatic == "SAME_UPPER" else total - total // 2
            last = total - first
        elif automatic == "VALID":
            first = last = 0
        elif automatic != "NOTSET":
            raise Unsupported(f"auto_pad {automatic}", "NOTSET, SAME_UPPER, SAME_LOWER or VALID")
        before.append(first)
        after.append(last)
        more = 0
        if op.get("ceil_mode", 0):
            start = first + image[axis]
            count = count_with_ceiling(start + last, reach, strides[axis], start)
            more = max(0, (count - 1) * strides[axis] + reach - start - last)
        extra.append(more)
    if rank == 1:
        strides, dilations = [1, *strides], [1, *dilations]
        before, after, extra = [0, *before], [0, *after], [0, *extra]
    options = {
        "stride_h": strides[0],
        "stride_w": strides[1],
        "dilation_h_factor": dilations[0],
        "dilation_w_factor": dilations[1],
        "padding": (*before, *after),
    }
    return options, tuple(extra)


def count_with_ceiling(padded: int, reach: int, stride: int, start: int) -> int:
    """Return the number of windows with ceil_mode; the data ends at `start`, the padding after it at `padded`."""
    count = -(-(padded - reach) // stride) + 1
    return count - ((count - 1) * stride >= start)  # a window must start in the data or in the padding before it


def as_image(shape: Shape) -> Shape:
    """Return the shape [n,w,c] as [n,1,w,c]; the shape of an image as it is."""
    return shape if len(shape) == 4 else (shape[0], 1, *shape[1:])


def narrowed(op: Op, axes: Sequence[int], spatial: int) -> Op:
    """Return an operator whose windows are those of some of its `spatial` dimensions."""
    attributes = dict(op.attributes)
    for name in ("strides", "dilations", "kernel_shape"):
        if name in attributes:
            attributes[name] = [_checked(attributes[name], spatial)[axis] for axis in axes]
    if "pads" in attributes:
        pads = _checked(attributes["pads"], 2 * spatial)
        attributes["pads"] = [pads[axis] for axis in axes] + [pads[spatial + axis] for axis in axes]
    return dataclasses.replace(op, attributes=attributes)


def _checked(values: Any, count: int) -> list[int]:
    numbers = list(values)
    if len(numbers) != count:
        raise Unsupported(f"windows of {counted(len(numbers), 'number')}", f"{counted(count, 'number')}")
    return numbers


@dataclass(frozen=True)
class Planar:
    """A convolution over one to three dimensions as one over images."""

    options: dict[str, Any]
    """TFLite's options of strides, dilations and padding."""
    order: Order
    """Of the data, which is then reshaped to `image`, and of the result, which `planes` gives."""
    image: Shape
    """[n,h,w,c]"""
    kernel: Any
    """Weights [o,i,h,w]."""

    def planes(self, result: Shape) -> Shape:
        """Return the images [n,h,w,c] of a result in the order."""
        if len(result) < 5:
            return as_image(result)
        return result[:4] if self.order[-1] != 1 else (result[0] * result[1], *result[2:])


def planar(op: Op, content: Any) -> Planar:
    """Return the form of a convolution with weights [o,i,...]. Raises Unsupported.

    Of three dimensions, one with a kernel of one element, without strides and padding, becomes part of the batch. One
    that the kernel covers becomes part of the channels.
    """
    data = op.input(0).known
    if not 3 <= len(data) <= 5 or content.ndim != len(data):
        raise Unsupported(f"data {list(data)}, weights {list(content.shape)}", "3 to 5 dimensions each")
    if len(data) < 5:
        options, _ = image_padding(op, data[2:], content.shape[2:])
        order = channels_last(len(data))
        kernel = content if content.ndim == 4 else content[:, :, None, :]
        return Planar(options, order, as_image(permuted(data, order)), kernel)
    strides, dilations = list(op.get("strides", [1] * 3)), list(op.get("dilations", [1] * 3))
    pads = _checked(op.get("pads", [0] * 6), 6)
    automatic = op.get("auto_pad", "NOTSET")
    for axis in range(3):
        first, last = (other for other in range(3) if other != axis)
        size, length = content.shape[2 + axis], data[2 + axis]
        flat = narrowed(op, (first, last), 3)
        if pads[axis] or pads[3 + axis]:
            continue
        height, width = data[2 + first], data[2 + last]
        if size == 1 and _checked(strides, 3)[axis] == 1:
            order = (0, 2 + axis, 2 + first, 2 + last, 1)
            image = (data[0] * length, height, width, data[1])
            kernel = content.squeeze(2 + axis)
        elif size == length and _checked(dilations, 3)[axis] == 1 and not automatic.startswith("SAME"):
            order = (0, 2 + first, 2 + last, 1, 2 + axis)
            image = (data[0], height, width, data[1] * length)
            moved = np.moveaxis(content, 2 + axis, 2)
            kernel = moved.reshape(moved.shape[0], moved.shape[1] * length, *moved.shape[3:])
        else:
            continue
        options, _ = image_padding(flat, (height, width), kernel.shape[2:])
        return Planar(options, order, image, kernel)
    raise Unsupported(
        f"a convolution over the volume '{op.input(0).name}' {list(data)} with windows {list(content.shape[2:])}",
        "one dimension with windows of one element, or of all elements, without padding",
    )
