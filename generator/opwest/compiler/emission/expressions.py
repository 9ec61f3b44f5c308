# SPDX-License-Identifier: Apache-2.0
"""Functions of elements as C expressions."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.emission.function import c_type, number
from opwest.compiler.ir.elements import (
    AddQuantised,
    AddShifted,
    Arithmetic,
    Cast,
    Clamped,
    Compared,
    Dequantised,
    DequantisedEach,
    Float,
    HighProduct,
    Interpolated,
    Logic,
    Lookup,
    Plain,
    Prelu,
    Product,
    Quantised,
    QuantisedEach,
    Quotient,
    Rescaled,
    Root,
    Selected,
    Sigmoid,
    SquaredDifference,
)
from opwest.compiler.semantics.arithmetic import HALF
from opwest.compiler.semantics.elementwise import COMPARISONS, LEFT_SHIFT
from opwest.compiler.semantics.fixed_point import RANGES, Multiplier
from opwest.compiler.semantics.float_functions import FLOAT_FUNCTIONS
from opwest.compiler.semantics.tables import sigmoid_table


@dataclass(frozen=True, eq=False)
class Expression:
    """C for one element; {0}, {1} are the operands."""

    base: str
    value: str
    lines: tuple[str, ...] = ()
    """Declarations before the value."""
    helpers: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    arrays: tuple[tuple[str, Any], ...] = ()
    """Constant parameters."""


@functools.singledispatch
def expression_of(function: Any, dtypes: Sequence[str], result: str) -> Expression:
    """Return the expression of an object of `ir/elements.py`."""
    raise AssertionError(type(function).__name__)


def scale_twice(value: str, by: Multiplier, bound: int | None = None, is_positive: bool = False) -> tuple[str, str]:
    """Return a multiplication that rounds twice, and its helper.

    `bound`: the greatest magnitude of the value; None: that of int32. `is_positive`: results of negative values are
    clamped to the same value later.
    """
    helper = "scale_twice_left" if by.shift > 0 else "scale_twice"
    if bound is not None and by.shift < 0 and scaled_bound(bound, by, -1) + (1 << (-by.shift - 1)) < 1 << 31:
        helper = "scale_twice_positive" if is_positive else "scale_twice_fast"
    return f"{helper}({value}, {by.fixed}, {-by.shift})", helper


def scaled_bound(bound: int, by: Multiplier, places: int | None = None) -> int:
    """Return a bound of a product with a multiplier; `places`: those of the shift, -1: before it."""
    high = (bound * by.fixed >> (31 - max(by.shift, 0))) + 2
    return high if places == -1 else (high >> max(-by.shift, 0)) + 1


def distance_of(dtype: str, zero: int) -> int:
    """Return the greatest magnitude of the difference of a quantised value and its zero point."""
    low, high = RANGES[dtype]
    return max(high - zero, zero - low)


def plus(offset: int) -> str:
    """Return the addition of a constant, empty for 0."""
    return f" + {offset}" if offset > 0 else f" - {-offset}" if offset else ""


def times(name: str, factor: int) -> str:
    """Return the product with a constant, without the factor 1."""
    return name if factor == 1 else f"{name} * {factor}"


def clamped(value: str, low: int | str, high: int | str, dtype: str) -> str:
    """Return an int32 value between limits, as an element of a dtype."""
    text = f"clamp({value}, {low}, {high})"
    return text if dtype == "int32" else f"({c_type(dtype)}){text}"


def clamped_float(value: str, low: float | None, high: float | None) -> str:
    """Return a float32 value between limits; None: infinite."""
    limits = (float("-inf") if low is None else low, float("inf") if high is None else high)
    return f"clampf({value}, {', '.join(number(limit, 'float32') for limit in limits)})"


def _rescaled(
    zeros: Sequence[int], multipliers: Sequence[Multiplier], left_shift: int, dtypes: Sequence[str]
) -> tuple[list[str], set[str], int]:
    """Return the operands without their zero points, shifted to the left and multiplied; helpers; a bound of the sum
    of their magnitudes."""
    texts, used, total = [], set(), 0
    for place, (zero, by, dtype) in enumerate(zip(zeros, multipliers, dtypes, strict=False)):
        bound = distance_of(dtype, zero) << left_shift
        total += scaled_bound(bound, by)
        value = f"({{{place}}}{plus(-zero)})"
        # Half of an even number.
        if by == HALF and left_shift:
            texts.append(f"{value} * {1 << (left_shift - 1)}")
            continue
        text, helper = scale_twice(f"{value} * {1 << left_shift}", by, bound)
        texts.append(text)
        used.add(helper)
    return texts, used, total


@expression_of.register
def _(function: AddQuantised, dtypes: Sequence[str], result: str) -> Expression:
    numbers = function.numbers
    parts, used, bound = _rescaled(numbers.zeros, numbers.multipliers, numbers.left_shift, dtypes)
    sign = "-" if function.subtract else "+"
    text, helper = scale_twice("sum", numbers.result, bound, numbers.low >= numbers.zero)
    return Expression(
        "subtract" if function.subtract else "add",
        clamped(f"{text}{plus(numbers.zero)}", numbers.low, numbers.high, result),
        (
            f"const int32_t term0 = {parts[0]};",
            f"const int32_t term1 = {parts[1]};",
            f"const int32_t sum = term0 {sign} term1;",
        ),
        tuple(sorted({"clamp", helper, *used})),
    )


@expression_of.register
def _(function: Float, dtypes: Sequence[str], result: str) -> Expression:
    row = FLOAT_FUNCTIONS[function.kind]
    operands = ", ".join(f"{{{index}}}" for index in range(row.operands))
    return Expression(row.kind.removeprefix("ONNX_").lower(), f"{row.c}({operands})", (), (), _MATH)


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
    parts, used, _ = _rescaled(function.numbers.zeros, function.numbers.multipliers, LEFT_SHIFT, dtypes)
    return Expression(base, f" {function.operator} ".join(parts), (), tuple(sorted(used)))


@expression_of.register
def _(function: Logic, dtypes: Sequence[str], result: str) -> Expression:
    values = {"LOGICAL_AND": "{0} && {1}", "LOGICAL_OR": "{0} || {1}", "LOGICAL_NOT": "!{0}"}
    return Expression(function.kind.lower(), values[function.kind])


@expression_of.register
def _(function: Selected, dtypes: Sequence[str], result: str) -> Expression:
    return Expression("select", "{0} ? {1} : {2}")


_NAMES = {"+": "add", "-": "subtract", "*": "multiply", "/": "divide"}
_MATH = ("math.h",)


@expression_of.register
def _(function: Arithmetic, dtypes: Sequence[str], result: str) -> Expression:
    base = _NAMES[function.operator]
    helpers: tuple[str, ...] = ()
    has_limits = (function.low, function.high) != (None, None)
    if result == "float32":
        value = f"{{0}} {function.operator} {{1}}"
        if not has_limits:
            return Expression(base, value)
        return Expression(base, clamped_float(value, function.low, function.high), (), ("clampf",), _MATH)
    if function.operator == "/":
        value, helpers = "divide_32({0}, {1})", ("divide_32",)
    else:
        value = wrapped(function.operator, result)
    if not has_limits:
        return Expression(base, value, (), helpers)
    limited = "value"
    if function.high is not None:
        limited = f"value > {int(function.high)} ? {int(function.high)} : {limited}"
    if function.low is not None:
        limited = f"value < {int(function.low)} ? {int(function.low)} : {limited}"
    return Expression(base, limited, (f"const {c_type(result)} value = {value};",), helpers)


def wrapped(operator: str, dtype: str) -> str:
    """Return the sum, difference or product of two integers of a dtype, without overflow."""
    if dtype == "uint32":
        return f"{{0}} {operator} {{1}}"
    if dtype in ("int32", "int64"):
        return f"({dtype}_t)((u{dtype}_t){{0}} {operator} (u{dtype}_t){{1}})"
    return f"({c_type(dtype)})({{0}} {operator} {{1}})"


_FLOAT = {
    "TANH": "tanhf({0})",
    "LOGISTIC": "1.0f / (1.0f + expf(-{0}))",
    "RELU": "{0} > 0.0f ? {0} : 0.0f",
    "ELU": "{0} < 0.0f ? expm1f({0}) : {0}",
    "EXP": "expf({0})",
    "LOG": "logf({0})",
    "SQRT": "sqrtf({0})",
    "RSQRT": "1.0f / sqrtf({0})",
    "ABS": "fabsf({0})",
    "NEG": "-{0}",
    "SQUARE": "{0} * {0}",
    "SIGN": "{0} > 0.0f ? 1.0f : {0} < 0.0f ? -1.0f : {0}",
    "MINIMUM": "{0} < {1} ? {0} : {1}",
    "MAXIMUM": "{0} > {1} ? {0} : {1}",
    "FLOOR_DIV": "(float)floor((double){0} / (double){1})",
    "POW": "powf({0}, {1})",
    "PRELU": "{0} >= 0.0f ? {0} : {0} * {1}",
}
"""The expressions of float32. Arm boards can join a product and a sum; bounds allow for it."""
_GELU = [number(float(np.float32(one)), "float32") for one in (math.sqrt(2 / math.pi), 0.044715, math.sqrt(0.5))]
_FLOAT_CLAMPS = {"RELU6": ("0.0f", "6.0f"), "RELU_N1_TO_1": ("-1.0f", "1.0f"), "RELU_0_TO_1": ("0.0f", "1.0f")}


@expression_of.register
def _(function: Plain, dtypes: Sequence[str], result: str) -> Expression:
    base = function.kind.lower()
    return _of_float(function, base) if result == "float32" else _of_integers(function.kind, base, result)


def _of_float(function: Plain, base: str) -> Expression:
    kind = function.kind
    if kind in _FLOAT_CLAMPS:
        low, high = _FLOAT_CLAMPS[kind]
        return Expression(base, f"clampf({{0}}, {low}, {high})", (), ("clampf",))
    if kind == "HARD_SWISH":
        return Expression(base, "{0} * clampf({0} + 3.0f, 0.0f, 6.0f) / 6.0f", (), ("clampf",))
    if kind == "LEAKY_RELU":
        return Expression(base, f"{{0}} > 0.0f ? {{0}} : {{0}} * {number(function.alpha, 'float32')}")
    if kind == "GELU" and function.approximate:
        lines = ("const float x = {0};", f"const float inner = {_GELU[0]} * (x + {_GELU[1]} * x * x * x);")
        return Expression(base, "0.5f * x * (1.0f + tanhf(inner))", lines, (), _MATH)
    if kind == "GELU":
        return Expression(base, f"0.5f * {{0}} * erfcf({{0}} * -{_GELU[2]})", (), (), _MATH)
    if kind == "SQUARED_DIFFERENCE":
        return Expression(base, "difference * difference", ("const float difference = {0} - {1};",))
    if kind == "FLOOR_MOD":
        return Expression(base, "floor_modulo_float({0}, {1})", (), ("floor_modulo_float",), _MATH)
    value = _FLOAT[kind]
    return Expression(base, value, (), (), _MATH if "f(" in value or "floor(" in value else ())


def _of_integers(kind: str, base: str, dtype: str) -> Expression:
    kind_of = c_type(dtype)
    if kind in ("MINIMUM", "MAXIMUM"):
        return Expression(base, _FLOAT[kind])
    if kind == "SIGN":
        return Expression(base, "({0} > 0) - ({0} < 0)")
    if kind in ("NEG", "ABS"):
        negated = f"({kind_of})(0 - (u{kind_of}){{0}})" if dtype in ("int32", "int64") else f"({kind_of})-{{0}}"
        return Expression(base, negated if kind == "NEG" else f"{{0}} < 0 ? {negated} : {{0}}")
    if kind == "SQUARED_DIFFERENCE":
        line = "const uint32_t difference = (uint32_t){0} - (uint32_t){1};"
        return Expression(base, "(int32_t)(difference * difference)", (line,))
    if kind == "POW":
        return Expression(base, "power_32({0}, {1})", (), ("power_32",))
    helper = {"FLOOR_DIV": "floor_divide", "FLOOR_MOD": "floor_modulo"}[kind] + ("_64" if dtype == "int64" else "_32")
    return Expression(base, f"({kind_of}){helper}({{0}}, {{1}})", (), (helper,))


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
    bound = math.prod(distance_of(dtype, zero) for dtype, zero in zip(dtypes, numbers.zeros, strict=True))
    text, helper = scale_twice(f"{one} * {other}", numbers.multiplier, bound, numbers.low >= numbers.zero)
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
    parts, used, bound = _rescaled(numbers.zeros, numbers.multipliers, numbers.left_shift, dtypes)
    text, helper = scale_twice("difference * difference", numbers.result, bound * bound, is_positive=True)
    lines = (f"const int32_t difference = {parts[0]} -", f"\t{parts[1]};")
    value = clamped(wrapped_sum(text, numbers.zero), numbers.low, numbers.high, result)
    return Expression("squared_difference", value, lines, tuple(sorted({"clamp", helper, *used})))


@expression_of.register
def _(function: Prelu, dtypes: Sequence[str], result: str) -> Expression:
    numbers = function.numbers
    bounds = [distance_of(dtype, zero) for dtype, zero in zip(dtypes, numbers.zeros, strict=True)]
    above, helper = scale_twice("x", numbers.positive, bounds[0], is_positive=True)
    below, other = scale_twice(f"x * ({{1}}{plus(-numbers.zeros[1])})", numbers.negative, math.prod(bounds))
    lines = (
        f"const int32_t x = {{0}}{plus(-numbers.zeros[0])};",
        f"const int32_t scaled = x >= 0 ? {above} : {below};",
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
    bound = None if dtypes[0] == "int32" else distance_of(dtypes[0], numbers.source)
    scaled, helper = scale_twice(name, numbers.positive, bound, numbers.magnitude)
    used = {helper}
    if numbers.negative != numbers.positive or numbers.sign < 0:
        below, helper = scale_twice(name, numbers.negative, bound, numbers.magnitude)
        used.add(helper)
        sign = "-" if numbers.sign < 0 else ""
        lines.append(f"const int32_t scaled = {name} >= 0 ? {scaled} : {sign}{below};")
        scaled = "scaled"
    value = wrapped_sum(scaled, numbers.zero)
    if (numbers.low, numbers.high) != RANGES["int32"]:
        value = clamped(value, numbers.low, numbers.high, result)
        used.add("clamp")
    return Expression(function.kind.lower(), value, tuple(lines), tuple(sorted(used)))
