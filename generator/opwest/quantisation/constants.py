# SPDX-License-Identifier: Apache-2.0
"""Constants of quantised layers: int8 weights with a scale for each channel, biases in the scale of the sums."""

from __future__ import annotations

from typing import Any

import numpy as np

from opwest.compiler.graph.types import Node, Quantization, Tensor
from opwest.compiler.semantics.fixed_point import RANGES, rounded_away
from opwest.quantisation.calibration import range_of_constant
from opwest.quantisation.rules import Rule

WEIGHT_LIMIT = 127
"""Weights are from -127 to 127."""
BIAS_LIMIT = {"int32": 2.0**30, "int64": 2.0**39}
"""The greatest bias: half of the sums of a layer are left for its products (int64: LiteRT's sums of 40 bits)."""
_AXES = {"CONV_2D": 0, "DEPTHWISE_CONV_2D": 3, "FULLY_CONNECTED": 0, "TRANSPOSE_CONV": 0}
"""The dimension of the weights that counts the channels."""


def symmetric(content: Any) -> Quantization:
    """Return the scale of int8 numbers from -127 to 127 without a zero point."""
    low, high = range_of_constant(content)
    scale = float(np.float32(max(-low, high) / WEIGHT_LIMIT))
    return Quantization((scale or 1.0,), (0,))


def quantised_array(array: Any, scale: Quantization, dtype: str) -> Any:
    """Return float32 numbers in a dtype, rounded to nearest with halves away from zero, and clamped."""
    low, high = RANGES[dtype]
    with np.errstate(over="ignore", invalid="ignore"):
        values = rounded_away(np.asarray(array, np.float32) / np.float32(scale.scale)) + scale.zero
    return np.clip(values, low, high).astype(dtype)


def dequantised_array(array: Any, scale: Quantization | None) -> Any:
    """Return the float32 numbers of quantised ones; without a scale the same numbers."""
    if scale is None:
        return np.asarray(array)
    return np.float32(scale.scale) * (np.asarray(array).astype(np.int64) - scale.zero).astype(np.float32)


def quantised_constant(tensor: Tensor, dtype: str, scale: Quantization) -> Tensor:
    """Return a float32 constant in a dtype with a scale."""
    return Tensor(tensor.name, dtype, tensor.shape, scale, quantised_array(tensor.content, scale, dtype))


def parameters(node: Node, rule: Rule, data: Quantization, wide: str, means: Any) -> tuple[Tensor, Tensor | None]:
    """Return int8 weights with a scale for each channel, and the bias in the scale of the sums in the dtype `wide`.

    A bias that does not fit increases the scale of its channel. A channel of zeros has the greatest scale.
    Source: TFLite's tools/optimize/quantization_utils.cc (AdjustWeightsForBiasScale). With `means` of the data, the
    bias also has the mean of what the rounding of the weights changes; only a layer with a bias is corrected.
    """
    assert rule.weights is not None and rule.bias is not None
    weights, bias, axis = node.input(rule.weights), node.optional(rule.bias), _AXES[node.kind]
    content = np.asarray(weights.content, np.float32)
    others = tuple(i for i in range(content.ndim) if i != axis)
    reach = np.abs(content).max(axis=others).astype(np.float64)
    reach[reach < 1e-30] = reach.max() if reach.max() >= 1e-30 else float(WEIGHT_LIMIT)
    scales = reach / WEIGHT_LIMIT
    values = None if bias is None else np.asarray(bias.content, np.float64).reshape(-1)
    if values is not None:
        scales = np.maximum(scales, np.abs(values) / (data.scale * BIAS_LIMIT[wide]))
    scales = scales.astype(np.float32)
    each = scales.reshape([-1 if i == axis else 1 for i in range(content.ndim)])
    integers = np.clip(rounded_away(content / each), -WEIGHT_LIMIT, WEIGHT_LIMIT).astype(np.int8)
    quantization = Quantization(tuple(map(float, scales)), (0,) * len(scales), axis if len(scales) > 1 else None)
    made = Tensor(weights.name, "int8", weights.shape, quantization, integers)
    if values is None or bias is None:
        return made, None
    if means is not None:
        values = values + _mean_loss(node.kind, content - integers.astype(np.float32) * each, means)
    units = np.float64(data.scale) * scales.astype(np.float64)
    sums = rounded_away(values / units).astype(wide)
    # LiteRT compares this scale with the product of the others; the sums do not depend on it.
    along = Quantization(
        tuple(map(float, units.astype(np.float32))), quantization.zeros, 0 if len(scales) > 1 else None
    )
    return made, Tensor(bias.name, wide, bias.shape, along, sums.reshape(bias.shape))


def _mean_loss(kind: str, lost: Any, means: Any) -> Any:
    """Return for each channel the mean of the sums of the data with the lost parts of the weights.

    `means` are those of the elements of the data, in its shape. Windows are taken to have the mean of each channel.
    """
    lost = lost.astype(np.float64)
    if kind == "FULLY_CONNECTED":
        return lost @ means.reshape(-1, lost.shape[1]).mean(axis=0)
    channels = means.reshape(-1, means.shape[-1]).mean(axis=0)
    if kind == "DEPTHWISE_CONV_2D":
        each = np.repeat(channels, lost.shape[3] // len(channels))
        return lost.sum(axis=(0, 1, 2)) * each
    if lost.shape[3] != len(channels):  # of groups: each reads a part of the channels
        groups = channels.reshape(-1, lost.shape[3])
        each = np.repeat(groups, lost.shape[0] // len(groups), axis=0)
        return (lost.sum(axis=(1, 2)) * each).sum(axis=1)
    return lost.sum(axis=(1, 2)) @ channels
