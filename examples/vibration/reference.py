# SPDX-License-Identifier: Apache-2.0
"""The operators of operators/vibration.c in numpy, in float32 and in the same order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

RATE = 3200
"""Samples per second."""
GRAVITY_MG = np.float32(1000)
SAMPLES, BANDS, WINDOW, STATISTICS = 64, 4, 8, 6
CLASSES = ("normal", "imbalance", "looseness", "bearing")


def coefficients() -> Array:
    """Return the filters, [4, 5]: high-pass at 10 Hz, band-pass at 25, 75 and 1000 Hz (Audio EQ Cookbook)."""
    rows = []
    for kind, hertz, q in (("high", 10, 0.707), ("band", 25, 1.5), ("band", 75, 1.0), ("band", 1000, 1.0)):
        w = 2 * np.pi * hertz / RATE
        alpha, cosine = np.sin(w) / (2 * q), np.cos(w)
        b = (alpha, 0.0, -alpha) if kind == "band" else ((1 + cosine) / 2, -1 - cosine, (1 + cosine) / 2)
        rows.append([value / (1 + alpha) for value in (*b, -2 * cosine, 1 - alpha)])
    return np.array(rows, np.float32)


def at_rest(streams: int = 1) -> Array:
    """Return the steady state of the filters for a sensor at rest, [4, 2, streams]: the input is gravity only."""
    z = np.zeros((BANDS, 2, streams), np.float32)
    b1, b2 = coefficients()[0, 1:3]
    z[0, 0], z[0, 1] = GRAVITY_MG * (b1 + b2), GRAVITY_MG * b2
    return z


class Stream:
    """Streams of frames; all arrays have a first dimension for several streams at once."""

    def __init__(self, streams: int = 1) -> None:
        self.coeffs = coefficients()
        self.z = at_rest(streams)
        self.statistics = np.zeros((WINDOW, STATISTICS, streams), np.float32)
        self.place = 0

    def run(self, frames: Array) -> Array:
        """Return the features, [streams, 6], after the next frames, int16 [streams, 64]."""
        sums = np.zeros((STATISTICS, frames.shape[0]), np.float32)
        for x in frames.T.astype(np.float32):
            y = self._biquad(0, x)
            square = y * y
            sums[0] += square
            sums[1] += square * square
            sums[2] = np.maximum(sums[2], square)
            for band in range(1, BANDS):
                sums[2 + band] += self._biquad(band, y) ** 2
        self.statistics[self.place] = sums
        self.place = (self.place + 1) % WINDOW
        return self._describe()

    def _biquad(self, band: int, x: Array) -> Array:
        c, z = self.coeffs[band], self.z[band]
        y = c[0] * x + z[0]
        z[0] = (c[1] * x - c[3] * y) + z[1]
        z[1] = c[2] * x - c[4] * y
        return y

    def _describe(self) -> Array:
        count = np.float32(WINDOW * SAMPLES)
        total = np.zeros_like(self.statistics[0])
        for one in self.statistics:
            peak = np.maximum(total[2], one[2])
            total += one
            total[2] = peak
        mean = total[0] / count
        divisor = np.where(mean > 0, mean, np.float32(1))
        crest, kurtosis = total[2] / divisor, total[1] / count / (divisor * divisor)
        return np.stack([mean, crest, kurtosis, *(total[3:] / count)], axis=1)


def features(recordings: Array) -> Array:
    """Return the features after every frame, float32 [streams, frames, 6], of int16 [streams, frames, 64]."""
    stream = Stream(len(recordings))
    return np.stack([stream.run(frames) for frames in recordings.swapaxes(0, 1)], axis=1)
