# SPDX-License-Identifier: Apache-2.0
"""Magnitudes and distances of outputs, which can contain infinities and values that are not numbers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def largest(arrays: Iterable[Any]) -> float:
    """Return the greatest finite magnitude; 0 without any."""
    import numpy as np

    sizes = (np.abs(np.asarray(array, np.float64)) for array in arrays)
    return max((float(size[np.isfinite(size)].max(initial=0)) for size in sizes), default=0.0)


def distance(one: Any, other: Any) -> Any:
    """Return the distances of the elements: 0 for equal ones and for two NaN, infinity for one NaN."""
    import numpy as np

    first, second = (np.asarray(array, np.float64) for array in (one, other))
    same = (first == second) | (np.isnan(first) & np.isnan(second))
    with np.errstate(invalid="ignore"):
        apart = np.abs(first - second)
    return np.where(same, 0.0, np.where(np.isnan(apart), np.inf, apart))
