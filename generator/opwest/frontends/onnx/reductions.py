# SPDX-License-Identifier: Apache-2.0
"""Reductions, softmax and normalisations."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from opwest.base.result import counted
from opwest.compiler.graph.types import Quantization, Tensor, Unsupported
from opwest.frontends.onnx.elements import arithmetic, moved, raised, scaled
from opwest.frontends.onnx.movement import numbers, same
from opwest.frontends.onnx.translation import (
    Order,
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

_MAX_ORDERED = 4
"""The most elements that torch's sum adds in their order. Source: ATen/native/cpu/SumKernel.cpp, row_sum."""
_KINDS = {
    "ReduceMean": "MEAN",
    "ReduceSum": "SUM",
    "ReduceMax": "REDUCE_MAX",
    "ReduceMin": "REDUCE_MIN",
    "ReduceProd": "REDUCE_PROD",
}
_COMPOSED: dict[str, tuple[str | None, str | None, str | None]] = {
    "ReduceL1": ("ABS", None, "ABS"),
    "ReduceL2": ("SQUARE", "SQRT", "ABS"),
    "ReduceSumSquare": ("SQUARE", None, "SQUARE"),
    "ReduceLogSum": (None, "LOG", "LOG"),
    "ReduceLogSumExp": ("EXP", "LOG", None),
}
"""The functions before a sum and after it, and the function that remains of a reduction over no dimensions."""


def axes_of(op: Op, rank: int) -> list[int]:
    """Return the dimensions of a reduction; all if none is given."""
    axes = op.numbers(1, "axes")
    if not axes:  # no axes, or no input for them
        return [] if op.get("noop_with_empty_axes", 0) else list(range(rank))
    if any(not -rank <= n < rank for n in axes):
        raise Unsupported(f"axes {list(axes)} of {counted(rank, 'dimension')}")
    return sorted({n % rank for n in axes})


def append_reduction(
    op: Op, t: Translation, kind: str, source: Order, axes: Sequence[int], order: Order, *, is_exact: bool
) -> None:
    """Append a reduction of data in the order `source` over stored dimensions; `order` is that of the result.

    With `is_exact`, means are computed in float32.
    """
    data, result = op.input(0), op.output
    shape, index, end = permuted(result.known, order), numbers(t, axes, "axes"), t.end(op, False)
    keep = result.rank == data.rank
    if data in t.real and kind in ("REDUCE_MAX", "REDUCE_MIN"):
        t.real[result] = StoredTensor(
            same(t, kind, [t.ordered(t.real[data], source), index], shape, keep_dims=keep), order
        )
    elif data in t.real and end.quantization is not None and kind == "MEAN" and not is_exact:
        t.finish(end, kind, [t.ordered(t.real[data], source), index], shape, order, keep_dims=keep)
    else:
        # Means of integers often lie between two: the last bit of a float sum then decides. torch adds up to four
        # elements in their order, others by the vectors of the processor: the exact sum is nearest to most of those.
        is_long = prod(permuted(data.known, source)[axis] for axis in axes) > _MAX_ORDERED
        is_wide = data in t.real and end.quantization is not None and t.rules.inverse_scales and is_long
        options: dict[str, Any] = {"wide_sums": is_exact and is_wide} if kind in ("MEAN", "SUM") else {}
        result_of = t.emit(kind, [t.tensor(data, source), index], shape, result.dtype, keep_dims=keep, **options)
        t.settle(end, result_of, order)


@translates(*_KINDS, *_COMPOSED)
def reduce(op: Op, t: Translation) -> None:
    """In the stored order."""
    data, result = op.input(0), op.output
    axes = axes_of(op, data.rank)
    where = t.anywhere(data)
    keep = op.get("keepdims", 1) == 1
    order = where.order if keep else without(where.order, axes)
    stored = sorted(where.order.index(axis) for axis in axes)
    before, after, alone = _COMPOSED.get(op.kind, (None, None, None))
    if not axes:  # noop_with_empty_axes. Source: onnx's reference implementation.
        if alone is None:
            t.put_like(data, result, where.tensor, where.order)
        else:
            x = t.tensor(data, where.order)
            t.settle(t.end(op, False), t.emit(alone, [x], x.shape, result.dtype), where.order)
        return
    if op.kind in _KINDS:
        append_reduction(op, t, _KINDS[op.kind], where.order, stored, order, is_exact=t.rules.float_requantization)
        return
    shape, index = permuted(result.known, order), numbers(t, stored, "axes")
    x, top = t.tensor(data, where.order), None
    if op.kind == "ReduceLogSumExp":  # without overflow
        wide = tuple(1 if axis in stored else n for axis, n in enumerate(x.shape))
        top = t.emit("REDUCE_MAX", [x, index], wide, result.dtype, keep_dims=True)
        x = arithmetic(t, "SUB", x, top)
    if before is not None:
        x = t.emit(before, [x], x.shape)
    reduced = t.emit("SUM", [x, index], shape, result.dtype, keep_dims=keep)
    if after is not None:
        reduced = t.emit(after, [reduced], shape)
    if top is not None:
        reduced = arithmetic(t, "ADD", reduced, t.reshape(top, shape))
    t.settle(t.end(op, False), reduced, order)


@translates("Softmax", "LogSoftmax")
def softmax(op: Op, t: Translation) -> None:
    """Over one dimension; before opset 13 over all dimensions from the axis on."""
    data = op.input(0)
    kind = "SOFTMAX" if op.kind == "Softmax" else "LOG_SOFTMAX"
    old = op.version < 13
    axis = int(op.get("axis", 1 if old else -1))
    if not -data.rank <= axis < data.rank:
        raise Unsupported(f"axis {axis} of {counted(data.rank, 'dimension')}")
    axis %= data.rank
    end = t.end(op, False)
    options: dict[str, Any] = {"beta": 1.0} if kind == "SOFTMAX" else {}
    flat = old and any(n != 1 for n in data.known[axis + 1 :])
    order = identity(data.rank)
    if not old or axis == data.rank - 1:
        order = with_last(t.anywhere(data).order, axis)
    fits = end.quantization == Quantization((1 / 256,), (-128,))
    whole = kind == "SOFTMAX" and data in t.real and fits and not t.rules.float_requantization
    source = t.ordered(t.real[data], order) if whole else t.tensor(data, order)
    shape = source.shape
    if flat or (old and axis != data.rank - 1):
        rows = int(np.prod(shape[:axis], dtype=int))
        source = t.reshape(source, (rows, source.size // rows))
    if whole:
        result = t.emit(kind, [source], source.shape, "int8", end.quantization, end.item.name, **options)
        t.settle(end, t.reshape(result, shape), order)
        return
    result = t.emit(kind, [source], source.shape, name=end.item.name, **options)
    t.settle(end, t.reshape(result, shape), order)


@translates("BatchNormalization")
def batch(op: Op, t: Translation) -> None:
    """A factor and an offset for each channel, where no layer before it takes them."""
    if op.is_training:
        raise Unsupported("BatchNormalization in training mode", hint="export the model for inference")
    data = op.input(0)
    factor, offset = batch_numbers(op, [t.constant_values(op.input(i), f"input {i}") for i in range(1, 5)])
    order = t.anywhere(data).order
    x = t.tensor(data, order)
    shape = [1] * data.rank
    if data.rank > 1:
        shape[1] = -1
    tensor = x
    for kind, values in (("MUL", factor), ("ADD", offset)):
        each = t.constant(np.transpose(values.reshape(shape), order), "channels")
        tensor = t.emit(kind, [tensor, each], x.shape)
    t.settle(t.end(op, False), tensor, order)


def batch_numbers(op: Op, constants: Sequence[Any]) -> tuple[Any, Any]:
    """Return the float32 factors and offsets of BatchNormalization."""
    scale, bias, mean, variance = (np.asarray(constant, np.float64) for constant in constants)
    with np.errstate(all="ignore"):  # a negative variance gives NaN, as in the runtimes
        factor = scale / np.sqrt(variance + float(op.get("epsilon", 1e-5)))
        return factor.astype(np.float32), (bias - mean * factor).astype(np.float32)


def _normalised(t: Translation, x: Tensor, axes: list[int], epsilon: float) -> Tensor:
    """Return (x - mean) / sqrt(variance + epsilon) over stored dimensions."""
    index = numbers(t, axes, "axes")
    shape = tuple(1 if axis in axes else n for axis, n in enumerate(x.shape))
    centred = arithmetic(t, "SUB", x, t.emit("MEAN", [x, index], shape, keep_dims=True))
    square = t.emit("SQUARE", [centred], x.shape)
    variance = t.emit("MEAN", [square, index], shape, keep_dims=True)
    return arithmetic(t, "MUL", centred, t.emit("RSQRT", [moved(t, variance, epsilon)], shape))


def _affine(t: Translation, x: Tensor, order: Order, items: list[Item | None], rank: int, shape: list[int]) -> Tensor:
    """Return x * scale + bias; both have `shape` in the order of the file."""
    for kind, item in zip(("MUL", "ADD"), items, strict=False):
        if item is not None:
            if item.size != prod(shape):
                raise Unsupported(f"'{item.name}' with the shape {list(item.known)}", str(shape))
            x = arithmetic(t, kind, x, raised(t, t.reshape(t.tensor(item), tuple(shape)), rank, order))
    return x


@translates("LayerNormalization")
def layer_normalisation(op: Op, t: Translation) -> None:
    """Over the dimensions from the axis on."""
    data = op.input(0)
    axis = int(op.get("axis", -1)) % data.rank
    order = identity(data.rank)
    x = _normalised(t, t.tensor(data), list(range(axis, data.rank)), float(op.get("epsilon", 1e-5)))
    shape = list(data.known[axis:])
    t.settle(t.end(op, False), _affine(t, x, order, [op.input(1), op.optional(2)], data.rank, shape), order)


@translates("InstanceNormalization")
def instance_normalisation(op: Op, t: Translation) -> None:
    """Over the image of each channel."""
    data = op.input(0)
    order = channels_last(data.rank)
    x = _normalised(t, t.tensor(data, order), list(range(1, data.rank - 1)), float(op.get("epsilon", 1e-5)))
    shape = [1, data.known[1], *[1] * (data.rank - 2)]
    t.settle(t.end(op, False), _affine(t, x, order, [op.input(1), op.input(2)], data.rank, shape), order)


@translates("GroupNormalization")
def group_normalisation(op: Op, t: Translation) -> None:
    """Over groups of channels; scale and bias per group before opset 21, then per channel."""
    data = op.input(0)
    groups = int(op.get("num_groups", 1))
    count, depth = data.known[:2]
    if groups < 1 or depth % groups:
        raise Unsupported(f"{counted(groups, 'group')} of {counted(depth, 'channel')}")
    x = t.reshape(t.tensor(data), (count, groups, data.size // (count * groups)))
    x = t.reshape(_normalised(t, x, [2], float(op.get("epsilon", 1e-5))), data.known)
    factors = []
    for item in (op.input(1), op.input(2)):
        values = t.values_of(item)
        if values is None:
            raise Unsupported(f"'{item.name}' is computed when the model runs", "a constant")
        each = values if values.size == depth else np.repeat(values, depth // groups)
        factors.append(t.constant(each.reshape(1, depth, *[1] * (data.rank - 2)).astype(np.float32), item.name))
    x = arithmetic(t, "ADD", arithmetic(t, "MUL", x, factors[0]), factors[1])
    t.settle(t.end(op, False), x, identity(data.rank))


@translates("LpNormalization")
def lp_normalisation(op: Op, t: Translation) -> None:
    """Division by the sum of magnitudes or the root of the sum of squares."""
    data = op.input(0)
    order = t.anywhere(data).order
    axis = order.index(int(op.get("axis", -1)) % data.rank)
    x = t.tensor(data, order)
    index = numbers(t, [axis], "axes")
    shape = tuple(1 if number == axis else n for number, n in enumerate(x.shape))
    first = int(op.get("p", 2)) == 1
    norm = t.emit("SUM", [t.emit("ABS" if first else "SQUARE", [x], x.shape), index], shape, keep_dims=True)
    norm = norm if first else t.emit("SQRT", [norm], shape)
    # onnxruntime leaves zeros as they are.
    is_zero = t.emit("EQUAL", [norm, t.constant(np.float32(0), "zero")], shape, "bool")
    norm = t.emit("SELECT_V2", [is_zero, t.constant(np.float32(1), "one"), norm], shape)
    t.settle(t.end(op, False), arithmetic(t, "DIV", x, norm), order)


@translates("LRN")
def local(op: Op, t: Translation) -> None:
    """x / (bias + alpha / size * sum of squares of neighbouring channels) ** beta."""
    data = op.input(0)
    size = int(op.get("size", 1))
    alpha, beta, bias = (float(op.get(k, d)) for k, d in (("alpha", 1e-4), ("beta", 0.75), ("bias", 1.0)))
    order = channels_last(data.rank)
    x = t.tensor(data, order)
    depth = x.shape[-1]
    rows = x.size // depth
    before, after = (size - 1) // 2, size - 1 - (size - 1) // 2
    near = np.arange(depth)[:, None] - np.arange(depth)[None, :]
    weights = t.constant(((near >= -before) & (near <= after)).astype(np.float32).T, "neighbours")
    square = t.reshape(t.emit("SQUARE", [x], x.shape), (rows, depth))
    sums = t.emit("FULLY_CONNECTED", [square, weights, None], (rows, depth))
    base = moved(t, scaled(t, t.reshape(sums, x.shape), alpha / size), bias)
    power = t.emit("POW", [base, t.constant(np.float32(beta), "beta")], x.shape)
    t.settle(t.end(op, False), arithmetic(t, "DIV", x, power), order)
