# SPDX-License-Identifier: Apache-2.0
"""Softmax and its relatives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opwest.importers.models.graph.types import Node, Rules
from opwest.importers.models.interpret.registry import Arrays, interprets
from opwest.importers.models.operators import gemmlowp
from opwest.importers.models.operators.fixed_point import (
    RANGES,
    Rounding,
    doubled_high,
    one_quantization,
    round_shift,
    scaled,
)
from opwest.importers.models.operators.normalisation import (
    LogSoftmaxNumbers,
    Softmax16Numbers,
    exponentials,
    log_softmax_numbers,
    softmax16_numbers,
)


@interprets("SOFTMAX")
def softmax(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """Over the last dimension."""
    [data] = arrays
    if data.dtype == np.float32:
        return float_softmax(data, node.options["beta"])
    if data.dtype == np.int16:
        return softmax16(data, softmax16_numbers(node))
    return softmax_by_table(data, exponentials(node), node.output.dtype)


def float_softmax(data: Any, beta: float) -> Any:
    """Return softmax of float32 data."""
    powers = np.exp((data - data.max(axis=-1, keepdims=True)) * np.float32(beta))
    return powers / powers.sum(axis=-1, keepdims=True)


def _differences(data: Any) -> Any:
    """Return the distances from the greatest element of each row."""
    return data.max(axis=-1, keepdims=True).astype(np.int64) - data


def softmax_by_table(data: Any, exponentials: Sequence[int], dtype: str) -> Any:
    """Return softmax of 8-bit data: `exponentials` by the difference from the greatest element."""
    powers = np.asarray(exponentials)[_differences(data)]
    sums = np.minimum(round_shift(powers, 12).sum(axis=-1, keepdims=True), gemmlowp.GREATEST)
    zeros = gemmlowp.leading_zeros(sums)
    inverse = gemmlowp.reciprocal((sums << zeros) - 2**31)
    low, high = RANGES[dtype]
    places = np.minimum(43 - (high - low).bit_length() - zeros, 31)
    found = round_shift(doubled_high(inverse, powers), places)
    return np.clip(found + low, low, high)


def _looked_up(value: Any, table: Any) -> Any:
    """Return interpolated values for 16-bit numbers. Source: TFLite's LUTLookup."""
    table = np.asarray(table, np.int64)
    place = 256 + (value >> 7)
    return table[place] + (((table[place + 1] - table[place]) * (value & 127) + 64) >> 7)


def softmax16(data: Any, numbers: Softmax16Numbers) -> Any:
    """Return softmax of int16 data."""
    moved = scaled(-_differences(data), numbers.multiplier.fixed, numbers.multiplier.shift, Rounding.TWICE)
    powers = _looked_up(np.clip(moved + 32767, -32768, 32767), numbers.powers)
    sums = powers.sum(axis=-1, keepdims=True)
    zeros = gemmlowp.leading_zeros(sums)
    shifted = ((sums << (zeros - 1)) + (1 << 13)) >> 14
    inverse = _looked_up(np.clip(shifted - (1 << 15) - (1 << 16), -32768, 32767), numbers.inverses)
    places = 31 - zeros
    return np.clip((powers * inverse + (np.int64(1) << (places - 1))) >> places, 0, 32767)


@interprets("LOG_SOFTMAX")
def log_softmax(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """Over the last dimension."""
    [data] = arrays
    if data.dtype == np.float32:
        return float_log_softmax(data)
    return log_softmax_by_table(data, log_softmax_numbers(node), node.output.dtype)


def float_log_softmax(data: Any) -> Any:
    """Return the logarithm of softmax of float32 data."""
    moved = data - data.max(axis=-1, keepdims=True)
    return moved - np.log(np.exp(moved).sum(axis=-1, keepdims=True))


def log_softmax_by_table(data: Any, numbers: LogSoftmaxNumbers, dtype: str) -> Any:
    """Return the logarithm of softmax of 8-bit data."""
    differences = _differences(data)
    sums = np.asarray(numbers.powers)[differences].sum(axis=-1, keepdims=True)
    logarithm = gemmlowp.logarithm(np.minimum(sums, gemmlowp.GREATEST))
    limit = scaled(logarithm - 2**31, numbers.reverse.fixed, numbers.reverse.shift, Rounding.TWICE)
    low, high = RANGES[dtype]
    found = round_shift(np.asarray(numbers.scaled)[differences] - logarithm, 22) + high
    return np.where(-differences > np.maximum(limit, -numbers.radius - 1), np.clip(found, low, high), low)


@interprets("L2_NORMALIZATION")
def l2_normalisation(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """Over the last dimension."""
    [data] = arrays
    return unit_length(data, 0 if data.dtype == np.float32 else one_quantization(node.input(0)).zero)


def unit_length(data: Any, zero: int) -> Any:
    """Return rows divided by their length; `zero` is the zero point of quantised data."""
    if data.dtype == np.float32:
        norm = np.sqrt((data * data).sum(axis=-1, keepdims=True))
        return data / np.maximum(norm, np.float32(1e-6))
    moved = data.astype(np.int64) - zero
    multiplier, places = gemmlowp.inverse_root((moved**2).sum(axis=-1, keepdims=True))
    if data.dtype == np.uint8:
        return np.clip(128 + round_shift(doubled_high(128 * moved, multiplier), places), 0, 255)
    return np.clip(scaled(moved, multiplier, 7 - places, Rounding.TWICE), -128, 127)
