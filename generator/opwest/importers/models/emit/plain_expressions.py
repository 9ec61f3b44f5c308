# SPDX-License-Identifier: Apache-2.0
"""Functions of plain numbers as C expressions: integers wrap, and nothing is undefined."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from opwest.importers.models.emit.expressions import Expression, expression_of
from opwest.importers.models.emit.function import c_type
from opwest.importers.models.emit.text import number
from opwest.importers.models.ir.elements import Plain
from opwest.importers.models.ir.functions import Arithmetic

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
        low = number(float("-inf") if function.low is None else function.low, result)
        high = number(float("inf") if function.high is None else function.high, result)
        return Expression(base, f"clampf({value}, {low}, {high})", (), ("clampf",), _MATH)
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
    "FLOOR": "floorf({0})",
    "CEIL": "ceilf({0})",
    "ROUND": "rintf({0})",
    "SIN": "sinf({0})",
    "COS": "cosf({0})",
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
        lines = (
            "const float x = {0};",
            f"const float inner = {_GELU[0]} * (x + {_GELU[1]} * x * x * x);",
        )
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
