# SPDX-License-Identifier: Apache-2.0
"""FFTs of real data with the arithmetic of kissfft in numpy, bit for bit.

Sources: kissfft, kiss_fft.c, kiss_fftr.c, _kiss_fft_guts.h; tflite-micro, signal/src/irfft_float.cc.
Products and quotients of integers are rounded to nearest, halves up; sums wrap to the dtype.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.semantics.signal_fft import FRACTION, GREATEST, order, radices, real_twiddles, twiddles

Pair = tuple[Any, Any]
"""The real and the imaginary parts: int64 for integers, so that a product fits."""


@dataclass(frozen=True)
class _Arithmetic:
    dtype: str

    def wrapped(self, *parts: Any) -> Pair:
        one, other = parts
        if self.dtype == "float32":
            return one, other
        return one.astype(self.dtype).astype(np.int64), other.astype(self.dtype).astype(np.int64)

    def read(self, array: Any) -> Pair:
        """Return the parts of an array [...,2]."""
        wide = array if self.dtype == "float32" else array.astype(np.int64)
        return wide[..., 0], wide[..., 1]

    def rounded(self, *parts: Any) -> Pair:
        one, other = parts
        if self.dtype == "float32":
            return one, other
        places = FRACTION[self.dtype]
        half = 1 << (places - 1)
        return self.wrapped((one + half) >> places, (other + half) >> places)

    def product(self, a: Pair, b: Pair) -> Pair:
        return self.rounded(a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0])

    def scaled(self, a: Pair, factor: Any) -> Pair:
        return self.rounded(a[0] * factor, a[1] * factor)

    def divided(self, a: Pair, by: int) -> Pair:
        """Return a pair, of integers divided so that the stage does not overflow."""
        return a if self.dtype == "float32" else self.scaled(a, GREATEST[self.dtype] // by)

    def sum(self, a: Pair, b: Pair) -> Pair:
        return self.wrapped(a[0] + b[0], a[1] + b[1])

    def difference(self, a: Pair, b: Pair) -> Pair:
        return self.wrapped(a[0] - b[0], a[1] - b[1])

    def half(self, a: Pair) -> Pair:
        if self.dtype == "float32":
            return a[0] * np.float32(0.5), a[1] * np.float32(0.5)
        return a[0] >> 1, a[1] >> 1

    def half_sum(self, a: Pair, b: Pair) -> Pair:
        """Return half of a sum, which wraps for int32 only: sums of int16 have more bits."""
        total = a[0] + b[0], a[1] + b[1]
        return self.wrapped(*self.half(self.wrapped(*total) if self.dtype == "int32" else total))

    def conjugate(self, a: Pair) -> Pair:
        return self.wrapped(a[0], -a[1])

    def turned(self, a: Pair) -> Pair:
        """Return a pair times -i."""
        return self.wrapped(a[1], -a[0])


def _second(math: _Arithmetic, x: list[Pair], roots: list[Pair]) -> list[Pair]:
    moved = math.product(x[1], roots[1])
    return [math.sum(x[0], moved), math.difference(x[0], moved)]


def _third(math: _Arithmetic, x: list[Pair], roots: list[Pair], third: Pair) -> list[Pair]:
    one, other = math.product(x[1], roots[1]), math.product(x[2], roots[2])
    total = math.sum(one, other)
    turned = math.turned(math.scaled(math.difference(one, other), third[1]))
    middle = math.difference(x[0], math.half(total))
    return [math.sum(x[0], total), math.difference(middle, turned), math.sum(middle, turned)]


def _fourth(math: _Arithmetic, x: list[Pair], roots: list[Pair], is_inverse: bool) -> list[Pair]:
    first, second, third = (math.product(x[i], roots[i]) for i in (1, 2, 3))
    lower, upper = math.difference(x[0], second), math.sum(x[0], second)
    odd, turned = math.sum(first, third), math.turned(math.difference(first, third))
    ends = [math.sum(lower, turned), math.difference(lower, turned)]
    if is_inverse:
        ends.reverse()
    return [math.sum(upper, odd), ends[0], math.difference(upper, odd), ends[1]]


def _fifth(math: _Arithmetic, x: list[Pair], roots: list[Pair], near: Pair, far: Pair) -> list[Pair]:
    s1, s2, s3, s4 = (math.product(x[i], roots[i]) for i in (1, 2, 3, 4))
    outer, inner = math.sum(s1, s4), math.sum(s2, s3)
    wide, narrow = math.difference(s1, s4), math.difference(s2, s3)

    def real(a: Any, b: Any) -> Pair:
        return math.sum(math.sum(x[0], math.scaled(outer, a)), math.scaled(inner, b))

    def turned(a: Any, b: Any) -> Pair:
        (one, two), (three, four) = math.scaled(wide, a), math.scaled(narrow, b)
        return math.wrapped(two + four, -one - three)

    def other(a: Any, b: Any) -> Pair:
        (one, two), (three, four) = math.scaled(wide, a), math.scaled(narrow, b)
        return math.wrapped(-two + four, one - three)

    five, six = real(near[0], far[0]), turned(near[1], far[1])
    eleven, twelve = real(far[0], near[0]), other(far[1], near[1])
    return [
        math.sum(x[0], math.sum(outer, inner)),
        math.difference(five, six),
        math.sum(eleven, twelve),
        math.difference(eleven, twelve),
        math.sum(five, six),
    ]


def _complex(data: Pair, dtype: str, is_inverse: bool) -> Pair:
    """Return the complex FFTs of rows [rows,count]."""
    math, (rows, count) = _Arithmetic(dtype), data[0].shape
    roots = math.read(twiddles(count, is_inverse, dtype))
    places = order(count)
    real, imaginary = data[0][:, places], data[1][:, places]
    width = 1
    for radix in reversed(radices(count)):
        blocks = count // (radix * width)
        shape = (rows, blocks, radix, width)
        parts = real.reshape(shape), imaginary.reshape(shape)
        x = [math.divided((parts[0][:, :, i], parts[1][:, :, i]), radix) for i in range(radix)]
        steps = np.arange(width) * blocks
        own = [(roots[0][i * steps], roots[1][i * steps]) for i in range(radix)]

        def root(number: int, step: int = blocks * width) -> Pair:
            return roots[0][number * step], roots[1][number * step]

        if radix == 2:
            results = _second(math, x, own)
        elif radix == 3:
            results = _third(math, x, own, root(1))
        elif radix == 4:
            results = _fourth(math, x, own, is_inverse)
        else:
            results = _fifth(math, x, own, root(1), root(2))
        real, imaginary = (np.stack([result[i] for result in results], axis=2) for i in (0, 1))
        width *= radix
    return real.reshape(rows, count), imaginary.reshape(rows, count)


def rfft(length: int, data: Any) -> Any:
    """Return the spectra [...,length + 2] of rows [...,n], n <= length: pairs of real and imaginary parts."""
    dtype, outer, count = str(data.dtype), data.shape[:-1], length // 2
    math = _Arithmetic(dtype)
    rows = np.zeros((data.size // data.shape[-1], length), dtype)
    rows[:, : data.shape[-1]] = data.reshape(len(rows), -1)
    spectrum = _complex(math.read(rows.reshape(len(rows), count, 2)), dtype, is_inverse=False)
    result = np.zeros((len(rows), count + 1, 2), spectrum[0].dtype)
    real, imaginary = math.divided((spectrum[0][:, 0], spectrum[1][:, 0]), 2)
    ends = math.wrapped(real + imaginary, real - imaginary)
    result[:, 0, 0], result[:, count, 0] = ends
    k = np.arange(1, count // 2 + 1)
    one = math.divided((spectrum[0][:, k], spectrum[1][:, k]), 2)
    other = math.divided(math.conjugate((spectrum[0][:, count - k], spectrum[1][:, count - k])), 2)
    total, rest = math.sum(one, other), math.difference(one, other)
    moved = math.product(rest, math.read(real_twiddles(count, False, dtype)))
    low = math.half_sum(total, moved)
    high = math.half_sum((total[0], moved[1]), (-moved[0], -total[1]))
    # The middle pair of an even count is written twice.
    result[:, k] = np.stack(low, axis=-1)
    result[:, count - k] = np.stack(high, axis=-1)
    return result.astype(dtype).reshape(*outer, length + 2)


def irfft(length: int, data: Any) -> Any:
    """Return the rows [...,length] of spectra [...,length + 2]."""
    dtype, outer, count = str(data.dtype), data.shape[:-1], length // 2
    math = _Arithmetic(dtype)
    real, imaginary = math.read(data.reshape(-1, count + 1, 2))
    ends = math.wrapped(real[:, 0] + real[:, count], real[:, 0] - real[:, count])
    packed = [np.zeros((len(real), count), real.dtype) for _ in range(2)]
    packed[0][:, 0], packed[1][:, 0] = math.divided(ends, 2)
    k = np.arange(1, count // 2 + 1)
    one = math.divided((real[:, k], imaginary[:, k]), 2)
    other = math.divided(math.conjugate((real[:, count - k], imaginary[:, count - k])), 2)
    even = math.sum(one, other)
    odd = math.product(math.difference(one, other), math.read(real_twiddles(count, True, dtype)))
    low, high = math.sum(even, odd), math.conjugate(math.difference(even, odd))
    for part in (0, 1):
        packed[part][:, k] = low[part]
        packed[part][:, count - k] = high[part]
    samples = np.stack(_complex((packed[0], packed[1]), dtype, is_inverse=True), axis=-1).astype(dtype)
    result = samples.reshape(*outer, length)
    return result / np.float32(length) if dtype == "float32" else result
