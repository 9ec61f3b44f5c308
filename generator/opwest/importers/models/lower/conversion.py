# SPDX-License-Identifier: Apache-2.0
"""Conversions between dtypes."""

from __future__ import annotations

import numpy as np

from opwest.importers.models.graph.types import Node
from opwest.importers.models.ir.elements import Cast, Dequantised, DequantisedEach, Quantised, Rescaled
from opwest.importers.models.ir.operations import Elementwise
from opwest.importers.models.lower.arithmetic import elementwise
from opwest.importers.models.lower.builder import Builder, lowers
from opwest.importers.models.lower.unary import lookup
from opwest.importers.models.operators.conversion import quantize_numbers
from opwest.importers.models.operators.fixed_point import one_quantization
from opwest.importers.models.operators.rescale import rescale_of
from opwest.importers.models.operators.tables import byte_table


@lowers("QUANTIZE")
def quantize(node: Node, build: Builder) -> None:
    """From float32, or from one scale to another."""
    if node.input(0).dtype == "float32":
        elementwise(node, build, Quantised(quantize_numbers(node)))
    elif node.input(0).dtype in ("int8", "uint8"):
        lookup(node, build, byte_table(node))
    else:
        elementwise(node, build, Rescaled(node.kind, rescale_of(node)))


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
        shape = tuple(n if i == found.axis else 1 for i, n in enumerate(data.shape))
        scales = build.constant("scale", np.asarray(found.scales, np.float32).reshape(shape))
        zeros = build.constant("zero", np.asarray(found.zeros, np.int32).reshape(shape))
        inputs = (build.value(data), scales, zeros)
        build.add(Elementwise(node.label, inputs, (build.value(node.output),), DequantisedEach()))


@lowers("CAST")
def cast(node: Node, build: Builder) -> None:
    """The same value in another dtype."""
    if node.input(0).dtype == node.output.dtype:
        build.view(node.output, build.value(node.input(0)))
    else:
        elementwise(node, build, Cast())
