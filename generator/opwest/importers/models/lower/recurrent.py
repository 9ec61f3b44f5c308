# SPDX-License-Identifier: Apache-2.0
"""Layers with a state."""

from __future__ import annotations

import numpy as np

from opwest.importers.models.graph.types import Node
from opwest.importers.models.ir.operations import Clamp
from opwest.importers.models.ir.recurrent import Filter, Memory
from opwest.importers.models.lower.builder import Builder, lowers
from opwest.importers.models.operators.fixed_point import limits_of, one_quantization
from opwest.importers.models.operators.recurrent import BIASES, WEIGHTS, svdf_numbers


@lowers("SVDF")
def svdf(node: Node, build: Builder) -> None:
    """As it is."""
    data, state, bias = node.input(0), node.input(4), node.optional(3)
    operands = (build.value(data), build.value(state)), (build.value(node.output),)
    arrays = node.input(1).content, node.input(2).content, None if bias is None else bias.content.reshape(-1)
    rank = int(node.options["rank"])
    if data.dtype == "float32":
        clamp = Clamp(*limits_of(node.options["fused_activation_function"]))
        build.add(Filter(node.label, *operands, rank, *arrays, (0, 0), None, clamp))
        return
    inner, finish = svdf_numbers(node)
    zeros = one_quantization(data).zero, one_quantization(state).zero
    build.add(Filter(node.label, *operands, rank, *arrays, zeros, inner, finish))


@lowers("UNIDIRECTIONAL_SEQUENCE_LSTM")
def lstm(node: Node, build: Builder) -> None:
    """With one array for the weights of data and results."""
    inputs = tuple(build.value(node.input(i)) for i in (0, 18, 19))
    gates = [np.concatenate([node.input(i).content, node.input(i + 4).content], axis=1) for i in WEIGHTS[:4]]
    bias = np.stack([node.input(i).content.reshape(-1) for i in BIASES])
    result, clip = build.value(node.output), float(node.options["cell_clip"])
    build.add(Memory(node.label, inputs, (result,), bool(node.options["time_major"]), np.stack(gates), bias, clip))
