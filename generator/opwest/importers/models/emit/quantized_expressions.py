# SPDX-License-Identifier: Apache-2.0
"""Functions of quantised values as C expressions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from opwest.importers.models.emit.expressions import Expression, clamped, expression_of, plus, scale_twice
from opwest.importers.models.emit.text import number
from opwest.importers.models.ir.elements import (
    AddShifted,
    Clamped,
    HighProduct,
    Interpolated,
    Lookup,
    Prelu,
    Product,
    Quotient,
    Rescaled,
    Root,
    Sigmoid,
    SquaredDifference,
)
from opwest.importers.models.operators.fixed_point import RANGES
from opwest.importers.models.operators.tables import sigmoid_table


def wrapped_sum(value: str, offset: int) -> str:
    """Return an int32 value plus a constant, without overflow."""
    return f"(int32_t)((uint32_t){value} + (uint32_t){_literal(offset)})" if offset else value


def _literal(value: int) -> str:
    return f"({number(value, 'int32')})" if value < 0 else number(value, "int32")


@expression_of.register
def _(function: AddShifted, dtypes: Sequence[str], result: str) -> Expression:
    numbers = function.numbers
    parts, used = [], {"clamp"}
    for place, places in enumerate(numbers.places):
        if places:
            # scale_twice() by 1 - 2**-31 does not change an int16 value, and rounds the shift.
            parts.append(f"scale_twice({{{place}}}, INT32_MAX, {places})")
            used.add("scale_twice")
        else:
            parts.append(f"{{{place}}}")
    sign, base = ("-", "subtract") if function.subtract else ("+", "add")
    value = clamped(f"{parts[0]} {sign} {parts[1]}", numbers.low, numbers.high, result)
    return Expression(base, value, (), tuple(sorted(used)))


@expression_of.register
def _(function: Product, dtypes: Sequence[str], result: str) -> Expression:
    numbers = function.numbers
    one, other = (f"({{{place}}}{plus(-zero)})" for place, zero in enumerate(numbers.zeros))
    text, helper = scale_twice(f"{one} * {other}", numbers.multiplier)
    value = clamped(wrapped_sum(text, numbers.zero), numbers.low, numbers.high, result)
    return Expression("multiply", value, (), (helper, "clamp"))


@expression_of.register
def _(function: HighProduct, dtypes: Sequence[str], result: str) -> Expression:
    numbers = function.numbers
    value = f"round_shift(({{0}} * {{1}} + (1 << 14)) >> 15, 8){plus(numbers.zero)}"
    return Expression("multiply", clamped(value, numbers.low, numbers.high, result), (), ("round_shift", "clamp"))


@expression_of.register
def _(function: Quotient, dtypes: Sequence[str], result: str) -> Expression:
    numbers = function.numbers
    one, other = (f"{{{place}}}{plus(-zero)}" for place, zero in enumerate(numbers.zeros))
    call = f"divide_quantized({one}, {other}, {numbers.multiplier.fixed}, {numbers.multiplier.shift})"
    value = clamped(f"{call}{plus(numbers.zero)}", numbers.low, numbers.high, result)
    return Expression("divide", value, (), ("divide_quantized", "clamp"))


@expression_of.register
def _(function: SquaredDifference, dtypes: Sequence[str], result: str) -> Expression:
    numbers = function.numbers
    parts, used = [], {"clamp"}
    for place, (zero, by) in enumerate(zip(numbers.zeros, numbers.multipliers, strict=True)):
        text, helper = scale_twice(f"({{{place}}}{plus(-zero)}) * {1 << numbers.left_shift}", by)
        parts.append(text)
        used.add(helper)
    text, helper = scale_twice("difference * difference", numbers.result)
    used.add(helper)
    lines = (f"const int32_t difference = {parts[0]} -", f"\t{parts[1]};")
    value = clamped(wrapped_sum(text, numbers.zero), numbers.low, numbers.high, result)
    return Expression("squared_difference", value, lines, tuple(sorted(used)))


@expression_of.register
def _(function: Prelu, dtypes: Sequence[str], result: str) -> Expression:
    numbers = function.numbers
    above, helper = scale_twice("x", numbers.positive)
    below, other = scale_twice(f"x * ({{1}}{plus(-numbers.zeros[1])})", numbers.negative)
    lines = (
        f"const int32_t x = {{0}}{plus(-numbers.zeros[0])};",
        f"const int32_t scaled = x >= 0 ? {above} :",
        f"\t{below};",
    )
    value = clamped(wrapped_sum("scaled", numbers.zero), numbers.low, numbers.high, result)
    return Expression("prelu", value, lines, tuple(sorted({helper, other, "clamp"})))


@expression_of.register
def _(function: Lookup, dtypes: Sequence[str], result: str) -> Expression:
    index = f"{{0}}{plus(-RANGES[dtypes[0]][0])}"
    return Expression(function.kind.lower(), f"table[{index}]", arrays=(("table", np.asarray(function.table)),))


@expression_of.register
def _(function: Interpolated, dtypes: Sequence[str], result: str) -> Expression:
    arrays = (("table", np.asarray(function.table)),)
    return Expression(function.kind.lower(), "interpolate({0}, table)", (), ("interpolate",), (), arrays)


@expression_of.register
def _(function: Sigmoid, dtypes: Sequence[str], result: str) -> Expression:
    helper = f"{function.kind.lower()}_16"
    call = f"{helper}({{0}}, table, {function.numbers.multiplier}, {function.numbers.places})"
    return Expression(function.kind.lower(), call, (), (helper,), (), (("table", sigmoid_table()),))


@expression_of.register
def _(function: Root, dtypes: Sequence[str], result: str) -> Expression:
    source, target = (number(one, "float32") for one in (function.source, function.target))
    root = f"sqrtf({source} * (float)({{0}} > 0 ? {{0}} : 0)) / {target}"
    return Expression("sqrt", f"(int16_t)clampf({root}, 0.0f, 32767.0f)", (), ("clampf",), ("math.h",))


@expression_of.register
def _(function: Clamped, dtypes: Sequence[str], result: str) -> Expression:
    return Expression("clamp", clamped("{0}", function.low, function.high, result), (), ("clamp",))


@expression_of.register
def _(function: Rescaled, dtypes: Sequence[str], result: str) -> Expression:
    numbers = function.numbers
    lines = [f"const int32_t difference = {wrapped_sum('{0}', -numbers.source)};"]
    name = "difference"
    if numbers.magnitude:
        name = "magnitude"
        lines.append("const int32_t magnitude = difference < 0 ? -difference : difference;")
    scaled, helper = scale_twice(name, numbers.positive)
    used = {helper}
    if numbers.negative != numbers.positive or numbers.sign < 0:
        below, helper = scale_twice(name, numbers.negative)
        used.add(helper)
        lines.append(f"const int32_t scaled = {name} >= 0 ? {scaled} :")
        lines.append(f"\t{'-' if numbers.sign < 0 else ''}{below};")
        scaled = "scaled"
    value = wrapped_sum(scaled, numbers.zero)
    if (numbers.low, numbers.high) != RANGES["int32"]:
        value = clamped(value, numbers.low, numbers.high, result)
        used.add("clamp")
    return Expression(function.kind.lower(), value, tuple(lines), tuple(sorted(used)))
