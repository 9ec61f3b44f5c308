# SPDX-License-Identifier: Apache-2.0
"""Layers with a state."""

from __future__ import annotations

from typing import Any

import numpy as np

from opwest.compiler.graph.types import Node
from opwest.compiler.ir.operations import Clamp
from opwest.compiler.ir.recurrent import Filter, FloatMemory, HybridFeature, HybridWeights, IntegerMemory
from opwest.compiler.lowering.builder import Builder, lowers
from opwest.compiler.semantics import lstm as rules
from opwest.compiler.semantics.fixed_point import limits_of, one_quantization
from opwest.compiler.semantics.lstm import lstm_numbers
from opwest.compiler.semantics.recurrent import hybrid_scales, svdf_numbers, time_weights


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


def _stacked(node: Node, numbers: tuple[int, ...]) -> Any:
    """Return the arrays of the gates that exist; None for none."""
    found = [node.input(i).content for i in rules.present(node, numbers)]
    return np.stack(found) if found else None


def _content(node: Node, number: int) -> Any:
    tensor = node.optional(number)
    return None if tensor is None else tensor.content


@lowers("UNIDIRECTIONAL_SEQUENCE_LSTM")
def lstm(node: Node, build: Builder) -> None:
    """With float32 or integer data."""
    operands = (
        node.label,
        tuple(build.value(node.input(i)) for i in (0, rules.LAST, rules.CELLS)),
        (build.value(node.output),),
        bool(node.options["time_major"]),
    )
    parts = _stacked(node, rules.DATA_WEIGHTS), _stacked(node, rules.LAST_WEIGHTS)
    weights, bias = np.concatenate(parts, axis=2), _stacked(node, rules.BIASES)
    norms = _stacked(node, rules.NORMS)
    projection, projection_bias = (_content(node, i) for i in (rules.PROJECTION, rules.PROJECTION_BIAS))
    if node.input(0).dtype == "float32":
        arrays = weights, bias, _peepholes(node), norms, projection, projection_bias
        options = node.options
        clips = float(options["cell_clip"]), float(options["proj_clip"])
        build.add(FloatMemory(*operands, *arrays, str(options["fused_activation_function"]), *clips, _hybrid(node)))
        return
    numbers = lstm_numbers(node)
    starts = np.stack([-zero * one.sum(axis=2, dtype=np.int64) for zero, one in zip(numbers.zeros, parts, strict=True)])
    if norms is None:
        starts[0] += bias
        bias = None
    if projection is not None:
        less = numbers.hidden_zero * projection.sum(axis=1, dtype=np.int64)
        projection_bias = ((0 if projection_bias is None else projection_bias) - less).astype(np.int32)
    is_wide = bool(np.abs(starts).max() >= 1 << 31)
    arrays = weights, bias, _stacked(node, rules.PEEPHOLES), norms, projection, projection_bias
    build.add(IntegerMemory(*operands, *arrays, starts.astype(np.int64 if is_wide else np.int32), numbers))


def _peepholes(node: Node) -> Any:
    """Return the weights of the cells as float32."""
    found = _stacked(node, rules.PEEPHOLES)
    if found is None or found.dtype == np.float32:
        return found
    scales = [rules.scale_of_weights(node, i) for i in rules.present(node, rules.PEEPHOLES)]
    return found.astype(np.float32) * np.asarray(scales, np.float32)[:, None]


def _hybrid(node: Node) -> HybridWeights | None:
    if node.input(2).dtype != "int8":
        return None
    pairs = zip(rules.DATA_WEIGHTS, rules.LAST_WEIGHTS, strict=True)
    scales = [[rules.scale_of_weights(node, i) for i in pair] for pair in pairs if node.optional(pair[0]) is not None]
    return HybridWeights(
        bool(node.options["asymmetric_quantize_inputs"]),
        np.asarray(scales, np.float32),
        rules.scale_of_weights(node, rules.PROJECTION),
    )
