# SPDX-License-Identifier: Apache-2.0
"""Binary arithmetic."""

from __future__ import annotations

from typing import Any

from opwest.importers.models.graph.faults import Unsupported
from opwest.importers.models.graph.types import Node
from opwest.importers.models.ir.elements import (
    AddShifted,
    HighProduct,
    Plain,
    Prelu,
    Product,
    Quotient,
    SquaredDifference,
)
from opwest.importers.models.ir.functions import AddQuantised, Arithmetic
from opwest.importers.models.ir.operations import Elementwise
from opwest.importers.models.lower.builder import Builder, lowers
from opwest.importers.models.operators import arithmetic

_OPERATORS = {"ADD": "+", "SUB": "-", "MUL": "*", "DIV": "/"}


def elementwise(node: Node, build: Builder, function: Any) -> None:
    """Add a function of all inputs."""
    inputs = tuple(build.value(tensor) for tensor in node.inputs if tensor is not None)
    build.add(Elementwise(node.label, inputs, (build.value(node.output),), function, _forbidden(node)))


def _forbidden(node: Node) -> tuple[int, int] | None:
    """Return the divisor that ends a division; None if there is none. Raises Unsupported for a constant with 0."""
    value = arithmetic.forbidden_divisor(node)
    if value is None:
        return None
    divisor = node.input(1)
    if not divisor.is_constant:
        return 1, value
    if (divisor.content == value).any():
        raise Unsupported(f"the divisor '{divisor.name}' contains 0", "a divisor without 0: every run would fail")
    return None


@lowers("ADD", "SUB")
def add(node: Node, build: Builder) -> None:
    """Quantised, or plain arithmetic."""
    if not arithmetic.is_quantised(node):
        plain(node, build)
        return
    shifts = arithmetic.shift_numbers(node)
    is_difference = node.kind == "SUB"
    if shifts is not None:
        elementwise(node, build, AddShifted(shifts, is_difference))
    else:
        elementwise(node, build, AddQuantised(arithmetic.add_numbers(node), is_difference))


@lowers("MUL", "DIV")
def multiply(node: Node, build: Builder) -> None:
    """Quantised, or plain arithmetic."""
    if node.kind == "MUL" and arithmetic.has_high_product(node):
        elementwise(node, build, HighProduct(arithmetic.high_product_numbers(node)))
    elif arithmetic.is_quantised(node):
        function = Product if node.kind == "MUL" else Quotient
        elementwise(node, build, function(arithmetic.product_numbers(node)))
    else:
        plain(node, build)


def plain(node: Node, build: Builder) -> None:
    """Add an operator of C with limits."""
    elementwise(node, build, Arithmetic(_OPERATORS[node.kind], *arithmetic.plain_limits(node)))


@lowers("ADD_N")
def add_all(node: Node, build: Builder) -> None:
    """Sums of two, in order."""
    total, *others = (build.value(tensor) for tensor in node.inputs if tensor is not None)
    for number, other in enumerate(others, 1):
        is_last = number == len(others)
        result = (
            build.value(node.output)
            if is_last
            else build.intermediate(f"{node.output.name}_{number}", node.output.dtype, node.output.shape)
        )
        build.add(Elementwise(node.label, (total, other), (result,), Arithmetic("+")))
        total = result


@lowers("MINIMUM", "MAXIMUM", "FLOOR_DIV", "FLOOR_MOD", "POW")
def plain_function(node: Node, build: Builder) -> None:
    """Functions of the stored values."""
    elementwise(node, build, Plain(node.kind))


@lowers("SQUARED_DIFFERENCE")
def squared_difference(node: Node, build: Builder) -> None:
    """Quantised, or plain."""
    if arithmetic.is_quantised(node):
        elementwise(node, build, SquaredDifference(arithmetic.squared_difference_numbers(node)))
    else:
        elementwise(node, build, Plain(node.kind))


@lowers("PRELU")
def prelu(node: Node, build: Builder) -> None:
    """Quantised, or plain."""
    if arithmetic.is_quantised(node):
        elementwise(node, build, Prelu(arithmetic.prelu_numbers(node)))
    else:
        elementwise(node, build, Plain(node.kind))
