# SPDX-License-Identifier: Apache-2.0
"""Operators that only readers of ONNX make."""

from __future__ import annotations

import numpy as np

from opwest.importers.models.graph.faults import Unsupported
from opwest.importers.models.graph.types import Node
from opwest.importers.models.ir.functions import Call
from opwest.importers.models.ir.onnx import DynamicQuantize, Lookup, QuantizeEven
from opwest.importers.models.ir.operations import Convolution, Elementwise, Sums
from opwest.importers.models.lower.builder import Builder, lowers
from opwest.importers.models.operators.fixed_point import RANGES, one_quantization
from opwest.importers.models.operators.onnx import LIBRARY, integer_window, zeros_of
from opwest.importers.models.operators.windows import Window


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


@lowers(*LIBRARY)
def library(node: Node, build: Builder) -> None:
    """A function of the C library."""
    function = Call(LIBRARY[node.kind])
    build.add(Elementwise(node.label, (build.value(node.input(0)),), (build.value(node.output),), function))


@lowers("ONNX_DYNAMIC_QUANTIZE")
def dynamic(node: Node, build: Builder) -> None:
    """As it is."""
    results = tuple(build.value(one) for one in node.outputs)
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
    build.add(Convolution(node.label, *operands, integer_window(node), groups, weights, None, *numbers, Sums()))


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
