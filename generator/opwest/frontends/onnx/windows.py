# SPDX-License-Identifier: Apache-2.0
"""Windows of convolutions and pools: strides, dilations, padding. Source: onnx/docs/Operators.md, Conv, MaxPool."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.graph.types import Tensor, Unsupported
from opwest.frontends.onnx.translation import Order, Translation
from opwest.frontends.onnx.values import Op


def image_padding(op: Op, image: Sequence[int], kernel: Sequence[int]) -> dict[str, Any]:
    """Return TFLite's options of strides, dilations and padding, and the padding that ceil_mode adds as `ceil`.

    One spatial dimension becomes the columns of an image with one row.
    """
    rank = len(image)
    strides = list(op.get("strides", [1] * rank))
    dilations = list(op.get("dilations", [1] * rank))
    given = list(op.get("kernel_shape", kernel))
    if given != list(kernel) or len(strides) != rank or len(dilations) != rank:
        raise Unsupported(f"kernel_shape {given}, strides {strides}, dilations {dilations} for {rank} dimensions")
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
        padded, start = image[axis] + first + last, image[axis] + first
        extra.append(_ceiling(padded, reach, strides[axis], start) if op.get("ceil_mode", 0) else 0)
    if rank == 1:
        strides, dilations = [1, *strides], [1, *dilations]
        before, after, extra = [0, *before], [0, *after], [0, *extra]
    return {
        "stride_h": strides[0],
        "stride_w": strides[1],
        "dilation_h_factor": dilations[0],
        "dilation_w_factor": dilations[1],
        "padding": (*before, *after),
        "ceil": tuple(extra),
    }


def _ceiling(padded: int, reach: int, stride: int, start: int) -> int:
    """Return the elements after the padding that the last window of ceil_mode covers."""
    count = -(-(padded - reach) // stride) + 1
    if (count - 1) * stride >= start:  # a window must start in the data or in the padding before it
        count -= 1
    return max(0, (count - 1) * stride + reach - padded)


def stretched(t: Translation, tensor: Tensor) -> Tensor:
    """Return [n,w,c] as [n,1,w,c]."""
    if len(tensor.shape) == 4:
        return tensor
    n, width, depth = tensor.shape
    return t.reshape(tensor, (n, 1, width, depth))


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
        raise Unsupported(f"windows of {len(numbers)} numbers", f"{count} numbers")
    return numbers


@dataclass(frozen=True)
class Planar:
    """A convolution over volumes [n,c,d,h,w] as one over images."""

    op: Op
    """With two spatial dimensions."""
    order: Order
    """Of the data, which is then reshaped to `image`, and of the result, which `planes` gives."""
    image: tuple[int, int, int, int]
    """[n,h,w,c]"""
    content: Any
    """Weights [o,i,h,w]."""


def planar(op: Op, data: Sequence[int], content: Any) -> Planar:
    """Return the form of a convolution with weights [o,i,d,h,w]. Raises Unsupported.

    A dimension with a kernel of one element, without strides and padding, becomes part of the batch. One that the
    kernel covers becomes part of the channels.
    """
    if content.ndim != 5:
        raise Unsupported(f"data {list(data)}, weights {list(content.shape)}", "5 dimensions each")
    strides, dilations = list(op.get("strides", [1] * 3)), list(op.get("dilations", [1] * 3))
    pads = _checked(op.get("pads", [0] * 6), 6)
    automatic = op.get("auto_pad", "NOTSET")
    for axis in range(3):
        first, last = (one for one in range(3) if one != axis)
        size, length = content.shape[2 + axis], data[2 + axis]
        flat = narrowed(op, (first, last), 3)
        if pads[axis] or pads[3 + axis]:
            continue
        height, width = data[2 + first], data[2 + last]
        if size == 1 and _checked(strides, 3)[axis] == 1:
            order = (0, 2 + axis, 2 + first, 2 + last, 1)
            image = (data[0] * length, height, width, data[1])
            return Planar(flat, order, image, content.squeeze(2 + axis))
        if size == length and _checked(dilations, 3)[axis] == 1 and not automatic.startswith("SAME"):
            order = (0, 2 + first, 2 + last, 1, 2 + axis)
            moved = np.moveaxis(content, 2 + axis, 2)
            joined = moved.reshape(moved.shape[0], moved.shape[1] * length, *moved.shape[3:])
            return Planar(flat, order, (data[0], height, width, data[1] * length), joined)
    raise Unsupported(
        f"a convolution over the volume '{op.input(0).name}' {list(data)} with windows {list(content.shape[2:])}",
        "one dimension with windows of one element, or of all elements, without padding",
    )


def planes(result: Sequence[int], order: Order) -> tuple[int, ...]:
    """Return the images [n,h,w,c] of a result in the order of a Planar."""
    return tuple(result[:4]) if order[-1] != 1 else (result[0] * result[1], *result[2:])
