# SPDX-License-Identifier: Apache-2.0
"""Values of C expressions in the reading of an operator: pointers, integers, and structures that describe memory."""

from __future__ import annotations

from typing import Any

from opwest.importers.mlf.unpack.expressions import Expression, interval
from opwest.importers.mlf.unpack.memory import Base, Guard
from opwest.importers.mlf.unpack.syntax import INTEGERS
from opwest.records import dataclass

_WRAPPING = frozenset(["size_t", "uint32_t", "uint64_t"])
"""Types whose arithmetic wraps: expressions have no types, and are those of signed integers."""


@dataclass(frozen=True)
class Pointer:
    """An address: a base, a byte offset, and the size of an element, 0 for void."""

    base: Base
    offset: Expression
    size: int


@dataclass(frozen=True)
class Lent:
    """A structure that passes memory with its size to a library."""

    base: Base


@dataclass(frozen=True)
class Shape:
    """A structure that passes the number of elements of the next argument to a library."""

    elements: int


Value = Any
"""Pointer | Expression"""


def fitted(type_: str, value: Value) -> Value:
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


def key_of_guard(guard: Guard) -> tuple[Any, bool]:
    """Return the key of a condition with its value."""
    return key(guard[0]), guard[1]
