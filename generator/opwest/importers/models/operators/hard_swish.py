# SPDX-License-Identifier: Apache-2.0
"""Quantised HARD_SWISH in 16-bit arithmetic. Sources in TFLite: activations.cc (HardSwishPrepare), hard_swish.h."""

from __future__ import annotations

from typing import Any

import numpy as np

from opwest.importers.models.graph.faults import Unsupported
from opwest.importers.models.graph.types import Node
from opwest.importers.models.operators.fixed_point import (
    RANGES,
    Multiplier,
    one_quantization,
    quantize_multiplier,
    round_shift,
)


def hard_swish(node: Node, values: Any) -> Any:
    """Return the results of 8-bit values as int64."""
    source, target = one_quantization(node.input(0)), one_quantization(node.output)
    fine = np.float32(1 / 128) * np.float32(source.scale)
    result = quantize_multiplier(float(fine / np.float32(target.scale)))
    if result.shift > 0:
        ratio = source.scale / target.scale
        raise Unsupported(f"the input's scale is {ratio:g} times that of the result", "at most 128 times")
    gate = quantize_multiplier(float(fine / np.float32(3 / 32768)))
    high = _int16(_int16(values - source.zero) * 128)
    outer = _doubled_high(high, _reduced(result))
    inner = high
    if gate.shift > 0:
        inner = _saturated(inner * (1 << (gate.shift - 1)))
    inner = _doubled_high(inner, _reduced(gate))
    if gate.shift > 0:
        inner = _saturated(inner * 2)
    elif gate.shift < 0:
        inner = _int16(_divided(inner, -gate.shift))
    inner = (inner + (1 << 15)) >> 1
    product = inner * outer
    # Rounded to zero.
    truncated = np.where(product < 0, -(-product >> 15), product >> 15)
    return np.clip(_int16(_divided(truncated, -result.shift) + target.zero), *RANGES[node.output.dtype])


def _divided(value: Any, places: int) -> Any:
    """Return a shift to the right. Source: gemmlowp's RoundingDivideByPOT of int16, whose mask has 16 bits.

    By 16 places and more its threshold is below each remainder from 0 on: the result is then 1, and -1 below 0.
    """
    return round_shift(value, places) if places < 16 else np.where(value < 0, -1, 1)


def _reduced(by: Multiplier) -> int:
    """Return a multiplier of 16 bits. Source: DownScaleInt32ToInt16Multiplier."""
    return 0x7FFF if by.fixed >= 2**31 - 1 - (1 << 15) else (by.fixed + (1 << 15)) >> 16


def _doubled_high(value: Any, by: int) -> Any:
    """Return the high 16 bits of twice the product, rounded: gemmlowp's SaturatingRoundingDoublingHighMul of int16."""
    product = value * by
    nudged = product + np.where(product >= 0, 1 << 14, 1 - (1 << 14))
    return np.where(nudged < 0, -(-nudged >> 15), nudged >> 15)


def _saturated(value: Any) -> Any:
    return np.clip(value, -32768, 32767)


def _int16(value: Any) -> Any:
    return np.asarray(value).astype(np.int16).astype(np.int64)
