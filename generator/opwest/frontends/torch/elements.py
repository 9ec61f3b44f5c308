# SPDX-License-Identifier: Apache-2.0
"""Operators of two and more operands, element by element, with torch's rule of dtypes."""

from __future__ import annotations

import math
from collections.abc import Sequence

from opwest.compiler.graph.types import Unsupported
from opwest.frontends.torch.build import FLOATS, Builder, Context, Operand, Value, broadcast, translates

_RANKS = {"bool": 0, "uint8": 1, "int8": 1, "int16": 2, "int32": 3, "int64": 4, "float16": 5, "bfloat16": 5}
_RANKS |= {"float32": 6, "float64": 7}


def common_dtype(operands: Sequence[Operand]) -> str:
    """Return the dtype of an operation: tensors before tensors of no dimension before numbers, floats before integers.

    Source: torch.result_type.
    """
    levels: list[list[str]] = [[], [], []]
    for operand in operands:
        if isinstance(operand, Value):
            levels[0 if operand.rank else 1].append(operand.dtype)
        else:
            levels[2].append(
                "bool" if isinstance(operand, bool) else "int64" if isinstance(operand, int) else "float32"
            )
    made = ""
    for dtypes in filter(None, levels):
        best = max(dtypes, key=lambda dtype: _RANKS.get(dtype, 9))
        if {"uint8", "int8"} <= set(dtypes) and _RANKS.get(best, 9) == 1:
            best = "int16"
        if not made or _class_of(best) > _class_of(made):
            made = best
    return made


def _class_of(dtype: str) -> int:
    return 2 if dtype in FLOATS else 0 if dtype == "bool" else 1


@translates("add", "sub", "subtract")
def sums(x: Context, b: Builder) -> Value:
    """self + alpha * other."""
    dtype = x.meta.dtype
    one, other = b.operand(x.operand("self"), dtype), b.operand(x.operand("other"), dtype)
    if (alpha := x.number("alpha", 1)) != 1:
        other = b.binary("Mul", other, b.operand(alpha, dtype))
    if dtype == "bool":
        return b.binary("Or", one, other)
    return b.binary("Add" if x.call.operator == "aten.add" else "Sub", one, other)


@translates("rsub")
def reversed_difference(x: Context, b: Builder) -> Value:
    """Other - alpha * self."""
    dtype = x.meta.dtype
    one, other = b.operand(x.operand("self"), dtype), b.operand(x.operand("other"), dtype)
    if (alpha := x.number("alpha", 1)) != 1:
        one = b.binary("Mul", one, b.operand(alpha, dtype))
    return b.binary("Sub", other, one)


@translates("mul", "multiply", "maximum", "minimum", "max.other", "min.other")
def products(x: Context, b: Builder) -> Value:
    """A product, or one of the operands."""
    dtype = x.meta.dtype
    kind = {"mul": "Mul", "mult": "Mul", "maxi": "Max", "max": "Max", "mini": "Min", "min": "Min"}
    one, other = b.operand(x.operand("self"), dtype), b.operand(x.operand("other"), dtype)
    name = x.call.operator.removeprefix("aten.")[:4]
    if dtype == "bool":
        return b.binary("And" if kind[name] in ("Mul", "Min") else "Or", one, other)
    return b.binary(kind[name], one, other)


@translates("div", "divide", "true_divide", "floor_divide")
def quotients(x: Context, b: Builder) -> Value:
    """A quotient, also rounded to an integer."""
    dtype = x.meta.dtype
    one, other = b.operand(x.operand("self"), dtype), b.operand(x.operand("other"), dtype)
    mode = "floor" if x.call.operator == "aten.floor_divide" else x.text("rounding_mode", "")
    if dtype in FLOATS:
        ratio = b.binary("Div", one, other)
        if mode == "trunc":
            return b.binary("Mul", b.unary("Sign", ratio), b.unary("Floor", b.unary("Abs", ratio)))
        return b.unary("Floor", ratio) if mode == "floor" else ratio
    if mode == "floor":
        rest = b.binary("Mod", one, other)
        one = b.binary("Sub", one, rest)
    return b.binary("Div", one, other)


@translates("remainder", "fmod")
def rests(x: Context, b: Builder) -> Value:
    """The rest with the sign of the divisor (remainder), or of the dividend (fmod)."""
    dtype = x.meta.dtype
    one, other = b.operand(x.operand("self"), dtype), b.operand(x.operand("other"), dtype)
    if x.call.operator == "aten.remainder":
        return b.binary("Mod", one, other)
    if dtype not in FLOATS:
        return b.op("Mod", [one, other], broadcast(one.shape, other.shape), dtype, fmod=1)
    ratio = b.binary("Div", one, other)
    whole = b.binary("Mul", b.unary("Sign", ratio), b.unary("Floor", b.unary("Abs", ratio)))
    return b.binary("Sub", one, b.binary("Mul", whole, other))


@translates("pow", "float_power")
def powers(x: Context, b: Builder) -> Value:
    """A power; simple exponents are products and roots."""
    dtype = x.meta.dtype
    exponent = x.operand("exponent")
    base = b.operand(x.operand("self"), dtype)
    if isinstance(exponent, Value):
        return b.binary("Pow", base, b.cast(exponent, dtype))
    if exponent == 2:
        return b.binary("Mul", base, base)
    if exponent == 3:
        return b.binary("Mul", b.binary("Mul", base, base), base)
    if exponent == -1 and dtype in FLOATS:
        return b.binary("Div", 1.0, base)
    if exponent == -2 and dtype in FLOATS:
        return b.binary("Div", 1.0, b.binary("Mul", base, base))
    return b.binary("Pow", base, b.operand(exponent, dtype))


@translates("eq", "ne", "lt", "le", "gt", "ge", "less", "less_equal", "greater", "greater_equal", "not_equal")
def comparisons(x: Context, b: Builder) -> Value:
    """Comparisons in the common dtype."""
    one, other = x.operand("self"), x.operand("other")
    dtype = common_dtype((one, other))
    kinds = {"lt": "Less", "le": "LessOrEqual", "gt": "Greater", "ge": "GreaterOrEqual", "less": "Less"}
    kinds |= {"less_equal": "LessOrEqual", "greater": "Greater", "greater_equal": "GreaterOrEqual"}
    name = x.call.operator.removeprefix("aten.")
    if dtype == "bool" and name not in ("eq", "ne", "not_equal"):
        dtype = "int32"
    operands = b.operand(one, dtype), b.operand(other, dtype)
    if name in kinds:
        return b.binary(kinds[name], *operands)
    equal = b.binary("Equal", *operands)
    return equal if name == "eq" else b.unary("Not", equal)


_BITS = ("and", "or", "xor")


@translates(*(f"{start}_{name}" for name in _BITS for start in ("logical", "bitwise")), *(f"__{n}__" for n in _BITS))
def logical(x: Context, b: Builder) -> Value:
    """Logical operations; those of bits for bools only."""
    name = next(name for name in _BITS[::-1] if name in x.call.operator)
    is_logical = "logical" in x.call.operator
    if not is_logical and x.meta.dtype != "bool":
        raise Unsupported(f"bits of {x.meta.dtype}", "bool")
    one, other = (truth(b, b.operand(x.operand(side), common_dtype([x.operand(side)]))) for side in ("self", "other"))
    return b.binary(name.capitalize(), one, other)


def truth(b: Builder, value: Value) -> Value:
    """Return whether elements are not 0."""
    if value.dtype == "bool":
        return value
    return b.unary("Not", b.binary("Equal", value, 0))


@translates("logical_not", "bitwise_not")
def negated(x: Context, b: Builder) -> Value:
    """Not."""
    if x.call.operator == "aten.bitwise_not" and x.meta.dtype != "bool":
        raise Unsupported(f"bits of {x.meta.dtype}", "bool")
    return b.unary("Not", truth(b, x.tensor("self")))


@translates("where")
def where(x: Context, b: Builder) -> Value:
    """One of two operands for each element."""
    condition = truth(b, x.tensor("condition"))
    one, other = (b.operand(x.operand(name), x.meta.dtype) for name in ("self", "other"))
    return b.op("Where", [condition, one, other], broadcast(condition.shape, one.shape, other.shape), x.meta.dtype)


@translates("masked_fill")
def masked(x: Context, b: Builder) -> Value:
    """A number where the mask is true."""
    data, mask = x.tensor("self"), truth(b, x.tensor("mask"))
    value = b.operand(x.operand("value"), data.dtype)
    return b.op("Where", [mask, value, data], broadcast(mask.shape, data.shape), data.dtype)


@translates("clamp", "clip", "clamp_min", "clamp_max", "hardtanh")
def clamp(x: Context, b: Builder) -> Value:
    """Limits that are numbers or tensors; a lower limit above the upper one has no effect, as in torch."""
    is_hardtanh = x.call.operator == "aten.hardtanh"
    names = ("min_val", "max_val") if is_hardtanh else ("min", "max")
    defaults = (-1.0, 1.0) if is_hardtanh else (None, None)
    given = [x.get(name, default) for name, default in zip(names, defaults, strict=True)]
    return clamped(b, b.cast(x.tensor("self"), x.meta.dtype), given[0], given[1])


def clamped(b: Builder, data: Value, low: Operand | None, high: Operand | None) -> Value:
    """Return data within limits."""
    limits = [None if limit is None else b.operand(limit, data.dtype) for limit in (low, high)]
    if all(limit is None or (limit.content is not None and limit.size == 1) for limit in limits):
        if None not in limits and limits[0].content.item() > limits[1].content.item():  # type: ignore[union-attr]
            limits[0] = limits[1]
        scalars = [None if limit is None else b.reshape(limit, ()) for limit in limits]
        return b.op("Clip", [data, *scalars], data.shape)
    for kind, limit in zip(("Max", "Min"), limits, strict=True):
        if limit is not None:
            data = b.binary(kind, data, limit)
    return data


@translates("addcmul", "addcdiv")
def with_product(x: Context, b: Builder) -> Value:
    """self + value * tensor1 * tensor2, or the quotient."""
    dtype = x.meta.dtype
    one, other = (b.cast(x.tensor(name), dtype) for name in ("tensor1", "tensor2"))
    made = b.binary("Mul" if x.call.operator == "aten.addcmul" else "Div", one, other)
    if (factor := x.number("value", 1)) != 1:
        made = b.binary("Mul", made, factor)
    return b.binary("Add", b.cast(x.tensor("self"), dtype), made)


@translates("lerp")
def between(x: Context, b: Builder) -> Value:
    """self + weight * (end - self)."""
    start, end = x.tensor("self"), x.tensor("end")
    return b.binary(
        "Add", start, b.binary("Mul", b.binary("Sub", end, start), b.operand(x.operand("weight"), start.dtype))
    )


@translates("logaddexp")
def log_of_sum(x: Context, b: Builder) -> Value:
    """log(exp(self) + exp(other)) without overflow."""
    one, other = x.tensor("self"), x.tensor("other")
    apart = b.unary("Abs", b.binary("Sub", one, other))
    return b.binary(
        "Add", b.binary("Max", one, other), b.unary("Log", b.binary("Add", b.unary("Exp", b.unary("Neg", apart)), 1.0))
    )


@translates("atan2")
def angle(x: Context, b: Builder) -> Value:
    """The angle of a point: that of the quotient, in the half of the first coordinate."""
    y, point = x.tensor("self"), x.tensor("other")
    shape = broadcast(y.shape, point.shape)

    def either(condition: Value, one: Value | float, other: Value | float) -> Value:
        parts = [b.operand(part, y.dtype) for part in (one, other)]
        return b.op("Where", [condition, *parts], broadcast(condition.shape, *(p.shape for p in parts)), y.dtype)

    above, below = b.binary("Greater", y, 0.0), b.binary("Less", y, 0.0)
    quotient = b.unary("Atan", b.binary("Div", y, point))
    turned = b.binary("Add", quotient, either(below, -math.pi, math.pi))
    on_axis = either(above, math.pi / 2, either(below, -math.pi / 2, 0.0))
    left = either(b.binary("Less", point, 0.0), turned, on_axis)
    return b.expand(either(b.binary("Greater", point, 0.0), quotient, left), shape)


@translates("cdist", "_cdist_forward", "_euclidean_dist")
def distances(x: Context, b: Builder) -> Value:
    """The distances of all pairs of rows."""
    one, other = x.tensor("x1"), x.tensor("x2")
    if x.call.operator != "aten._euclidean_dist" and x.number("p", 2) not in (1, 2):
        raise Unsupported(f"p={x.number('p')}", "1 or 2")
    first = b.reshape(one, (*one.shape[:-1], 1, one.shape[-1]))
    second = b.reshape(other, (*other.shape[:-2], 1, *other.shape[-2:]))
    apart = b.binary("Sub", first, second)
    kind = "ReduceL1" if x.call.operator != "aten._euclidean_dist" and x.number("p", 2) == 1 else "ReduceL2"
    return b.op(kind, [apart, b.ints([apart.rank - 1])], x.meta.shape, keepdims=0)


@translates("hypot")
def of_two(x: Context, b: Builder) -> Value:
    """The root of the sum of squares."""
    one, other = x.tensor("self"), x.tensor("other")
    return b.unary("Sqrt", b.binary("Add", b.binary("Mul", one, one), b.binary("Mul", other, other)))
