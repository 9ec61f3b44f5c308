# SPDX-License-Identifier: Apache-2.0
"""Elementwise operators: arithmetic, comparisons, functions, conversions of dtypes."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from opwest.compiler.graph.types import Node, Tensor, Unsupported
from opwest.compiler.ir import elements as ir
from opwest.compiler.ir.operations import Elementwise, QuantizeEven
from opwest.compiler.ir.program import Value
from opwest.compiler.lowering.builder import Builder, lowers
from opwest.compiler.reference.run import FUNCTIONS
from opwest.compiler.semantics import arithmetic, elementwise, tables
from opwest.compiler.semantics.elementwise import COMPARISONS, PLAIN, SAMPLED, compare_numbers, condition_shape
from opwest.compiler.semantics.fixed_point import RANGES, one_quantization
from opwest.compiler.semantics.float_functions import FLOAT_FUNCTIONS
from opwest.compiler.semantics.tables import RELU_LIMITS, byte_table, rescale_of

_OPERATORS = {"ADD": "+", "SUB": "-", "MUL": "*", "DIV": "/"}


def lower_elementwise(node: Node, build: Builder, function: Any) -> None:
    """Add a function of all inputs."""
    build.lower(Elementwise, node, node.inputs, function, _forbidden(node))


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


def _arithmetic(node: Node) -> Any:
    """Return the function of a sum, difference, product or quotient."""
    if node.kind == "MUL" and arithmetic.has_high_product(node):
        return ir.HighProduct(arithmetic.high_product_numbers(node))
    if not arithmetic.is_quantised(node):
        return ir.Arithmetic(_OPERATORS[node.kind], *arithmetic.plain_limits(node))
    if node.kind in ("MUL", "DIV"):
        return (ir.Product if node.kind == "MUL" else ir.Quotient)(arithmetic.product_numbers(node))
    shifts, is_difference = arithmetic.shift_numbers(node), node.kind == "SUB"
    if shifts is not None:
        return ir.AddShifted(shifts, is_difference)
    return ir.AddQuantised(arithmetic.add_numbers(node), is_difference)


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
        build.add(Elementwise(node.label, (total, other), (result,), ir.Arithmetic("+")))
        total = result


def _scaled(node: Node, function: Callable[[Any], Any], numbers: Callable[[Node], Any]) -> Any:
    return function(numbers(node)) if arithmetic.is_quantised(node) else ir.Plain(node.kind)


_FUNCTIONS: dict[str, Callable[[Node], Any]] = {
    **dict.fromkeys(_OPERATORS, _arithmetic),
    **dict.fromkeys(("MINIMUM", "MAXIMUM", "FLOOR_DIV", "FLOOR_MOD", "POW"), lambda node: ir.Plain(node.kind)),
    **dict.fromkeys(FLOAT_FUNCTIONS, lambda node: ir.Float(node.kind)),
    **dict.fromkeys(COMPARISONS, lambda node: ir.Compared(COMPARISONS[node.kind], compare_numbers(node))),
    **dict.fromkeys(("LOGICAL_AND", "LOGICAL_OR", "LOGICAL_NOT"), lambda node: ir.Logic(node.kind)),
    "SELECT_V2": lambda node: ir.Selected(),
    "ONNX_QUANTIZE": lambda node: QuantizeEven(elementwise.quantize_numbers(node)),
    "SQUARED_DIFFERENCE": lambda node: _scaled(node, ir.SquaredDifference, arithmetic.squared_difference_numbers),
    "PRELU": lambda node: _scaled(node, ir.Prelu, arithmetic.prelu_numbers),
}
"""The functions of operators that have no other form."""


@lowers(*_FUNCTIONS)
def function(node: Node, build: Builder) -> None:
    """The function of the table; all inputs are broadcast."""
    data = _only_operand(node)
    if data is None:
        lower_elementwise(node, build, _FUNCTIONS[node.kind](node))
        return
    low, high = RANGES[data.dtype]
    arrays = [np.arange(low, high + 1) if one is data else one.content for one in node.inputs if one is not None]
    table = np.asarray(FUNCTIONS[node.kind](node, arrays, build.rules)).astype(node.output.dtype)
    lookup(node, build, table.reshape(-1), data)


def _only_operand(node: Node) -> Tensor | None:
    """Return the 8-bit operand of an 8-bit sum, difference or product with one constant; None for other operators."""
    varying = [one for one in node.inputs if one is not None and not one.is_constant]
    constants = [one for one in node.inputs if one is not None and one.is_constant]
    if node.kind not in ("ADD", "SUB", "MUL") or len(varying) != 1 or not arithmetic.is_quantised(node):
        return None
    if any(prod(one.shape) != 1 for one in constants) or prod(varying[0].shape) != prod(node.output.shape):
        return None
    return varying[0] if {varying[0].dtype, node.output.dtype} <= {"int8", "uint8"} else None


@lowers("SELECT")
def select(node: Node, build: Builder) -> None:
    """The condition's only dimension is the first one of the values."""
    condition = build.part(build.value(node.input(0)), condition_shape(node))
    build.lower(Elementwise, node, (condition, *node.inputs[1:3]), ir.Selected())


@lowers("HARD_SWISH", "LEAKY_RELU", "ELU", "LOGISTIC", "TANH", "SQRT", "ABS", *RELU_LIMITS, *SAMPLED, *PLAIN)
def unary(node: Node, build: Builder) -> None:
    """A table for 8 bits; for 16 bits samples or fixed-point numbers; otherwise C's functions."""
    dtype = node.output.dtype
    is_plain = node.kind in PLAIN or (dtype == "int16" and node.kind == "ABS" and node.input(0).quantization is None)
    if is_plain or dtype not in ("int8", "uint8", "int16"):
        options = node.options
        lower_elementwise(
            node, build, ir.Plain(node.kind, options.get("alpha", 0.0), options.get("approximate", False))
        )
    elif dtype != "int16":
        lookup(node, build, tables.byte_table(node))
    elif node.kind in SAMPLED:
        lower_elementwise(node, build, ir.Interpolated(node.kind, tables.sample_table(node)))
    elif node.kind in ("LOGISTIC", "TANH"):
        lower_elementwise(node, build, ir.Sigmoid(node.kind, tables.sigmoid_numbers(node)))
    elif node.kind == "SQRT":
        source, target = one_quantization(node.input(0)), one_quantization(node.output)
        lower_elementwise(node, build, ir.Root(source.scale, target.scale))
    else:
        lower_elementwise(node, build, ir.Rescaled(node.kind, rescale_of(node)))


def lookup(node: Node, build: Builder, table: Any, data: Tensor | None = None) -> None:
    """Add a function of 8-bit values by its table, without the table if it only clamps. None: of the first input."""
    data = node.input(0) if data is None else data
    dtype = data.dtype
    low, high = RANGES[dtype]
    values = np.arange(low, high + 1)
    least, greatest = int(table.min()), int(table.max())
    if dtype == node.output.dtype and np.array_equal(table, values):
        build.view(node.output, build.value(data))
    elif dtype == node.output.dtype and np.array_equal(table, np.clip(values, least, greatest)):
        build.lower(Elementwise, node, (data,), ir.Clamped(least, greatest))
    else:
        build.lower(Elementwise, node, (data,), ir.Lookup(node.kind, table))


@lowers("QUANTIZE")
def quantize(node: Node, build: Builder) -> None:
    """From float32, or from one scale to another."""
    if elementwise.is_quantised_each(node):
        build.lower(
            Elementwise, node, _with_each(node, node.output, build), ir.QuantisedEach(*RANGES[node.output.dtype])
        )
    elif node.input(0).dtype == "float32":
        lower_elementwise(node, build, ir.Quantised(elementwise.quantize_numbers(node)))
    elif node.input(0).dtype in ("int8", "uint8"):
        lookup(node, build, byte_table(node))
    else:
        lower_elementwise(node, build, ir.Rescaled(node.kind, rescale_of(node)))


def _with_each(node: Node, quantised: Tensor, build: Builder) -> tuple[Tensor | Value, ...]:
    """Return the data of a node, and the scales and zero points of a quantised tensor."""
    scales, zeros = elementwise.each_of(quantised, node.input(0).shape)
    return node.input(0), build.constant("scale", scales), build.constant("zero", zeros)


@lowers("DEQUANTIZE")
def dequantize(node: Node, build: Builder) -> None:
    """One scale, or one for each slice; float16 constants are float32 already."""
    data = node.input(0)
    if data.dtype == "float32":
        build.view(node.output, build.value(data))
    elif data.quantization is None or data.quantization.axis is None:
        numbers = one_quantization(data)
        lower_elementwise(node, build, ir.Dequantised(numbers.scale, numbers.zero))
    else:
        build.lower(Elementwise, node, _with_each(node, data, build), ir.DequantisedEach())


@lowers("CAST")
def cast(node: Node, build: Builder) -> None:
    """The same value in another dtype."""
    if node.input(0).dtype == node.output.dtype:
        build.view(node.output, build.value(node.input(0)))
    else:
        lower_elementwise(node, build, ir.Cast())
