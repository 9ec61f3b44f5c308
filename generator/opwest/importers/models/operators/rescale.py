# SPDX-License-Identifier: Apache-2.0
"""Unary functions in pieces: a quantised value times a multiplier, another one below zero.

Sources in TFLite: kernels/activations.cc (ReluPrepare, QuantizedReluX, LeakyReluPrepare), kernels/elementwise.cc (ABS),
kernels/quantize.cc, internal/reference/leaky_relu.h, requantize.h. All multiplications round twice.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from opwest.importers.models.graph.types import Node, Quantization, Tensor
from opwest.importers.models.operators.arithmetic import float_multiplier
from opwest.importers.models.operators.fixed_point import (
    RANGES,
    Multiplier,
    Rounding,
    one_quantization,
    quantize,
    quantize_multiplier,
    scaled,
)
from opwest.records import dataclass

RELU_LIMITS: dict[str, tuple[float, float | None]] = {
    "RELU": (0.0, None),
    "RELU6": (0.0, 6.0),
    "RELU_N1_TO_1": (-1.0, 1.0),
    "RELU_0_TO_1": (0.0, 1.0),
}
"""The limits of the operators that clamp."""


@dataclass(frozen=True)
class Rescale:
    """zero + (value - source) * multiplier, clamped. 32-bit sums wrap."""

    source: int
    """The zero point of the input."""
    positive: Multiplier
    negative: Multiplier
    """The multiplier of differences below 0."""
    sign: int
    """1; -1 if the slope below 0 is negative: the product with the magnitude of the slope is then negated."""
    magnitude: bool
    """Whether the magnitude of the difference is multiplied."""
    zero: int
    low: int
    high: int

    def apply(self, values: Any) -> Any:
        """Return integers as int64 results."""
        given = _wrapped(np.asarray(values, np.int64) - self.source)
        given = np.abs(given) if self.magnitude else given
        above = scaled(given, self.positive.fixed, self.positive.shift, Rounding.TWICE)
        below = scaled(given, self.negative.fixed, self.negative.shift, Rounding.TWICE) * self.sign
        return np.clip(_wrapped(np.where(given >= 0, above, below) + self.zero), self.low, self.high)


def _wrapped(values: Any) -> Any:
    return values.astype(np.int32).astype(np.int64)


def rescale_of(node: Node) -> Rescale:
    """Return the numbers of RELU and its variants, LEAKY_RELU, ABS or QUANTIZE with a quantised input."""
    data, result = node.input(0), node.output
    source, target = (_quantization(one, node.kind == "QUANTIZE") for one in (data, result))
    low, high = RANGES[result.dtype]
    sign = 1
    if node.kind == "QUANTIZE":
        positive = negative = quantize_multiplier(source.scale / target.scale)
    else:
        positive = negative = float_multiplier(data, result)
    if node.kind in RELU_LIMITS:
        least, greatest = RELU_LIMITS[node.kind]
        low = max(low, quantize(least, target))
        high = high if greatest is None else min(high, quantize(greatest, target))
    elif node.kind == "LEAKY_RELU":
        slope = np.float32(source.scale) * np.float32(node.options["alpha"]) / np.float32(target.scale)
        negative, sign = quantize_multiplier(float(abs(slope))), -1 if slope < 0 else 1
    return Rescale(source.zero, positive, negative, sign, node.kind == "ABS", target.zero, low, high)


def _quantization(tensor: Tensor, can_have_zero: bool) -> Quantization:
    """Return the quantisation; that of int32 has any zero point, and no scale means 1.

    An int16 input or result of QUANTIZE can have a zero point too: SOFTMAX from int8 to int16 writes -32768.
    """
    if tensor.dtype == "int16" and can_have_zero and tensor.quantization is not None and tensor.quantization.zero:
        return tensor.quantization
    if tensor.dtype == "int32":
        return tensor.quantization or Quantization((1.0,), (0,))
    return one_quantization(tensor)
