# SPDX-License-Identifier: Apache-2.0
"""Convolutions, fully connected layers, matrix products.

Sources in TFLite: kernels/conv.cc, depthwise_conv.cc, fully_connected.cc, kernels/kernel_util.cc
(PopulateConvolutionQuantizationParams, GetQuantizedConvolutionMultipler), internal/reference/integer_ops/conv.h,
depthwise_conv.h, fully_connected.h. The roundings are those of LiteRT's reference kernels, as measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opwest.base.result import counted
from opwest.compiler.graph.spec import Operator, Result, broadcast, specify
from opwest.compiler.graph.types import Node, Rules, Tensor, Unsupported
from opwest.compiler.semantics.fixed_point import (
    Requantisation,
    Rounding,
    activation_range,
    float32,
    one_quantization,
    quantize_multiplier,
)
from opwest.compiler.semantics.windows import Window, window_of

KINDS = ("CONV_2D", "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV", "FULLY_CONNECTED", "BATCH_MATMUL")


def data_of(node: Node) -> Tensor:
    """Return the input with the data."""
    return node.input(2 if node.kind == "TRANSPOSE_CONV" else 0)


def bias_of(node: Node) -> Tensor | None:
    """Return the input with the bias."""
    return node.optional(3 if node.kind == "TRANSPOSE_CONV" else 2)


def is_hybrid(node: Node) -> bool:
    """Whether a node has float32 data and int8 weights."""
    return node.kind in KINDS and data_of(node).dtype == "float32" and node.input(1).dtype == "int8"


def check_hybrid(node: Node) -> None:
    """Raise Unsupported if the weights are not symmetric constants."""
    weights = node.input(1)
    hint = "convert the model with float or with fully quantised tensors"
    if not weights.is_constant:
        raise Unsupported("int8 weights that are computed when the model runs, with float32 data", "constants", hint)
    if weights.quantization is None:
        raise Unsupported(f"'{weights.name}' is int8 without a scale", "a quantised tensor")
    if any(weights.quantization.zeros):
        raise Unsupported(
            f"int8 weights '{weights.name}' with a zero point, with float32 data", "the zero point 0", hint
        )
    bias = bias_of(node)
    if bias is not None and not bias.is_constant:
        raise Unsupported("a bias that is computed when the model runs, with int8 weights", "a constant", hint)
    if is_batched(node) and len(weights.quantization.scales) != 1:
        raise Unsupported("a batch of int8 matrices with several scales, with float32 data", "one scale", hint)


def is_batched(node: Node) -> bool:
    """Whether the weights of BATCH_MATMUL are several matrices."""
    return node.kind == "BATCH_MATMUL" and any(n != 1 for n in node.input(1).shape[:-2])


def has_faulty_reference(node: Node) -> bool:
    """Whether LiteRT's result is wrong: BATCH_MATMUL with several dimensions of batches above 1."""
    if node.kind != "BATCH_MATMUL" or not is_hybrid(node):
        return False
    return any(sum(n > 1 for n in node.input(i).shape[:-2]) > 1 for i in (0, 1))


def is_asymmetric(node: Node) -> bool:
    """Whether the data are quantised with a zero point: convolutions with one scale are not, or by an option."""
    if node.kind in ("FULLY_CONNECTED", "BATCH_MATMUL"):
        return bool(node.options["asymmetric_quantize_inputs"])
    scales = node.input(1).quantization
    assert scales is not None
    is_grouped = node.kind == "CONV_2D" and node.input(0).shape[3] != node.input(1).shape[3]
    return node.kind in ("DEPTHWISE_CONV_2D", "TRANSPOSE_CONV") or is_grouped or len(set(scales.scales)) > 1


def scales_of(node: Node, results: int) -> tuple[float, ...]:
    """Return the scale of each result."""
    quantization = node.input(1).quantization
    assert quantization is not None
    if len(quantization.scales) == 1:
        return quantization.scales * results
    if len(quantization.scales) != results:
        raise Unsupported(f"{counted(len(quantization.scales), 'scale')} for {counted(results, 'result')}")
    return quantization.scales


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
    if len(data.shape) != 4 or len(weights.shape) != 4:
        raise Unsupported(f"data {list(data.shape)}, weights {list(weights.shape)}", "4 dimensions each")
    depth, inner = data.shape[3], weights.shape[3]
    if node.kind == "DEPTHWISE_CONV_2D":
        results, fits = inner, weights.shape[0] == 1 and inner % depth == 0
    else:
        results = weights.shape[0]
        fits = inner > 0 and depth % inner == 0 and results % (depth // inner) == 0
    if not fits:
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


def _check_bias(node: Node, results: int) -> None:
    if is_hybrid(node):
        check_hybrid(node)
        scales_of(node, results)
    bias = node.optional(2)
    if bias is not None and bias.size != results:
        raise Unsupported(f"bias {list(bias.shape)} for {counted(results, 'result')}")


_ACTIVATION = {"fused_activation_function": "NONE"}
_FLOAT_BIAS: dict[str, Any] = {"float_bias": ()}
"""The float32 biases of an integer layer, added before its results are rounded: only readers of PyTorch set them."""
_WINDOW = {"padding": "SAME", "stride_w": 1, "stride_h": 1, **_ACTIVATION, **_FLOAT_BIAS}
_DILATION = {"dilation_w_factor": 1, "dilation_h_factor": 1}
specify(
    Operator("CONV_2D", _convolution, _DTYPES, {**_WINDOW, **_DILATION}),
    Operator("DEPTHWISE_CONV_2D", _convolution, _DTYPES, {**_WINDOW, **_DILATION}),
    Operator(
        "FULLY_CONNECTED",
        _dense,
        _DTYPES,
        {
            **_ACTIVATION,
            **_FLOAT_BIAS,
            "weights_format": "DEFAULT",
            "keep_num_dims": False,
            "asymmetric_quantize_inputs": False,
        },
    ),
)


def requantisation(node: Node, rules: Rules) -> Requantisation:
    """Return the requantisation of a layer with int8, uint8 or int16 data, with one multiplier or one per channel."""
    data, weights, result = data_of(node), node.input(1), node.output
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
    # The multipliers of onnxruntime: both operations in float32. Source: its quantization/qlinearconv.cc.
    floats = tuple(float(np.float32(source.scale) * np.float32(scale) / np.float32(target.scale)) for scale in scales)
    multipliers = tuple(quantize_multiplier(real) for real in reals)
    if rounding is Rounding.FLOAT and rules.inverse_scales:
        biases = tuple(map(float32, node.options.get("float_bias", ())))
        real = (float32(source.scale), float32(1 / target.scale))
        return Requantisation(multipliers, rounding, target.zero, low, high, tuple(map(float32, scales)), biases, real)
    return Requantisation(multipliers, rounding, target.zero, low, high, floats)


def _product(node: Node) -> Sequence[Result]:
    one, other = node.input(0), node.input(1)
    shapes = f"{list(one.shape)} and {list(other.shape)}"
    if not (2 <= len(one.shape) <= 5 and 2 <= len(other.shape) <= 5):
        raise Unsupported(f"matrices {shapes}", "2 to 5 dimensions")
    rows, depth = one.shape[-2:][::-1] if node.options["adj_x"] else one.shape[-2:]
    inner, columns = other.shape[-2:][::-1] if node.options["adj_y"] else other.shape[-2:]
    if depth != inner:
        raise Unsupported(f"matrices {shapes} with {counted(depth, 'column')} and {counted(inner, 'row')}")
    has_sums = has_plain_sums(node)
    if one.dtype != "float32" and not has_sums:
        for tensor in (one, other, node.output):
            one_quantization(tensor)
    if is_hybrid(node):
        check_hybrid(node)
    check_depth(one.dtype, other.dtype, depth)
    return [("int32" if has_sums else one.dtype, (*broadcast((one.shape[:-2], other.shape[:-2])), rows, columns))]


def has_plain_sums(node: Node) -> bool:
    """Whether an int8 product has int32 results: sums of products without zero points. Source: EvalInt8Int32."""
    return node.input(0).dtype == node.input(1).dtype == "int8" and node.output.dtype == "int32"


def check_depth(one: str, other: str, depth: int) -> None:
    """Raise Unsupported if sums of products of elements that are computed do not fit in 32 bits."""
    if one in ("int8", "uint8") and other in ("int8", "uint8") and depth >= (1 << 31) // 255**2:
        raise Unsupported(f"sums of {counted(depth, 'product')}", f"at most {(1 << 31) // 255**2 - 1}")


specify(
    Operator(
        "BATCH_MATMUL",
        _product,
        ("float32 float32", "float32 int8", "int8 int8", "int16 int16", "int16 int8"),
        {"adj_x": False, "adj_y": False, "asymmetric_quantize_inputs": False},
    )
)


def transposed_window(node: Node) -> Window:
    """Return the windows of the convolution from the result to the data."""
    weights, shape = node.input(1).shape, node.input(0).content.reshape(-1)
    window = window_of(node, (weights[1], weights[2]), (int(shape[1]), int(shape[2])))
    return Window(window.size, window.stride, window.dilation, window.before, (int(shape[1]), int(shape[2])))


def _transposed(node: Node) -> Sequence[Result]:
    shape, weights, data, bias = node.input(0), node.input(1), node.input(2), node.optional(3)
    if len(data.shape) != 4 or len(weights.shape) != 4 or shape.size != 4:
        raise Unsupported(f"data {list(data.shape)}, weights {list(weights.shape)}", "4 dimensions each")
    wanted = tuple(int(n) for n in shape.content.reshape(-1))
    if weights.shape[3] != data.shape[3] or wanted[0] != data.shape[0] or wanted[3] != weights.shape[0]:
        raise Unsupported(f"weights {list(weights.shape)} for data {list(data.shape)} and the result {list(wanted)}")
    if min(wanted) < 1:
        raise Unsupported(f"the result {list(wanted)}", "at least one element")
    if bias is not None and bias.size != wanted[3]:
        raise Unsupported(f"bias {list(bias.shape)} for {wanted[3]} results")
    if data.dtype == "int16" and node.options["quantized_bias_type"] == "int32":
        raise Unsupported("int16 data with sums of 32 bits", "sums of 64 bits", "convert the model with an int64 bias")
    if is_hybrid(node):
        check_hybrid(node)
        scales_of(node, wanted[3])
    transposed_window(node)
    return [(data.dtype, wanted)]


specify(
    Operator(
        "TRANSPOSE_CONV",
        _transposed,
        (
            "int32 float32 float32 [float32]",
            "int32 int8 float32 [float32]",
            "int32 int8 int8 [int32]",
            "int32 int8 int16 [int32|int64]",
            "int32 uint8 uint8 [int32]",
        ),
        {**_WINDOW, "quantized_bias_type": "float32"},
        (0,),
        shape_input=0,
    )
)


def _integer_convolution(node: Node) -> Sequence[Result]:
    data, weights = node.input(0).shape, node.input(1).shape
    if len(data) != 4 or len(weights) != 4 or data[3] % weights[3] or weights[0] % (data[3] // weights[3]):
        raise Unsupported(f"weights {list(weights)} for data {list(data)}")
    return [("int32", (data[0], *window(node).result, weights[0]))]


def _integer_dense(node: Node) -> Sequence[Result]:
    data, weights = node.input(0).shape, node.input(1).shape
    if len(weights) != 2 or data[-1] != weights[1]:
        raise Unsupported(f"weights {list(weights)} for data {list(data)}")
    return [("int32", (*data[:-1], weights[0]))]


# Operators that only readers of ONNX make. Source: onnx/docs/Operators.md.
_INTEGERS = ("int8|int16 int8|int16",)
specify(
    Operator(
        "ONNX_CONV_INTEGER",
        _integer_convolution,
        _INTEGERS,
        {"padding": "VALID", "stride_w": 1, "stride_h": 1, **_DILATION},
        known=(1,),
    ),
    Operator("ONNX_DENSE_INTEGER", _integer_dense, _INTEGERS, known=(1,)),
)


def zeros_of(node: Node) -> tuple[int, int]:
    """Return the zero points of the data and the weights of an integer layer."""
    data, weights = node.input(0).quantization, node.input(1).quantization
    return (0 if data is None or node.input(0).dtype == "int16" else data.zero, 0 if weights is None else weights.zero)
