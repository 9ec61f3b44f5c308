# SPDX-License-Identifier: Apache-2.0
"""Operators that change the shape or the order of elements.

Sources in TFLite: kernels/reshape.cc and the file of each operator's name. Elements are copied: dtypes do not
matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from opwest.importers.models.graph.faults import Unsupported
from opwest.importers.models.graph.spec import Operator, Result, broadcast, specify
from opwest.importers.models.graph.types import Node, Shape

MOVED = "float32|int8|uint8|int16|int32|int64|bool|uint16|uint32|uint64|float64"
"""The dtypes of elements that are copied."""
INDEX = "int32|int64"


def integers(node: Node, number: int) -> list[int]:
    """Return the content of an input that is known."""
    return [int(n) for n in node.input(number).content.reshape(-1)]


def one_integer(node: Node, number: int) -> int:
    """Return the only element of an input that is known. Raises Unsupported."""
    found = integers(node, number)
    if len(found) != 1:
        raise Unsupported(f"input {number} has {len(found)} elements", "one element")
    return found[0]


def axis_of(axis: int, rank: int) -> int:
    """Return an axis counted from the front. Raises Unsupported."""
    if not -rank <= axis < rank:
        raise Unsupported(f"axis {axis} of {rank} dimensions", f"{-rank} to {rank - 1}")
    return axis % rank


def _reshape(node: Node) -> Sequence[Result]:
    data, wanted = node.input(0), node.optional(1)
    shape = integers(node, 1) if wanted is not None else list(node.options["new_shape"])
    # A scalar in models of old converters. Source: kernels/reshape.cc, GetOutputShape.
    if wanted is None and shape == [0]:
        shape = []
    if shape.count(-1) == 1:
        rest = -prod(shape)
        if rest and data.size % rest == 0:
            shape[shape.index(-1)] = data.size // rest
    if prod(shape) != data.size or any(n < 0 for n in shape):
        raise Unsupported(f"shape {list(data.shape)} cannot become {shape}")
    return [(data.dtype, tuple(shape))]


def _squeeze(node: Node) -> Sequence[Result]:
    data = node.input(0)
    rank = len(data.shape)
    dropped = {axis_of(axis, rank) for axis in node.options["squeeze_dims"]}
    if any(data.shape[axis] != 1 for axis in dropped):
        raise Unsupported(f"dimensions {sorted(dropped)} of shape {list(data.shape)}", "dimensions of 1 element")
    if not dropped:
        dropped = {axis for axis, n in enumerate(data.shape) if n == 1}
    return [(data.dtype, tuple(n for axis, n in enumerate(data.shape) if axis not in dropped))]


def _expand(node: Node) -> Sequence[Result]:
    data = node.input(0)
    axis = axis_of(one_integer(node, 1), len(data.shape) + 1)
    return [(data.dtype, (*data.shape[:axis], 1, *data.shape[axis:]))]


def permutation(node: Node) -> list[int]:
    """Return the source dimension of each dimension of a TRANSPOSE. Raises Unsupported."""
    rank = len(node.input(0).shape)
    order = [axis_of(axis, rank) for axis in integers(node, 1)]
    if sorted(order) != list(range(rank)):
        raise Unsupported(f"permutation {integers(node, 1)} of {rank} dimensions")
    return order


def _transpose(node: Node) -> Sequence[Result]:
    data = node.input(0)
    return [(data.dtype, tuple(data.shape[axis] for axis in permutation(node)))]


def multiples(node: Node) -> list[int]:
    """Return the repetitions of each dimension of a TILE. Raises Unsupported."""
    data, found = node.input(0), integers(node, 1)
    if len(found) != len(data.shape) or any(n < 0 for n in found):
        raise Unsupported(f"multiples {found} for shape {list(data.shape)}", "a number for each dimension")
    return found


def _tile(node: Node) -> Sequence[Result]:
    data = node.input(0)
    return [(data.dtype, tuple(n * times for n, times in zip(data.shape, multiples(node), strict=True)))]


def _broadcast(node: Node) -> Sequence[Result]:
    data, wanted = node.input(0), tuple(integers(node, 1))
    if broadcast((data.shape, wanted)) != wanted:
        raise Unsupported(f"shape {list(data.shape)} cannot be broadcast to {list(wanted)}")
    return [(data.dtype, wanted)]


def reversed_axes(node: Node) -> list[int]:
    """Return the dimensions that a REVERSE_V2 reverses. Raises Unsupported."""
    rank = len(node.input(0).shape)
    return sorted({axis_of(axis, rank) for axis in integers(node, 1)})


def _reverse(node: Node) -> Sequence[Result]:
    reversed_axes(node)
    return [(node.input(0).dtype, node.input(0).shape)]


def strides_of(shape: Shape) -> list[int]:
    """Return the step of each dimension of a tensor, in elements."""
    return [prod(shape[axis + 1 :]) for axis in range(len(shape))]


specify(
    Operator("RESHAPE", _reshape, (), {"new_shape": ()}, known=(1,), shape_input=1),
    Operator("SQUEEZE", _squeeze, (MOVED,), {"squeeze_dims": ()}),
    Operator("EXPAND_DIMS", _expand, (f"{MOVED} {INDEX}",), known=(1,)),
    Operator("TRANSPOSE", _transpose, (f"{MOVED} {INDEX}",), known=(1,)),
    Operator("TILE", _tile, (f"{MOVED} {INDEX}",), known=(1,)),
    Operator("BROADCAST_TO", _broadcast, (f"{MOVED} {INDEX}",), known=(1,)),
    Operator("REVERSE_V2", _reverse, (f"{MOVED} {INDEX}",), known=(1,)),
)
