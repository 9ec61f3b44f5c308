# SPDX-License-Identifier: Apache-2.0
"""Functions of elements, with numpy's rule of broadcasting."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opwest.importers.models.graph.faults import Unsupported
from opwest.importers.models.graph.types import Quantization, Shape, Tensor
from opwest.importers.models.onnx.registry import translates
from opwest.importers.models.onnx.translation import (
    RELUS,
    End,
    Held,
    Order,
    Translation,
    identity,
    limits_of_clip,
    permuted,
    table_of,
)
from opwest.importers.models.onnx.values import Item, Op


def order_of(t: Translation, items: Sequence[Item], rank: int) -> Order:
    """Return the order for an elementwise operator: that of the first operand with all dimensions that is not plain."""
    for item in items:
        if item.rank == rank and t.values_of(item) is None:
            order = t.anywhere(item).order
            if order != identity(rank):
                return order
    return identity(rank)


def raised(t: Translation, tensor: Tensor, rank: int, order: Order) -> Tensor:
    """Return a tensor of the file's order and fewer dimensions, with ones before them, in an order."""
    if tensor.size == 1 and tensor.is_constant:
        return t.constant(tensor.content.reshape(()), tensor.name, tensor.quantization)
    if len(tensor.shape) < rank and order == identity(rank):
        return tensor
    return t.transpose(t.reshape(tensor, (1,) * (rank - len(tensor.shape)) + tensor.shape), order)


def operand(t: Translation, item: Item, rank: int, order: Order) -> Tensor:
    """Return an operand in an order, in the dtype of the file."""
    if item.rank == rank and t.values_of(item) is None:
        return t.tensor(item, order)
    return raised(t, t.tensor(item), rank, order)


def operand8(t: Translation, item: Item, rank: int, order: Order) -> Tensor:
    """Return an operand that is known as int8."""
    held = t.real[item]
    if item.rank == rank:
        return t.ordered(held, order)
    return raised(t, t.ordered(held, identity(item.rank)), rank, order)


def common(*shapes: Shape) -> Shape:
    """Return the shape under numpy's rule. Raises Unsupported."""
    try:
        return tuple(int(n) for n in np.broadcast_shapes(*shapes))
    except ValueError:
        raise Unsupported(f"shapes {' and '.join(str(list(s)) for s in shapes)} cannot be broadcast") from None


def eight_bit(t: Translation, items: Sequence[Item]) -> bool:
    """Return whether all operands are known as int8 with a scale."""
    return all(item in t.real for item in items)


_PLAIN = {
    "Add": "ADD",
    "Sub": "SUB",
    "Mul": "MUL",
    "Div": "DIV",
    "Pow": "POW",
    "Equal": "EQUAL",
    "Less": "LESS",
    "LessOrEqual": "LESS_EQUAL",
    "Greater": "GREATER",
    "GreaterOrEqual": "GREATER_EQUAL",
    "And": "LOGICAL_AND",
    "Or": "LOGICAL_OR",
}
_FUSED = frozenset(("ADD", "SUB", "MUL", "DIV"))
_INTEGER = frozenset(("ADD", "SUB", "MUL"))
"""Operators with an int8 form whose result has a scale of its own."""


@translates(*_PLAIN)
def binary(op: Op, t: Translation) -> None:
    """Quantised where both operands and the result are."""
    kind = _PLAIN[op.kind]
    one, other = op.input(0), op.input(1)
    if kind == "POW" and one.dtype == "float32" and _power(op, t, one, t.values_of(other)):
        return
    if one.dtype != other.dtype:
        raise Unsupported(f"operands of dtype {one.dtype} and {other.dtype}", "equal dtypes")
    rank = op.output.rank
    order = order_of(t, (one, other), rank)
    shape = permuted(op.output.known, order)
    end = t.end(op, kind in _FUSED and one.dtype == "float32")
    if kind in _INTEGER and end.target is not None and not t.rules.float_requantization:
        quantise_constants(t, (one, other))
        if eight_bit(t, (one, other)):
            tensors = [operand8(t, item, rank, order) for item in (one, other)]
            t.finish(end, kind, tensors, shape, order, fused_activation_function=end.activation)
            return
    options = {"fused_activation_function": end.activation} if kind in _FUSED else {}
    tensors = [operand(t, item, rank, order) for item in (one, other)]
    float_finish(t, end, kind, tensors, shape, order, op.output.dtype, **options)


def quantise_constants(t: Translation, items: Sequence[Item]) -> None:
    """Let constants of DequantizeLinear with one scale be int8 tensors."""
    for item in items:
        fixed = t.fixed.get(item)
        if (
            item in t.real
            or fixed is None
            or fixed.axis is not None
            or str(fixed.content.dtype) not in ("int8", "uint8")
        ):
            continue
        move = 128 if fixed.content.dtype == np.uint8 else 0
        quantization = Quantization((float(fixed.scales[0]),), (int(fixed.zeros[0]) - move,))
        content = (fixed.content.astype(np.int16) - move).astype(np.int8)
        t.real[item] = Held(t.constant(content, item.name, quantization), identity(item.rank))


def float_finish(
    t: Translation,
    end: End,
    kind: str,
    tensors: Sequence[Tensor | None],
    shape: Shape,
    order: Order,
    dtype: str = "float32",
    **options: Any,
) -> None:
    """Append a node in the dtype of the file, and QuantizeLinear if the end has a target."""
    tensor = t.emit(kind, tensors, shape, dtype, name=end.item.name, **options)
    settle_float(t, end, tensor, order)


def settle_float(t: Translation, end: End, tensor: Tensor, order: Order) -> None:
    """Store a float32 result, quantised if the end has a target."""
    if end.target is not None:
        tensor = t.emit("ONNX_QUANTIZE", [tensor], tensor.shape, "int8", end.target.quantization)
    t.settle(end, tensor, order)


def _power(op: Op, t: Translation, base: Item, exponent: Any) -> bool:
    """Translate a power with a simple constant exponent; return whether it is one."""
    kinds = {2.0: "SQUARE", 0.5: "SQRT", -0.5: "RSQRT", 1.0: "IDENTITY"}
    if exponent is None or np.size(exponent) != 1 or op.output.known != base.known:
        return False
    kind = kinds.get(float(np.reshape(exponent, -1)[0]))
    if kind is None:
        return False
    held = t.stored(base)
    if kind == "IDENTITY":
        t.put(op.output, held.tensor, held.order)
        return True
    end = t.end(op, False)
    float_finish(t, end, kind, [held.tensor], held.tensor.shape, held.order)
    return True


@translates("Min", "Max", "Sum", "Mean")
def variadic(op: Op, t: Translation) -> None:
    """One after the other."""
    kind = {"Min": "MINIMUM", "Max": "MAXIMUM"}.get(op.kind, "ADD")
    items = [op.input(i) for i in range(len(op.inputs))]
    rank = op.output.rank
    order = order_of(t, items, rank)
    options: dict[str, Any] = {"fused_activation_function": "NONE"} if kind == "ADD" else {}
    tensors = [operand(t, item, rank, order) for item in items]
    dtype = op.output.dtype
    total = tensors[0]
    for one in tensors[1:]:
        total = t.emit(kind, [total, one], common(total.shape, one.shape), dtype, **options)
    if op.kind == "Mean" and len(items) > 1:
        count = t.constant(np.float32(1 / len(items)), "count")
        total = t.emit("MUL", [total, count], total.shape, dtype, fused_activation_function="NONE")
    settle_float(t, t.end(op, False), total, order)


@translates("Where")
def where(op: Op, t: Translation) -> None:
    """Both parts with the scale of the result, or float."""
    condition, one, other = (op.input(i) for i in range(3))
    rank = op.output.rank
    order = order_of(t, (one, other, condition), rank)
    shape = permuted(op.output.known, order)
    end = t.end(op, False)
    first = operand(t, condition, rank, order)
    if end.target is not None:
        quantise_constants(t, (one, other))
        if eight_bit(t, (one, other)):
            wanted = end.target.quantization
            parts = [t.requantised(operand8(t, item, rank, order), wanted) for item in (one, other)]
            t.finish(end, "SELECT_V2", [first, *parts], shape, order)
            return
    tensors = [first, *(operand(t, item, rank, order) for item in (one, other))]
    float_finish(t, end, "SELECT_V2", tensors, shape, order, op.output.dtype)


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


def _erf(x: Any) -> Any:
    return np.asarray([math.erf(float(v)) for v in x.reshape(-1)], np.float64).reshape(x.shape).astype(np.float32)


def _gelu(x: Any) -> Any:
    return np.float32(0.5) * x * (1 + _erf(x * np.float32(math.sqrt(0.5))))


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
    "Sin": ("SIN", np.sin),
    "Cos": ("COS", np.cos),
    "Floor": ("FLOOR", np.floor),
    "Ceil": ("CEIL", np.ceil),
    "Round": ("ROUND", np.rint),
    "Tanh": ("TANH", np.tanh),
    "Sigmoid": ("LOGISTIC", _sigmoid),
    "HardSwish": ("HARD_SWISH", lambda x: x * np.clip(x / np.float32(6) + np.float32(0.5), 0, 1)),
    "Erf": ("ONNX_ERF", _erf),
    "Sign": ("SIGN", np.sign),
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
        t.real[op.output] = Held(t.lookup(held.tensor, table, scale, op.output.name), held.order)
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
        if shape[0] == 1:
            tensors[1] = t.reshape(tensors[1], shape[1:])
    float_finish(t, t.end(op, False), "PRELU", tensors, permuted(data.known, order), order)


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
        t.home(op.input(0))[op.output] = held
        return
    unary(op, t, limit if dtype == "float32" else None, make)


def scaled(t: Translation, x: Tensor, factor: float) -> Tensor:
    """Return x * factor."""
    by = t.constant(np.float32(factor), "factor")
    return t.emit("MUL", [x, by], x.shape, fused_activation_function="NONE")


def moved(t: Translation, x: Tensor, offset: float) -> Tensor:
    """Return x + offset."""
    by = t.constant(np.float32(offset), "offset")
    return t.emit("ADD", [x, by], x.shape, fused_activation_function="NONE")


def arithmetic(t: Translation, kind: str, one: Tensor, other: Tensor) -> Tensor:
    """Return a float32 operation on two tensors."""
    return t.emit(kind, [one, other], common(one.shape, other.shape), fused_activation_function="NONE")


@translates("Elu", "Celu", "Selu")
def elu(op: Op, t: Translation) -> None:
    """TFLite's ELU has the factor 1: others are made of it."""
    alpha = float(op.get("alpha", {"Elu": 1.0, "Celu": 1.0, "Selu": 1.67326319217681884765625}[op.kind]))
    gamma = float(op.get("gamma", 1.05070102214813232421875)) if op.kind == "Selu" else 1.0
    inner = alpha if op.kind == "Celu" else 1.0

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
        total = t.emit("ADD", tensors, tensors[0].shape, fused_activation_function="NONE")
        float_finish(t, t.end(op, False), "GELU", [total], total.shape, order, approximate=approximate)
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
    unary(
        op,
        t,
        _gelu_tanh if approximate else _gelu,
        lambda x: t.emit("GELU", [x], x.shape, approximate=approximate),
    )


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


@translates("Cast")
def cast(op: Op, t: Translation) -> None:
    """Between dtypes of numpy."""
    source, target = op.input(0).dtype, op.output.dtype
    held = t.stored(op.input(0))
    if source == target:
        t.put(op.output, held.tensor, held.order)
        return
    t.put(
        op.output,
        t.emit("CAST", [held.tensor], held.tensor.shape, target),
        held.order,
    )


@translates("Mod")
def modulo(op: Op, t: Translation) -> None:
    """The sign is that of the divisor."""
    if op.get("fmod", 0):
        raise Unsupported("Mod with fmod=1", "fmod=0")
    one, other = op.input(0), op.input(1)
    rank = op.output.rank
    order = order_of(t, (one, other), rank)
    tensors = [operand(t, item, rank, order) for item in (one, other)]
    shape = permuted(op.output.known, order)
    t.put(op.output, t.emit("FLOOR_MOD", tensors, shape, op.output.dtype), order)
