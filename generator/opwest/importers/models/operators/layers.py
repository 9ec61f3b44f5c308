# SPDX-License-Identifier: Apache-2.0
"""Convolutions and fully connected layers.

Sources in TFLite: kernels/conv.cc, depthwise_conv.cc, fully_connected.cc, kernels/kernel_util.cc
(PopulateConvolutionQuantizationParams, GetQuantizedConvolutionMultipler), internal/reference/integer_ops/conv.h,
depthwise_conv.h, fully_connected.h. The roundings are those of LiteRT's reference kernels, as measured.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from opwest.importers.models.graph.faults import Unsupported
from opwest.importers.models.graph.spec import Operator, Result, specify
from opwest.importers.models.graph.types import Node, Quantization, Rules, Tensor
from opwest.importers.models.operators.fixed_point import (
    Requantisation,
    Rounding,
    activation_range,
    float32,
    multipliers_of,
    one_quantization,
)
from opwest.importers.models.operators.hybrid import check_hybrid, is_hybrid, scales_of
from opwest.importers.models.operators.windows import Window, window_of

_DTYPES = (
    "float32 float32 [float32]",
    "int8 int8 [int32]",
    "int16 int8 [int32|int64]",
    "uint8 uint8 [int32]",
    "float32 int8 [float32]",
)


def window(node: Node) -> Window:
    """Return the windows of CONV_2D, DEPTHWISE_CONV_2D: weights [o,h,w,c] or [1,h,w,o]."""
    data, weights = node.input(0).shape, node.input(1).shape
    return window_of(node, (weights[1], weights[2]), (data[1], data[2]))


def _convolution(node: Node) -> Sequence[Result]:
    data, weights = node.input(0), node.input(1)
    _check_ranks(data, weights)
    depth, inner, results = data.shape[3], weights.shape[3], weights.shape[0]
    if not inner or depth % inner or results % (depth // inner):
        raise Unsupported(f"weights {list(weights.shape)} for data {list(data.shape)}")
    _check_bias(node, results)
    return [(data.dtype, (data.shape[0], *window(node).result, results))]


def _depthwise(node: Node) -> Sequence[Result]:
    data, weights = node.input(0), node.input(1)
    _check_ranks(data, weights)
    results = weights.shape[3]
    if weights.shape[0] != 1 or results % data.shape[3]:
        raise Unsupported(f"weights {list(weights.shape)} for data {list(data.shape)}")
    _check_bias(node, results)
    return [(data.dtype, (data.shape[0], *window(node).result, results))]


def _dense(node: Node) -> Sequence[Result]:
    data, weights = node.input(0), node.input(1)
    if node.options["weights_format"] != "DEFAULT":
        raise Unsupported(f"weights in the format {node.options['weights_format']}", "DEFAULT")
    if len(weights.shape) != 2 or not weights.shape[1] or data.size % weights.shape[1]:
        raise Unsupported(f"weights {list(weights.shape)} for data {list(data.shape)}")
    results, length = weights.shape
    _check_bias(node, results)
    if node.options["keep_num_dims"]:
        if data.shape[-1] != length:
            raise Unsupported(f"weights {list(weights.shape)} for data {list(data.shape)}")
        return [(data.dtype, (*data.shape[:-1], results))]
    return [(data.dtype, (data.size // length, results))]


def _check_ranks(data: Tensor, weights: Tensor) -> None:
    if len(data.shape) != 4 or len(weights.shape) != 4:
        raise Unsupported(f"data {list(data.shape)}, weights {list(weights.shape)}", "4 dimensions each")


def _check_bias(node: Node, results: int) -> None:
    if is_hybrid(node):
        check_hybrid(node)
        scales_of(node, results)
    bias = node.optional(2)
    if bias is not None and bias.size != results:
        raise Unsupported(f"bias {list(bias.shape)} for {results} results")


_WINDOW = {"padding": "SAME", "stride_w": 1, "stride_h": 1, "fused_activation_function": "NONE"}
_DILATION = {"dilation_w_factor": 1, "dilation_h_factor": 1}
specify(
    Operator("CONV_2D", _convolution, _DTYPES, {**_WINDOW, **_DILATION}),
    Operator("DEPTHWISE_CONV_2D", _depthwise, _DTYPES, {**_WINDOW, **_DILATION}),
    Operator(
        "FULLY_CONNECTED",
        _dense,
        _DTYPES,
        {
            "fused_activation_function": "NONE",
            "weights_format": "DEFAULT",
            "keep_num_dims": False,
            "asymmetric_quantize_inputs": False,
        },
    ),
)


def requantisation(node: Node, rules: Rules) -> Requantisation:
    """Return the requantisation of a layer with the inputs data and weights."""
    return requantisation_of(node, node.input(0), node.input(1), rules)


def requantisation_of(node: Node, data: Tensor, weights: Tensor, rules: Rules) -> Requantisation:
    """Return the requantisation of a layer with int8, uint8 or int16 data, with one multiplier or one per channel."""
    result = node.output
    source, target = one_quantization(data), one_quantization(result)
    if weights.quantization is None:
        raise Unsupported(f"'{weights.name}' is {weights.dtype} without a scale", "a quantised tensor")
    scales = weights.quantization.scales
    if rules.float_requantization:
        rounding = Rounding.FLOAT
    elif node.kind == "FULLY_CONNECTED":
        rounding = Rounding.TWICE if rules.dense_rounds_twice and data.dtype != "int16" else Rounding.ONCE
    else:
        rounding = Rounding.SIXTEEN if data.dtype == "int16" else Rounding.TWICE
    # LiteRT multiplies the scales as double; tflite-micro as float32 for layers with one scale, with other ties.
    # For products of two computed matrices and uint8 convolutions LiteRT does that, too.
    reals = [source.scale * scale / target.scale for scale in scales]
    if node.kind == "BATCH_MATMUL" or (data.dtype == "uint8" and node.kind != "FULLY_CONNECTED"):
        reals = [float32(source.scale * scale) / target.scale for scale in scales]
    low, high = activation_range(str(node.options.get("fused_activation_function", "NONE")), result)
    floats = _float_scales(source, scales, target)
    return Requantisation(multipliers_of(reals), rounding, target.zero, low, high, floats)


def _float_scales(source: Quantization, scales: Sequence[float], target: Quantization) -> tuple[float, ...]:
    """Return the multipliers of onnxruntime: both operations in float32. Source: its quantization/qlinearconv.cc."""
    return tuple(float(np.float32(source.scale) * np.float32(one) / np.float32(target.scale)) for one in scales)
