# SPDX-License-Identifier: Apache-2.0
"""Conversions between dtypes."""

from __future__ import annotations

from opwest.importers.models.graph.types import Node, Tensor
from opwest.importers.models.ir.elements import Cast, Dequantised, DequantisedEach, Quantised, QuantisedEach, Rescaled
from opwest.importers.models.ir.operations import Elementwise
from opwest.importers.models.ir.program import Value
from opwest.importers.models.lower.arithmetic import elementwise
from opwest.importers.models.lower.builder import Builder, lowers
from opwest.importers.models.lower.unary import lookup
from opwest.importers.models.operators import conversion
from opwest.importers.models.operators.fixed_point import RANGES, one_quantization
from opwest.importers.models.operators.rescale import rescale_of
from opwest.importers.models.operators.tables import byte_table


@lowers("QUANTIZE")
def quantize(node: Node, build: Builder) -> None:
    """From float32, or from one scale to another."""
    if conversion.is_quantised_each(node):
        limits = RANGES[node.output.dtype]
        build.add(Elementwise(node.label, *_with_each(node.input(0), node.output, node, build), QuantisedEach(*limits)))
    elif node.input(0).dtype == "float32":
        elementwise(node, build, Quantised(conversion.quantize_numbers(node)))
    elif node.input(0).dtype in ("int8", "uint8"):
        lookup(node, build, byte_table(node))
    else:
        elementwise(node, build, Rescaled(node.kind, rescale_of(node)))


def _with_each(data: Tensor, quantised: Tensor, node: Node, build: Builder) -> tuple[tuple[Value, ...], tuple[Value]]:
    """Return the data, scales and zero points of a quantised tensor, and the result."""
    scales, zeros = conversion.each_of(quantised, data.shape)
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
        elementwise(node, build, Dequantised(one.scale, one.zero))
    else:
        build.add(Elementwise(node.label, *_with_each(data, data, node, build), DequantisedEach()))


@lowers("CAST")
def cast(node: Node, build: Builder) -> None:
    """The same value in another dtype."""
    if node.input(0).dtype == node.output.dtype:
        build.view(node.output, build.value(node.input(0)))
    else:
        elementwise(node, build, Cast())
