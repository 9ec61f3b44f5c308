# SPDX-License-Identifier: Apache-2.0
"""Layers with a state."""

from __future__ import annotations

from opwest.importers.models.graph.types import Node
from opwest.importers.models.ir.operations import Clamp
from opwest.importers.models.ir.recurrent import Filter, HybridFeature
from opwest.importers.models.lower.builder import Builder, lowers
from opwest.importers.models.operators.fixed_point import limits_of, one_quantization
from opwest.importers.models.operators.recurrent import hybrid_scales, svdf_numbers, time_weights


@lowers("SVDF")
def svdf(node: Node, build: Builder) -> None:
    """As it is."""
    data, state, bias = node.input(0), node.input(4), node.optional(3)
    operands = (build.value(data), build.value(state)), (build.value(node.output),)
    arrays = node.input(1).content, node.input(2).content, None if bias is None else bias.content.reshape(-1)
    rank = int(node.options["rank"])
    if data.dtype == "float32":
        clamp = Clamp(*limits_of(node.options["fused_activation_function"]))
        found = hybrid_scales(node)
        hybrid = None
        if found is not None:
            arrays = arrays[0], time_weights(arrays[1], found), arrays[2]
            hybrid = HybridFeature(found.feature, bool(node.options["asymmetric_quantize_inputs"]))
        build.add(Filter(node.label, *operands, rank, *arrays, (0, 0), hybrid, None, clamp))
        return
    inner, finish = svdf_numbers(node)
    zeros = one_quantization(data).zero, one_quantization(state).zero
    build.add(Filter(node.label, *operands, rank, *arrays, zeros, None, inner, finish))
