# SPDX-License-Identifier: Apache-2.0
"""Operators that select, pad and repeat elements; the numbers stay as they are stored."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from opwest.base.result import counted
from opwest.compiler.graph.types import Tensor, Unsupported
from opwest.compiler.reference.elementwise import quantised_even
from opwest.compiler.semantics.elementwise import QuantizeNumbers
from opwest.frontends.onnx.elements import quantise_constants, raised
from opwest.frontends.onnx.movement import gathered, numbers, of_integers, same, sliced
from opwest.frontends.onnx.translation import (
    StoredTensor,
    Translation,
    channels_last,
    identity,
    permuted,
    translates,
    with_last,
    without,
)
from opwest.frontends.onnx.values import Item, Op


@translates("CumSum")
def running(op: Op, t: Translation) -> None:
    """Sums along one dimension."""
    data = op.input(0)
    axis = op.numbers(1)
    assert axis is not None
    order = t.anywhere(data).order
    source = t.tensor(data, order)
    index = numbers(t, order.index(axis[0] % data.rank), "axis")
    is_exclusive, is_reverse = bool(op.get("exclusive", 0)), bool(op.get("reverse", 0))
    sums = t.emit("CUMSUM", [source, index], source.shape, source.dtype, exclusive=is_exclusive, reverse=is_reverse)
    t.put(op.output, sums, order)


@translates("TopK")
def top(op: Op, t: Translation) -> None:
    """The greatest elements of one dimension, sorted."""
    data = op.input(0)
    count = op.numbers(1, "k")
    axis = int(op.get("axis", -1)) % data.rank
    if not op.get("largest", 1) or not op.get("sorted", 1):
        raise Unsupported("TopK with largest=0 or sorted=0", "1")
    assert count is not None
    order = with_last(t.anywhere(data).order, axis)
    source = t.tensor(data, order)
    shape = (*source.shape[:-1], count[0])
    values, index = Tensor("values", source.dtype, shape), Tensor("index", "int32", shape)
    t.append("TOPK_V2", [source, numbers(t, count[0], "count")], [values, index], {})
    for item, tensor in zip(op.outputs, (values, index), strict=False):
        if item is not None:
            if tensor is index:
                tensor = t.emit("CAST", [index], shape, "int64")
            t.put(item, tensor, order)


@translates("ArgMax", "ArgMin")
def arg(op: Op, t: Translation) -> None:
    """The first of equal elements; the scale of integers does not matter."""
    data, result = op.input(0), op.output
    if op.get("select_last_index", 0):
        raise Unsupported(f"{op.kind} with select_last_index=1", "0")
    axis = int(op.get("axis", 0)) % data.rank
    order = t.anywhere(data).order
    source = t.as_stored(data, order)
    shape = tuple(data.known[other] for other in order if other != axis)
    kind = "ARG_MAX" if op.kind == "ArgMax" else "ARG_MIN"
    index = t.constant(np.asarray(order.index(axis), np.int32), "axis")
    positions = t.emit(kind, [source, index], shape, result.dtype, output_type=result.dtype)
    if op.get("keepdims", 1) == 1:
        t.put(result, t.reshape(positions, permuted(result.known, order)), order)
    else:
        t.put(result, positions, without(order, (axis,)))


def _index(op: Op, number: int) -> Any:
    item = op.input(number)
    if item.content is None:
        raise Unsupported(f"the indices '{item.name}' are computed when the model runs", "a constant")
    return np.asarray(item.content).astype(np.int64)


def _along(op: Op, index: Any) -> tuple[Any, ...]:
    """Return the indices of all dimensions for those along one."""
    shape = op.input(0).known
    axis = int(op.get("axis", 0))
    if not -len(shape) <= axis < len(shape) or index.ndim != len(shape):
        raise Unsupported(f"axis {axis} of {counted(len(shape), 'dimension')}, indices {list(index.shape)}")
    indices = list(np.indices(index.shape))
    indices[axis % len(shape)] = index
    return tuple(indices)


def _flat(op: Op, places: tuple[Any, ...]) -> Any:
    """Return indices of the flattened data. Raises Unsupported for those outside."""
    shape = op.input(0).known
    total: Any = np.zeros((), np.int64)
    for indices, n in zip(places, shape, strict=True):
        if ((indices < -n) | (indices >= n)).any():
            raise Unsupported(f"an index outside of {counted(n, 'element')}")
        total = total * n + indices % n
    return total


@translates("GatherElements")
def gather_elements(op: Op, t: Translation) -> None:
    """An element for each index."""
    data, shape = op.input(0), op.output.known
    source = t.reshape(t.ordered(t.anywhere(data), identity(data.rank)), (data.size,))
    where = _flat(op, _along(op, _index(op, 1))).reshape(-1)
    elements = gathered(t, source, where, 0)
    t.put_like(data, op.output, t.reshape(elements, shape), identity(len(shape)))


@translates("ScatterND", "ScatterElements", "Scatter")
def scatter(op: Op, t: Translation) -> None:
    """The data with some elements replaced; the last of equal indices counts, as in onnxruntime with one thread."""
    if op.get("reduction", "none") != "none":
        raise Unsupported(f"reduction {op.get('reduction', 'none')}", "none")
    data, updates, result = op.input(0), op.input(2), op.output
    index = _index(op, 1)
    if op.kind == "ScatterND":
        depth = index.shape[-1] if index.ndim else 0
        if not 1 <= depth <= data.rank:
            raise Unsupported(f"indices {list(index.shape)} for {counted(data.rank, 'dimension')}")
        rest = np.indices(data.known[depth:]).reshape(data.rank - depth, prod(data.known[depth:]))
        first = [index[..., axis].reshape(-1, 1) for axis in range(depth)]
        places = tuple(np.broadcast_arrays(*first, *(array[None, :] for array in rest)))
    else:
        places = _along(op, index)
    where = np.arange(data.size)
    flat = _flat(op, places).reshape(-1)
    if flat.size != updates.size:
        raise Unsupported(f"{counted(updates.size, 'element')} for {flat.size} indices")
    for number, at in enumerate(flat.tolist()):
        where[at] = data.size + number
    both: list[Tensor] = [t.reshape(t.tensor(item), (item.size,)) for item in (data, updates)]
    joined = t.emit("CONCATENATION", both, (data.size + updates.size,), result.dtype, axis=0)
    t.put(result, t.reshape(gathered(t, joined, where, 0), result.known))


@translates("Slice")
def part(op: Op, t: Translation) -> None:
    """SLICE, or STRIDED_SLICE for steps."""
    data = op.input(0)
    starts, ends = op.numbers(1, "starts"), op.numbers(2, "ends")
    axes, steps = op.numbers(3, "axes"), op.numbers(4)
    assert starts is not None and ends is not None
    axes = axes if axes is not None else tuple(range(len(starts)))
    steps = steps if steps is not None else (1,) * len(starts)
    if not len(starts) == len(ends) == len(axes) == len(steps) or 0 in steps:
        raise Unsupported(f"starts {list(starts)}, ends {list(ends)}, axes {list(axes)}, steps {list(steps)}")
    cut = [slice(None)] * data.rank
    for start, stop, axis, step in zip(starts, ends, axes, steps, strict=True):
        if not -data.rank <= axis < data.rank:
            raise Unsupported(f"axes {list(axes)} of {counted(data.rank, 'dimension')}")
        low = start if start >= 0 or step > 0 or start >= -data.known[axis] else None
        last = None if step < 0 and stop < -data.known[axis] else stop
        cut[axis % data.rank] = slice(low, last, step)
    if of_integers(op, t, lambda x: x[tuple(cut)]):
        return
    held = t.anywhere(data)
    ranges = [range(n)[slice_] for n, slice_ in zip(data.known, cut, strict=True)]
    ranges = [ranges[axis] for axis in held.order]
    shape = tuple(len(range_) for range_ in ranges)
    if 0 in shape:
        raise Unsupported(f"a part of {list(data.known)} without elements")
    begin = [range_.start for range_ in ranges]
    if all(range_.step == 1 or len(range_) == 1 for range_ in ranges):
        if shape == held.tensor.shape:
            t.put_like(data, op.output, held.tensor, held.order)
            return
        result = sliced(t, held.tensor, begin, shape)
    else:
        stops = [range_[0] + len(range_) * range_.step for range_ in ranges]
        mask = sum(1 << i for i, stop in enumerate(stops) if stop < 0)
        inputs = [
            held.tensor,
            numbers(t, begin, "begin"),
            numbers(t, [max(stop, 0) for stop in stops], "end"),
            numbers(t, [range_.step for range_ in ranges], "strides"),
        ]
        result = same(t, "STRIDED_SLICE", inputs, shape, end_mask=mask)
    t.put_like(data, op.output, result, held.order)


@translates("Gather")
def gather(op: Op, t: Translation) -> None:
    """Along one dimension; negative constant indices count from the end."""
    data, index = op.input(0), op.input(1)
    axis = int(op.get("axis", 0)) % data.rank
    if index.content is not None and of_integers(op, t, lambda x: np.take(x, index.content, axis)):
        return
    if data in t.fixed:
        quantise_constants(t, [data])
    held = t.anywhere(data)
    if held.order != identity(data.rank) and index.rank > 1:
        held = StoredTensor(t.ordered(held, identity(data.rank)), identity(data.rank))
    if index.content is not None:
        values = index.content.astype(np.int64)
        if ((values < -data.known[axis]) | (values >= data.known[axis])).any():
            raise Unsupported(f"an index outside of {data.known[axis]} elements")
        where = numbers(t, values % data.known[axis], index.name)
    else:
        where = t.tensor(index)
    place = held.order.index(axis)
    shape = (*held.tensor.shape[:place], *index.known, *held.tensor.shape[place + 1 :])
    slices = same(t, "GATHER", [held.tensor, where], shape, axis=place)
    order = held.order
    if index.rank == 0:
        order = without(order, (axis,))
    elif index.rank > 1:
        order = identity(len(shape))
    t.put_like(data, op.output, slices, order)


@translates("GatherND")
def gather_nd(op: Op, t: Translation) -> None:
    """Of the first dimensions."""
    if op.get("batch_dims", 0):
        raise Unsupported("GatherND with batch_dims", "0")
    data, index = op.input(0), op.input(1)
    source = t.ordered(t.anywhere(data), identity(data.rank))
    if index.content is not None:
        limits = np.asarray(data.known[: index.known[-1]])
        where = numbers(t, np.where(index.content < 0, index.content + limits, index.content), index.name)
    else:
        where = t.tensor(index)
    t.put_like(data, op.output, same(t, "GATHER_ND", [source, where], op.output.known), identity(op.output.rank))


@translates("Pad")
def pad(op: Op, t: Translation) -> None:
    """With a constant, or mirrored; `edge` repeats the outer elements."""
    data = op.input(0)
    mode = op.get("mode", "constant")
    given = op.numbers(1, "pads")
    axes = op.numbers(3) or tuple(range(data.rank))
    if given is None or len(given) != 2 * len(axes):
        raise Unsupported(f"pads {given}", f"{counted(2 * len(axes), 'number')}")
    pairs = [[0, 0] for _ in range(data.rank)]
    for number, axis in enumerate(axes):
        pairs[axis % data.rank] = [given[number], given[number + len(axes)]]
    held = t.anywhere(data)
    source = held.tensor
    stored = [pairs[axis] for axis in held.order]
    if min(min(pair) for pair in stored) < 0:
        source, stored = _cropped(t, source, stored)
    shape = tuple(n + a + b for n, (a, b) in zip(source.shape, stored, strict=True))
    item = op.optional(2)
    value = op.get("value", None) if item is None else t.constant_values(item, "the value")
    amount = 0.0 if value is None else float(np.asarray(value).reshape(-1)[0])
    if shape == source.shape:
        result = source
    elif mode == "constant":
        result = _padded(t, data, source, stored, amount, shape)
    elif mode == "reflect":
        result = same(t, "MIRROR_PAD", [source, numbers(t, stored, "pads")], shape, mode="REFLECT")
    elif mode in ("edge", "wrap"):
        result = source
        for axis, (before, after) in enumerate(stored):
            if before or after:
                n = result.shape[axis]
                index = np.arange(-before, n + after)
                index = np.clip(index, 0, n - 1) if mode == "edge" else index % n
                result = gathered(t, result, index, axis)
    else:
        raise Unsupported(f"mode {mode}", "constant, reflect, edge or wrap")
    t.put_like(data, op.output, result, held.order)


def _cropped(t: Translation, source: Tensor, pads: list[list[int]]) -> tuple[Tensor, list[list[int]]]:
    """Cut off what negative pads remove; return the tensor and the other pads."""
    begin = [max(0, -pair[0]) for pair in pads]
    size = [n - max(0, -a) - max(0, -b) for n, (a, b) in zip(source.shape, pads, strict=True)]
    if min(size) < 1:
        raise Unsupported(f"pads {pads} of {list(source.shape)}")
    return sliced(t, source, begin, size), [[max(0, a), max(0, b)] for a, b in pads]


def _padded(t: Translation, data: Item, source: Tensor, pads: Any, amount: float, shape: Any) -> Tensor:
    where = numbers(t, pads, "pads")
    scale = source.quantization
    if data in t.real:
        assert scale is not None
        whole = int(quantised_even(np.float32(amount), QuantizeNumbers(scale.scale, scale.zero, -128, 127)))
        if whole == scale.zero:
            return same(t, "PAD", [source, where], shape)
        value = np.asarray(whole, np.int8)
    elif data in t.eight:
        value = np.asarray(int(amount) - (128 if data.dtype == "uint8" else 0), np.int8)
    elif amount == 0:
        return same(t, "PAD", [source, where], shape)
    else:
        value = np.asarray(amount, source.dtype)
    return same(t, "PADV2", [source, where, t.constant(value, "value", scale)], shape)


@translates("Expand")
def expand(op: Op, t: Translation) -> None:
    """Repeat dimensions of one element."""
    data, result = op.input(0), op.output
    held = t.anywhere(data)
    rank = result.rank
    order = held.order if data.rank == rank else identity(rank)
    source = held.tensor if data.rank == rank else raised(t, t.ordered(held, identity(data.rank)), rank, order)
    shape = permuted(result.known, order)
    if source.shape != shape:
        source = same(t, "BROADCAST_TO", [source, numbers(t, shape, "shape")], shape)
    t.put_like(data, op.output, source, order)


@translates("Tile")
def tile(op: Op, t: Translation) -> None:
    """Repeat whole dimensions."""
    data = op.input(0)
    repeats = op.numbers(1)
    assert repeats is not None
    held = t.anywhere(data)
    stored = [repeats[axis] for axis in held.order]
    shape = permuted(op.output.known, held.order)
    t.put_like(data, op.output, same(t, "TILE", [held.tensor, numbers(t, stored, "repeats")], shape), held.order)


@translates("DepthToSpace", "SpaceToDepth")
def blocks(op: Op, t: Translation) -> None:
    """TFLite's operators in NHWC; mode CRD reorders the channels where they contain the blocks."""
    data = op.input(0)
    size = int(op.get("blocksize", 0))
    parts, unit = (data.known[1:2], size * size) if op.kind == "DepthToSpace" else (data.known[2:], size)
    if data.rank != 4 or size < 1 or any(n % unit for n in parts):
        raise Unsupported(f"blocksize {size}, data {list(data.known)}", "whole blocks of an image")
    order = channels_last(4)
    source = t.ordered(t.anywhere(data), order)
    is_by_column = op.get("mode", "DCR") == "CRD"

    def reordered(tensor: Tensor, first: int) -> Tensor:
        depth = tensor.shape[3]
        index = np.arange(depth).reshape(first, depth // first).T.reshape(-1)
        return gathered(t, tensor, index, 3)

    shape = permuted(op.output.known, order)
    if is_by_column and op.kind == "DepthToSpace":
        source = reordered(source, source.shape[3] // (size * size))
    kind = "DEPTH_TO_SPACE" if op.kind == "DepthToSpace" else "SPACE_TO_DEPTH"
    result = same(t, kind, [source], shape, block_size=size)
    if is_by_column and op.kind == "SpaceToDepth":
        result = reordered(result, size * size)
    t.put_like(data, op.output, result, order)


@translates("Trilu")
def triangle(op: Op, t: Translation) -> None:
    """Zeros on one side of a diagonal of the last two dimensions."""
    data = op.input(0)
    offset = op.numbers(1)
    if data.rank < 2 or data.dtype == "bool":
        raise Unsupported(f"data {list(data.known)} of {data.dtype}", "numbers of 2 or more dimensions")
    part_of = np.triu if op.get("upper", 1) else np.tril
    mask = part_of(np.ones(data.known[-2:], bool), offset[0] if offset else 0)
    inputs = [t.constant(mask, "mask"), t.tensor(data), t.constant(np.zeros((), data.dtype), "zero")]
    t.put(op.output, t.emit("SELECT_V2", inputs, data.known, data.dtype))
