# SPDX-License-Identifier: Apache-2.0
"""Functions of one element: tables for 8-bit data."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from opwest.compiler.graph.types import Tensor, Unsupported
from opwest.compiler.semantics.float_functions import FLOAT_FUNCTIONS
from opwest.frontends.onnx.elements import arithmetic, moved, operand, order_of, scaled, settle_float
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
    if function is not None and item in t.real and end.target is not None:
        held = t.real[item]
        source = held.tensor.quantization
        assert source is not None
        table = table_of(source, end.target.quantization, function)
        t.settle(end, t.lookup(held.tensor, table, end.target.quantization, end.item.name), held.order)
        return
    held = t.stored(item)
    settle_float(t, end, make(held.tensor), held.order)


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
    **{one.onnx: (one.kind, one.numpy) for one in FLOAT_FUNCTIONS.values() if one.onnx is not None},
}


@translates(*_SIMPLE)
def simple(op: Op, t: Translation) -> None:
    """One operator of TFLite."""
    kind, function = _SIMPLE[op.kind]
    dtype = op.output.dtype
    unary(op, t, function if dtype == "float32" else None, lambda x: t.emit(kind, [x], x.shape, dtype))


@translates("Not")
def negation(op: Op, t: Translation) -> None:
    """bool."""
    unary(op, t, None, lambda x: t.emit("LOGICAL_NOT", [x], x.shape, "bool"))


@translates("Relu")
def relu(op: Op, t: Translation) -> None:
    """On int8 with a scale it needs no other scale: zero is exact."""
    item = op.input(0)
    if item in t.real and t.end(op, False).target is None:
        held = t.real[item]
        scale = held.tensor.quantization
        assert scale is not None
        table = np.maximum(np.arange(-128, 128), min(max(scale.zero, -128), 127)).astype(np.int8)
        t.real[op.output] = StoredTensor(t.lookup(held.tensor, table, scale, op.output.name), held.order)
        return
    unary(op, t, lambda x: np.maximum(x, 0), lambda x: t.emit("RELU", [x], x.shape, op.output.dtype))


@translates("LeakyRelu")
def leaky(op: Op, t: Translation) -> None:
    """alpha: the factor of negative elements."""
    alpha = float(np.float32(op.get("alpha", 0.01)))
    unary(
        op,
        t,
        lambda x: np.where(x < 0, x * np.float32(alpha), x),
        lambda x: t.emit("LEAKY_RELU", [x], x.shape, alpha=alpha),
    )


@translates("PRelu")
def prelu(op: Op, t: Translation) -> None:
    """The factors of negative elements are a second operand."""
    data, slope = op.input(0), op.input(1)
    rank = data.rank
    order = order_of(t, (data,), rank)
    tensors = [operand(t, data, rank, order), operand(t, slope, rank, order)]
    if len(tensors[1].shape) != rank - 1 and tensors[1].is_constant:
        # Without the batch, as TFLite's converters write it.
        shape = (1,) * (rank - len(tensors[1].shape)) + tensors[1].shape
        if shape[:1] == (1,):
            tensors[1] = t.reshape(tensors[1], shape[1:])
    end = t.end(op, False)
    result = t.emit("PRELU", tensors, permuted(data.known, order), name=end.item.name)
    settle_float(t, end, result, order)


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


@translates("HardSigmoid")
def hard_sigmoid(op: Op, t: Translation) -> None:
    """max(0, min(1, alpha * x + beta))."""
    alpha, beta = float(op.get("alpha", 0.2)), float(op.get("beta", 0.5))

    def make(x: Tensor) -> Tensor:
        line = moved(t, scaled(t, x, alpha), beta)
        low = t.emit("MAXIMUM", [line, t.constant(np.float32(0), "zero")], x.shape)
        return t.emit("MINIMUM", [low, t.constant(np.float32(1), "one")], x.shape)

    unary(op, t, lambda x: np.clip(np.float32(alpha) * x + np.float32(beta), 0, 1), make)


@translates("Gelu", "FastGelu", "QuickGelu", "BiasGelu")
def gelu(op: Op, t: Translation) -> None:
    """By erf, by tanh (FastGelu), or by the logistic function (QuickGelu)."""
    approximate = op.kind == "FastGelu" or op.get("approximate", "none") == "tanh"
    if len(op.inputs) > 1 and op.optional(1) is not None:
        item, order = op.input(0), order_of(t, (op.input(0),), op.input(0).rank)
        tensors = [operand(t, one, item.rank, order) for one in (item, op.input(1))]
        total = t.emit("ADD", tensors, tensors[0].shape)
        end = t.end(op, False)
        result = t.emit("GELU", [total], total.shape, name=end.item.name, approximate=approximate)
        settle_float(t, end, result, order)
        return
    if op.kind == "QuickGelu":
        alpha = float(op.get("alpha", 1.702))
        unary(
            op,
            t,
            lambda x: x * _sigmoid(np.float32(alpha) * x),
            lambda x: arithmetic(t, "MUL", x, t.emit("LOGISTIC", [scaled(t, x, alpha)], x.shape)),
        )
        return
    unary(op, t, _gelu_tanh if approximate else _gelu, lambda x: t.emit("GELU", [x], x.shape, approximate=approximate))


@translates("Reciprocal")
def reciprocal(op: Op, t: Translation) -> None:
    """1 / x."""
    unary(op, t, lambda x: 1 / x, lambda x: arithmetic(t, "DIV", t.constant(np.float32(1), "one"), x))


@translates("Softplus", "Mish")
def softplus(op: Op, t: Translation) -> None:
    """log(1 + exp(x)), as max(x, 0) + log(1 + exp(-|x|)); Mish: x * tanh of it."""

    def function(x: Any) -> Any:
        soft = np.logaddexp(0, x.astype(np.float64))
        return (x * np.tanh(soft) if op.kind == "Mish" else soft).astype(np.float32)

    def make(x: Tensor) -> Tensor:
        small = t.emit("EXP", [t.emit("NEG", [t.emit("ABS", [x], x.shape)], x.shape)], x.shape)
        soft = arithmetic(t, "ADD", t.emit("RELU", [x], x.shape), t.emit("LOG", [moved(t, small, 1.0)], x.shape))
        return arithmetic(t, "MUL", x, t.emit("TANH", [soft], x.shape)) if op.kind == "Mish" else soft

    unary(op, t, function, make)


@translates("Softsign")
def softsign(op: Op, t: Translation) -> None:
    """x / (1 + |x|)."""
    unary(
        op,
        t,
        lambda x: x / (1 + np.abs(x)),
        lambda x: arithmetic(t, "DIV", x, moved(t, t.emit("ABS", [x], x.shape), 1.0)),
    )


@translates("Swish", "Silu")
def swish(op: Op, t: Translation) -> None:
    """x * sigmoid(alpha * x)."""
    alpha = float(op.get("alpha", 1.0))
    unary(
        op,
        t,
        lambda x: x * _sigmoid(np.float32(alpha) * x),
        lambda x: arithmetic(t, "MUL", x, t.emit("LOGISTIC", [scaled(t, x, alpha) if alpha != 1 else x], x.shape)),
    )


@translates("ThresholdedRelu")
def thresholded(op: Op, t: Translation) -> None:
    """x above alpha, else 0."""
    alpha = np.float32(op.get("alpha", 1.0))

    def make(x: Tensor) -> Tensor:
        above = t.emit("GREATER", [x, t.constant(alpha, "alpha")], x.shape, "bool")
        return t.emit("SELECT_V2", [above, x, t.constant(np.float32(0), "zero")], x.shape)

    unary(op, t, lambda x: np.where(x > alpha, x, np.float32(0)), make)


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
