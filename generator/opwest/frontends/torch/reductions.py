# SPDX-License-Identifier: Apache-2.0
"""Reductions, cumulative sums, the greatest elements."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from opwest.compiler.graph.types import Unsupported
from opwest.frontends.torch.build import FLOATS, Builder, Context, Value, axes_of, axis_of, translates
from opwest.frontends.torch.elements import truth

_KINDS = {"mean": "ReduceMean", "sum": "ReduceSum", "amax": "ReduceMax", "amin": "ReduceMin", "prod": "ReduceProd"}
_KINDS |= {"logsumexp": "ReduceLogSumExp", "max": "ReduceMax", "min": "ReduceMin"}


def axes_from(x: Context, rank: int) -> list[int]:
    """Return the dimensions of a reduction: all if none is given."""
    given = x.integers("dim", [])
    return axes_of(given, rank) if given else list(range(rank))


@translates("mean", "sum", "amax", "amin", "prod", "logsumexp", "max.default", "min.default")
def reduction(x: Context, b: Builder) -> Value:
    """Over some dimensions or all."""
    data = x.tensor("self")
    dtype = x.meta.dtype
    if data.rank == 0:
        return b.cast(data, dtype)
    kind = _KINDS[x.call.operator.removeprefix("aten.")]
    axes = axes_from(x, data.rank)
    return b.op(kind, [b.cast(data, dtype), b.ints(axes)], x.meta.shape, keepdims=int(x.flag("keepdim")))


@translates("any", "all")
def any_or_all(x: Context, b: Builder) -> Value:
    """The greatest or the least of 0 and 1."""
    data = b.cast(truth(b, x.tensor("self")), "int32")
    kind = "ReduceMax" if x.call.operator == "aten.any" else "ReduceMin"
    if data.rank:
        axes = axes_from(x, data.rank)
        data = b.op(kind, [data, b.ints(axes)], x.meta.shape, keepdims=int(x.flag("keepdim")))
    return b.cast(data, "bool")


@translates("max.dim", "min.dim")
def extreme(x: Context, b: Builder) -> list[Value | None]:
    """The greatest or the least element, and its place."""
    data = x.tensor("self")
    axis = axis_of(x.integer("dim"), data.rank)
    keep = int(x.flag("keepdim"))
    kind = "Max" if x.call.operator == "aten.max" else "Min"
    values = b.op(f"Reduce{kind}", [data, b.ints([axis])], x.meta.shape, keepdims=keep)
    return [values, _place(b, f"Arg{kind}", data, axis, x.meta.shape, keep)]


def _place(b: Builder, kind: str, data: Value, axis: int, shape: tuple[int, ...], keep: int) -> Value:
    return b.op(kind, [data], shape, "int64", axis=axis, keepdims=keep)


@translates("argmax", "argmin")
def place(x: Context, b: Builder) -> Value:
    """The place of the greatest or the least element; without a dimension, in the flattened data."""
    data = x.tensor("self")
    kind = "ArgMax" if x.call.operator == "aten.argmax" else "ArgMin"
    if not x.has("dim"):
        return b.reshape(_place(b, kind, b.reshape(data, (data.size,)), 0, (1,), 1), x.meta.shape)
    return _place(b, kind, data, axis_of(x.integer("dim"), data.rank), x.meta.shape, int(x.flag("keepdim")))


@translates("topk", "sort")
def topk(x: Context, b: Builder) -> list[Value | None]:
    """The greatest or the least elements, in order, and their places."""
    data = x.tensor("self")
    axis = axis_of(x.integer("dim", -1), data.rank)
    is_sort = x.call.operator == "aten.sort"
    count = data.shape[axis] if is_sort else x.integer("k")
    largest = x.flag("descending") if is_sort else x.flag("largest", True)
    shape = [count if i == axis else n for i, n in enumerate(data.shape)]
    return list(_greatest(b, data, count, axis, shape, largest=largest))


def _greatest(
    b: Builder, data: Value, count: int, axis: int, shape: Sequence[int], *, largest: bool
) -> tuple[Value, Value]:
    """Return the greatest or the least elements in order, and their places: the least are the greatest of -x."""
    source = data if largest else b.unary("Neg", b.cast(data, "int32") if data.dtype == "bool" else data)
    types = [(source.dtype, tuple(shape)), ("int64", tuple(shape))]
    values, places = b.nodes_of("TopK", [source, b.ints([count])], types, axis=axis, largest=1, sorted=1)
    assert values is not None and places is not None
    return values if largest else b.cast(b.unary("Neg", values), data.dtype), places


@translates("argsort")
def argsort(x: Context, b: Builder) -> Value:
    """The places of elements in order."""
    data = x.tensor("self")
    axis = axis_of(x.integer("dim", -1), data.rank)
    return _greatest(b, data, data.shape[axis], axis, data.shape, largest=x.flag("descending"))[1]


@translates("cumsum")
def cumsum(x: Context, b: Builder) -> Value:
    """Sums of the elements before and at each place."""
    data = b.cast(x.tensor("self"), x.meta.dtype)
    axis = axis_of(x.integer("dim"), data.rank)
    if data.rank == 0:
        return data
    return b.op("CumSum", [data, b.constant(np.asarray(axis, np.int64))], data.shape)


@translates("cumprod", "cummax", "cummin", "median", "mode", "kthvalue")
def refused(x: Context, b: Builder) -> Value:
    """No form of ONNX."""
    raise Unsupported("unsupported operator", hint="compute it outside of the model")


@translates("diff")
def difference(x: Context, b: Builder) -> Value:
    """Differences of neighbours."""
    data = x.tensor("self")
    if x.integer("n", 1) != 1 or x.has("prepend", "append"):
        raise Unsupported("diff with n, prepend or append", "n=1")
    axis = axis_of(x.integer("dim", -1), data.rank)
    n = data.shape[axis]
    if data.dtype not in FLOATS:
        data = b.cast(data, x.meta.dtype)
    return b.binary("Sub", b.slice(data, axis, 1, n), b.slice(data, axis, 0, n - 1))
