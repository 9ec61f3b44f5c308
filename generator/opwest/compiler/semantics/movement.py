# SPDX-License-Identifier: Apache-2.0
"""Operators that change the shape or the order of elements.

Sources in TFLite: kernels/reshape.cc and the file of each operator's name. Elements are copied: dtypes do not
matter.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from math import prod

import numpy as np

from opwest.base.result import counted
from opwest.compiler.graph.spec import Operator, Result, broadcast, same, specify
from opwest.compiler.graph.types import Node, Shape, Tensor, Unsupported

MOVED = "float32|int8|uint8|int16|int32|int64|bool|uint16|uint32|uint64|float64"
"""The dtypes of elements that are copied."""
INDEX = "int32|int64"


def integers(node: Node, number: int) -> list[int]:
    """Return the content of an input that is known."""
    return [int(n) for n in node.input(number).content.reshape(-1)]


def one_integer(node: Node, number: int) -> int:
    """Return the only element of an input that is known. Raises Unsupported."""
    numbers = integers(node, number)
    if len(numbers) != 1:
        raise Unsupported(f"input {number} has {counted(len(numbers), 'element')}", "one element")
    return numbers[0]


def axis_of(axis: int, rank: int) -> int:
    """Return an axis counted from the front. Raises Unsupported."""
    if not -rank <= axis < rank:
        raise Unsupported(f"axis {axis} of {counted(rank, 'dimension')}", f"{-rank} to {rank - 1}")
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
        raise Unsupported(f"permutation {integers(node, 1)} of {counted(rank, 'dimension')}")
    return order


def _transpose(node: Node) -> Sequence[Result]:
    data = node.input(0)
    return [(data.dtype, tuple(data.shape[axis] for axis in permutation(node)))]


def multiples(node: Node) -> list[int]:
    """Return the repetitions of each dimension of a TILE. Raises Unsupported."""
    data, repetitions = node.input(0), integers(node, 1)
    if len(repetitions) != len(data.shape) or any(n < 0 for n in repetitions):
        raise Unsupported(f"multiples {repetitions} for shape {list(data.shape)}", "a number for each dimension")
    return repetitions


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


QUANTISED = ("int8", "uint8", "int16")


def amounts(node: Node) -> list[tuple[int, int]]:
    """Return the elements before and after each dimension. Raises Unsupported."""
    data, numbers = node.input(0), integers(node, 1)
    if len(numbers) != 2 * len(data.shape) or any(n < 0 for n in numbers):
        raise Unsupported(f"paddings {numbers} for shape {list(data.shape)}", "two numbers for each dimension")
    return list(zip(numbers[::2], numbers[1::2], strict=True))


def _pad(node: Node) -> Sequence[Result]:
    data = node.input(0)
    value = node.optional(2)
    if value is not None and (value.size != 1 or value.dtype != data.dtype):
        raise Unsupported(f"a value of {value.dtype} {list(value.shape)}", f"one element of {data.dtype}")
    return [(data.dtype, tuple(n + sum(pair) for n, pair in zip(data.shape, amounts(node), strict=True)))]


def _mirror(node: Node) -> Sequence[Result]:
    data, less = node.input(0), mirror_offset(node)
    for n, pair in zip(data.shape, amounts(node), strict=True):
        if max(pair) > n - less:
            raise Unsupported(f"paddings {list(pair)} of {counted(n, 'element')} in the mode {node.options['mode']}")
    return _pad(node)


def mirror_offset(node: Node) -> int:
    """Return the elements at the edge that are not repeated: 1 for REFLECT, 0 for SYMMETRIC."""
    return 1 if node.options["mode"] == "REFLECT" else 0


def fill_of(node: Node) -> int | float | None:
    """Return the value of the padding of PAD or PADV2; None if it is computed when the model runs."""
    value = node.optional(2)
    if value is not None:
        return None if not value.is_constant else value.content.reshape(-1)[0].item()
    return zero_of(node.output)  # source: kernels/pad.cc, PadTyped


def zero_of(tensor: Tensor) -> int:
    """Return the stored value of real zero."""
    quantization = tensor.quantization
    return quantization.zeros[0] if tensor.dtype in QUANTISED and quantization is not None else 0


specify(
    Operator("PAD", _pad, (f"{MOVED} int8|int16|{INDEX}",), known=(1,)),
    Operator("PADV2", _pad, (f"{MOVED} int8|int16|{INDEX} [{MOVED}]",), known=(1,)),
    Operator("MIRROR_PAD", _mirror, (f"{MOVED} {INDEX}",), {"mode": "REFLECT"}, known=(1,)),
)


MAX_PLACES = 1 << 10
"""The most elements of a block: each is a copy of its own."""


def _depth_blocks(node: Node) -> Sequence[Result]:
    block, data = int(node.options["block_size"]), node.input(0)
    if len(data.shape) != 4 or block < 1:
        raise Unsupported(f"blocks of {block} in shape {list(data.shape)}", "4 dimensions, positive blocks")
    n, height, width, depth = data.shape
    if node.kind == "SPACE_TO_DEPTH":
        if height % block or width % block:
            raise Unsupported(f"blocks of {block} in {height} rows and {width} columns")
        return [(data.dtype, (n, height // block, width // block, depth * block * block))]
    if depth % (block * block):
        raise Unsupported(f"blocks of {block} from {counted(depth, 'channel')}")
    return [(data.dtype, (n, height * block, width * block, depth // (block * block)))]


def block_shape(node: Node) -> tuple[list[int], list[tuple[int, int]]]:
    """Return the blocks of SPACE_TO_BATCH_ND or BATCH_TO_SPACE_ND and the paddings or crops. Raises Unsupported."""
    rank, blocks, edges = len(node.input(0).shape), integers(node, 1), integers(node, 2)
    if not 3 <= rank <= 4 or len(blocks) != rank - 2 or len(edges) != 2 * len(blocks):
        raise Unsupported(
            f"blocks {blocks}, edges {edges} for shape {list(node.input(0).shape)}", "3 or 4 dimensions, 1 or 2 blocks"
        )
    if min(blocks) < 1 or min(edges) < 0 or prod(blocks) > MAX_PLACES:
        raise Unsupported(
            f"blocks {blocks}, edges {edges}", f"blocks of 1 to {MAX_PLACES} elements, edges of at least 0"
        )
    return blocks, list(zip(edges[::2], edges[1::2], strict=True))


def _space_to_batch(node: Node) -> Sequence[Result]:
    blocks, paddings = block_shape(node)
    batch, *space, depth = node.input(0).shape
    padded = [n + sum(pair) for n, pair in zip(space, paddings, strict=True)]
    if any(n % block for n, block in zip(padded, blocks, strict=True)):
        raise Unsupported(f"blocks {blocks} in a padded image of {padded}")
    counts = [n // block for n, block in zip(padded, blocks, strict=True)]
    return [(node.input(0).dtype, (batch * prod(blocks), *counts, depth))]


def _batch_to_space(node: Node) -> Sequence[Result]:
    blocks, crops = block_shape(node)
    batch, *space, depth = node.input(0).shape
    if batch % prod(blocks):
        raise Unsupported(f"blocks {blocks} from {counted(batch, 'image')}")
    counts = [n * block - sum(pair) for n, block, pair in zip(space, blocks, crops, strict=True)]
    return [(node.input(0).dtype, (batch // prod(blocks), *counts, depth))]


specify(
    Operator("SPACE_TO_DEPTH", _depth_blocks, (MOVED,), {"block_size": 0}),
    Operator("DEPTH_TO_SPACE", _depth_blocks, (MOVED,), {"block_size": 0}),
    Operator("SPACE_TO_BATCH_ND", _space_to_batch, (f"{MOVED} {INDEX} {INDEX}",), known=(1, 2)),
    Operator("BATCH_TO_SPACE_ND", _batch_to_space, (f"{MOVED} {INDEX} {INDEX}",), known=(1, 2)),
)


FROM_SHAPES = ("SHAPE", "RANK", "ZEROS_LIKE")
"""Operators whose result depends on the shape of the input only."""


def _fill(node: Node) -> Sequence[Result]:
    value = node.input(1)
    if value.size != 1:
        raise Unsupported(f"a value of shape {list(value.shape)}", "one element")
    return [(value.dtype, tuple(integers(node, 0)))]


def _range(node: Node) -> Sequence[Result]:
    if any(node.input(i).size != 1 for i in range(3)):
        raise Unsupported("start, limit or delta of several elements", "one element each")
    start, limit, delta = (node.input(i).content.reshape(-1)[0] for i in range(3))
    if not delta or (delta > 0 and start > limit) or (delta < 0 and start < limit):
        raise Unsupported(f"a range from {start} to {limit} in steps of {delta}")
    dtype = node.input(0).dtype
    # In the arithmetic of the dtype. Source: kernels/range.cc, GetSize.
    if dtype == "float32":
        return [(dtype, (math.ceil(abs((limit - start) / delta)),))]
    return [(dtype, (-(-abs(int(limit) - int(start)) // abs(int(delta))),))]


def _arguments(node: Node) -> Sequence[Result]:
    wanted = broadcast((tuple(integers(node, 0)), tuple(integers(node, 1))))
    return [(node.input(0).dtype, (len(wanted),))]


def _where(node: Node) -> Sequence[Result]:
    condition = node.input(0)
    return [("int64", (int(np.count_nonzero(condition.content)), len(condition.shape)))]


specify(
    Operator("BROADCAST_ARGS", _arguments, tuple(f"{d} {d}" for d in ("int32", "int64")), known=(0, 1)),
    Operator("WHERE", _where, (MOVED,), known=(0,)),
    Operator("FILL", _fill, (f"{INDEX} {MOVED}",), known=(0,)),
    Operator("ZEROS_LIKE", same, (MOVED,)),
    Operator(
        "SHAPE", lambda node: [(node.options["out_type"], (len(node.input(0).shape),))], (), {"out_type": "int32"}
    ),
    Operator("RANK", lambda node: [("int32", ())]),
    Operator("RANGE", _range, tuple(f"{d} {d} {d}" for d in ("int32", "int64", "float32")), known=(0, 1, 2)),
)
