# SPDX-License-Identifier: Apache-2.0
"""Windows of three dimensions as windows of two, where one dimension has no windows of its own."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from opwest.importers.models.graph.faults import Unsupported
from opwest.importers.models.onnx.translation import Order
from opwest.importers.models.onnx.values import Op
from opwest.records import dataclass


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
    found = list(values)
    if len(found) != count:
        raise Unsupported(f"windows of {len(found)} numbers", f"{count} numbers")
    return found


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
            return Planar(flat, order, image, content.reshape(_without(content.shape, 2 + axis)))
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


def _without(shape: Sequence[int], axis: int) -> tuple[int, ...]:
    return tuple(n for number, n in enumerate(shape) if number != axis)
