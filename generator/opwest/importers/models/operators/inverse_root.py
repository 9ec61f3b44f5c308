# SPDX-License-Identifier: Apache-2.0
"""int8 RSQRT. Sources in TFLite: kernels/elementwise.cc (RsqrtEvalQuantizedInt8), internal/common.h

(GetInvSqrtQuantizedMultiplierExp): Newton's method in fixed point.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from opwest.importers.models.graph.types import Node
from opwest.importers.models.operators.fixed_point import (
    Multiplier,
    Rounding,
    doubled_high,
    one_quantization,
    quantize_multiplier,
    round_shift,
    scaled,
)

_PLACES = 20
"""The fraction bits of a root before the multiplication by the scale."""


def inverse_root(node: Node, values: Any) -> Any:
    """Return the results of int8 values as int64; the greatest value where the input is not above 0."""
    source, target = one_quantization(node.input(0)), one_quantization(node.output)
    root = float(np.float32(math.sqrt(np.float32(source.scale))) * np.float32(target.scale))
    by = quantize_multiplier(1.0 / root)

    def one(value: int) -> int:
        if value <= 0:
            return 127
        inverse = inverse_root_multiplier(value)
        fine = scaled(1, inverse.fixed, inverse.shift + _PLACES, Rounding.TWICE)
        return int(scaled(fine, by.fixed, by.shift - _PLACES, Rounding.TWICE)) + target.zero

    return np.asarray([one(int(value) - source.zero) for value in values], np.int64)


def inverse_root_multiplier(value: int) -> Multiplier:
    """Return 1 / sqrt(value) for a positive value."""
    if value <= 1:
        return Multiplier(2**31 - 1, 0)
    shift = 11
    while value >= 1 << 29:
        value //= 4
        shift += 1
    pairs = (32 - value.bit_length() - 1) // 2 - 1
    shift -= pairs
    value <<= 2 * pairs
    half = int(round_shift(value >> 1, 1))
    x = 1 << 28
    for _ in range(5):
        cube = _raised(_high(_high(x, x), x), 6)
        x = _raised(_high((1 << 28) + (1 << 27), x) - _high(half, cube), 3)
    x = _high(x, 1518500250)
    if shift < 0:
        x <<= -shift
        shift = 0
    return Multiplier(x, -shift)


def _high(one: int, other: int) -> int:
    return int(doubled_high(one, other))


def _raised(value: int, places: int) -> int:
    """Return a shift to the left that saturates."""
    return max(-(2**31), min(2**31 - 1, value << places))
