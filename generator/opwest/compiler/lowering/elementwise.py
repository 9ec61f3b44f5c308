# SPDX-License-Identifier: Apache-2.0
"""Binary arithmetic."""

from __future__ import annotations

from typing import Any

import numpy as np

from opwest.compiler.graph.types import Node, Tensor, Unsupported
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
from opwest.compiler.ir.operations import Elementwise
from opwest.compiler.ir.program import Value
from opwest.compiler.lowering.builder import Builder, lowers
from opwest.compiler.semantics import arithmetic, elementwise, tables
from opwest.compiler.semantics.elementwise import COMPARISONS, PLAIN, SAMPLED, compare_numbers, condition_shape
from opwest.compiler.semantics.fixed_point import RANGES, one_quantization
from opwest.compiler.semantics.float_functions import FLOAT_FUNCTIONS
from opwest.compiler.semantics.tables import RELU_LIMITS, byte_table, rescale_of

_OPERATORS = {"ADD": "+", "SUB": "-", "MUL": "*", "DIV": "/"}


def lower_elementwise(node: Node, build: Builder, function: Any) -> None:
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
        lower_elementwise(node, build, AddShifted(shifts, is_difference))
    else:
        lower_elementwise(node, build, AddQuantised(arithmetic.add_numbers(node), is_difference))


@lowers("MUL", "DIV")
def multiply(node: Node, build: Builder) -> None:
    """Quantised, or plain arithmetic."""
    if node.kind == "MUL" and arithmetic.has_high_product(node):
        lower_elementwise(node, build, HighProduct(arithmetic.high_product_numbers(node)))
    elif arithmetic.is_quantised(node):
        function = Product if node.kind == "MUL" else Quotient
        lower_elementwise(node, build, function(arithmetic.product_numbers(node)))
    else:
        plain(node, build)


def plain(node: Node, build: Builder) -> None:
    """Add an operator of C with limits."""
    lower_elementwise(node, build, Arithmetic(_OPERATORS[node.kind], *arithmetic.plain_limits(node)))


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
    lower_elementwise(node, build, Plain(node.kind))


@lowers(*FLOAT_FUNCTIONS)
def float_function(node: Node, build: Builder) -> None:
    """The row of the function."""
    lower_elementwise(node, build, Float(node.kind))


@lowers("SQUARED_DIFFERENCE")
def squared_difference(node: Node, build: Builder) -> None:
    """Quantised, or plain."""
    if arithmetic.is_quantised(node):
        lower_elementwise(node, build, SquaredDifference(arithmetic.squared_difference_numbers(node)))
    else:
        lower_elementwise(node, build, Plain(node.kind))


@lowers("PRELU")
def prelu(node: Node, build: Builder) -> None:
    """Quantised, or plain."""
    if arithmetic.is_quantised(node):
        lower_elementwise(node, build, Prelu(arithmetic.prelu_numbers(node)))
    else:
        lower_elementwise(node, build, Plain(node.kind))


@lowers(*COMPARISONS)
def compare(node: Node, build: Builder) -> None:
    """An operator of C."""
    lower_elementwise(node, build, Compared(COMPARISONS[node.kind], compare_numbers(node)))


@lowers("LOGICAL_AND", "LOGICAL_OR", "LOGICAL_NOT")
def logic(node: Node, build: Builder) -> None:
    """An operator of C."""
    lower_elementwise(node, build, Logic(node.kind))


@lowers("SELECT")
def select(node: Node, build: Builder) -> None:
    """The condition's only dimension is the first one of the values."""
    condition = build.part(build.value(node.input(0)), condition_shape(node))
    inputs = (condition, build.value(node.input(1)), build.value(node.input(2)))
    build.add(Elementwise(node.label, inputs, (build.value(node.output),), Selected()))


@lowers("SELECT_V2")
def select_broadcast(node: Node, build: Builder) -> None:
    """All inputs are broadcast."""
    lower_elementwise(node, build, Selected())


@lowers("HARD_SWISH", "LEAKY_RELU", "ELU", "LOGISTIC", "TANH", "SQRT", "ABS", *RELU_LIMITS, *SAMPLED, *PLAIN)
def unary(node: Node, build: Builder) -> None:
    """A table for 8 bits; for 16 bits samples or fixed-point numbers; otherwise C's functions."""
    dtype = node.output.dtype
    is_plain = node.kind in PLAIN or (dtype == "int16" and node.kind == "ABS" and node.input(0).quantization is None)
    if is_plain or dtype not in ("int8", "uint8", "int16"):
        options = node.options
        lower_elementwise(node, build, Plain(node.kind, options.get("alpha", 0.0), options.get("approximate", False)))
    elif dtype != "int16":
        lookup(node, build, tables.byte_table(node))
    elif node.kind in SAMPLED:
        lower_elementwise(node, build, Interpolated(node.kind, tables.sample_table(node)))
    elif node.kind in ("LOGISTIC", "TANH"):
        lower_elementwise(node, build, Sigmoid(node.kind, tables.sigmoid_numbers(node)))
    elif node.kind == "SQRT":
        source, target = one_quantization(node.input(0)), one_quantization(node.output)
        lower_elementwise(node, build, Root(source.scale, target.scale))
    else:
        lower_elementwise(node, build, Rescaled(node.kind, rescale_of(node)))


def lookup(node: Node, build: Builder, table: Any) -> None:
    """Add a function of 8-bit values by its table, without the table if it only clamps."""
    dtype = node.input(0).dtype
    low, high = RANGES[dtype]
    values = np.arange(low, high + 1)
    least, greatest = int(table.min()), int(table.max())
    if dtype == node.output.dtype and np.array_equal(table, values):
        build.view(node.output, build.value(node.input(0)))
    elif dtype == node.output.dtype and np.array_equal(table, np.clip(values, least, greatest)):
        lower_elementwise(node, build, Clamped(least, greatest))
    else:
        lower_elementwise(node, build, Lookup(node.kind, table))


@lowers("QUANTIZE")
def quantize(node: Node, build: Builder) -> None:
    """From float32, or from one scale to another."""
    if elementwise.is_quantised_each(node):
        limits = RANGES[node.output.dtype]
        build.add(Elementwise(node.label, *_with_each(node.input(0), node.output, node, build), QuantisedEach(*limits)))
    elif node.input(0).dtype == "float32":
        lower_elementwise(node, build, Quantised(elementwise.quantize_numbers(node)))
    elif node.input(0).dtype in ("int8", "uint8"):
        lookup(node, build, byte_table(node))
    else:
        lower_elementwise(node, build, Rescaled(node.kind, rescale_of(node)))


def _with_each(data: Tensor, quantised: Tensor, node: Node, build: Builder) -> tuple[tuple[Value, ...], tuple[Value]]:
    """Return the data, scales and zero points of a quantised tensor, and the result."""
    scales, zeros = elementwise.each_of(quantised, data.shape)
    numbers = build.constant("scale", scales), build.constant("zero", zeros)
    return (build.value(data), *numbers), (build.value(node.output),)


@lowers("DEQUANTIZE")
def dequantize(node: Node, build: Builder) -> None:
    """One scale, or one for each slice; float16 constants are float32 already."""
    data = node.input(0)
    found = data.quantization
    if data.dtype == "float32":
        build.view(node.output, build.value(data))
    elif found is None or found.axis is None:
        one = one_quantization(data)
        lower_elementwise(node, build, Dequantised(one.scale, one.zero))
    else:
        build.add(Elementwise(node.label, *_with_each(data, data, node, build), DequantisedEach()))


@lowers("CAST")
def cast(node: Node, build: Builder) -> None:
    """The same value in another dtype."""
    if node.input(0).dtype == node.output.dtype:
        build.view(node.output, build.value(node.input(0)))
    else:
        lower_elementwise(node, build, Cast())
