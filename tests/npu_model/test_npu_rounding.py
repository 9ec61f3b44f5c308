# SPDX-License-Identifier: Apache-2.0
"""The rounding modes, against fractions and the rounding of gemmlowp."""

from fractions import Fraction
from math import floor

import numpy as np
import pytest
from opwest.importers.models.operators.fixed_point import Rounding, scaled

from npu_model.rounding import NATURAL, TFL, TRUNCATE, average_scale, rescale, shifted_right


def _cases(count=4000):
    random = np.random.default_rng(1)
    values = random.integers(-(1 << 31), 1 << 31, count) >> random.integers(0, 31, count)
    return values, random.integers(1 << 30, 1 << 31, count), random.integers(20, 64, count)


def _half_up(value):
    return floor(value + Fraction(1, 2))


def _half_away(value):
    return _half_up(value) if value >= 0 else -_half_up(-value)


def _exact(value, scale, shift, mode):
    product = Fraction(int(value) * int(scale))
    if mode == TRUNCATE:
        return int(product / 2 ** int(shift))
    if mode == NATURAL:
        return _half_up(product / 2 ** int(shift))
    first = min(int(shift), 31)
    return _half_away(Fraction(_half_up(product / 2**first), 2 ** (int(shift) - first)))


@pytest.mark.parametrize("mode", [TFL, TRUNCATE, NATURAL])
def test_rescaling_is_exact(mode):
    values, scales, shifts = _cases()
    found = rescale(values, scales, shifts, mode)
    assert found.tolist() == [_exact(*case, mode) for case in zip(values, scales, shifts, strict=True)]


def test_tfl_is_the_rounding_of_gemmlowp():
    values, scales, shifts = _cases()
    values, shifts = values >> 8, np.maximum(shifts, 31)
    found = rescale(values, scales, shifts, TFL)
    wanted = scaled(values, scales, 31 - shifts, Rounding.TWICE)
    assert found.tolist() == wanted.tolist()


def test_accumulators_of_40_bits_do_not_overflow():
    values = np.asarray([(1 << 39) - 1, -(1 << 39), 12345678901])
    for mode in (TFL, TRUNCATE, NATURAL):
        found = rescale(values, 0x7FFFFFFF, 40, mode)
        assert found.tolist() == [_exact(value, 0x7FFFFFFF, 40, mode) for value in values]


def test_averages_are_rounded_like_quotients():
    counts = np.arange(1, 65)
    scale, shift = average_scale(counts)
    for total in (*range(-300, 300), 8191, -8191):
        found = rescale(np.full(64, total), scale, shift, TFL)
        assert found.tolist() == [_half_away(Fraction(total, int(count))) for count in counts], total


def test_shifts_to_the_right():
    values = np.arange(-40, 41)
    for bits in (0, 1, 3):
        shift = np.full(81, bits)
        assert shifted_right(values, shift, NATURAL).tolist() == [_half_up(Fraction(int(v), 2**bits)) for v in values]
        assert shifted_right(values, shift, TFL).tolist() == [_half_away(Fraction(int(v), 2**bits)) for v in values]
        assert shifted_right(values, shift, TRUNCATE).tolist() == [int(Fraction(int(v), 2**bits)) for v in values]
