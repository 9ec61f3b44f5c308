# SPDX-License-Identifier: Apache-2.0
"""Softmax and its relatives."""

from __future__ import annotations

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
from opwest.importers.models.operators.normalisation import exponentials, log_softmax_numbers, softmax16_numbers


@interprets("SOFTMAX")
def softmax(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """Over the last dimension."""
    [data] = arrays
    if data.dtype == np.float32:
        beta = np.float32(node.options["beta"])
        powers = np.exp((data - data.max(axis=-1, keepdims=True)) * beta)
        return powers / powers.sum(axis=-1, keepdims=True)
    differences = data.max(axis=-1, keepdims=True).astype(np.int64) - data
    if data.dtype == np.int16:
        return _softmax16(node, differences)
    powers = np.asarray(exponentials(node))[differences]
    sums = np.minimum(round_shift(powers, 12).sum(axis=-1, keepdims=True), gemmlowp.GREATEST)
    zeros = gemmlowp.leading_zeros(sums)
    inverse = gemmlowp.reciprocal((sums << zeros) - 2**31)
    low, high = RANGES[node.output.dtype]
    places = np.minimum(43 - (high - low).bit_length() - zeros, 31)
    found = round_shift(doubled_high(inverse, powers), places)
    return np.clip(found + low, low, high)


def _looked_up(value: Any, table: Any) -> Any:
    """Return interpolated values for 16-bit numbers. Source: TFLite's LUTLookup."""
    table = np.asarray(table, np.int64)
    place = 256 + (value >> 7)
    return table[place] + (((table[place + 1] - table[place]) * (value & 127) + 64) >> 7)


def _softmax16(node: Node, differences: Any) -> Any:
    numbers = softmax16_numbers(node)
    moved = scaled(-differences, numbers.multiplier.fixed, numbers.multiplier.shift, Rounding.TWICE)
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
        moved = data - data.max(axis=-1, keepdims=True)
        return moved - np.log(np.exp(moved).sum(axis=-1, keepdims=True))
    numbers = log_softmax_numbers(node)
    differences = data.max(axis=-1, keepdims=True).astype(np.int64) - data
    sums = np.asarray(numbers.powers)[differences].sum(axis=-1, keepdims=True)
    logarithm = gemmlowp.logarithm(np.minimum(sums, gemmlowp.GREATEST))
    limit = scaled(logarithm - 2**31, numbers.reverse.fixed, numbers.reverse.shift, Rounding.TWICE)
    low, high = RANGES[node.output.dtype]
    found = round_shift(np.asarray(numbers.scaled)[differences] - logarithm, 22) + high
    return np.where(-differences > np.maximum(limit, -numbers.radius - 1), np.clip(found, low, high), low)


@interprets("L2_NORMALIZATION")
def l2_normalisation(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """Over the last dimension."""
    [data] = arrays
    if data.dtype == np.float32:
        norm = np.sqrt((data * data).sum(axis=-1, keepdims=True))
        return data / np.maximum(norm, np.float32(1e-6))
    moved = data.astype(np.int64) - one_quantization(node.input(0)).zero
    multiplier, places = gemmlowp.inverse_root((moved**2).sum(axis=-1, keepdims=True))
    if data.dtype == np.uint8:
        return np.clip(128 + round_shift(doubled_high(128 * moved, multiplier), places), 0, 255)
    return np.clip(scaled(moved, multiplier, 7 - places, Rounding.TWICE), -128, 127)
