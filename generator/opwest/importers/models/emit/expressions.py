# SPDX-License-Identifier: Apache-2.0
"""Functions of elements as C expressions."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from opwest.importers.models.emit.function import c_type
from opwest.importers.models.ir.functions import AddQuantised, Call
from opwest.importers.models.operators.fixed_point import Multiplier
from opwest.records import dataclass


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
    """Return the expression of a record of `ir/functions.py`."""
    raise AssertionError(type(function).__name__)


def scale_twice(value: str, by: Multiplier) -> tuple[str, str]:
    """Return a multiplication that rounds twice, and its helper."""
    if by.shift > 0:
        return f"scale_twice_left({value}, {by.fixed}, {-by.shift})", "scale_twice_left"
    return f"scale_twice({value}, {by.fixed}, {-by.shift})", "scale_twice"


def plus(offset: int) -> str:
    """Return the addition of a constant, empty for 0."""
    return f" + {offset}" if offset > 0 else f" - {-offset}" if offset else ""


def clamped(value: str, low: int | str, high: int | str, dtype: str) -> str:
    """Return an int32 value between limits, as an element of a dtype."""
    text = f"clamp({value}, {low}, {high})"
    return text if dtype == "int32" else f"({c_type(dtype)}){text}"


@expression_of.register
def _(function: AddQuantised, dtypes: Sequence[str], result: str) -> Expression:
    numbers = function.numbers
    parts, used = [], {"clamp"}
    for place, (zero, by) in enumerate(zip(numbers.zeros, numbers.multipliers, strict=True)):
        text, helper = scale_twice(f"({{{place}}}{plus(-zero)}) * {1 << numbers.left_shift}", by)
        parts.append(text)
        used.add(helper)
    sign = "-" if function.subtract else "+"
    text, helper = scale_twice("sum", numbers.result)
    used.add(helper)
    return Expression(
        "subtract" if function.subtract else "add",
        clamped(f"{text}{plus(numbers.zero)}", numbers.low, numbers.high, result),
        (f"const int32_t sum = {parts[0]} {sign}", f"\t{parts[1]};"),
        tuple(sorted(used)),
    )


@expression_of.register
def _(function: Call, dtypes: Sequence[str], result: str) -> Expression:
    return Expression(function.name.rstrip("f"), f"{function.name}({{0}})", (), (), ("math.h",))
