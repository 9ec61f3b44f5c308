# SPDX-License-Identifier: Apache-2.0
"""Fixed-point functions of gemmlowp on int64 arrays that hold int32 numbers.

A number with n integer bits is raw / 2**(31 - n). Sources: gemmlowp's fixedpoint/fixedpoint.h, TFLite's
kernels/internal/common.h (log_x_for_x_greater_than_or_equal_to_1, GetInvSqrtQuantizedMultiplierExp).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from opwest.importers.models.operators.fixed_point import doubled_high, round_shift

GREATEST = 2**31 - 1
_POWERS = (
    (24, 1672461947),
    (25, 1302514674),
    (26, 790015084),
    (27, 290630308),
    (28, 39332535),
    (29, 720401),
    (30, 242),
)
"""exp(-2**k) with 0 integer bits for k from -2 to 4, by its bit in a number with 5 integer bits."""


def shift_left(value: Any, places: Any) -> Any:
    """Return a saturating shift to the left."""
    return np.clip(np.asarray(value, np.int64) << places, -GREATEST - 1, GREATEST)


def leading_zeros(value: Any) -> Any:
    """Return the number of zeros above the highest bit of positive 32-bit numbers."""
    return 32 - np.frexp(np.asarray(value, np.float64))[1].astype(np.int64)


def exponential(value: Any) -> Any:
    """Return exp with 0 integer bits of numbers that are not positive, with 5 integer bits."""
    value = np.asarray(value, np.int64)
    rest = (value & ((1 << 24) - 1)) - (1 << 24)
    x = (rest << 5) + (1 << 28)
    square = doubled_high(x, x)
    third = doubled_high(square, x)
    fourth = round_shift(doubled_high(square, square), 2)
    tail = round_shift(doubled_high(fourth + third, 715827883) + square, 1)
    result = 1895147668 + doubled_high(1895147668, x + tail)
    remainder = rest - value
    for bit, factor in _POWERS:
        result = np.where(remainder & (1 << bit), doubled_high(result, factor), result)
    return np.where(value == 0, GREATEST, result)


def reciprocal(value: Any) -> Any:
    """Return 1 / (1 + value) for numbers between 0 and 1: both have 0 integer bits."""
    half = (np.asarray(value, np.int64) + GREATEST + 1) >> 1
    x = 1515870810 + doubled_high(half, -1010580540)
    for _ in range(3):
        x = x + shift_left(doubled_high(x, (1 << 29) - doubled_high(half, x)), 2)
    return shift_left(x, 1)


def logarithm(value: Any) -> Any:
    """Return the natural logarithm with 5 integer bits of numbers of at least 1, with 12 integer bits."""
    value = np.asarray(value, np.int64)
    root, fourth_root = 1518500250, 1805811301
    zeros = leading_zeros(value)
    one = shift_left(doubled_high(shift_left(value, zeros - 1), root), 1)
    one_power = shift_left(12 - zeros, 25) + (1 << 23)
    headroom = leading_zeros(doubled_high(value, root)) - 1
    other = shift_left(value, headroom)
    other_power = shift_left(12 - headroom, 25) - (1 << 23)
    r = np.minimum(one, other)
    power = np.maximum(one_power, other_power)
    p = (r + fourth_root + 1) >> 1
    q = 2 * (r - fourth_root)
    square = doubled_high(q, q)
    numerator = doubled_high(q, r) + doubled_high(doubled_high(q, square), 117049297)
    denominator = doubled_high(p, 1057819769 + q + doubled_high(127690142, square)) + doubled_high(638450708, q)
    product = doubled_high(round_shift(numerator, 6), reciprocal(denominator))
    return shift_left(doubled_high(power, 1488522236) + product, 1)


def inverse_root(value: Any) -> tuple[Any, Any]:
    """Return 1 / sqrt of positive numbers as multipliers and shifts to the right; 0 is taken for 1."""
    value = np.asarray(value, np.int64)
    number, places = np.maximum(value, 2), np.full(value.shape, 11, np.int64)
    while (large := number >= 1 << 29).any():
        number = np.where(large, number >> 2, number)
        places = places + large
    pairs = (leading_zeros(number) - 1) // 2 - 1
    places = places - pairs
    number = (number << (2 * pairs)) >> 1
    half, x = round_shift(number, 1), np.full(value.shape, 1 << 28, np.int64)
    for _ in range(5):
        cube = shift_left(doubled_high(doubled_high(x, x), x), 6)
        x = shift_left(doubled_high((1 << 28) + (1 << 27), x) - doubled_high(half, cube), 3)
    x = doubled_high(x, 1518500250)
    x = np.where(places < 0, x << np.maximum(-places, 0), x)
    small = value <= 1
    return np.where(small, GREATEST, x), np.where(small, 0, np.maximum(places, 0))
