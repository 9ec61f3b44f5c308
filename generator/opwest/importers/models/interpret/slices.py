# SPDX-License-Identifier: Apache-2.0
"""Operators that take tensors apart, join, pad and make them."""

from __future__ import annotations

from typing import Any

import numpy as np

from opwest.importers.models.graph.types import Node, Rules
from opwest.importers.models.interpret.registry import Arrays, interprets
from opwest.importers.models.operators import padding, slices


@interprets("SLICE", "STRIDED_SLICE")
def cut(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """A part of each dimension."""
    parts = slices.cuts(node)
    data = arrays[0].reshape([part.size for part in parts])
    return data[np.ix_(*(part.start + np.arange(part.count) * part.step for part in parts))] if parts else data


@interprets("SPLIT", "SPLIT_V", "UNPACK")
def split(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """Parts along an axis."""
    axis, sizes = slices.parts(node)
    return tuple(np.split(arrays[1 if node.kind == "SPLIT" else 0], np.cumsum(sizes)[:-1], axis=axis))


@interprets("CONCATENATION")
def concatenate(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """Joined along an axis; uint8 inputs are brought to the scale of the result."""
    axis, _ = slices.joined(node)
    found = []
    for i, array in enumerate(arrays):
        table = slices.rescaling(node.input(i), node.output)
        taken = array if table is None else np.asarray(table, np.uint8)[array]
        found.append(taken if taken.ndim else taken.reshape(1))
    return np.concatenate(found, axis=axis)


@interprets("PACK")
def pack(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """Joined along a new axis."""
    return np.stack(arrays, axis=slices.joined(node)[0])


@interprets("PAD", "PADV2")
def pad(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """One value around the data."""
    fill = padding.fill_of(node)
    value = arrays[2].reshape(-1)[0] if fill is None else fill
    return np.pad(arrays[0], padding.amounts(node), constant_values=value)


@interprets("MIRROR_PAD")
def mirror(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """The data mirrored at its edges."""
    mode: Any = node.options["mode"].lower()
    return np.pad(arrays[0], padding.amounts(node), mode=mode)


@interprets("FILL")
def fill(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """One value."""
    return np.broadcast_to(arrays[1].reshape(()), node.output.shape)


@interprets("ZEROS_LIKE")
def zeros(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """Zeros."""
    return np.zeros(node.output.shape)


@interprets("SHAPE")
def shape(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """The dimensions of the input."""
    return np.asarray(node.input(0).shape)


@interprets("RANK")
def rank(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """The number of dimensions of the input."""
    return np.asarray(len(node.input(0).shape))


@interprets("RANGE")
def numbers(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """Repeated addition, in the dtype. Source: kernels/range.cc, CalculateRange."""
    start, _, delta = (array.reshape(()) for array in arrays)
    found = np.full(node.output.shape, delta)
    found[:1] = start
    return np.cumsum(found, dtype=found.dtype)


@interprets("BROADCAST_ARGS")
def arguments(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """The common shape of two shapes."""
    return np.asarray(np.broadcast_shapes(*(tuple(int(n) for n in one) for one in arrays)))


@interprets("WHERE")
def where(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """The places of elements that are not zero."""
    return np.argwhere(arrays[0])
