# SPDX-License-Identifier: Apache-2.0
"""The rounding modes, against fractions and the rounding of gemmlowp."""

from fractions import Fraction
from math import floor

import numpy as np
import pytest
from opwest.compiler.semantics.fixed_point import Rounding, scaled

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
@pytest.mark.parametrize("cases", [_cases(), ([(1 << 39) - 1, -(1 << 39), 12345678901], [0x7FFFFFFF] * 3, [40] * 3)])
def test_rescaling_is_exact(cases, mode):
    """Accumulators of 40 bits do not overflow."""
    found = rescale(*map(np.asarray, cases), mode)
    assert found.tolist() == [_exact(*case, mode) for case in zip(*cases, strict=True)]


def test_tfl_is_the_rounding_of_gemmlowp():
    values, scales, shifts = _cases()
    values, shifts = values >> 8, np.maximum(shifts, 31)
    found = rescale(values, scales, shifts, TFL)
    wanted = scaled(values, scales, 31 - shifts, Rounding.TWICE)
    assert found.tolist() == wanted.tolist()


def test_averages_are_rounded_like_quotients():
    counts = np.arange(1, 65)
    scale, shift = average_scale(counts)
    for total in (*range(-300, 300), 8191, -8191):
        found = rescale(np.full(64, total), scale, shift, TFL)
        assert found.tolist() == [_half_away(Fraction(total, int(count))) for count in counts], total


@pytest.mark.parametrize(("mode", "wanted"), [(NATURAL, _half_up), (TFL, _half_away), (TRUNCATE, int)])
def test_shifts_to_the_right(mode, wanted):
    values = np.arange(-40, 41)
    for bits in (0, 1, 3):
        found = shifted_right(values, np.full(81, bits), mode)
        assert found.tolist() == [wanted(Fraction(int(value), 2**bits)) for value in values]
