# SPDX-License-Identifier: Apache-2.0
"""Operators of two and more operands, element by element, with numpy's rule of broadcasting."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from opwest.compiler.graph.spec import broadcast
from opwest.compiler.graph.types import Quantization, Tensor, Unsupported
from opwest.frontends.onnx.translation import (
    Order,
    StoredTensor,
    Translation,
    as_signed,
    identity,
    permuted,
    translates,
)
from opwest.frontends.onnx.values import Item, Op


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
    return t.transpose(t.with_rank(tensor, rank), order)


def operand(t: Translation, item: Item, rank: int, order: Order) -> Tensor:
    """Return an operand in an order, in the dtype of the file."""
    if item.rank == rank and t.values_of(item) is None:
        return t.tensor(item, order)
    return raised(t, t.tensor(item), rank, order)


def operands(t: Translation, items: Iterable[Item], rank: int, order: Order) -> list[Tensor]:
    """Return operands in an order, in the dtype of the file, whose common shape has `rank` dimensions."""
    return of_rank(t, [operand(t, item, rank, order) for item in items], rank)


def of_rank(t: Translation, tensors: list[Tensor], rank: int) -> list[Tensor]:
    """Return operands of which one has `rank` dimensions: else that was a constant of one element, now a scalar."""
    if any(len(tensor.shape) == rank for tensor in tensors):
        return tensors
    place = next(place for place, tensor in enumerate(tensors) if tensor.is_constant and tensor.size == 1)
    return [t.reshape(tensor, (1,) * rank) if i == place else tensor for i, tensor in enumerate(tensors)]


def operand8(t: Translation, item: Item, rank: int, order: Order) -> Tensor:
    """Return an operand that is known as int8."""
    held = t.real[item]
    if item.rank == rank:
        return t.ordered(held, order)
    return raised(t, t.ordered(held, identity(item.rank)), rank, order)


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
    "Xor": "NOT_EQUAL",
    "Mod": "FLOOR_MOD",
}
_FUSED = frozenset(("ADD", "SUB", "MUL", "DIV"))
_INTEGER = frozenset(("ADD", "SUB", "MUL"))
"""Operators with an int8 form whose result has a scale of its own."""


@translates(*_PLAIN)
def binary(op: Op, t: Translation) -> None:
    """Quantised where both operands and the result are; the sign of Mod is that of the divisor."""
    kind = _PLAIN[op.kind]
    if kind == "FLOOR_MOD" and op.get("fmod", 0):
        raise Unsupported("Mod with fmod=1", "fmod=0")
    item, other = op.input(0), op.input(1)
    if kind == "POW" and item.dtype == "float32" and _power(op, t, item, t.values_of(other)):
        return
    if item.dtype != other.dtype:
        raise Unsupported(f"operands of dtype {item.dtype} and {other.dtype}", "equal dtypes")
    rank = op.output.rank
    order = order_of(t, (item, other), rank)
    shape = permuted(op.output.known, order)
    end = t.end(op, kind in _FUSED and item.dtype == "float32")
    has_integers = kind in _INTEGER and end.quantization is not None and not t.rules.float_requantization
    if has_integers and quantise_constants(t, (item, other)):
        tensors = of_rank(t, [operand8(t, side, rank, order) for side in (item, other)], rank)
        t.finish(end, kind, tensors, shape, order, fused_activation_function=end.activation)
        return
    options: dict[str, Any] = {"fused_activation_function": end.activation} if kind in _FUSED else {}
    tensors = operands(t, (item, other), rank, order)
    result = t.emit(kind, tensors, shape, op.output.dtype, name=end.item.name, **options)
    t.settle(end, result, order)


def quantise_constants(t: Translation, items: Sequence[Item]) -> bool:
    """Let constants of DequantizeLinear with one scale be int8 tensors; return whether all items are known as int8."""
    for item in items:
        fixed = t.fixed.get(item)
        if (
            item in t.real
            or fixed is None
            or fixed.axis is not None
            or str(fixed.content.dtype) not in ("int8", "uint8")
        ):
            continue
        content, zeros = as_signed(fixed.content, fixed.zeros)
        quantization = Quantization((float(fixed.scales[0]),), (int(zeros[0]),))
        t.real[item] = StoredTensor(t.constant(content, item.name, quantization), identity(item.rank))
    return all(item in t.real for item in items)


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
    result = t.emit(kind, [held.tensor], held.tensor.shape, name=op.output.name)
    t.settle(t.end(op, False), result, held.order)
    return True


@translates("Min", "Max", "Sum", "Mean")
def variadic(op: Op, t: Translation) -> None:
    """One after the other."""
    kind = {"Min": "MINIMUM", "Max": "MAXIMUM"}.get(op.kind, "ADD")
    items = [op.input(i) for i in range(len(op.inputs))]
    rank = op.output.rank
    order = order_of(t, items, rank)
    tensors = operands(t, items, rank, order)
    dtype = op.output.dtype
    total = tensors[0]
    for tensor in tensors[1:]:
        total = t.emit(kind, [total, tensor], broadcast([total.shape, tensor.shape]), dtype)
    if op.kind == "Mean" and len(items) > 1:
        count = t.constant(np.float32(1 / len(items)), "count")
        total = t.emit("MUL", [total, count], total.shape, dtype)
    t.settle(t.end(op, False), total, order)


@translates("Where")
def where(op: Op, t: Translation) -> None:
    """Both parts with the scale of the result, or float."""
    condition, item, other = (op.input(i) for i in range(3))
    rank = op.output.rank
    order = order_of(t, (item, other, condition), rank)
    shape = permuted(op.output.known, order)
    end = t.end(op, False)
    if end.quantization is not None and quantise_constants(t, (item, other)):
        parts = [t.requantised(operand8(t, side, rank, order), end.quantization) for side in (item, other)]
        chosen = of_rank(t, [operand(t, condition, rank, order), *parts], rank)
        t.finish(end, "SELECT_V2", chosen, shape, order)
        return
    tensors = operands(t, (condition, item, other), rank, order)
    t.settle(end, t.emit("SELECT_V2", tensors, shape, op.output.dtype, name=end.item.name), order)


def scaled(t: Translation, x: Tensor, factor: float) -> Tensor:
    """Return x * factor."""
    return arithmetic(t, "MUL", x, t.constant(np.float32(factor), "factor"))


def moved(t: Translation, x: Tensor, offset: float) -> Tensor:
    """Return x + offset."""
    return arithmetic(t, "ADD", x, t.constant(np.float32(offset), "offset"))


def arithmetic(t: Translation, kind: str, *tensors: Tensor) -> Tensor:
    """Return a float32 operation on the elements of tensors."""
    return t.emit(kind, tensors, broadcast(tensor.shape for tensor in tensors))


@translates("Cast", "CastLike")
def cast(op: Op, t: Translation) -> None:
    """Between dtypes of numpy."""
    source, target = op.input(0).dtype, op.output.dtype
    held = t.stored(op.input(0))
    readers = t.readers.get(op.output, [])
    # Exporters write IsInf and IsNaN of float64, which is the same for float32.
    is_tested = all(reader.kind in ("IsInf", "IsNaN") for reader in readers) and op.output not in t.outputs
    if source == target or ((source, target) == ("float32", "float64") and is_tested):
        t.put(op.output, held.tensor, held.order)
        return
    t.put(op.output, t.emit("CAST", [held.tensor], held.tensor.shape, target), held.order)
