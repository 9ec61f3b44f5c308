# SPDX-License-Identifier: Apache-2.0
"""Softmax and its relatives."""

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
from opwest.compiler.semantics import rows as reduction
from opwest.compiler.semantics.fixed_point import RANGES, one_quantization
from opwest.compiler.semantics.layers import window
from opwest.compiler.semantics.onnx import zeros_of
from opwest.compiler.semantics.rows import exponentials, log_softmax_numbers, softmax16_numbers
from opwest.compiler.semantics.windows import Window


def _operands(node: Node, build: Builder) -> tuple[tuple[Value], tuple[Value]]:
    return (build.value(node.input(0)),), (build.value(node.output),)


@lowers("SOFTMAX")
def softmax(node: Node, build: Builder) -> None:
    """With a table for 8 bits, two tables for 16 bits."""
    operands, dtype = _operands(node, build), node.input(0).dtype
    if dtype == "float32":
        build.add(SoftmaxFloat(node.label, *operands, node.options["beta"]))
    elif dtype == "int16":
        build.add(Softmax16(node.label, *operands, softmax16_numbers(node)))
    else:
        build.add(SoftmaxTable(node.label, *operands, exponentials(node)))


@lowers("LOG_SOFTMAX")
def log_softmax(node: Node, build: Builder) -> None:
    """With tables for 8 bits."""
    operands = _operands(node, build)
    if node.output.dtype == "float32":
        build.add(LogSoftmaxFloat(node.label, *operands))
    else:
        build.add(LogSoftmaxTable(node.label, *operands, log_softmax_numbers(node)))


@lowers("L2_NORMALIZATION")
def l2_normalisation(node: Node, build: Builder) -> None:
    """As it is."""
    zero = 0 if node.output.dtype == "float32" else one_quantization(node.input(0)).zero
    build.add(UnitLength(node.label, *_operands(node, build), zero))


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
    build.add(Reduce(node.label, *_operands(node, build), kind, reduction.axes_of(node), zero, finish))


@lowers("ARG_MAX", "ARG_MIN")
def position(node: Node, build: Builder) -> None:
    """As it is."""
    build.add(
        Position(node.label, *_operands(node, build), reduction.position_axis(node), is_greatest=node.kind == "ARG_MAX")
    )


@lowers("TOPK_V2")
def greatest(node: Node, build: Builder) -> None:
    """As it is."""
    data, results = build.value(node.input(0)), tuple(build.value(output) for output in node.outputs)
    build.add(Greatest(node.label, (data,), results, reduction.greatest_count(node)))


@lowers("CUMSUM")
def running_sum(node: Node, build: Builder) -> None:
    """int8 sums are requantised."""
    axis = reduction.position_axis(node)
    options = bool(node.options["exclusive"]), bool(node.options["reverse"])
    is_byte = node.input(0).dtype == "int8"
    finish = reduction.running_sum_numbers(node) if is_byte else None
    zero = one_quantization(node.input(0)).zero if is_byte else 0
    build.add(RunningSum(node.label, *_operands(node, build), axis, *options, zero, finish))


@lowers("ONNX_QUANTIZE")
def quantize(node: Node, build: Builder) -> None:
    """As it is."""
    target = one_quantization(node.output)
    function = QuantizeEven(target.scale, target.zero, *RANGES[node.output.dtype])
    build.add(Elementwise(node.label, (build.value(node.input(0)),), (build.value(node.output),), function))


@lowers("ONNX_LOOKUP")
def lookup(node: Node, build: Builder) -> None:
    """A table in the order of the bytes: index 0 is the value 0."""
    table = node.input(1).content
    if node.input(0).dtype == "int8":
        table = np.roll(table, 128)
    function = Lookup(tuple(int(v) for v in table))
    build.add(Elementwise(node.label, (build.value(node.input(0)),), (build.value(node.output),), function))


@lowers("ONNX_DYNAMIC_QUANTIZE")
def dynamic(node: Node, build: Builder) -> None:
    """As it is."""
    results = tuple(build.value(output) for output in node.outputs)
    build.add(DynamicQuantize(node.label, (build.value(node.input(0)),), results))


def _check(node: Node) -> None:
    if not node.input(1).is_constant:
        raise Unsupported("weights are computed when the model runs", "constants")


@lowers("ONNX_CONV_INTEGER")
def convolution(node: Node, build: Builder) -> None:
    """A convolution whose results are its sums."""
    _check(node)
    weights = node.input(1).content
    operands = (build.value(node.input(0)),), (build.value(node.output),)
    groups = node.input(0).shape[3] // weights.shape[3]
    numbers = zeros_of(node)
    build.add(Convolution(node.label, *operands, window(node), groups, weights, None, *numbers, Sums()))


@lowers("ONNX_DENSE_INTEGER")
def dense(node: Node, build: Builder) -> None:
    """A convolution of one element per row."""
    _check(node)
    weights = node.input(1).content
    results, length = weights.shape
    rows = node.input(0).size // length
    window = Window((1, 1), (1, 1), (1, 1), (0, 0), (1, 1))
    data = build.part(build.value(node.input(0)), (rows, 1, 1, length))
    shaped = weights.reshape(results, 1, 1, length)
    result = (build.value(node.output),)
    build.add(Convolution(node.label, (data,), result, window, 1, shaped, None, *zeros_of(node), Sums()))


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
