# SPDX-License-Identifier: Apache-2.0
"""Integer expressions over loop variables: their bounds as intervals, and their exact values on a grid.

An expression is an int, a Loop, None (unknown), or a tuple of an operator and its operands. Divisions truncate as in C
(ISO C11 6.5.5); overflow, undefined in C for signed integers, is not modelled.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from math import prod
from typing import Any

from opwest.base.frozen_dataclass import dataclass
from opwest.frontends.mlf.unpack.functions import INTEGERS

Expression = Any
"""int | Loop | None | tuple[str, *Expression]"""
Interval = tuple[int, int]

_MAX_VALUE = 1 << 40
"""Larger bounds are unknown: no index of a model reaches them, and products stay small numbers."""


@dataclass(frozen=True, eq=False)
class Loop:
    """A loop variable that takes the values from `first` to before `end`, with a step of one."""

    name: str
    first: int
    end: int
    exact: bool
    """False: the range is an upper bound."""


def interval(expression: Expression, seen: dict[int, Interval | None] | None = None) -> Interval | None:
    """Return the smallest and the largest value that an expression can have; None if unknown."""
    seen = {} if seen is None else seen
    if expression is None or isinstance(expression, int):
        return None if expression is None else (expression, expression)
    if isinstance(expression, Loop):
        return expression.first, expression.end - 1
    if id(expression) not in seen:
        seen[id(expression)] = _interval(expression, seen)
    return seen[id(expression)]


def _interval(expression: tuple[Any, ...], seen: dict[int, Interval | None]) -> Interval | None:
    name, *operands = expression
    if name == "?:":
        operands = operands[1:]
    bounds = [interval(operand, seen) for operand in operands]
    if name in _COMPARISONS or name in ("&&", "||", "!"):
        return 0, 1
    known = [b for b in bounds if b is not None]
    if len(known) != len(bounds):
        return _masked(name, bounds)
    combined = _combined(name, known)
    return combined if combined is not None and -_MAX_VALUE < combined[0] <= combined[1] < _MAX_VALUE else None


def _masked(name: str, bounds: list[Interval | None]) -> Interval | None:
    """Return the bounds of `x & constant` and `x % constant` for an unknown x."""
    last = bounds[-1]
    if name == "&" and last is not None and last[0] == last[1] >= 0:
        return 0, last[0]
    if name == "%" and last is not None and last[0] == last[1] > 0:
        return 1 - last[0], last[0] - 1
    return None


def _combined(name: str, bounds: list[Interval]) -> Interval | None:
    (a, b), (c, d) = bounds[0], bounds[-1]
    match name:
        case "?:":
            return min(a, c), max(b, d)
        case "neg":
            return -b, -a
        case "+":
            return a + c, b + d
        case "-":
            return a - d, b - c
        case "*":
            corners = [a * c, a * d, b * c, b * d]
            return min(corners), max(corners)
        case "/" if c > 0:
            corners = [_quotient(x, y) for x in (a, b) for y in (c, d)]
            return min(corners), max(corners)
        case "%" if c == d > 0:
            if a >= 0:
                return (a, b) if b < c else (0, c - 1)
            return 1 - c, c - 1
        case ">>" if c == d and 0 <= c < 63:
            return a >> c, b >> c
        case "<<" if c == d and 0 <= c < 40 and a >= 0:
            return a << c, b << c
        case "&" if c == d >= 0:
            return (0, min(b, c)) if a >= 0 else (0, c)
        case "min" | "max":
            pick = min if name == "min" else max
            return pick(a, c), pick(b, d)
    return None


def _quotient(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def loops_of(expressions: Iterable[Expression]) -> list[Loop]:
    """Return the loop variables in expressions, each once."""
    loops: dict[int, Loop] = {}
    seen: set[int] = set()
    pending = list(expressions)
    while pending:
        expression = pending.pop()
        if isinstance(expression, Loop):
            loops[id(expression)] = expression
        elif isinstance(expression, tuple) and id(expression) not in seen:
            seen.add(id(expression))
            pending += expression[1:]
    return list(loops.values())


def points(loops: Iterable[Loop]) -> int:
    """Return the number of combinations of loop variables."""
    return prod(max(loop.end - loop.first, 0) for loop in loops)


_ARITHMETIC = {"+": operator.add, "-": operator.sub, "*": operator.mul, "&": operator.and_, "|": operator.or_}
_COMPARISONS = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


class Grid:
    """The exact values of expressions for all combinations of loop variables, as int64 arrays."""

    def __init__(self, loops: list[Loop]) -> None:
        import numpy as np

        self.np = np
        self.shape = tuple(max(loop.end - loop.first, 0) for loop in loops)
        self._seen: dict[int, Any] = {}
        self._kept: list[Any] = []
        for axis, loop in enumerate(loops):
            sizes = [1] * len(loops)
            sizes[axis] = -1
            self._seen[id(loop)] = np.arange(loop.first, loop.end, dtype=np.int64).reshape(sizes)

    def values(self, expression: Expression) -> Any:
        """Return the values, which broadcast to the grid's shape; None if unknown."""
        if expression is None or isinstance(expression, int):
            return None if expression is None else self.np.int64(expression)
        if id(expression) not in self._seen:
            self._kept.append(expression)  # its id must stay in use
            self._seen[id(expression)] = self._values(expression)
        return self._seen[id(expression)]

    def condition(self, expression: Expression, true: bool) -> tuple[Any, bool]:
        """Return where a condition can have a truth value, and whether that is exact."""
        name = expression[0] if isinstance(expression, tuple) else ""
        if name == "!":
            return self.condition(expression[1], not true)
        if name in ("&&", "||"):
            left, left_exact = self.condition(expression[1], true)
            right, right_exact = self.condition(expression[2], true)
            both = (name == "&&") == true
            return (left & right) if both else (left | right), left_exact and right_exact
        values = self.values(expression)
        if values is None:
            return self.np.bool_(True), False
        return ((values != 0) == true), True

    def _values(self, expression: tuple[Any, ...]) -> Any:
        np = self.np
        name, *operands = expression
        arrays = [self.values(operand) for operand in operands]
        if any(array is None for array in arrays):
            return None
        a, b = arrays[0], arrays[-1]
        if name in _ARITHMETIC:
            return _ARITHMETIC[name](a, b)
        if name in _COMPARISONS:
            return _COMPARISONS[name](a, b).astype(np.int64)
        match name:
            case "?:":
                return np.where(arrays[0] != 0, arrays[1], arrays[2])
            case "neg":
                return -a
            case "!":
                return (a == 0).astype(np.int64)
            case "/" | "%":
                if not np.all(b):
                    return None
                quotient = np.abs(a) // np.abs(b) * (np.sign(a) * np.sign(b))
                return quotient if name == "/" else a - quotient * b
            case ">>" | "<<":
                if np.any(b < 0) or np.any(b > 40):
                    return None
                return a >> b if name == ">>" else a << b
            case "min" | "max":
                return np.minimum(a, b) if name == "min" else np.maximum(a, b)
            case "&&" | "||":
                return (_ARITHMETIC[name[0]](a != 0, b != 0)).astype(np.int64)
        return None


_WRAPPING = frozenset(["size_t", "uint32_t", "uint64_t"])
"""Types whose arithmetic wraps: expressions have no types, and are those of signed integers."""


def fitted(type_: str, value: Expression) -> Expression:
    """Return an integer after conversion to a type; None if it could change."""
    limits = None if type_ in _WRAPPING else INTEGERS.get(type_)
    bounds = None if limits is None else interval(value)
    if limits is None or bounds is None or not limits[0] <= bounds[0] <= bounds[1] <= limits[1]:
        return None
    return value


def total(left: Expression, right: Expression) -> Expression:
    """Return a sum; of constants, a number."""
    if left is None or right is None:
        return None
    if isinstance(left, int) and isinstance(right, int):
        return left + right
    if isinstance(left, int) and left == 0:
        return right
    return left if isinstance(right, int) and right == 0 else ("+", left, right)


def product(left: Expression, right: Expression) -> Expression:
    """Return a product; of constants, a number."""
    if left is None or right is None:
        return None
    if isinstance(left, int) and isinstance(right, int):
        return left * right
    return left if isinstance(right, int) and right == 1 else ("*", left, right)


def key(expression: Expression) -> Any:
    """Return a number or the identity of an expression, to recognize it again."""
    return expression if isinstance(expression, int) else id(expression)
