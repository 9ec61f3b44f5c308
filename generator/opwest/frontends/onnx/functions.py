# SPDX-License-Identifier: Apache-2.0
"""Functions of one element: tables for 8-bit data."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from opwest.compiler.graph.types import Tensor, Unsupported
from opwest.compiler.semantics.float_functions import FLOAT_FUNCTIONS
from opwest.frontends.onnx.elements import arithmetic, moved, operand, order_of, scaled
from opwest.frontends.onnx.translation import (
    RELUS,
    StoredTensor,
    Translation,
    limits_of_clip,
    permuted,
    table_of,
    translates,
)
from opwest.frontends.onnx.values import Op

_Function = Callable[[Any], Any]


def unary(op: Op, t: Translation, function: _Function | None, make: Callable[[Tensor], Tensor]) -> None:
    """Translate a function of one element: a table for 8-bit data, else `make` adds the nodes of the float form."""
    item = op.input(0)
    end = t.end(op, False)
    if function is not None and item in t.real and end.quantization is not None:
        held = t.real[item]
        source = held.tensor.quantization
        assert source is not None
        table = table_of(source, end.quantization, function, t.rules)
        t.settle(end, t.lookup(held.tensor, table, end.quantization, end.item.name), held.order)
        return
    held = t.stored(item)
    t.settle(end, make(held.tensor), held.order)


def _gelu(x: Any) -> Any:
    return np.float32(0.5) * x * (1 + FLOAT_FUNCTIONS["ONNX_ERF"].numpy(x * np.float32(math.sqrt(0.5))))


def _gelu_tanh(x: Any) -> Any:
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def _sigmoid(x: Any) -> Any:
    return (1 / (1 + np.exp(-x.astype(np.float64)))).astype(np.float32)


_SIMPLE: dict[str, tuple[str, _Function]] = {
    "Abs": ("ABS", np.abs),
    "Neg": ("NEG", np.negative),
    "Exp": ("EXP", np.exp),
    "Log": ("LOG", np.log),
    "Sqrt": ("SQRT", np.sqrt),
    "Tanh": ("TANH", np.tanh),
    "Sigmoid": ("LOGISTIC", _sigmoid),
    "HardSwish": ("HARD_SWISH", lambda x: x * np.clip(x / np.float32(6) + np.float32(0.5), 0, 1)),
    "Sign": ("SIGN", np.sign),
    "Not": ("LOGICAL_NOT", np.logical_not),
    **{row.onnx: (row.kind, row.numpy) for row in FLOAT_FUNCTIONS.values() if row.onnx is not None},
}


@translates(*_SIMPLE)
def simple(op: Op, t: Translation) -> None:
    """One operator of TFLite."""
    kind, function = _SIMPLE[op.kind]
    dtype = op.output.dtype
    unary(op, t, function if dtype == "float32" else None, lambda x: t.emit(kind, [x], x.shape, dtype))


def _hard_sigmoid(t: Translation, x: Tensor, alpha: float, beta: float) -> Tensor:
    line = moved(t, scaled(t, x, alpha), beta)
    low = arithmetic(t, "MAXIMUM", line, t.constant(np.float32(0), "zero"))
    return arithmetic(t, "MINIMUM", low, t.constant(np.float32(1), "one"))


def _softplus(t: Translation, x: Tensor) -> Tensor:
    """Return log(1 + exp(x)), as max(x, 0) + log(1 + exp(-|x|))."""
    small = arithmetic(t, "EXP", arithmetic(t, "NEG", arithmetic(t, "ABS", x)))
    return arithmetic(t, "ADD", arithmetic(t, "RELU", x), arithmetic(t, "LOG", moved(t, small, 1.0)))


def _swish(t: Translation, x: Tensor, alpha: float) -> Tensor:
    return arithmetic(t, "MUL", x, arithmetic(t, "LOGISTIC", scaled(t, x, alpha) if alpha != 1 else x))


def _thresholded(t: Translation, x: Tensor, alpha: float) -> Tensor:
    above = t.emit("GREATER", [x, t.constant(np.float32(alpha), "alpha")], x.shape, "bool")
    return t.emit("SELECT_V2", [above, x, t.constant(np.float32(0), "zero")], x.shape)


def _numpy_swish(x: Any, alpha: float) -> Any:
    return x * _sigmoid(np.float32(alpha) * x)


_FORMULAS: dict[str, tuple[dict[str, float], Callable[..., Any], Callable[..., Tensor]]] = {
    "HardSigmoid": (
        {"alpha": 0.2, "beta": 0.5},
        lambda x, alpha, beta: np.clip(np.float32(alpha) * x + np.float32(beta), 0, 1),
        _hard_sigmoid,
    ),
    "LeakyRelu": (
        {"alpha": 0.01},
        lambda x, alpha: np.where(x < 0, x * np.float32(alpha), x),
        lambda t, x, alpha: t.emit("LEAKY_RELU", [x], x.shape, alpha=float(np.float32(alpha))),
    ),
    "Mish": (
        {},
        lambda x: x * np.tanh(np.logaddexp(0, x.astype(np.float64))),
        lambda t, x: arithmetic(t, "MUL", x, arithmetic(t, "TANH", _softplus(t, x))),
    ),
    "QuickGelu": ({"alpha": 1.702}, _numpy_swish, _swish),
    "Reciprocal": ({}, lambda x: 1 / x, lambda t, x: arithmetic(t, "DIV", t.constant(np.float32(1), "one"), x)),
    "Silu": ({"alpha": 1.0}, _numpy_swish, _swish),
    "Softplus": ({}, lambda x: np.logaddexp(0, x.astype(np.float64)), _softplus),
    "Softsign": (
        {},
        lambda x: x / (1 + np.abs(x)),
        lambda t, x: arithmetic(t, "DIV", x, moved(t, arithmetic(t, "ABS", x), 1.0)),
    ),
    "Swish": ({"alpha": 1.0}, _numpy_swish, _swish),
    "ThresholdedRelu": (
        {"alpha": 1.0},
        lambda x, alpha: np.where(x > np.float32(alpha), x, np.float32(0)),
        _thresholded,
    ),
}
"""The attributes with their defaults, the function in numpy, and the nodes of the float form."""


@translates(*_FORMULAS)
def formula(op: Op, t: Translation) -> None:
    """Several operators of TFLite."""
    attributes, function, make = _FORMULAS[op.kind]
    values = [float(op.get(name, default)) for name, default in attributes.items()]
    unary(op, t, lambda x: function(x, *values), lambda x: make(t, x, *values))


@translates("Relu")
def relu(op: Op, t: Translation) -> None:
    """On int8 with a scale it needs no other scale: zero is exact."""
    item = op.input(0)
    if item in t.real and t.end(op, False).quantization is None:
        held = t.real[item]
        scale = held.tensor.quantization
        assert scale is not None
        table = np.maximum(np.arange(-128, 128), min(max(scale.zero, -128), 127)).astype(np.int8)
        t.real[op.output] = StoredTensor(t.lookup(held.tensor, table, scale, op.output.name), held.order)
        return
    unary(op, t, lambda x: np.maximum(x, 0), lambda x: t.emit("RELU", [x], x.shape, op.output.dtype))


@translates("PRelu")
def prelu(op: Op, t: Translation) -> None:
    """The factors of negative elements are a second operand."""
    data, slope = op.input(0), op.input(1)
    rank = data.rank
    order = order_of(t, (data,), rank)
    tensors = [operand(t, data, rank, order), operand(t, slope, rank, order)]
    if len(tensors[1].shape) != rank - 1 and tensors[1].is_constant:
        # Without the batch, as TFLite's converters write it.
        whole = t.with_rank(tensors[1], rank)
        if whole.shape[:1] == (1,):
            tensors[1] = t.reshape(whole, whole.shape[1:])
    result = t.emit("PRELU", tensors, permuted(data.known, order), name=op.output.name)
    t.settle(t.end(op, False), result, order)


@translates("Clip")
def clip(op: Op, t: Translation) -> None:
    """RELU and its relatives, or a maximum and a minimum."""
    for number, name in ((1, "min"), (2, "max")):
        item = op.optional(number)
        if name not in op.attributes and item is not None and item.content is None:
            raise Unsupported(f"the limit '{item.name}' is computed when the model runs", "a constant")
    low, high = limits_of_clip(op)
    dtype = op.output.dtype

    def limit(x: Any) -> Any:
        return np.clip(x, None if low is None else np.float32(low), None if high is None else np.float32(high))

    def make(x: Tensor) -> Tensor:
        kind = RELUS.get((low, high))
        if kind is not None and dtype == "float32":
            return t.emit(kind, [x], x.shape)
        for name, value in (("MAXIMUM", low), ("MINIMUM", high)):
            if value is not None:
                x = t.emit(name, [x, t.constant(np.asarray(value, dtype), "limit")], x.shape, dtype)
        return x

    if low is None and high is None:
        held = t.anywhere(op.input(0))
        t.put_like(op.input(0), op.output, held.tensor, held.order)
        return
    unary(op, t, limit if dtype == "float32" else None, make)


@translates("Elu", "Celu", "Selu")
def elu(op: Op, t: Translation) -> None:
    """TFLite's ELU has the factor 1: others are made of it."""
    alpha = float(op.get("alpha", {"Elu": 1.0, "Celu": 1.0, "Selu": 1.67326319217681884765625}[op.kind]))
    gamma = float(op.get("gamma", 1.05070102214813232421875)) if op.kind == "Selu" else 1.0
    inner = alpha if op.kind == "Celu" else 1.0
    if not inner:
        raise Unsupported("alpha=0", "another number")

    def function(x: Any) -> Any:
        return gamma * (np.maximum(x, 0) + alpha * np.expm1(np.minimum(x, 0) / inner))

    def make(x: Tensor) -> Tensor:
        if alpha == 1.0 and gamma == 1.0:
            return t.emit("ELU", [x], x.shape)
        zero = t.constant(np.float32(0), "zero")
        below = t.emit("MINIMUM", [x, zero], x.shape)
        bent = t.emit("ELU", [scaled(t, below, 1 / inner) if inner != 1 else below], x.shape)
        above = t.emit("RELU", [x], x.shape)
        total = arithmetic(t, "ADD", above, scaled(t, bent, alpha))
        return scaled(t, total, gamma) if gamma != 1 else total

    unary(op, t, function, make)


@translates("Gelu", "FastGelu", "BiasGelu")
def gelu(op: Op, t: Translation) -> None:
    """By erf, or by tanh (FastGelu)."""
    approximate = op.kind == "FastGelu" or op.get("approximate", "none") == "tanh"
    data, bias = op.input(0), op.optional(1)
    if bias is not None:
        order = order_of(t, (data,), data.rank)
        tensors = [operand(t, item, data.rank, order) for item in (data, bias)]
        total = t.emit("ADD", tensors, tensors[0].shape)
        result = t.emit("GELU", [total], total.shape, name=op.output.name, approximate=approximate)
        t.settle(t.end(op, False), result, order)
        return
    unary(op, t, _gelu_tanh if approximate else _gelu, lambda x: t.emit("GELU", [x], x.shape, approximate=approximate))


@translates("IsNaN", "IsInf")
def special(op: Op, t: Translation) -> None:
    """Comparisons: only NaN differs from itself."""
    held = t.stored(op.input(0))
    x, wanted = held.tensor, np.float32(np.inf)
    if op.kind == "IsNaN":
        result = t.emit("NOT_EQUAL", [x, x], x.shape, "bool")
    else:
        if op.get("detect_negative", 1) and op.get("detect_positive", 1):
            x = t.emit("ABS", [x], x.shape)
        elif op.get("detect_negative", 1):
            wanted = -wanted
        result = t.emit("EQUAL", [x, t.constant(wanted, "infinity")], x.shape, "bool")
    t.put(op.output, result, held.order)
