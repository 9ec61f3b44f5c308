# SPDX-License-Identifier: Apache-2.0
"""Operators along rows: softmax, reductions, positions; integer layers of ONNX, and operators of the user."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opwest.compiler.graph.types import Node, Tensor, Unsupported
from opwest.compiler.graph.user import KIND, Argument, bind
from opwest.compiler.ir import operations as ir
from opwest.compiler.ir.program import Value
from opwest.compiler.lowering.builder import Builder, lowers
from opwest.compiler.lowering.layers import lower_dense
from opwest.compiler.semantics import rows as reduction
from opwest.compiler.semantics.layers import window, zeros_of
from opwest.compiler.semantics.rows import exponentials, log_softmax_numbers, softmax16_numbers


def _softmax(node: Node) -> tuple[Any, ...]:
    """A table for 8 bits, two tables for 16 bits."""
    dtype = node.input(0).dtype
    if dtype == "float32":
        return ir.SoftmaxFloat, node.options["beta"]
    return (ir.Softmax16, softmax16_numbers(node)) if dtype == "int16" else (ir.SoftmaxTable, exponentials(node))


def _log_softmax(node: Node) -> tuple[Any, ...]:
    is_float = node.output.dtype == "float32"
    return (ir.LogSoftmaxFloat,) if is_float else (ir.LogSoftmaxTable, log_softmax_numbers(node))


def _running_sum(node: Node) -> tuple[Any, ...]:
    options = bool(node.options["exclusive"]), bool(node.options["reverse"])
    return ir.RunningSum, reduction.position_axis(node), *options, *reduction.ending_of(node)


def _reduce(node: Node) -> tuple[Any, ...]:
    is_wide = bool(node.options.get("wide_sums", False))
    return ir.Reduce, reduction.REDUCTIONS[node.kind], reduction.axes_of(node), *reduction.ending_of(node), is_wide


_OF_ONE_INPUT: dict[str, Callable[[Node], tuple[Any, ...]]] = {
    "SOFTMAX": _softmax,
    "LOG_SOFTMAX": _log_softmax,
    "L2_NORMALIZATION": lambda node: (ir.UnitLength, reduction.zero_of_rows(node)),
    **dict.fromkeys(reduction.REDUCTIONS, _reduce),
    "CUMSUM": _running_sum,
    "ARG_MAX": lambda node: (ir.Position, reduction.position_axis(node), True),
    "ARG_MIN": lambda node: (ir.Position, reduction.position_axis(node), False),
    "TOPK_V2": lambda node: (ir.Greatest, reduction.greatest_count(node)),
    "ONNX_DYNAMIC_QUANTIZE": lambda node: (ir.DynamicQuantize,),
}
"""The operation that reads the first input, and its numbers."""


@lowers(*_OF_ONE_INPUT)
def of_one_input(node: Node, build: Builder) -> None:
    """The operation of the table."""
    operation, *numbers = _OF_ONE_INPUT[node.kind](node)
    build.lower(operation, node, node.inputs[:1], *numbers)


@lowers("ONNX_LOOKUP")
def lookup(node: Node, build: Builder) -> None:
    """A table in the order of the bytes: index 0 is the value 0."""
    table = node.input(1).content
    if node.input(0).dtype == "int8":
        table = np.roll(table, 128)
    build.lower(ir.Elementwise, node, node.inputs[:1], ir.Lookup(tuple(int(v) for v in table)))


@lowers("ONNX_CONV_INTEGER", "ONNX_DENSE_INTEGER")
def integer_layer(node: Node, build: Builder) -> None:
    """A layer whose results are its sums."""
    if not node.input(1).is_constant:
        raise Unsupported("weights are computed when the model runs", "constants")
    if node.kind == "ONNX_DENSE_INTEGER":
        lower_dense(node, build, None, zeros_of(node), ir.Sums())
        return
    weights, geometry = node.input(1).content, window(node)
    groups = node.input(0).shape[3] // weights.shape[3]
    build.lower(ir.Convolution, node, node.inputs[:1], geometry, groups, weights, None, *zeros_of(node), ir.Sums())


@lowers(KIND)
def user_operator(node: Node, build: Builder) -> None:
    """One call; options that are arrays become constants."""
    bound = bind(node)
    values: dict[Argument, Value] = {}
    for argument, given in bound.reads:
        is_tensor = isinstance(given, Tensor)
        values[argument] = build.value(given) if is_tensor else build.constant(argument.name, given)
    inputs = tuple(values.values())
    results = tuple(build.value(tensor) for _, tensor, _ in bound.writes)
    values |= dict(zip((argument for argument, _, _ in bound.writes), results, strict=True))
    operator = node.options["use"].operator
    tensors = tuple((argument, values[argument]) for argument in operator.arguments if argument in values)
    build.add(ir.UserCall(node.label, inputs, results, operator, tensors, bound.scalars))
