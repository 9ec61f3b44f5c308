# SPDX-License-Identifier: Apache-2.0
"""PT2E: quantize and dequantize as QuantizeLinear and DequantizeLinear.

Source: torch/ao/quantization/fx/_decomposed.py, torchao/quantization/pt2e.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from opwest.compiler.graph.types import Unsupported
from opwest.frontends.torch.build import Builder, Context, Integers, Value, axis_of, translates

_LIMITS = {"int8": (-128, 127), "uint8": (0, 255), "int16": (-(1 << 15), (1 << 15) - 1)}


def _per_tensor(x: Context) -> tuple[Any, int]:
    """Return scale and zero point. Raises Unsupported if they are computed when the model runs."""
    scale, zero = x.number("scale"), x.number("zero_point", 0)
    return np.float32(scale), int(zero)


def _limits(x: Context, dtype: str) -> tuple[int, int]:
    low, high = _LIMITS.get(dtype, (-(1 << 31), (1 << 31) - 1))
    return x.integer("quant_min", low), x.integer("quant_max", high)


@translates("quantized_decomposed.quantize_per_tensor", "torchao.quantize_per_tensor", "pt2e_quant.quantize_per_tensor")
def quantise(x: Context, b: Builder) -> Value:
    """Rounded half to even, then clamped to the limits."""
    data, dtype = x.tensor("input"), x.meta.dtype
    scale, zero = _per_tensor(x)
    low, high = _limits(x, dtype)
    if data.content is not None:
        return b.constant(_quantised(data.content, np.float64(x.number("scale")), zero, low, high).astype(dtype))
    if dtype not in _LIMITS:
        raise Unsupported(f"quantize to {dtype}", ", ".join(_LIMITS))
    inputs = [data, b.constant(scale), b.constant(np.asarray(zero, dtype))]
    result = b.op("QuantizeLinear", inputs, data.shape, dtype)
    if (low, high) != _LIMITS[dtype]:
        limits = [b.constant(np.asarray(limit, dtype)) for limit in (low, high)]
        result = b.op("Clip", [result, *limits], data.shape, dtype)
    return result


def _quantised(content: Any, scales: Any, zeros: Any, low: int, high: int) -> Any:
    """Return integers as torch computes them: a product with the inverse of the scale as float32."""
    inverse = np.float32(1) * (1.0 / scales)
    return np.clip(np.rint(content.astype(np.float32) * inverse.astype(np.float32)) + zeros, low, high)


@translates(
    "quantized_decomposed.dequantize_per_tensor", "torchao.dequantize_per_tensor", "pt2e_quant.dequantize_per_tensor"
)
def dequantise(x: Context, b: Builder) -> Value:
    """(integer - zero point) * scale."""
    data = x.tensor("input")
    scale, zero = _per_tensor(x)
    if data.content is not None:
        return b.dequantised(Integers(data.content, np.asarray([scale]), np.asarray([zero], data.dtype), None))
    inputs = [data, b.constant(scale), b.constant(np.asarray(zero, data.dtype))]
    return b.op("DequantizeLinear", inputs, data.shape, "float32")


def _constants(x: Context) -> tuple[Any, Any]:
    scales = x.tensor("scales", "scale")
    zeros = x.optional("zero_points", "zero_point")
    if scales.content is None or (zeros is not None and zeros.content is None):
        raise Unsupported("scales that are computed when the model runs", "constants")
    return scales.content, np.zeros(scales.shape, np.int64) if zeros is None else zeros.content


@translates(
    "quantized_decomposed.quantize_per_channel", "torchao.quantize_per_channel", "pt2e_quant.quantize_per_channel"
)
def quantise_channels(x: Context, b: Builder) -> Value:
    """Constant weights with a scale for each channel."""
    data, dtype = x.tensor("input"), x.meta.dtype
    scales, zeros = _constants(x)
    axis = axis_of(x.integer("axis"), data.rank)
    if data.content is None:
        raise Unsupported("data with a scale for each channel", "one scale for data")
    shape = [1] * data.rank
    shape[axis] = -1
    low, high = _limits(x, dtype)
    inverse = (np.float32(1) / scales.astype(np.float32)).reshape(shape)
    whole = np.clip(np.rint(data.content * inverse) + zeros.reshape(shape), low, high)
    return b.constant(whole.astype(dtype))


@translates(
    "quantized_decomposed.dequantize_per_channel", "torchao.dequantize_per_channel", "pt2e_quant.dequantize_per_channel"
)
def dequantise_channels(x: Context, b: Builder) -> Value:
    """(integer - zero point) * scale of the channel."""
    data = x.tensor("input")
    scales, zeros = _constants(x)
    axis = axis_of(x.integer("axis"), data.rank)
    if data.content is None:
        raise Unsupported("data with a scale for each channel", "one scale for data")
    whole = Integers(data.content, scales.astype(np.float32).reshape(-1), zeros.reshape(-1).astype(data.dtype), axis)
    return b.dequantised(whole)


@translates(
    "quantized_decomposed.choose_qparams", "torchao.choose_qparams", "quantized_decomposed.choose_qparams_symmetric"
)
def dynamic(x: Context, b: Builder) -> Value:
    """Scales that are computed when the model runs."""
    raise Unsupported(
        "a scale that is computed when the model runs (dynamic quantisation)",
        "static quantisation",
        "quantise with calibration: is_dynamic=False",
    )
