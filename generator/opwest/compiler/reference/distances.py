# SPDX-License-Identifier: Apache-2.0
"""Inputs for references; magnitudes and distances of outputs, which can contain infinities and NaN."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from math import prod
from typing import Any


def made_inputs(tensors: Sequence[Any], count: int, wide: Collection[str], seed: int = 0) -> list[list[Any]]:
    """Return arrays for tensors with a dtype and a shape: zeros, the ends of the range, a ramp, then random ones.

    `wide`: the dtypes of integers with their whole range; others, often an index, are 0 or 1.
    """
    import numpy as np

    random = np.random.default_rng(seed)

    def made(tensor: Any, case: int) -> Any:
        size = prod(tensor.shape)
        values: Any
        if tensor.dtype in wide:
            low, high = int(np.iinfo(tensor.dtype).min), int(np.iinfo(tensor.dtype).max)
            values = random.integers(low, high + 1, size)
            if case < 4:
                ramp = low + np.arange(size) % (high - low + 1)
                values = (np.zeros(size), np.full(size, low), np.full(size, high), ramp)[case]
        elif tensor.dtype.startswith(("bool", "int", "uint")):
            values = random.integers(0, 2, size)
        elif case < 4:
            values = (np.zeros(size), np.full(size, -1.0), np.ones(size), np.linspace(-1, 1, size))[case]
        else:
            values = random.standard_normal(size)
        return np.asarray(values).astype(tensor.dtype).reshape(tensor.shape)

    return [[made(tensor, case) for tensor in tensors] for case in range(count)]


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
