# SPDX-License-Identifier: Apache-2.0
"""Symbolic dimensions: a symbol that is the first dimension of an input is 1, expressions of it are computed.

Source: the text of sympy expressions that torch/_export/serde/serialize.py writes, as `2*s0` or as
`Mul(Integer(2), Symbol('s0', positive=True, integer=True))`.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from math import prod
from typing import Any

from opwest.compiler.graph.types import Damaged, Unsupported

_MAX_TEXT = 2000
_MAX_POWER = 8
_MAX_NUMBER = 1 << 62
FIXED_SHAPES = "export the model with fixed shapes: torch.export.export(model, args) without dynamic_shapes"
_BINARY: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "Mod": operator.mod,
    "PythonMod": operator.mod,
    "FloorDiv": operator.floordiv,
    "CleanDiv": operator.floordiv,
    "CeilDiv": lambda a, b: -(-a // b),
    "Integer": operator.pos,
    "Add": lambda *numbers: sum(numbers),
    "Mul": lambda *numbers: prod(numbers),
    "Pow": lambda base, exponent: base**exponent if 0 <= exponent <= _MAX_POWER else None,
    "Max": max,
    "Min": min,
    "Abs": abs,
}


class Symbols:
    """The numbers of the symbols of a program."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        """Return the number of an expression. Raises Damaged, Unsupported for an unknown symbol."""
        if len(text) > _MAX_TEXT:
            raise Damaged(f"a dimension with an expression of {len(text)} characters")
        try:
            value = self._value(ast.parse(text.strip(), mode="eval").body, text)
        except (SyntaxError, ValueError, RecursionError, MemoryError, ZeroDivisionError, TypeError):
            raise Damaged(f"a dimension with the expression '{text[:60]}'") from None
        if abs(value) > _MAX_NUMBER:
            raise Damaged(f"a dimension with the expression '{text[:60]}'")
        return value

    def _value(self, node: ast.expr, text: str) -> int:
        if isinstance(node, ast.Constant) and type(node.value) is int:
            return node.value
        if isinstance(node, ast.Name):
            if node.id not in self.numbers:
                raise Unsupported(f"the dimension '{shown(text)}' is symbolic", "fixed dimensions", FIXED_SHAPES)
            return self.numbers[node.id]
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -self._value(node.operand, text)
        if isinstance(node, ast.BinOp):
            return self._binary(node, text)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
            if node.func.id == "Symbol":
                return self._value(ast.Name(_symbol_of(node)), text)
            function = _FUNCTIONS.get(node.func.id)
            if function is not None:
                return int(function(*(self._value(argument, text) for argument in node.args)))
            raise Unsupported(f"a number with the expression '{text[:60]}'", "fixed dimensions", FIXED_SHAPES)
        raise ValueError(text)

    def _binary(self, node: ast.BinOp, text: str) -> int:
        left, right = self._value(node.left, text), self._value(node.right, text)
        if max(abs(left), abs(right)) > _MAX_NUMBER:
            raise ValueError(text)
        if isinstance(node.op, ast.Pow) and 0 <= right <= _MAX_POWER:
            return int(left**right)
        if isinstance(node.op, ast.Div) and left % right == 0:
            return left // right
        function = _BINARY.get(type(node.op))
        if function is None:
            raise ValueError(text)
        return int(function(left, right))


def _symbol_of(node: ast.Call) -> str:
    """Return the name in Symbol('s0', ...). Raises ValueError."""
    if len(node.args) == 1 and isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str):
        return node.args[0].value
    raise ValueError("no symbol")


def symbol_of(text: str) -> str | None:
    """Return the name of the symbol that an expression is; None for other expressions."""
    try:
        node = ast.parse(text[:_MAX_TEXT].strip(), mode="eval").body
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Symbol":
            return _symbol_of(node)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return node.id if isinstance(node, ast.Name) else None


def shown(text: str) -> str:
    """Return an expression for messages."""
    return symbol_of(text) or text[:60]
