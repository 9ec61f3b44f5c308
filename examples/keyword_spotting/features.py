# SPDX-License-Identifier: Apache-2.0
"""The features of MLPerf Tiny's keyword spotting model in numpy: as in its training, and as operators/features.c.

Training: mlcommons/tiny, benchmark/training/keyword_spotting, get_dataset.py and the defaults of kws_util.py. A clip of
one second at 16 kHz is divided by its largest sample; 49 frames of 480 samples (30 ms), 320 (20 ms) apart, are weighted
with a periodic Hann window and padded to 512; the magnitudes of the spectrum are summed in 40 triangular bands between
20 Hz and 4 kHz on the mel scale; 10 coefficients of the DCT-II of log(band + 1e-6) are the features.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

WORDS = ("down", "go", "left", "no", "off", "on", "right", "stop", "up", "yes", "silence", "unknown")
"""The classes, in the order of the model's outputs (get_dataset.py)."""
RATE = 16000
"""Samples per second."""
CLIP = 16000
FRAME, STEP, FFT = 480, 320, 512
FRAMES, BANDS, COEFFICIENTS = 49, 40, 10
LOWEST_HZ, HIGHEST_HZ = 20.0, 4000.0
FLOOR = 1e-6

BLOCK = 1600
"""Samples of one run, 100 ms: 5 new frames."""
BLOCKS = CLIP // BLOCK
BINS = 127
"""Bins 1 to 127 of the spectrum contribute to a band; bin 128 is 4 kHz, the end of the last one."""
LOG_STEPS = 64
NUDGE = 2**-10
"""Added to quantised features before they are truncated: those of digital silence are exactly 0, or almost."""


def hann() -> Array:
    """Return the window of the frames, [480]."""
    return 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(FRAME) / FRAME)


def mel(hertz: Any) -> Any:
    """Return frequencies on the mel scale, with the constants of tf.signal.linear_to_mel_weight_matrix."""
    return 1127.0 * np.log(1.0 + np.asarray(hertz) / 700.0)


def dct() -> Array:
    """Return the matrix of tf.signal.mfccs_from_log_mel_spectrograms for the first coefficients, [10, 40]."""
    angles = np.outer(np.arange(COEFFICIENTS), 2 * np.arange(BANDS) + 1) * np.pi / (2 * BANDS)
    return 2.0 * np.cos(angles) / np.sqrt(2.0 * BANDS)


def band_places() -> Array:
    """Return the place of bins 1 to 127 between the edges of the bands: 2.25 is a quarter from edge 2 to edge 3."""
    low, high = mel(LOWEST_HZ), mel(HIGHEST_HZ)
    frequencies = np.arange(1, BINS + 1) * (RATE / FFT)
    return (mel(frequencies) - low) / (high - low) * (BANDS + 1)


def trained_features(clip: Array) -> Array:
    """Return the features of a clip of one second as in training, in float64: [49, 10]."""
    samples = clip.astype(np.float64) / max(int(clip.max()), 1)
    frames = np.stack([samples[STEP * i : STEP * i + FRAME] for i in range(FRAMES)])
    spectra = np.abs(np.fft.rfft(frames * hann(), FFT))[:, 1 : BINS + 1]
    places = band_places()[:, None]
    weights = np.maximum(0.0, 1.0 - np.abs(places - np.arange(1, BANDS + 1)))  # edge b + 1 is the centre of band b
    return np.log(spectra @ weights + FLOOR) @ dct().T


def quantized(features: Array, scale: float, zero_point: int) -> Array:
    """Return int8 features as make_bin_files.py writes them (truncated), but saturated instead of wrapped."""
    return np.clip(np.trunc(features / scale + zero_point + NUDGE), -128, 127).astype(np.int8)


def tables(scale: float, zero_point: int) -> dict[str, Array]:
    """Return the constants of operators/features.c for an input with this quantisation."""
    half = np.arange(FFT // 2) * (2 * np.pi / FFT)
    places = band_places()
    edges = np.floor(places)
    logs = np.log2(1 + np.arange(LOG_STEPS + 1) / LOG_STEPS)
    to_input = dct() * (np.log(2.0) / scale)
    return {
        "window": np.minimum(np.round(hann() * 2**15), 2**15 - 1).astype(np.int16),
        "twiddles": np.round(np.stack([np.cos(half), -np.sin(half)], axis=1) * 2**30).astype(np.int32),
        "edges": edges.astype(np.uint8),
        "rising": np.round((places - edges) * 2**15).astype(np.uint16),
        "logs": np.round(logs * 2**16).astype(np.int32),
        "dct": np.round(to_input * 2**20).astype(np.int32),
        "offset": np.array([int((zero_point + NUDGE) * 2**36)], np.int64),
    }


class FrontEnd:
    """One stream: the arithmetic of operators/features.c, bit for bit."""

    def __init__(self, constants: Mapping[str, Array]) -> None:
        self.window = constants["window"].astype(np.int64)
        self.twiddles = constants["twiddles"].astype(np.int64)
        self.edges = constants["edges"].astype(np.int64)
        self.rising = constants["rising"].astype(np.int64)
        self.logs = constants["logs"].astype(np.int64)
        self.dct = constants["dct"].astype(np.int64)
        self.offset = int(constants["offset"][0])
        self.reset()

    def reset(self) -> None:
        """Set the first state: silence."""
        self.overlap = np.zeros(STEP, np.int16)
        self.bands = np.zeros((FRAMES, BANDS), np.int64)
        self.peaks = np.zeros(BLOCKS, np.int64)

    def run(self, block: Array) -> Array:
        """Return the int8 features, [49, 10], of the last second after a block of 1600 samples."""
        samples = np.concatenate([self.overlap, block]).astype(np.int64)
        frames = np.stack([samples[STEP * i : STEP * i + FRAME] for i in range(BLOCK // STEP)])
        self.overlap = block[-STEP:].copy()
        self.bands = np.concatenate([self.bands[len(frames) :], self._bands(frames)])
        self.peaks = np.append(self.peaks[1:], block.max())
        return self._features(max(int(self.peaks.max()), 1))

    def _bands(self, frames: Array) -> Array:
        weighted = frames * self.window
        largest = np.abs(weighted).max(axis=1)
        shifts = 30 - np.frexp(np.maximum(largest, 1).astype(np.float64))[1].astype(np.int64)[:, None]
        re, im = self._transform(weighted << shifts)
        power = re[:, 1 : BINS + 1] ** 2 + im[:, 1 : BINS + 1] ** 2
        magnitudes = square_root(power)
        bands = np.zeros((len(frames), BANDS + 2), np.int64)  # one more band at each end, which is not used
        for i, (edge, rising) in enumerate(zip(self.edges, self.rising, strict=True)):
            bands[:, edge] += (2**15 - rising) * magnitudes[:, i]
            bands[:, edge + 1] += rising * magnitudes[:, i]
        return (bands[:, 1:-1] + (2**14 << shifts)) >> (15 + shifts)

    def _transform(self, frames: Array) -> tuple[Array, Array]:
        """Return the spectrum divided by 512: decimation in time, each stage halves its results."""
        order = [int(f"{i:09b}"[::-1], 2) for i in range(FFT)]
        re = np.zeros((len(frames), FFT), np.int64)
        re[:, :FRAME] = frames
        re = re[:, order]
        im = np.zeros_like(re)
        half = 1
        while half < FFT:
            c, s = self.twiddles[:: FFT // 2 // half].T
            shape = (len(frames), -1, 2, half)
            (ar, br), (ai, bi) = (np.moveaxis(x.reshape(shape), 2, 0) for x in (re, im))
            tr = (br * c - bi * s + 2**29) >> 30
            ti = (br * s + bi * c + 2**29) >> 30
            re = np.stack([(ar + tr + 1) >> 1, (ar - tr + 1) >> 1], axis=2).reshape(len(frames), FFT)
            im = np.stack([(ai + ti + 1) >> 1, (ai - ti + 1) >> 1], axis=2).reshape(len(frames), FFT)
            half *= 2
        return re, im

    def _log2(self, value: Array) -> Array:
        """Return the logarithm of positive integers to the base 2, in 1/65536: linear between 64 places per octave."""
        exponent = np.frexp(value.astype(np.float64))[1].astype(np.int64) - 1  # exact below 2^53
        mantissa = np.where(exponent > 22, value >> np.maximum(exponent - 22, 0), value << np.maximum(22 - exponent, 0))
        place, rest = (mantissa >> 16) & 63, mantissa & 0xFFFF
        low, high = self.logs[place], self.logs[place + 1]
        return (exponent << 16) + low + (((high - low) * rest) >> 16)

    def _features(self, peak: int) -> Array:
        floor = (peak * 274878) >> 12  # 1e-6 of the peak, in the units of the bands (1/64) times 2^20
        logs = self._log2((self.bands << 20) + floor) - (self._log2(np.array(peak)) + (26 << 16))
        total = logs @ self.dct.T + self.offset
        whole = np.where(total < 0, -(-total >> 36), total >> 36)
        return np.clip(whole, -128, 127).astype(np.int8)


def square_root(values: Array) -> Array:
    """Return the integer square roots, rounded down, of integers below 2^62."""
    roots = np.sqrt(values.astype(np.float64)).astype(np.int64)
    roots -= roots * roots > values
    return roots + ((roots + 1) * (roots + 1) <= values)
