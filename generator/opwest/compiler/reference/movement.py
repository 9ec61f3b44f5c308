# SPDX-License-Identifier: Apache-2.0
"""Operators that change the shape or the order of elements, and operators of the user."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from opwest.compiler.graph.types import Node, Rules
from opwest.compiler.graph.user import KIND, bind, opaque_results
from opwest.compiler.reference.run import FUNCTIONS, Arrays, interprets
from opwest.compiler.semantics import movement, slices

FUNCTIONS.update(
    {
        **dict.fromkeys(("RESHAPE", "SQUEEZE", "EXPAND_DIMS"), lambda node, arrays, rules: arrays[0]),
        "TRANSPOSE": lambda node, arrays, rules: np.transpose(arrays[0], movement.permutation(node)),
        "TILE": lambda node, arrays, rules: np.tile(arrays[0], movement.multiples(node)),
        "BROADCAST_TO": lambda node, arrays, rules: np.broadcast_to(arrays[0], node.output.shape),
        "BROADCAST_ARGS": lambda node, arrays, rules: np.asarray(
            np.broadcast_shapes(*(tuple(map(int, shape)) for shape in arrays))
        ),
        "REVERSE_V2": lambda node, arrays, rules: np.flip(arrays[0], tuple(movement.reversed_axes(node))),
        "PACK": lambda node, arrays, rules: np.stack(arrays, axis=slices.joined(node)[0]),
        "FILL": lambda node, arrays, rules: np.broadcast_to(arrays[1].reshape(()), node.output.shape),
        "ZEROS_LIKE": lambda node, arrays, rules: np.zeros(node.output.shape),
        "SHAPE": lambda node, arrays, rules: np.asarray(node.input(0).shape),
        "RANK": lambda node, arrays, rules: np.asarray(len(node.input(0).shape)),
        # The places of elements that are not zero.
        "WHERE": lambda node, arrays, rules: np.argwhere(arrays[0]),
        "MIRROR_PAD": lambda node, arrays, rules: np.pad(
            arrays[0], movement.amounts(node), mode=node.options["mode"].lower()
        ),
        "GATHER_ND": lambda node, arrays, rules: arrays[0][_places(arrays[1], arrays[0].shape)],
        # The start of the update is clamped.
        "DYNAMIC_UPDATE_SLICE": lambda node, arrays, rules: updated(*arrays),
    }
)


@interprets("SPACE_TO_DEPTH", "DEPTH_TO_SPACE")
def blocks(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """Blocks become channels, row by row, or the reverse."""
    is_reverse = node.kind == "DEPTH_TO_SPACE"
    n, rows, columns, depth = node.input(0).shape if is_reverse else node.output.shape
    block = node.options["block_size"]
    shape = (n, rows, columns, block, block) if is_reverse else (n, rows, block, columns, block)
    return arrays[0].reshape(*shape, depth // block**2).transpose(0, 1, 3, 2, 4, 5)


def _places_in_blocks(steps: Sequence[int]) -> Iterator[tuple[slice, ...]]:
    """Yield the index of the elements at each place of all blocks."""
    for place in np.ndindex(*steps):
        yield (slice(None), *(slice(at, None, step) for at, step in zip(place, steps, strict=True)))


@interprets("SPACE_TO_BATCH_ND")
def space_to_batch(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """Elements at the same place of all blocks become an image."""
    steps, paddings = movement.block_shape(node)
    padded = np.pad(arrays[0], ((0, 0), *paddings, (0, 0)), constant_values=movement.zero_of(node.output))
    return np.concatenate([padded[index] for index in _places_in_blocks(steps)], axis=0)


@interprets("BATCH_TO_SPACE_ND")
def batch_to_space(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """The reverse, without the cropped edges."""
    steps, crops = movement.block_shape(node)
    data = arrays[0]
    batch = data.shape[0] // int(np.prod(steps))
    whole = np.zeros((batch, *(n * s for n, s in zip(data.shape[1:], steps, strict=False)), data.shape[-1]), data.dtype)
    for number, index in enumerate(_places_in_blocks(steps)):
        whole[index] = data[number * batch : (number + 1) * batch]
    inner = (slice(before, n - after) for (before, after), n in zip(crops, whole.shape[1:], strict=False))
    return whole[(slice(None), *inner)]


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
    operands = []
    for i, array in enumerate(arrays):
        table = slices.rescaling(node.input(i), node.output)
        taken = array if table is None else np.asarray(table, np.uint8)[array]
        operands.append(taken if taken.ndim else taken.reshape(1))
    return np.concatenate(operands, axis=axis)


@interprets("PAD", "PADV2")
def pad(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """One value around the data."""
    fill = movement.fill_of(node)
    value = arrays[2].reshape(-1)[0] if fill is None else fill
    return np.pad(arrays[0], movement.amounts(node), constant_values=value)


@interprets("RANGE")
def numbers(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """Repeated addition, in the dtype. Source: kernels/range.cc, CalculateRange."""
    start, _, delta = (array.reshape(()) for array in arrays)
    steps = np.full(node.output.shape, delta)
    steps[:1] = start
    return np.cumsum(steps, dtype=steps.dtype)


@interprets(KIND)
def user_operator(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """Results that depend on all inputs."""
    bound = bind(node)
    given = [array for array in arrays if array is not None]
    arguments = [argument for argument, _ in bound.reads if not argument.is_option]
    states = [array for argument, array in zip(arguments, given, strict=True) if argument.direction == "inout"]
    results = [(tensor.dtype, shape) for _, tensor, shape in bound.writes]
    return opaque_results(node.options["use"].operator.name, given, states, results)


def checked(indices: Any, limit: int) -> Any:
    """Return indices as int64. Raises ValueError outside of their dimension."""
    if indices.size and not 0 <= indices.min() <= indices.max() < limit:
        raise ValueError(f"an index is outside of 0 to {limit - 1}")
    return indices.astype(np.int64)


@interprets("GATHER")
def gather(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """Slices along an axis; batches have indices of their own."""
    data, indices = arrays
    axis, batches = slices.gather_axes(node)
    taken = checked(indices, data.shape[axis])
    if not batches:
        return np.take(data, taken, axis=axis)
    result = np.zeros(node.output.shape, data.dtype)
    for place in np.ndindex(*data.shape[:batches]):
        result[place] = np.take(data[place], taken[place], axis=axis - batches)
    return result


def _places(indices: Any, shape: tuple[int, ...]) -> tuple[Any, ...]:
    return tuple(checked(indices[..., i], shape[i]) for i in range(indices.shape[-1]))


@interprets("EMBEDDING_LOOKUP")
def embedding(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """Rows, of int8 also as float32."""
    indices, data = arrays
    taken = checked(indices, data.shape[0])
    if not slices.is_hybrid(node):
        return data[taken]
    quantization = node.input(1).quantization
    assert quantization is not None
    scales = np.asarray(quantization.scales, np.float32)
    factors = scales[taken] if quantization.axis == 0 else np.repeat(scales, len(taken))
    return data[taken].astype(np.float32) * factors.reshape(-1, *[1] * (data.ndim - 1))


@interprets("SCATTER_ND")
def scatter(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """Zeros plus the updates at their places; equal places add up, and integers wrap."""
    indices, updates = arrays[:2]
    sums = np.zeros(node.output.shape, updates.dtype)
    places = _places(indices, sums.shape)
    (np.logical_or if updates.dtype == np.bool_ else np.add).at(sums, places, updates)
    return sums


def updated(data: Any, part: Any, starts: Any) -> Any:
    """Return the data with an update whose start is clamped."""
    limits = np.asarray(data.shape) - np.asarray(part.shape)
    first = np.clip(starts.astype(np.int64), 0, limits)
    result = data.copy()
    result[tuple(slice(int(a), int(a) + n) for a, n in zip(first, part.shape, strict=True))] = part
    return result


@interprets("ONE_HOT")
def one_hot(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """One of two values by the index."""
    indices, _, on, off = arrays
    axis = slices.one_hot_axis(node)
    depth = node.output.shape[axis]
    is_on = np.expand_dims(indices, axis) == np.arange(depth).reshape(-1, *[1] * (indices.ndim - axis))
    return np.where(is_on, on.reshape(()), off.reshape(()))
