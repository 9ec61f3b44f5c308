# SPDX-License-Identifier: Apache-2.0
"""Parts of tensors, and tensors joined."""

from __future__ import annotations

from typing import Any

import numpy as np

from opwest.compiler.graph.types import Unsupported
from opwest.frontends.torch.build import ALL, Builder, Context, Value, axis_of, translates
from opwest.frontends.torch.effects import scattered


@translates("slice", "slice_copy")
def part(x: Context, b: Builder) -> Value:
    """A range of one dimension."""
    data = x.tensor("self")
    axis = axis_of(x.integer("dim", 0), data.rank)
    start, stop, step = limits(x, data.shape[axis])
    return b.slice(data, axis, start, stop, step)


def limits(x: Context, n: int) -> tuple[int, int, int]:
    """Return start, stop and step of a slice of n elements: torch clamps them."""
    step = x.integer("step", 1)
    if step < 1:
        raise Unsupported(f"step {step}", "a step of 1 or more")
    start, stop, _ = slice(x.integer("start", 0), x.integer("end", ALL)).indices(n)
    return start, max(start, stop), step


@translates("select", "select_copy")
def select(x: Context, b: Builder) -> Value:
    """One slice without its dimension; the index can be computed when the model runs."""
    data = x.tensor("self")
    axis = axis_of(x.integer("dim"), data.rank)
    shape = (*data.shape[:axis], *data.shape[axis + 1 :])
    index = axis_of(x.integer("index"), data.shape[axis])
    return b.reshape(b.slice(data, axis, index, index + 1), shape)


@translates("narrow", "narrow_copy")
def narrow(x: Context, b: Builder) -> Value:
    """A range by its length."""
    data = x.tensor("self")
    axis = axis_of(x.integer("dim"), data.rank)
    start = x.integer("start")
    start = start + data.shape[axis] if start < 0 else start
    return b.slice(data, axis, start, start + x.integer("length"))


@translates("split", "split_with_sizes", "chunk", "tensor_split", "split_with_sizes_copy", "split_copy", "unsafe_split")
@translates("unsafe_chunk", "unsafe_split_with_sizes")
def split(x: Context, b: Builder) -> list[Value | None]:
    """Ranges of one dimension, whose sizes are those of the results."""
    data = x.tensor("self")
    axis = axis_of(x.integer("dim", 0), data.rank)
    values: list[Value | None] = []
    start = 0
    for meta in x.results:
        if meta is None or len(meta.shape) != data.rank:
            raise Unsupported("a part without a shape")
        values.append(b.slice(data, axis, start, start + meta.shape[axis]))
        start += meta.shape[axis]
    if start > data.shape[axis]:
        raise Unsupported(f"parts of {start} elements of {data.shape[axis]}")
    return values


@translates("unbind", "unbind_copy")
def unbind(x: Context, b: Builder) -> list[Value | None]:
    """All slices of one dimension."""
    data = x.tensor("self")
    axis = axis_of(x.integer("dim", 0), data.rank)
    shape = (*data.shape[:axis], *data.shape[axis + 1 :])
    return [b.reshape(b.slice(data, axis, i, i + 1), shape) for i in range(data.shape[axis])]


@translates("cat", "concat", "concatenate")
def cat(x: Context, b: Builder) -> Value:
    """Joined along one dimension; an empty vector is left out, as in torch."""
    values = [b.cast(value, x.meta.dtype) for value in x.tensors("tensors")]
    rank = len(x.meta.shape)
    axis = axis_of(x.integer("dim", 0), rank)
    values = [value for value in values if value.rank == rank]
    if not values:
        raise Unsupported("no tensors")
    return b.concat(values, axis)


@translates("stack", "hstack", "vstack", "column_stack")
def stack(x: Context, b: Builder) -> Value:
    """Joined along a new dimension; hstack and vstack along an old one."""
    values = [b.cast(value, x.meta.dtype) for value in x.tensors("tensors")]
    rank = len(x.meta.shape)
    name = x.call.operator.removeprefix("aten.")
    if name == "stack":
        axis = axis_of(x.integer("dim", 0), rank)
        wide = [b.reshape(value, (*value.shape[:axis], 1, *value.shape[axis:])) for value in values]
        return b.concat(wide, axis)
    if name == "vstack":
        return b.concat([b.reshape(value, (1, *value.shape)) if value.rank < 2 else value for value in values], 0)
    if name == "column_stack":
        return b.concat([b.reshape(value, (value.size, 1)) if value.rank < 2 else value for value in values], 1)
    return b.concat(values, 0 if rank == 1 else 1)


@translates("index_select")
def index_select(x: Context, b: Builder) -> Value:
    """Slices by their numbers."""
    data, index = x.tensor("self"), x.tensor("index")
    if data.rank == 0:
        return data
    index = b.reshape(index, (index.size,))
    return b.op("Gather", [data, index], x.meta.shape, axis=axis_of(x.integer("dim"), data.rank))


@translates("gather", "take_along_dim")
def gather(x: Context, b: Builder) -> Value:
    """An element for each index."""
    data = x.tensor("self")
    index = x.tensor("index", "indices")
    return b.op("GatherElements", [data, index], x.meta.shape, axis=axis_of(x.integer("dim"), data.rank))


@translates("index", "_unsafe_index", "index.Tensor")
def index(x: Context, b: Builder) -> Value:
    """Indices of several dimensions, with constants; one of one dimension can be computed when the model runs."""
    data = x.tensor("self")
    indices = _indices(x, data)
    given = [(axis, value) for axis, value in enumerate(indices) if value is not None]
    if len(given) == 1 and given[0][1].dtype != "bool":
        axis, value = given[0]
        return b.op("Gather", [data, value], x.meta.shape, axis=axis)
    if all(value.content is not None for _, value in given):
        made = _grid(b, data, given)
        return b.reshape(_picked(b, data, indices) if made is None else made, x.meta.shape)
    if [axis for axis, _ in given] == list(range(len(given))) and all(v.dtype != "bool" for _, v in given):
        shape = np.broadcast_shapes(*(value.shape for _, value in given))
        columns = [b.reshape(b.expand(b.cast(value, "int64"), shape), (*shape, 1)) for _, value in given]
        return b.op("GatherND", [data, b.concat(columns, len(shape))], x.meta.shape)
    raise Unsupported("indices of several dimensions that are computed when the model runs", "constants")


def _grid(b: Builder, data: Value, given: list[tuple[int, Value]]) -> Value | None:
    """Return rows and columns that constant indices of neighbouring dimensions choose; None for other indices.

    An index [n, 1] of the first and one [m] of the second dimension choose n rows and m columns.
    """
    axes = [axis for axis, _ in given]
    count = len(given)
    if axes != list(range(axes[0], axes[0] + count)) or any(value.dtype == "bool" for _, value in given):
        return None
    for place, (_, value) in enumerate(given):
        shape = (*[1] * (count - value.rank), *value.shape)
        if len(shape) != count or any(n != 1 for i, n in enumerate(shape) if i != place):
            return None
    for axis, value in given:
        index = b.constant(value.content.reshape(-1).astype(np.int64))
        shape = (*data.shape[:axis], index.size, *data.shape[axis + 1 :])
        data = b.op("Gather", [data, index], shape, axis=axis)
    return data


def _indices(x: Context, data: Value) -> list[Value | None]:
    indices = x.get("indices")
    if not isinstance(indices, list) or len(indices) > data.rank:
        raise Unsupported("'indices' is no list of tensors")
    return indices


def _places(data: Value, indices: list[Value | None]) -> Any:
    """Return the numbers of the chosen elements in the flattened data."""
    grid = np.arange(data.size).reshape(data.shape)
    arrays = [slice(None) if value is None else value.content for value in indices]
    try:
        return grid[tuple(arrays)]
    except IndexError as error:
        raise Unsupported(f"the indices are outside of the data ({error})") from None


def _picked(b: Builder, data: Value, indices: list[Value | None]) -> Value:
    from opwest.frontends.torch.movement import pick

    return pick(b, data, _places(data, indices))


@translates("index_put")
def index_put(x: Context, b: Builder) -> Value:
    """Data with elements replaced at constant indices."""
    data, values = x.tensor("self"), b.cast(x.tensor("values"), x.meta.dtype)
    if x.flag("accumulate"):
        raise Unsupported("accumulate=True", "accumulate=False")
    indices = _indices(x, data)
    if any(value is not None and value.content is None for value in indices):
        return _put_row(b, data, indices, values)
    places = _places(data, indices)
    part_of = b.expand(values, places.shape)
    return scattered(data, places, part_of, b)


def _put_row(b: Builder, data: Value, indices: list[Value | None], values: Value) -> Value:
    """Replace slices at one index that is computed when the model runs: a choice for each slice."""
    given = [(axis, value) for axis, value in enumerate(indices) if value is not None]
    if len(given) != 1 or given[0][1].size != 1:
        raise Unsupported("indices that are computed when the model runs", "constants, or one index")
    [(axis, index)] = given
    shape = [1] * data.rank
    shape[axis] = data.shape[axis]
    return _replaced_row(b, data, axis, b.reshape(index, ()), values, given[0][1].rank)


def _replaced_row(b: Builder, data: Value, axis: int, index: Value, values: Value, rank: int) -> Value:
    shape = [1] * data.rank
    shape[axis] = n = data.shape[axis]
    rows = np.arange(n).reshape(shape)
    index = b.cast(index, "int64")
    below = b.binary("Less", index, 0)
    counted = b.op("Where", [below, b.binary("Add", index, n), index], (), "int64")
    chosen = b.binary("Equal", b.constant(rows.astype(np.int64)), counted)
    kept = list(data.shape)
    kept[axis] = 1
    part_of = b.reshape(b.expand(values, [*kept[:axis], *([1] * rank), *kept[axis + 1 :]]), kept)
    return b.op("Where", [chosen, part_of, data], data.shape, data.dtype)


@translates("slice_scatter", "select_scatter")
def inserted(x: Context, b: Builder) -> Value:
    """Data with a range of one dimension replaced."""
    data, source = x.tensor("self"), b.cast(x.tensor("src"), x.meta.dtype)
    axis = axis_of(x.integer("dim", 0), data.rank)
    grid = np.arange(data.size).reshape(data.shape)
    if x.call.operator == "aten.select_scatter":
        places: Any = grid.take(axis_of(x.integer("index"), data.shape[axis]), axis)
    else:
        start, stop, step = limits(x, data.shape[axis])
        places = grid.take(range(start, stop, step), axis)
    return scattered(data, places, source, b) if places.size else data


@translates("scatter", "scatter.src", "scatter.value", "index_copy")
def scatter(x: Context, b: Builder) -> Value:
    """Data with elements replaced at constant indices along one dimension."""
    data, index = x.tensor("self"), x.tensor("index")
    axis = axis_of(x.integer("dim"), data.rank)
    if x.has("reduce"):
        raise Unsupported("scatter with reduce", "no reduction")
    if x.call.operator == "aten.index_copy":
        source = x.tensor("source")
        if index.content is None and index.size == 1:
            return _replaced_row(b, data, axis, b.reshape(index, ()), source, 1)
        if index.content is None:
            raise Unsupported("indices that are computed when the model runs", "constants, or one index")
        places = np.arange(data.size).reshape(data.shape).take(index.content.reshape(-1), axis)
        return scattered(data, places, source, b)
    source = x.optional("src") or b.operand(x.number("value", 0), data.dtype)
    if source.rank == data.rank and source.shape != index.shape:
        for place, n in enumerate(index.shape):
            source = b.slice(source, place, 0, n)
    updates = b.expand(b.cast(source, data.dtype), index.shape)
    return b.op("ScatterElements", [data, index, updates], data.shape, axis=axis)


@translates("pad", "constant_pad_nd", "reflection_pad1d", "reflection_pad2d", "reflection_pad3d")
@translates("replication_pad1d", "replication_pad2d", "replication_pad3d", "_pad_circular")
def pad(x: Context, b: Builder) -> Value:
    """Padding from the last dimension on; negative padding cuts off."""
    data = x.tensor("self")
    name = x.call.operator.removeprefix("aten.")
    given = x.integers("pad" if name in ("pad", "constant_pad_nd", "_pad_circular") else "padding")
    mode = x.text("mode", "constant") if name == "pad" else "constant"
    mode = "reflect" if name.startswith("reflection") else mode
    mode = "replicate" if name.startswith("replication") else mode
    mode = "circular" if name == "_pad_circular" else mode
    if len(given) % 2 or len(given) > 2 * data.rank:
        raise Unsupported(f"pad {given} of {list(data.shape)}")
    before, after = [0] * data.rank, [0] * data.rank
    for number in range(len(given) // 2):
        before[data.rank - 1 - number], after[data.rank - 1 - number] = given[2 * number : 2 * number + 2]
    if not any(given):
        return data
    kinds = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}
    if mode not in kinds:
        raise Unsupported(f"mode '{mode}'", ", ".join(kinds))
    inputs = [data, b.ints([*before, *after])]
    if mode == "constant":
        inputs.append(b.constant(np.asarray(x.number("value", 0)).astype(data.dtype)))
    return b.op("Pad", inputs, x.meta.shape, mode=kinds[mode])
