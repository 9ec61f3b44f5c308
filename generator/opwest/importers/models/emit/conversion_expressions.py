# SPDX-License-Identifier: Apache-2.0
"""Conversions, comparisons and selections as C expressions."""

from __future__ import annotations

import math
from collections.abc import Sequence

from opwest.importers.models.emit.expressions import Expression, expression_of, plus, scale_twice
from opwest.importers.models.emit.function import c_type
from opwest.importers.models.emit.text import number
from opwest.importers.models.ir.elements import (
    Cast,
    Compared,
    Dequantised,
    DequantisedEach,
    Logic,
    Quantised,
    QuantisedEach,
    Selected,
)
from opwest.importers.models.operators.comparison import COMPARISONS, LEFT_SHIFT


@expression_of.register
def _(function: Quantised, dtypes: Sequence[str], result: str) -> Expression:
    numbers = function.numbers
    low, high = (f"{limit - numbers.zero}.0f" for limit in (numbers.low, numbers.high))
    fraction, exponent = math.frexp(numbers.scale)
    if fraction == 0.5 and abs(exponent) < 100:
        scaled = f"{{0}} * {number(1 / numbers.scale, 'float32')}"
    else:
        scaled = f"{{0}} / {number(numbers.scale, 'float32')}"
    value = f"({c_type(result)})(round_quotient({scaled}, {low}, {high}){plus(numbers.zero)})"
    return Expression("quantize", value, (), ("round_quotient",))


@expression_of.register
def _(function: QuantisedEach, dtypes: Sequence[str], result: str) -> Expression:
    limits = ", ".join(f"(float)({limit} - {{2}})" for limit in (function.low, function.high))
    value = f"({c_type(result)})(round_quotient({{0}} / {{1}}, {limits}) + {{2}})"
    return Expression("quantize", value, (), ("round_quotient",))


@expression_of.register
def _(function: Dequantised, dtypes: Sequence[str], result: str) -> Expression:
    return Expression("dequantize", f"{number(function.scale, 'float32')} * (float)({{0}}{plus(-function.zero)})")


@expression_of.register
def _(function: DequantisedEach, dtypes: Sequence[str], result: str) -> Expression:
    return Expression("dequantize", "{1} * (float)({0} - {2})")


@expression_of.register
def _(function: Cast, dtypes: Sequence[str], result: str) -> Expression:
    source, kind = dtypes[0], c_type(result)
    base = f"cast_{source}_{result}"
    if result == "bool":
        return Expression(base, "{0} != 0")
    if not source.startswith("float") or result.startswith("float"):
        return Expression(base, f"({kind}){{0}}")
    bits = int(result.lstrip("uint"))
    suffix = "f" if source == "float32" else ""
    end = f"0x1p{bits if result.startswith('u') else bits - 1}{suffix}"
    start, least = ("0", "0") if result.startswith("u") else (f"-{end}", f"{result.upper()}_MIN")
    greatest = f"{result.upper()}_MAX"
    limited = f"!({{0}} < {end}) ? {greatest} : {{0}} < {start} ? {least}"
    return Expression(base, f"({kind})({limited} : (int){{0}})" if bits < 32 else f"{limited} : ({kind}){{0}}")


_BASES = {operator: kind.lower() for kind, operator in COMPARISONS.items()}


@expression_of.register
def _(function: Compared, dtypes: Sequence[str], result: str) -> Expression:
    base = _BASES[function.operator]
    if function.numbers is None:
        return Expression(base, f"{{0}} {function.operator} {{1}}")
    parts, used = [], set()
    for place, (zero, by) in enumerate(zip(function.numbers.zeros, function.numbers.multipliers, strict=True)):
        text, helper = scale_twice(f"({{{place}}}{plus(-zero)}) * {1 << LEFT_SHIFT}", by)
        parts.append(text)
        used.add(helper)
    return Expression(base, f" {function.operator} ".join(parts), (), tuple(sorted(used)))


@expression_of.register
def _(function: Logic, dtypes: Sequence[str], result: str) -> Expression:
    values = {"LOGICAL_AND": "{0} && {1}", "LOGICAL_OR": "{0} || {1}", "LOGICAL_NOT": "!{0}"}
    return Expression(function.kind.lower(), values[function.kind])


@expression_of.register
def _(function: Selected, dtypes: Sequence[str], result: str) -> Expression:
    return Expression("select", "{0} ? {1} : {2}")
