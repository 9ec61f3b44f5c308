# SPDX-License-Identifier: Apache-2.0
"""Reductions, softmax and normalisations."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from opwest.compiler.graph.types import Quantization, Tensor, Unsupported
from opwest.frontends.onnx.elements import arithmetic, moved, raised, scaled, settle_float
from opwest.frontends.onnx.movement import numbers
from opwest.frontends.onnx.translation import (
    Order,
    StoredTensor,
    Translation,
    channels_last,
    identity,
    permuted,
    translates,
    with_last,
)
from opwest.frontends.onnx.values import Item, Op

_KINDS = {
    "ReduceMean": "MEAN",
    "ReduceSum": "SUM",
    "ReduceMax": "REDUCE_MAX",
    "ReduceMin": "REDUCE_MIN",
    "ReduceProd": "REDUCE_PROD",
}
_COMPOSED = ("ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp")


def axes_of(op: Op, rank: int) -> list[int]:
    """Return the dimensions of a reduction; all if none is given."""
    axes = op.numbers(1, "axes")
    if not axes:  # no axes, or no input for them
        return [] if op.get("noop_with_empty_axes", 0) else list(range(rank))
    if any(not -rank <= n < rank for n in axes):
        raise Unsupported(f"axes {list(axes)} of {rank} dimensions")
    return sorted({n % rank for n in axes})


def _reduced(op: Op, order: Order, axes: list[int]) -> tuple[list[int], Order, bool]:
    """Return the stored dimensions, the order of the result, and whether dimensions remain."""
    keep = op.get("keepdims", 1) == 1
    stored = sorted(order.index(axis) for axis in axes)
    if keep:
        return stored, order, True
    left = [axis for axis in order if axis not in axes]
    ranks = {axis: number for number, axis in enumerate(sorted(left))}
    return stored, tuple(ranks[axis] for axis in left), False


@translates(*_KINDS, *_COMPOSED)
def reduce(op: Op, t: Translation) -> None:
    """In the stored order."""
    data, result = op.input(0), op.output
    axes = axes_of(op, data.rank)
    where = t.anywhere(data)
    stored, order, keep = _reduced(op, where.order, axes)
    if not axes:
        _unreduced(op, t, where)
        return
    shape = permuted(result.known, order)
    index = numbers(t, stored, "axes")
    end = t.end(op, False)
    kind = _KINDS.get(op.kind)
    if data in t.real and kind in ("REDUCE_MAX", "REDUCE_MIN"):
        source = where.tensor
        t.real[result] = StoredTensor(
            t.emit(kind, [source, index], shape, "int8", source.quantization, keep_dims=keep), order
        )
        return
    exact = t.rules.float_requantization
    if data in t.real and end.target is not None and kind == "MEAN" and not exact:
        t.finish(end, kind, [where.tensor, index], shape, order, keep_dims=keep)
        return
    x = t.tensor(data, where.order)
    dtype = result.dtype

    def total(tensor: Tensor, kind: str = "SUM", keep: bool = keep, shape: Any = shape) -> Tensor:
        return t.emit(kind, [tensor, index], shape, dtype, keep_dims=keep)

    if kind is not None:
        reduced = total(x, kind)
    elif op.kind == "ReduceL1":
        reduced = total(t.emit("ABS", [x], x.shape))
    elif op.kind == "ReduceSumSquare":
        reduced = total(t.emit("SQUARE", [x], x.shape))
    elif op.kind == "ReduceL2":
        reduced = t.emit("SQRT", [total(t.emit("SQUARE", [x], x.shape))], shape)
    elif op.kind == "ReduceLogSum":
        reduced = t.emit("LOG", [total(x)], shape)
    else:
        wide = tuple(1 if axis in stored else n for axis, n in enumerate(x.shape))
        top = total(x, "REDUCE_MAX", True, wide)
        powers = t.emit("EXP", [arithmetic(t, "SUB", x, top)], x.shape)
        reduced = arithmetic(t, "ADD", t.emit("LOG", [total(powers)], shape), t.reshape(top, shape))
    settle_float(t, end, reduced, order)


_OF_ELEMENTS = {"ReduceL1": "ABS", "ReduceL2": "ABS", "ReduceSumSquare": "SQUARE", "ReduceLogSum": "LOG"}
"""What remains of a reduction over no dimensions; of the others nothing."""


def _unreduced(op: Op, t: Translation, where: StoredTensor) -> None:
    """Translate a reduction over no dimensions: noop_with_empty_axes. Source: onnx's reference implementation."""
    data, result = op.input(0), op.output
    kind = _OF_ELEMENTS.get(op.kind)
    if kind is None:
        t.put_like(data, result, where.tensor, where.order)
        return
    x = t.tensor(data, where.order)
    settle_float(t, t.end(op, False), t.emit(kind, [x], x.shape, result.dtype), where.order)


@translates("Softmax", "LogSoftmax")
def softmax(op: Op, t: Translation) -> None:
    """Over one dimension; before opset 13 over all dimensions from the axis on."""
    data = op.input(0)
    kind = "SOFTMAX" if op.kind == "Softmax" else "LOG_SOFTMAX"
    old = op.version < 13
    axis = int(op.get("axis", 1 if old else -1))
    if not -data.rank <= axis < data.rank:
        raise Unsupported(f"axis {axis} of {data.rank} dimensions")
    axis %= data.rank
    end = t.end(op, False)
    options: dict[str, Any] = {"beta": 1.0} if kind == "SOFTMAX" else {}
    flat = old and any(n != 1 for n in data.known[axis + 1 :])
    order = identity(data.rank)
    if not old or axis == data.rank - 1:
        order = with_last(t.anywhere(data).order, axis)
    fits = end.target is not None and end.target.quantization == Quantization((1 / 256,), (-128,))
    whole = kind == "SOFTMAX" and data in t.real and fits and not t.rules.float_requantization
    source = t.ordered(t.real[data], order) if whole else t.tensor(data, order)
    shape = source.shape
    if flat or (old and axis != data.rank - 1):
        rows = int(np.prod(shape[:axis], dtype=int))
        source = t.reshape(source, (rows, source.size // rows))
    if whole:
        assert end.target is not None
        result = t.emit(kind, [source], source.shape, "int8", end.target.quantization, end.item.name, **options)
        t.settle(end, t.reshape(result, shape), order)
        return
    result = t.emit(kind, [source], source.shape, name=end.item.name, **options)
    settle_float(t, end, t.reshape(result, shape), order)


@translates("BatchNormalization")
def batch(op: Op, t: Translation) -> None:
    """A factor and an offset for each channel, where no layer before it takes them."""
    if op.is_training:
        raise Unsupported("BatchNormalization in training mode", hint="export the model for inference")
    data = op.input(0)
    factor, offset = batch_numbers(op, [t.values_of(op.input(i)) for i in range(1, 5)])
    order = t.anywhere(data).order
    x = t.tensor(data, order)
    shape = [1] * data.rank
    if data.rank > 1:
        shape[1] = -1
    tensor = x
    for kind, values in (("MUL", factor), ("ADD", offset)):
        each = t.constant(np.transpose(values.reshape(shape), order), "channels")
        tensor = t.emit(kind, [tensor, each], x.shape)
    settle_float(t, t.end(op, False), tensor, order)


def batch_numbers(op: Op, constants: Sequence[Any]) -> tuple[Any, Any]:
    """Return the float32 factors and offsets of BatchNormalization. Raises Unsupported."""
    for number, values in enumerate(constants):
        if values is None:
            name = op.input(number + 1).name
            raise Unsupported(f"input {number + 1} '{name}' is computed when the model runs", "a constant")
    scale, bias, mean, variance = (np.asarray(constant, np.float64) for constant in constants)
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
    settle_float(t, t.end(op, False), _affine(t, x, order, [op.input(1), op.optional(2)], data.rank, shape), order)


@translates("InstanceNormalization")
def instance_normalisation(op: Op, t: Translation) -> None:
    """Over the image of each channel."""
    data = op.input(0)
    order = channels_last(data.rank)
    x = _normalised(t, t.tensor(data, order), list(range(1, data.rank - 1)), float(op.get("epsilon", 1e-5)))
    shape = [1, data.known[1], *[1] * (data.rank - 2)]
    settle_float(t, t.end(op, False), _affine(t, x, order, [op.input(1), op.input(2)], data.rank, shape), order)


@translates("GroupNormalization")
def group_normalisation(op: Op, t: Translation) -> None:
    """Over groups of channels; scale and bias per group before opset 21, then per channel."""
    data = op.input(0)
    groups = int(op.get("num_groups", 1))
    count, depth = data.known[:2]
    if groups < 1 or depth % groups:
        raise Unsupported(f"{groups} groups of {depth} channels")
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
    settle_float(t, t.end(op, False), x, identity(data.rank))


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
    settle_float(t, t.end(op, False), arithmetic(t, "DIV", x, norm), order)


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
    settle_float(t, t.end(op, False), arithmetic(t, "DIV", x, power), order)
