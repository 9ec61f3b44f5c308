# SPDX-License-Identifier: Apache-2.0
"""Convolutions and fully connected layers."""

from __future__ import annotations

from typing import Any

import numpy as np

from opwest.compiler.graph.types import Node, Shape, Tensor, Unsupported
from opwest.compiler.ir.movement import Move
from opwest.compiler.ir.operations import (
    Clamp,
    Convolution,
    Depthwise,
    DirectConvolution,
    Filter,
    Finish,
    FloatMemory,
    HybridConvolution,
    HybridFeature,
    HybridProduct,
    HybridWeights,
    IntegerMemory,
    MatrixProduct,
    Pool,
    QuantiseRows,
    Sums,
)
from opwest.compiler.ir.program import Value
from opwest.compiler.lowering.builder import Builder, box, lowers
from opwest.compiler.semantics import layers, windows
from opwest.compiler.semantics import recurrent as rules
from opwest.compiler.semantics.fixed_point import activation_range, limits_of, one_quantization
from opwest.compiler.semantics.layers import check_depth, has_plain_sums, is_hybrid, transposed_window
from opwest.compiler.semantics.movement import strides_of
from opwest.compiler.semantics.recurrent import hybrid_scales, lstm_numbers, svdf_numbers, time_weights
from opwest.compiler.semantics.windows import Window


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
        weights, window = weights.reshape(results, 1, 1, length), Window((1, 1), (1, 1), (1, 1), (0, 0), (1, 1))
    else:
        shape, window = data.shape, transposed_window(node) if is_transposed else layers.window(node)
        results = weights.shape[3 if is_depthwise else 0]
        weights = weights[0] if is_depthwise else weights
        groups = 1 if is_depthwise else shape[3] // weights.shape[3]
    values = _quantised(node, build, value, shape)
    build.add(
        HybridConvolution(
            node.label,
            values,
            (build.value(node.output),),
            window,
            groups,
            is_depthwise,
            weights,
            np.asarray(layers.scales_of(node, results), np.float32),
            None if bias is None else bias.content.reshape(-1),
            Clamp(*limits_of(str(node.options.get("fused_activation_function", "NONE")))),
            is_transposed,
        )
    )


def _quantised(node: Node, build: Builder, data: Value, shape: Shape) -> tuple[Value, ...]:
    """Return the quantised rows of data, their scales and perhaps their zero points."""
    values = [
        build.intermediate("quantised", "int8", shape),
        build.intermediate("scales", "float32", (shape[0],)),
    ]
    if layers.is_asymmetric(node):
        values.append(build.intermediate("zeros", "int32", (shape[0],)))
    build.add(QuantiseRows(node.label, (build.part(data, shape),), tuple(values)))
    return tuple(values)


def _transposed(node: Node, data: Value, build: Builder) -> Value:
    """Return data with the last two dimensions swapped."""
    shape = (*data.shape[:-2], data.shape[-1], data.shape[-2])
    found, strides = build.intermediate("transposed", data.dtype, shape), strides_of(data.shape)
    steps = [*strides[:-2], strides[-1], strides[-2]]
    build.add(Move(node.label, (data,), (found,), (box(0, shape, [0] * len(shape), shape, steps),)))
    return found


def _batches(node: Node, build: Builder, data: Value, weights: Any) -> None:
    """Add the product with several matrices."""
    rows = data.size // data.shape[-1]
    values = _quantised(node, build, data, (rows, 1, 1, data.shape[-1]))
    [scale] = layers.scales_of(node, 1)
    build.add(HybridProduct(node.label, values, (build.value(node.output),), data.shape, weights, scale))


def finish_of(node: Node, data: Tensor, weights: Tensor, build: Builder) -> tuple[tuple[int, int], Finish]:
    """Return the zero points of data and weights, and the end of the layer."""
    if data.dtype == "float32":
        return (0, 0), Clamp(*limits_of(str(node.options.get("fused_activation_function", "NONE"))))
    offsets = weights.quantization
    finish = layers.requantisation(node, build.rules)
    assert offsets is not None
    return (one_quantization(data).zero, offsets.zeros[0]), finish


def _inputs(build: Builder, *tensors: Tensor | None) -> tuple[Value, ...]:
    return tuple(build.value(tensor) for tensor in tensors if tensor is not None)


@lowers("BATCH_MATMUL")
def product(node: Node, build: Builder) -> None:
    """As it is."""
    if is_hybrid(node):
        lower_hybrid(node, build)
        return
    one, other = node.input(0), node.input(1)
    zeros, finish = ((0, 0), Sums()) if has_plain_sums(node) else finish_of(node, one, other, build)
    swaps = bool(node.options["adj_x"]), bool(node.options["adj_y"])
    build.add(MatrixProduct(node.label, _inputs(build, one, other), (build.value(node.output),), swaps, zeros, finish))


@lowers("TRANSPOSE_CONV")
def transposed(node: Node, build: Builder) -> None:
    """As it is."""
    if is_hybrid(node):
        lower_hybrid(node, build)
        return
    weights, data = node.input(1), node.input(2)
    zeros, finish = finish_of(node, data, weights, build)
    inputs, window = _inputs(build, data, weights, node.optional(3)), transposed_window(node)
    build.add(DirectConvolution(node.label, inputs, (build.value(node.output),), window, True, 1, zeros, finish))


def computed_convolution(node: Node, build: Builder) -> None:
    """Add CONV_2D or DEPTHWISE_CONV_2D with weights or bias that are computed when the model runs."""
    data, weights = node.input(0), node.input(1)
    is_depthwise = node.kind == "DEPTHWISE_CONV_2D"
    check_depth(data.dtype, weights.dtype, weights.size // weights.shape[3 if is_depthwise else 0])
    zeros, finish = finish_of(node, data, weights, build)
    inputs = _inputs(build, data, weights, node.optional(2))
    groups = 0 if is_depthwise else data.shape[3] // weights.shape[3]
    operands = (inputs, (build.value(node.output),), layers.window(node))
    build.add(DirectConvolution(node.label, *operands, False, groups, zeros, finish))


def computed_dense(node: Node, build: Builder) -> None:
    """Add FULLY_CONNECTED with weights or bias that are computed when the model runs."""
    data, weights = node.input(0), node.input(1)
    length = weights.shape[1]
    check_depth(data.dtype, weights.dtype, length)
    zeros, finish = finish_of(node, data, weights, build)
    rows = build.part(build.value(data), (data.size // length, length))
    inputs = (rows, *_inputs(build, weights, node.optional(2)))
    build.add(MatrixProduct(node.label, inputs, (build.value(node.output),), (False, True), zeros, finish))


_MAX_BIAS = 1 << 32


def _is_computed(node: Node) -> bool:
    """Whether weights or bias are computed when the model runs."""
    bias = node.optional(2)
    return not node.input(1).is_constant or (bias is not None and not bias.is_constant)


def _constants(node: Node) -> tuple[Any, Any]:
    """Return weights and bias."""
    bias = node.optional(2)
    return node.input(1).content, None if bias is None else bias.content.reshape(-1)


def _finish(node: Node, build: Builder) -> tuple[int, int, Finish]:
    """Return the zero points of data and weights, and the end of the layer."""
    (zero, weight_zero), finish = finish_of(node, node.input(0), node.input(1), build)
    return zero, weight_zero, finish


@lowers("CONV_2D")
def convolution(node: Node, build: Builder) -> None:
    """As it is, unless weights are computed."""
    if is_hybrid(node):
        lower_hybrid(node, build)
        return
    if _is_computed(node):
        computed_convolution(node, build)
        return
    weights, bias = _constants(node)
    zero, weight_zero, finish = _finish(node, build)
    groups = node.input(0).shape[3] // weights.shape[3]
    operands = (build.value(node.input(0)),), (build.value(node.output),)
    build.add(Convolution(node.label, *operands, layers.window(node), groups, weights, bias, zero, weight_zero, finish))


@lowers("DEPTHWISE_CONV_2D")
def depthwise(node: Node, build: Builder) -> None:
    """As it is, unless weights are computed."""
    if is_hybrid(node):
        lower_hybrid(node, build)
        return
    if _is_computed(node):
        computed_convolution(node, build)
        return
    weights, bias = _constants(node)
    zero, weight_zero, finish = _finish(node, build)
    operands = (build.value(node.input(0)),), (build.value(node.output),)
    build.add(Depthwise(node.label, *operands, layers.window(node), weights[0], bias, zero, weight_zero, finish))


@lowers("FULLY_CONNECTED")
def dense(node: Node, build: Builder) -> None:
    """A convolution of one element per row, unless weights are computed."""
    if is_hybrid(node):
        lower_hybrid(node, build)
        return
    if _is_computed(node):
        computed_dense(node, build)
        return
    weights, bias = _constants(node)
    if bias is not None and bias.dtype == np.int64 and np.abs(bias).max() >= _MAX_BIAS:
        # A sum times a multiplier of 31 bits has 64.
        raise Unsupported(f"the bias '{node.input(2).name}' has the value {bias[np.abs(bias).argmax()]}", "below 2**32")
    zero, weight_zero, finish = _finish(node, build)
    results, length = weights.shape
    rows = node.input(0).size // length
    window = Window((1, 1), (1, 1), (1, 1), (0, 0), (1, 1))
    data = build.part(build.value(node.input(0)), (rows, 1, 1, length))
    shaped = np.reshape(weights, (results, 1, 1, length))
    result = build.value(node.output)
    build.add(Convolution(node.label, (data,), (result,), window, 1, shaped, bias, zero, weight_zero, finish))


_KINDS = {"AVERAGE_POOL_2D": "average", "MAX_POOL_2D": "maximum", "L2_POOL_2D": "l2"}


@lowers(*_KINDS)
def pool(node: Node, build: Builder) -> None:
    """As it is."""
    low: int | float | None
    high: int | float | None
    if node.output.dtype == "float32":
        low, high = limits_of(node.options["fused_activation_function"])
    else:
        low, high = activation_range(node.options["fused_activation_function"], node.output)
    operands = (build.value(node.input(0)),), (build.value(node.output),)
    build.add(Pool(node.label, *operands, _KINDS[node.kind], windows.window(node), low, high))


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
