# SPDX-License-Identifier: Apache-2.0
"""Convolutions, fully connected layers, matrix products, pools, and recurrent layers."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from opwest.compiler.graph.types import Node, Shape, Unsupported
from opwest.compiler.ir import operations as ir
from opwest.compiler.ir.movement import Move
from opwest.compiler.ir.program import Value
from opwest.compiler.lowering.builder import Builder, lowers, whole
from opwest.compiler.semantics import layers, windows
from opwest.compiler.semantics import recurrent as rules
from opwest.compiler.semantics.fixed_point import Requantisation, activation_range, limits_of, one_quantization
from opwest.compiler.semantics.layers import check_depth, has_plain_sums, is_hybrid, transposed_window
from opwest.compiler.semantics.movement import strides_of
from opwest.compiler.semantics.recurrent import hybrid_scales, lstm_numbers, svdf_numbers, time_weights
from opwest.compiler.semantics.windows import Window

ONE = Window((1, 1), (1, 1), (1, 1), (0, 0), (1, 1))
"""The window of a fully connected layer."""


def lower_hybrid(node: Node, build: Builder) -> None:
    """Add the operations of a node with float32 data and int8 weights."""
    data, weights, bias = layers.data_of(node), node.input(1).content, layers.bias_of(node)
    is_depthwise, is_transposed = node.kind == "DEPTHWISE_CONV_2D", node.kind == "TRANSPOSE_CONV"
    groups, value = 1, build.value(data)
    if node.kind == "BATCH_MATMUL":
        weights = weights if node.options["adj_y"] else np.ascontiguousarray(np.swapaxes(weights, -1, -2))
        value = _transposed(node, value, build) if node.options["adj_x"] else value
        if layers.is_batched(node):
            _batches(node, build, value, weights)
            return
        weights = weights.reshape(weights.shape[-2:])
    if node.kind in ("FULLY_CONNECTED", "BATCH_MATMUL"):
        results, length = weights.shape
        shape: tuple[int, ...] = (data.size // length, 1, 1, length)
        weights, window = weights.reshape(results, 1, 1, length), ONE
    else:
        shape, window = data.shape, transposed_window(node) if is_transposed else layers.window(node)
        results = weights.shape[3 if is_depthwise else 0]
        weights = weights[0] if is_depthwise else weights
        groups = 1 if is_depthwise else shape[3] // weights.shape[3]
    values = _quantised(node, build, value, shape)
    scales = np.asarray(layers.scales_of(node, results), np.float32)
    arrays = weights, scales, None if bias is None else bias.content.reshape(-1)
    build.lower(
        ir.HybridConvolution, node, values, window, groups, is_depthwise, *arrays, _clamp_of(node), is_transposed
    )


def _clamp_of(node: Node) -> ir.Clamp:
    """Return the end of a float layer."""
    return ir.Clamp(*limits_of(str(node.options.get("fused_activation_function", "NONE"))))


def _quantised(node: Node, build: Builder, data: Value, shape: Shape) -> tuple[Value, ...]:
    """Return the quantised rows of data, their scales and perhaps their zero points."""
    values = [
        build.intermediate("quantised", "int8", shape),
        build.intermediate("scales", "float32", (shape[0],)),
    ]
    if layers.is_asymmetric(node):
        values.append(build.intermediate("zeros", "int32", (shape[0],)))
    build.add(ir.QuantiseRows(node.label, (build.part(data, shape),), tuple(values)))
    return tuple(values)


def _transposed(node: Node, data: Value, build: Builder) -> Value:
    """Return data with the last two dimensions swapped."""
    shape = (*data.shape[:-2], data.shape[-1], data.shape[-2])
    result, strides = build.intermediate("transposed", data.dtype, shape), strides_of(data.shape)
    steps = [*strides[:-2], strides[-1], strides[-2]]
    build.add(Move(node.label, (data,), (result,), (whole(0, shape, steps),)))
    return result


def _batches(node: Node, build: Builder, data: Value, weights: Any) -> None:
    """Add the product with several matrices."""
    rows = data.size // data.shape[-1]
    values = _quantised(node, build, data, (rows, 1, 1, data.shape[-1]))
    [scale] = layers.scales_of(node, 1)
    build.lower(ir.HybridProduct, node, values, data.shape, weights, scale)


def finish_of(node: Node, build: Builder) -> tuple[tuple[int, int], ir.Finish]:
    """Return the zero points of data and weights, and the end of the layer."""
    data, offsets = layers.data_of(node), node.input(1).quantization
    if data.dtype == "float32":
        return (0, 0), _clamp_of(node)
    finish = layers.requantisation(node, build.rules)
    assert offsets is not None
    return (one_quantization(data).zero, offsets.zeros[0]), finish


_MAX_BIAS = 1 << 32


@lowers(*layers.KINDS)
def layer(node: Node, build: Builder) -> None:
    """A layer with constant weights and bias, or with such that are computed when the model runs."""
    data, weights, bias = layers.data_of(node), node.input(1), layers.bias_of(node)
    is_depthwise, is_dense = node.kind == "DEPTHWISE_CONV_2D", node.kind == "FULLY_CONNECTED"
    if is_hybrid(node):
        lower_hybrid(node, build)
        return
    if node.kind == "BATCH_MATMUL":
        swaps = bool(node.options["adj_x"]), bool(node.options["adj_y"])
        zeros, finish = ((0, 0), ir.Sums()) if has_plain_sums(node) else finish_of(node, build)
        if _is_dense(node) and isinstance(finish, Requantisation):
            matrix = weights.content.reshape(weights.shape[-2:])
            lower_dense(node, build, None, zeros, finish, matrix if swaps[1] else np.ascontiguousarray(matrix.T))
            return
        build.lower(ir.MatrixProduct, node, (data, weights), swaps, zeros, finish)
        return
    if node.kind == "TRANSPOSE_CONV":
        inputs, window = (data, weights, bias), transposed_window(node)
        build.lower(ir.DirectConvolution, node, inputs, window, True, 1, *finish_of(node, build))
        return
    is_constant = weights.is_constant and (bias is None or bias.is_constant)
    if not is_constant:
        check_depth(data.dtype, weights.dtype, weights.size // weights.shape[3 if is_depthwise else 0])
    biases = bias.content.reshape(-1) if is_constant and bias is not None else None
    if is_dense and bias is not None and biases is not None and biases.dtype == np.int64:
        greatest = biases[np.abs(biases).argmax()]
        if abs(greatest) >= _MAX_BIAS:  # a sum times a multiplier of 31 bits has 64
            raise Unsupported(f"the bias '{bias.name}' has the value {greatest}", "below 2**32")
    zeros, finish = finish_of(node, build)
    if is_dense and is_constant:
        lower_dense(node, build, biases, zeros, finish)
    elif is_dense:
        rows = build.part(build.value(data), (data.size // weights.shape[1], weights.shape[1]))
        build.lower(ir.MatrixProduct, node, (rows, weights, bias), (False, True), zeros, finish)
    elif not is_constant:
        groups = 0 if is_depthwise else data.shape[3] // weights.shape[3]
        inputs, window = (data, weights, bias), layers.window(node)
        build.lower(ir.DirectConvolution, node, inputs, window, False, groups, zeros, finish)
    elif is_depthwise:
        build.lower(ir.Depthwise, node, (data,), layers.window(node), weights.content[0], biases, *zeros, finish)
    else:
        groups, window = data.shape[3] // weights.shape[3], layers.window(node)
        build.lower(ir.Convolution, node, (data,), window, groups, weights.content, biases, *zeros, finish)


def _is_dense(node: Node) -> bool:
    """Whether a BATCH_MATMUL is a product of rows with one constant matrix of int8."""
    weights = node.input(1)
    is_one = prod(weights.shape[:-2]) == 1 and weights.dtype == "int8"
    return bool(weights.is_constant and is_one and not node.options["adj_x"])


def lower_dense(
    node: Node, build: Builder, bias: Any, zeros: tuple[int, int], finish: ir.Finish, weights: Any = None
) -> None:
    """Add a layer with constant weights [o,k]: a convolution of one element per row; None: the second input."""
    data, weights = node.input(0), node.input(1).content if weights is None else weights
    results, length = weights.shape
    rows = build.part(build.value(data), (data.size // length, 1, 1, length))
    build.lower(ir.Convolution, node, (rows,), ONE, 1, weights.reshape(results, 1, 1, length), bias, *zeros, finish)


_KINDS = {"AVERAGE_POOL_2D": "average", "MAX_POOL_2D": "maximum", "L2_POOL_2D": "l2"}


@lowers(*_KINDS)
def pool(node: Node, build: Builder) -> None:
    """The average, the maximum or the root of the mean of squares of windows."""
    low: int | float | None
    high: int | float | None
    if node.output.dtype == "float32":
        low, high = limits_of(node.options["fused_activation_function"])
    else:
        low, high = activation_range(node.options["fused_activation_function"], node.output)
    build.lower(ir.Pool, node, node.inputs[:1], _KINDS[node.kind], windows.window(node), low, high)


@lowers("SVDF")
def svdf(node: Node, build: Builder) -> None:
    """With float32 data, and int8 weights perhaps, or with int8 data."""
    data, state, bias = node.input(0), node.input(4), node.optional(3)
    arrays = node.input(1).content, node.input(2).content, None if bias is None else bias.content.reshape(-1)
    rank = int(node.options["rank"])
    if data.dtype == "float32":
        scales, hybrid = hybrid_scales(node), None
        if scales is not None:
            arrays = arrays[0], time_weights(arrays[1], scales[1]), arrays[2]
            hybrid = ir.HybridFeature(scales[0], bool(node.options["asymmetric_quantize_inputs"]))
        build.lower(ir.Filter, node, (data, state), rank, *arrays, (0, 0), hybrid, None, _clamp_of(node))
        return
    inner, finish = svdf_numbers(node)
    zeros = one_quantization(data).zero, one_quantization(state).zero
    build.lower(ir.Filter, node, (data, state), rank, *arrays, zeros, None, inner, finish)


def _stacked(node: Node, numbers: tuple[int, ...]) -> Any:
    """Return the arrays of the gates that exist; None for none."""
    arrays = [node.input(i).content for i in rules.present(node, numbers)]
    return np.stack(arrays) if arrays else None


def _content(node: Node, number: int) -> Any:
    tensor = node.optional(number)
    return None if tensor is None else tensor.content


@lowers("UNIDIRECTIONAL_SEQUENCE_LSTM")
def lstm(node: Node, build: Builder) -> None:
    """With float32 or integer data."""
    inputs, is_time_major = [node.input(i) for i in (0, rules.LAST, rules.CELLS)], bool(node.options["time_major"])
    parts = _stacked(node, rules.DATA_WEIGHTS), _stacked(node, rules.LAST_WEIGHTS)
    weights, bias = np.concatenate(parts, axis=2), _stacked(node, rules.BIASES)
    norms = _stacked(node, rules.NORMS)
    projection, projection_bias = (_content(node, i) for i in (rules.PROJECTION, rules.PROJECTION_BIAS))
    if node.input(0).dtype == "float32":
        arrays = weights, bias, _peepholes(node), norms, projection, projection_bias
        options = node.options
        clips = float(options["cell_clip"]), float(options["proj_clip"])
        activation = str(options["fused_activation_function"])
        build.lower(ir.FloatMemory, node, inputs, is_time_major, *arrays, activation, *clips, _hybrid(node))
        return
    numbers = lstm_numbers(node)
    starts = np.stack(
        [-zero * part.sum(axis=2, dtype=np.int64) for zero, part in zip(numbers.zeros, parts, strict=True)]
    )
    if norms is None:
        starts[0] += bias
        bias = None
    if projection is not None:
        less = numbers.hidden_zero * projection.sum(axis=1, dtype=np.int64)
        projection_bias = ((0 if projection_bias is None else projection_bias) - less).astype(np.int32)
    is_wide = bool(np.abs(starts).max() >= 1 << 31)
    arrays = weights, bias, _stacked(node, rules.PEEPHOLES), norms, projection, projection_bias
    starts = starts.astype(np.int64 if is_wide else np.int32)
    build.lower(ir.IntegerMemory, node, inputs, is_time_major, *arrays, starts, numbers)


def _peepholes(node: Node) -> Any:
    """Return the weights of the cells as float32."""
    weights = _stacked(node, rules.PEEPHOLES)
    if weights is None or weights.dtype == np.float32:
        return weights
    scales = [rules.scale_of_weights(node, i) for i in rules.present(node, rules.PEEPHOLES)]
    return weights.astype(np.float32) * np.asarray(scales, np.float32)[:, None]


def _hybrid(node: Node) -> ir.HybridWeights | None:
    if node.input(2).dtype != "int8":
        return None
    pairs = zip(rules.DATA_WEIGHTS, rules.LAST_WEIGHTS, strict=True)
    scales = [[rules.scale_of_weights(node, i) for i in pair] for pair in pairs if node.optional(pair[0]) is not None]
    return ir.HybridWeights(
        bool(node.options["asymmetric_quantize_inputs"]),
        np.asarray(scales, np.float32),
        rules.scale_of_weights(node, rules.PROJECTION),
    )
