# SPDX-License-Identifier: Apache-2.0
"""Magnitudes and distances of outputs with infinities and values that are not numbers."""

from __future__ import annotations

import numpy as np
from opwest.importers.distances import distance, largest


def test_largest_finite_magnitude() -> None:
    assert largest([np.asarray([1, -3, np.inf]), np.asarray([np.nan, 2])]) == 3
    assert largest([np.asarray([np.nan]), np.zeros(0)]) == 0 and largest([]) == 0
    assert largest([np.asarray([-128], np.int8)]) == 128


def test_distances() -> None:
    one = np.asarray([1, np.inf, np.inf, np.nan, np.nan, -np.inf], np.float32)
    other = np.asarray([3, np.inf, -np.inf, np.nan, 0, 0], np.float32)
    assert distance(one, other).tolist() == [2, 0, np.inf, 0, np.inf, np.inf]
    assert distance(np.asarray([-128], np.int8), np.asarray([127], np.int8)).tolist() == [255]
