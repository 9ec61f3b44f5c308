# SPDX-License-Identifier: Apache-2.0
"""Fixed-point functions of gemmlowp on int64 arrays that hold int16 numbers.

A number with n integer bits is raw / 2**(15 - n). Source: gemmlowp's fixedpoint/fixedpoint.h (exp_on_negative_values,
logistic, tanh) for int16_t, which TFLite's internal/reference/portable_tensor_utils.cc calls (PortableApplySigmoid,
PortableApplyTanh). Constants are those of 32 bits, rounded to their high halves.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from opwest.importers.models.operators.fixed_point import round_shift

GREATEST = 32767
_POWERS = (25520, 19875, 12055, 4435, 600, 11, 0)
"""exp(-2**k) with 0 integer bits for k from -2 to 4."""


def _product(one: Any, other: Any) -> Any:
    """Return the high 16 bits of twice the product, rounded. Source: SaturatingRoundingDoublingHighMul."""
    return np.minimum((one * other + (1 << 14)) >> 15, GREATEST)


def _shift_left(value: Any, places: int) -> Any:
    return np.clip(value << places, -GREATEST - 1, GREATEST)


def _negative(value: Any) -> Any:
    """Return -value; that of -32768 is itself."""
    return (-value).astype(np.int16).astype(np.int64)


def _exponential(value: Any, bits: int) -> Any:
    """Return exp with 0 integer bits of numbers that are not positive."""
    quarter = 1 << (13 - bits)
    rest = (value & (quarter - 1)) - quarter
    x = (rest << bits) + (1 << 12)
    square = _product(x, x)
    fourth = round_shift(_product(square, square), 2)
    tail = round_shift(_product(fourth + _product(square, x), 10923) + square, 1)
    result = np.minimum(28918 + _product(28918, x + tail), GREATEST)
    remainder = (rest - value).astype(np.int16).astype(np.int64)
    for number, factor in enumerate(_POWERS[: bits + 2]):
        result = np.where(remainder & (1 << (13 - bits + number)), _product(result, factor), result)
    if bits > 5:
        result = np.where(value < -(1 << (20 - bits)), 0, result)
    return np.where(value == 0, GREATEST, result)


def _inverse(value: Any) -> Any:
    """Return 1 / ((1 + value) / 2) with 2 integer bits for numbers between 0 and 1."""
    half = (value + GREATEST + 1) >> 1
    x = 23130 + _product(half, -15420)
    for _ in range(3):
        x = x + _shift_left(_product(x, (1 << 13) - _product(half, x)), 2)
    return x


def logistic(value: Any) -> Any:
    """Return 1 / (1 + exp(-x)) with 0 integer bits of numbers with 3 integer bits."""
    value = np.asarray(value, np.int64)
    above = _shift_left(_inverse(_exponential(_negative(np.where(value > 0, value, _negative(value))), 3)), 1)
    return np.where(value == 0, 1 << 14, np.where(value > 0, above, GREATEST - above))


def tanh(value: Any, bits: int) -> Any:
    """Return tanh with 0 integer bits of numbers with up to 6 integer bits."""
    value = np.asarray(value, np.int64)
    below = np.where(value < 0, value, _negative(value))
    result = _shift_left(_inverse(_exponential(below, bits + 1)) - (1 << 13), 2)
    return np.where(value == 0, 0, np.where(value < 0, _negative(result), result))
