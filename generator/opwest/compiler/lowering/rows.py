# SPDX-License-Identifier: Apache-2.0
"""Operators along rows: softmax, reductions, positions; integer layers of ONNX, and operators of the user."""

from __future__ import annotations

import numpy as np

from opwest.compiler.graph.types import Node, Tensor, Unsupported
from opwest.compiler.graph.user import KIND, Argument, bind
from opwest.compiler.ir.operations import (
    Convolution,
    DynamicQuantize,
    Elementwise,
    Greatest,
    LogSoftmaxFloat,
    LogSoftmaxTable,
    Lookup,
    Position,
    QuantizeEven,
    Reduce,
    RunningSum,
    Softmax16,
    SoftmaxFloat,
    SoftmaxTable,
    Sums,
    UnitLength,
    UserCall,
)
from opwest.compiler.ir.program import Value
from opwest.compiler.lowering.builder import Builder, lowers
from opwest.compiler.lowering.layers import lower_dense
from opwest.compiler.semantics import rows as reduction
from opwest.compiler.semantics.fixed_point import RANGES, one_quantization
from opwest.compiler.semantics.layers import window
from opwest.compiler.semantics.onnx import zeros_of
from opwest.compiler.semantics.rows import exponentials, log_softmax_numbers, softmax16_numbers


@lowers("SOFTMAX")
def softmax(node: Node, build: Builder) -> None:
    """With a table for 8 bits, two tables for 16 bits."""
    dtype = node.input(0).dtype
    if dtype == "float32":
        build.lower(SoftmaxFloat, node, node.inputs[:1], node.options["beta"])
    elif dtype == "int16":
        build.lower(Softmax16, node, node.inputs[:1], softmax16_numbers(node))
    else:
        build.lower(SoftmaxTable, node, node.inputs[:1], exponentials(node))


@lowers("LOG_SOFTMAX")
def log_softmax(node: Node, build: Builder) -> None:
    """With tables for 8 bits."""
    if node.output.dtype == "float32":
        build.lower(LogSoftmaxFloat, node, node.inputs[:1])
    else:
        build.lower(LogSoftmaxTable, node, node.inputs[:1], log_softmax_numbers(node))


@lowers("L2_NORMALIZATION")
def l2_normalisation(node: Node, build: Builder) -> None:
    """As it is."""
    zero = 0 if node.output.dtype == "float32" else one_quantization(node.input(0)).zero
    build.lower(UnitLength, node, node.inputs[:1], zero)


_KINDS = {
    "MEAN": "mean",
    "SUM": "sum",
    "REDUCE_PROD": "product",
    "REDUCE_MAX": "maximum",
    "REDUCE_MIN": "minimum",
    "REDUCE_ANY": "any",
    "REDUCE_ALL": "all",
}


@lowers(*_KINDS)
def reduce(node: Node, build: Builder) -> None:
    """Sums, means and products of quantised elements are requantised."""
    data, kind, finish, zero = node.input(0), _KINDS[node.kind], None, 0
    if data.dtype in reduction.QUANTISED:
        if kind in ("mean", "sum"):
            finish = reduction.sum_numbers(node)
        elif kind == "product" and data.quantization is not None:
            finish = reduction.product_numbers(node)
        zero = one_quantization(data).zero if finish is not None else 0
    build.lower(Reduce, node, node.inputs[:1], kind, reduction.axes_of(node), zero, finish)


@lowers("ARG_MAX", "ARG_MIN")
def position(node: Node, build: Builder) -> None:
    """As it is."""
    build.lower(Position, node, node.inputs[:1], reduction.position_axis(node), node.kind == "ARG_MAX")


@lowers("TOPK_V2")
def greatest(node: Node, build: Builder) -> None:
    """As it is."""
    build.lower(Greatest, node, node.inputs[:1], reduction.greatest_count(node))


@lowers("CUMSUM")
def running_sum(node: Node, build: Builder) -> None:
    """int8 sums are requantised."""
    axis = reduction.position_axis(node)
    options = bool(node.options["exclusive"]), bool(node.options["reverse"])
    is_byte = node.input(0).dtype == "int8"
    finish = reduction.running_sum_numbers(node) if is_byte else None
    zero = one_quantization(node.input(0)).zero if is_byte else 0
    build.lower(RunningSum, node, node.inputs[:1], axis, *options, zero, finish)


@lowers("ONNX_QUANTIZE")
def quantize(node: Node, build: Builder) -> None:
    """As it is."""
    target = one_quantization(node.output)
    function = QuantizeEven(target.scale, target.zero, *RANGES[node.output.dtype])
    build.lower(Elementwise, node, node.inputs[:1], function)


@lowers("ONNX_LOOKUP")
def lookup(node: Node, build: Builder) -> None:
    """A table in the order of the bytes: index 0 is the value 0."""
    table = node.input(1).content
    if node.input(0).dtype == "int8":
        table = np.roll(table, 128)
    build.lower(Elementwise, node, node.inputs[:1], Lookup(tuple(int(v) for v in table)))


@lowers("ONNX_DYNAMIC_QUANTIZE")
def dynamic(node: Node, build: Builder) -> None:
    """As it is."""
    build.lower(DynamicQuantize, node, node.inputs[:1])


@lowers("ONNX_CONV_INTEGER", "ONNX_DENSE_INTEGER")
def integer_layer(node: Node, build: Builder) -> None:
    """A layer whose results are its sums."""
    if not node.input(1).is_constant:
        raise Unsupported("weights are computed when the model runs", "constants")
    if node.kind == "ONNX_DENSE_INTEGER":
        lower_dense(node, build, None, zeros_of(node), Sums())
        return
    weights, geometry = node.input(1).content, window(node)
    groups = node.input(0).shape[3] // weights.shape[3]
    build.lower(Convolution, node, node.inputs[:1], geometry, groups, weights, None, *zeros_of(node), Sums())


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
    tensors = tuple((one, values[one]) for one in operator.arguments if one in values)
    build.add(UserCall(node.label, inputs, results, operator, tensors, bound.scalars))
