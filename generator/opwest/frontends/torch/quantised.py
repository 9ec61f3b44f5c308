# SPDX-License-Identifier: Apache-2.0
"""PT2E: quantize and dequantize as QuantizeLinear and DequantizeLinear.

Source: torch/ao/quantization/fx/_decomposed.py, torchao/quantization/pt2e.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from opwest.compiler.graph.types import Unsupported
from opwest.frontends.torch.build import Builder, Context, Integers, Value, axis_of, translates

_STATIC = "quantise with calibration: is_dynamic=False"
_LIMITS = {"int8": (-128, 127), "uint8": (0, 255), "int16": (-(1 << 15), (1 << 15) - 1)}


def _limits(x: Context, dtype: str) -> tuple[int, int]:
    """Return the least and the greatest integer."""
    low, high = _LIMITS.get(dtype, (-(1 << 31), (1 << 31) - 1))
    return x.integer("quant_min", low), x.integer("quant_max", high)


def _rounded(x: Context, b: Builder, scale: float, zero: int) -> Value:
    """Return data as integers of one scale, rounded half to even, then clamped to the limits."""
    data, dtype = x.tensor("input"), x.meta.dtype
    low, high = _limits(x, dtype)
    if data.content is not None:
        return b.constant(_quantised(data.content, np.float64(scale), zero, low, high).astype(dtype))
    if dtype not in _LIMITS:
        raise Unsupported(f"quantize to {dtype}", ", ".join(_LIMITS))
    inputs = [data, b.constant(np.float32(scale)), b.constant(np.asarray(zero, dtype))]
    result = b.op("QuantizeLinear", inputs, data.shape, dtype)
    if (low, high) != _LIMITS[dtype]:
        limits = [b.constant(np.asarray(limit, dtype)) for limit in (low, high)]
        result = b.op("Clip", [result, *limits], data.shape, dtype)
    return result


def _quantised(content: Any, scales: Any, zeros: Any, low: int, high: int) -> Any:
    """Return integers as torch computes them: a product with the inverse of the scale as float32."""
    inverse = np.asarray(1.0 / scales).astype(np.float32)
    return np.clip(np.rint(content.astype(np.float32) * inverse) + zeros, low, high)


def _real(x: Context, b: Builder, scale: float, zero: int) -> Value:
    """Return integers of one scale as real numbers."""
    data = x.tensor("input")
    if data.content is not None:
        scales, zeros = np.asarray([scale], np.float32), np.asarray([zero], data.dtype)
        return b.dequantised(Integers(data.content, scales, zeros, None))
    inputs = [data, b.constant(np.float32(scale)), b.constant(np.asarray(zero, data.dtype))]
    return b.op("DequantizeLinear", inputs, data.shape, "float32")


def _constants(x: Context) -> tuple[Any, Any]:
    """Return scales and zero points, 1-d. Raises Unsupported."""
    scales = x.tensor("scales", "scale")
    zeros = x.optional("zero_points", "zero_point")
    if scales.content is None or (zeros is not None and zeros.content is None):
        raise Unsupported("scales that are computed when the model runs", "constants", _STATIC)
    content = scales.content.astype(np.float32).reshape(-1)
    return content, np.zeros(content.shape, np.int64) if zeros is None else zeros.content.reshape(-1)


def _rounded_channels(x: Context, b: Builder, axis: int) -> Value:
    """Return constant weights as integers with a scale for each channel."""
    data, dtype = x.tensor("input"), x.meta.dtype
    if data.content is None:
        raise Unsupported("data with a scale for each channel", "one scale for data")
    scales, zeros = (array.reshape([-1 if i == axis else 1 for i in range(data.rank)]) for array in _constants(x))
    return b.constant(_quantised(data.content, scales, zeros, *_limits(x, dtype)).astype(dtype))


def _real_channels(x: Context, b: Builder, axis: int) -> Value:
    """Return constant integers with a scale for each channel as real numbers."""
    data = x.tensor("input")
    if data.content is None:
        raise Unsupported("data with a scale for each channel", "one scale for data")
    scales, zeros = _constants(x)
    return b.dequantised(Integers(data.content, scales, zeros.astype(data.dtype), axis))


def _named(operator: str) -> tuple[str, ...]:
    return tuple(f"{namespace}.{operator}" for namespace in ("quantized_decomposed", "torchao", "pt2e_quant"))


@translates(*_named("quantize_per_tensor"))
def quantise(x: Context, b: Builder) -> Value:
    """With one scale."""
    return _rounded(x, b, x.number("scale"), x.integer("zero_point", 0))


@translates(*_named("dequantize_per_tensor"))
def dequantise(x: Context, b: Builder) -> Value:
    """With one scale."""
    return _real(x, b, x.number("scale"), x.integer("zero_point", 0))


@translates(*_named("quantize_per_channel"))
def quantise_channels(x: Context, b: Builder) -> Value:
    """With a scale for each channel."""
    return _rounded_channels(x, b, axis_of(x.integer("axis"), x.tensor("input").rank))


@translates(*_named("dequantize_per_channel"))
def dequantise_channels(x: Context, b: Builder) -> Value:
    """With a scale for each channel."""
    return _real_channels(x, b, axis_of(x.integer("axis"), x.tensor("input").rank))


def _axis_of_blocks(x: Context) -> int | None:
    """Return the dimension whose elements have a scale each; None for one scale. Raises Unsupported."""
    shape = x.tensor("input").shape
    blocks = [n if block == -1 else block for n, block in zip(shape, x.integers("block_size"), strict=True)]
    axes = [axis for axis, (n, block) in enumerate(zip(shape, blocks, strict=True)) if n != block]
    if not axes:
        return None
    if len(axes) > 1 or blocks[axes[0]] != 1:
        raise Unsupported(f"scales of blocks {blocks} of {list(shape)}", "one scale, or one for each channel")
    return axes[0]


@translates(*_named("quantize_affine"))
def quantise_blocks(x: Context, b: Builder) -> Value:
    """With one scale, or one for each channel."""
    axis = _axis_of_blocks(x)
    if axis is not None:
        return _rounded_channels(x, b, axis)
    (scale,), (zero,) = _constants(x)
    return _rounded(x, b, float(scale), int(zero))


@translates(*_named("dequantize_affine"))
def dequantise_blocks(x: Context, b: Builder) -> Value:
    """With one scale, or one for each channel."""
    axis = _axis_of_blocks(x)
    if axis is not None:
        return _real_channels(x, b, axis)
    (scale,), (zero,) = _constants(x)
    return _real(x, b, float(scale), int(zero))


@translates(*(f"{name}{end}" for name in _named("choose_qparams") for end in ("", "_symmetric", "_affine")))
@translates("quantized_decomposed.choose_qparams_per_token", "quantized_decomposed.choose_qparams_per_token_asymmetric")
def dynamic(x: Context, b: Builder) -> Value:
    """Scales that are computed when the model runs."""
    raise Unsupported(
        "a scale that is computed when the model runs (dynamic quantisation)", "static quantisation", _STATIC
    )
