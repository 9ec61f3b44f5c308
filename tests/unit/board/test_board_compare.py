# SPDX-License-Identifier: Apache-2.0
"""The difference between an output and its reference."""

from __future__ import annotations

import numpy as np
from opwest.board.compare import difference


def test_equal() -> None:
    found = difference(np.array([1, 2], np.int8), np.array([1, 2], np.int8))
    assert found.as_text() == "equal to the reference" and found.at is None


def test_position_of_the_largest_error() -> None:
    found = difference(np.array([[1, 2], [3, 4]], np.int8), np.array([[1, 2.5], [-100, 4]]))
    assert (found.elements, found.differing, found.largest, found.at) == (4, 2, 103, (1, 0))
    assert found.mean == (0.5 + 103) / 4
    assert found.as_text().startswith("2 of 4 elements differ from the reference: largest error 103 at [1, 0]")


def test_integers_beyond_double_precision() -> None:
    big = 2**63 - 1
    found = difference(np.array([big], np.int64), np.array([big - 1], np.int64))
    assert (found.differing, found.largest) == (1, 1)
    found = difference(np.array([2**64 - 1], np.uint64), np.array([-1], np.int64))
    assert found.largest == 2.0**64


def test_invalid_numbers() -> None:
    values = np.array([np.nan, np.inf, -np.inf, np.nan], np.float32)
    assert difference(values, values.copy()).differing == 0
    found = difference(values, np.array([np.nan, np.inf, np.inf, 1.0]))
    assert (found.differing, found.largest, found.at) == (2, np.inf, (2,))


def test_bool_and_scalars() -> None:
    assert difference(np.array([True, False]), np.array([True, True])).differing == 1
    assert difference(np.array(3, np.int8), np.array(5, np.int8)).largest == 2
