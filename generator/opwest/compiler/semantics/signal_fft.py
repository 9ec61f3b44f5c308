# SPDX-License-Identifier: Apache-2.0
"""The numbers of FFTs of real data with kissfft's arithmetic, which tflite-micro uses.

An FFT of 2n real numbers is one of n complex numbers, and one more stage. Source: kissfft, kiss_fft.c, kiss_fftr.c.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from opwest.compiler.graph.types import Unsupported

MAX_LENGTH = 1 << 16
"""The greatest length: that of four times the largest tables of tflite-micro's tests, and far above those of models."""
GREATEST = {"int16": (1 << 15) - 1, "int32": (1 << 31) - 1}
"""1.0 by dtype."""
FRACTION = {"int16": 15, "int32": 31}
"""The places behind the binary point by dtype."""


def check_length(length: int) -> None:
    """Raise Unsupported unless tflite-micro has an FFT of this length."""
    rest = length // 2
    for factor in (2, 3, 5):
        while rest > 1 and rest % factor == 0:
            rest //= factor
    if not 4 <= length <= MAX_LENGTH or length % 2 or rest > 1:
        raise Unsupported(
            f"an FFT of length {length}",
            f"an even product of 2, 3 and 5 from 4 to {MAX_LENGTH}, such as 512 or 480",
        )


def radices(count: int) -> tuple[int, ...]:
    """Return the radices of the stages of a complex FFT, that of the last stage first: as many 4 as there are."""
    found, radix = [], 4
    while count > 1:
        while count % radix:
            radix = {4: 2, 2: 3}.get(radix, radix + 2)
        count //= radix
        found.append(radix)
    return tuple(found)


def products(length: int) -> int:
    """Return the multiplications of real numbers with roots of unity in an FFT of real data."""
    count = length // 2
    return 4 * (sum(count - count // radix for radix in radices(count)) + count // 2)


def order(count: int) -> Any:
    """Return the elements of the data that the first stage reads, in its order: digits in reverse."""
    places = np.zeros(1, np.int64)
    for radix in reversed(radices(count)):
        # Each digit that comes before has a greater weight.
        places = (np.arange(radix)[:, None] + radix * places[None, :]).reshape(-1)
    return places


def _exponentials(phases: list[float], dtype: str) -> Any:
    pairs = [(math.cos(phase), math.sin(phase)) for phase in phases]
    if dtype == "float32":
        return np.asarray(pairs, np.float32)
    one = GREATEST[dtype]
    return np.asarray([[math.floor(0.5 + one * part) for part in pair] for pair in pairs], dtype)


@functools.cache
def twiddles(count: int, is_inverse: bool, dtype: str) -> Any:
    """Return exp(-2 pi j i / count), or its conjugate, for each i: [count,2]."""
    sign = -1.0 if is_inverse else 1.0
    return _exponentials([sign * (-2 * math.pi * i / count) for i in range(count)], dtype)


@functools.cache
def real_twiddles(count: int, is_inverse: bool, dtype: str) -> Any:
    """Return the factors between the complex FFT and that of real data: [count / 2,2]."""
    sign = -1.0 if is_inverse else 1.0
    return _exponentials([sign * (-math.pi * ((i + 1) / count + 0.5)) for i in range(count // 2)], dtype)
