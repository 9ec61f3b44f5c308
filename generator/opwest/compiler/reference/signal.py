# SPDX-License-Identifier: Apache-2.0
"""tflite-micro's signal operators in numpy, bit for bit. Sources in tflite-micro: signal/src/, signal/micro/kernels/.

States change in place.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from opwest.compiler.graph.types import Node, Rules
from opwest.compiler.reference.run import Arrays, interprets
from opwest.compiler.reference.signal_fft import irfft, rfft
from opwest.compiler.semantics import signal, signal_streams
from opwest.compiler.semantics.signal import NoiseNumbers, logarithms
from opwest.compiler.semantics.signal_streams import FramerNumbers, StackerNumbers

_LOG2 = 45426
"""log(2) in 1/65536."""


def windowed(shift: int, data: Any, window: Any) -> Any:
    """Return the products with a window that repeats. Source: signal/src/window.cc."""
    products = data.reshape(-1, len(window)).astype(np.int32) * window.astype(np.int32) >> shift
    return np.clip(products, -32768, 32767).astype(np.int16).reshape(data.shape)


def auto_scaled(data: Any) -> tuple[Any, Any]:
    """Return the data shifted to the left, and by how many bits. Sources: signal/src/fft_auto_scale.cc, max_abs.cc."""
    greatest = 0
    for value in data.tolist():
        if value > greatest:
            greatest = value
        elif -value > greatest:
            greatest = -value if value != -32768 else value  # as int16: the next element then is greater
    bits = max(15 - greatest.bit_length(), 0) if greatest > 0 else 0
    return (data.astype(np.int32) << bits).astype(np.int16), np.int32(bits)


def energies(start: int, end: int, data: Any) -> Any:
    """Return the squares of the magnitudes of pairs, 0 outside of the range. Source: signal/src/energy.cc."""
    squares = (data.reshape(-1, 2).astype(np.int64) ** 2).sum(axis=1)
    squares[:start] = squares[end:] = 0
    return squares.astype(np.uint32)


def filtered(data: Any, weights: Any, unweights: Any, starts: Any, firsts: Any, widths: Any) -> Any:
    """Return the sums of channels; those of the entry before the first one are dropped.

    Source: signal/src/filter_bank.cc.
    """
    sums, rest = [], 0
    for start, first, width in zip(starts.tolist(), firsts.tolist(), widths.tolist(), strict=True):
        band = range(max(width, 0))
        total = rest + sum(int(weights[first + j]) * int(data[start + j]) for j in band)
        rest = sum(int(unweights[first + j]) * int(data[start + j]) for j in band)
        sums.append(total % (1 << 64))
    return np.asarray(sums[1:], np.uint64)


def rooted(data: Any, bits: int) -> Any:
    """Return square roots, rounded to nearest, shifted to the right by the low 5 bits of a number.

    Sources: signal/src/filter_bank_square_root.cc, square_root_32.cc, square_root_64.cc.
    """
    roots = []
    for value in data.tolist():
        root = math.isqrt(value)
        limit = (1 << 16) - 1 if value < 1 << 32 else (1 << 32) - 1
        roots.append(root + (value - root * root > root and root != limit))
    return np.asarray(roots, np.uint32) >> np.uint32(bits & 31)


def logarithms_of(scale: int, bits: int, data: Any) -> Any:
    """Return scaled logarithms. Sources: signal/src/filter_bank_log.cc, log.cc."""
    table = np.asarray(logarithms(), np.int64)
    scaled = (data.astype(np.int64) << bits) & 0xFFFFFFFF
    safe = np.maximum(scaled, 1)
    power = np.asarray([value.bit_length() - 1 for value in safe.tolist()], np.int64).reshape(safe.shape)
    rest = safe - (np.int64(1) << power)
    fraction = np.where(power < 16, rest << np.maximum(16 - power, 0), rest >> np.maximum(power - 16, 0))
    segment = fraction >> 9
    slope = (table[segment + 1] - table[segment]) * (fraction - (segment << 9)) >> 16
    log2 = (power << 16) + fraction + table[segment] + slope
    natural = (_LOG2 * log2 + 32768 >> 16) & 0xFFFFFFFF
    result = ((scale * natural + 32768) & 0xFFFFFFFF) >> 16
    return np.where(scaled > 1, np.minimum(result, 32767), 0).astype(np.int16)


def without_noise(numbers: NoiseNumbers, data: Any, noise: Any) -> tuple[Any, Any]:
    """Return the data less the estimate of the noise, and the estimate, which changes in place.

    Source: signal/src/filter_bank_spectral_subtraction.cc.
    """
    odd = np.arange(len(data)) & 1
    smoothing = np.asarray(numbers.smoothing, np.uint64)[odd]
    rest = np.asarray(numbers.one_minus_smoothing, np.uint64)[odd]
    bits = np.uint64(numbers.bits)
    moved = data.astype(np.uint32) << np.uint32(numbers.smoothing_bits)
    sums = moved.astype(np.uint64) * smoothing + noise.astype(np.uint64) * rest
    noise[...] = (sums >> bits).astype(np.uint32)
    estimate = np.minimum(noise, moved)
    if numbers.is_clamped:
        noise[...] = estimate
    least = (data.astype(np.uint64) * np.uint64(numbers.remaining) >> bits).astype(np.uint32)
    return np.maximum((moved - estimate) >> np.uint32(numbers.smoothing_bits), least), noise.copy()


def gained(shift: int, data: Any, noise: Any, gains: Any) -> Any:
    """Return data with automatic gain control. Source: signal/src/pcan_argc_fixed.cc."""
    results = []
    for value, estimate in zip(data.tolist(), noise.tolist(), strict=True):
        snr = (value * (_gain(estimate, gains) % (1 << 32)) >> shift) & 0xFFFFFFFF
        results.append(snr * snr >> 20 if snr < 2 << 12 else (snr >> 6) - 64)
    return np.asarray(results, np.uint32)


def _gain(noise: int, gains: Any) -> int:
    """Return the gain for an estimate of the noise as int16: a polynomial for each place of the highest bit."""
    if noise <= 2:
        return int(gains[noise])
    places = noise.bit_length()
    first, second, third = (int(gain) for gain in gains[4 * places - 6 : 4 * places - 3])
    fraction = (noise << 11 - places if places < 11 else noise >> places - 11) & 0x3FF
    result = ((third * fraction >> 5) + (second << 5)) * fraction
    return ((result + (1 << 14) >> 15) + first + 32768) % 65536 - 32768


def framed(numbers: FramerNumbers, data: Any, samples: Any = None, count: Any = None) -> tuple[Any, Any]:
    """Return frames, and whether all are valid. `samples` and `count` are states; None: there is no such state."""
    rows = data.reshape(numbers.rows, -1)
    stream = rows if samples is None else np.concatenate([samples, rows], axis=1)
    frames = np.zeros((numbers.rows, numbers.frames, numbers.size), data.dtype)
    seen = numbers.missing if count is None else int(count)
    for frame in range(max(numbers.missing - seen, 0), numbers.frames):
        frames[:, frame] = stream[:, frame * numbers.step : frame * numbers.step + numbers.size]
    if samples is not None:
        samples[...] = stream[:, -numbers.kept :]
    if count is not None:
        count[...] = min(seen + numbers.frames, numbers.missing)
    return frames, np.bool_(seen >= numbers.missing)


def overlapped(step: int, data: Any, sums: Any = None) -> Any:
    """Return the sums of frames that overlap, saturated if they are integers. `sums`: a state; None: no overlap."""
    rows = data.reshape(-1, *data.shape[-2:])
    results = np.zeros((len(rows), rows.shape[1], step), data.dtype)
    total = np.zeros((len(rows), rows.shape[2]), data.dtype)
    kept = rows.shape[2] - step
    if sums is not None:
        total[:, :kept] = sums
    for frame in range(rows.shape[1]):
        added = rows[:, frame] + (total if data.dtype == np.float32 else total.astype(np.int32))
        total = added if data.dtype == np.float32 else np.clip(added, -32768, 32767).astype(np.int16)
        results[:, frame] = total[:, :step]
        total = np.pad(total[:, step:], ((0, 0), (0, step)))
    if sums is not None:
        sums[...] = total[:, :kept]
    return results


def stacked(numbers: StackerNumbers, data: Any, frames: Any, count: Any) -> tuple[Any, Any]:
    """Return the newest frames, and whether they are valid. `frames` and `count` are states.

    The count is 0 before the first call, then one more than the frames that the next result does not lack.
    """
    if count == 0:
        frames[...] = data
        count[...] = numbers.left + 1
    stack = np.concatenate([frames, data[None]])
    frames[...] = stack[1:]
    is_valid = int(count) == numbers.frames
    count[...] = int(count) + 1 - (numbers.step if is_valid else 0)
    return stack if is_valid else np.zeros_like(stack), np.bool_(is_valid)


def delayed(data: Any, samples: Any) -> Any:
    """Return the samples of earlier calls. `samples` is a state."""
    rows = data.reshape(len(samples), -1)
    stream = np.concatenate([samples, rows], axis=1)
    samples[...] = stream[:, rows.shape[1] :]
    return stream[:, : rows.shape[1]]


@interprets("SignalWindow")
def _window(node: Node, arrays: Arrays, rules: Rules) -> Any:
    return windowed(int(node.options["shift"]), *arrays)


@interprets("SignalFftAutoScale")
def _auto_scale(node: Node, arrays: Arrays, rules: Rules) -> Any:
    return auto_scaled(*arrays)


@interprets("SignalRfft", "SignalIrfft")
def _fft(node: Node, arrays: Arrays, rules: Rules) -> Any:
    return (rfft if node.kind == "SignalRfft" else irfft)(int(node.options["fft_length"]), *arrays)


@interprets("SignalEnergy")
def _energy(node: Node, arrays: Arrays, rules: Rules) -> Any:
    return energies(*signal.energy_range(node), *arrays)


@interprets("SignalFilterBank")
def _filter_bank(node: Node, arrays: Arrays, rules: Rules) -> Any:
    return filtered(*arrays)


@interprets("SignalFilterBankSquareRoot")
def _square_root(node: Node, arrays: Arrays, rules: Rules) -> Any:
    return rooted(arrays[0], int(arrays[1].reshape(-1)[0]))


@interprets("SignalFilterBankLog")
def _log(node: Node, arrays: Arrays, rules: Rules) -> Any:
    bits = int(node.options["input_correction_bits"])
    return logarithms_of(int(node.options["output_scale"]) % (1 << 32), bits, *arrays)


@interprets("SignalFilterBankSpectralSubtraction")
def _spectral_subtraction(node: Node, arrays: Arrays, rules: Rules) -> Any:
    return without_noise(signal.noise_numbers(node), *arrays)


@interprets("SignalPCAN")
def _pcan(node: Node, arrays: Arrays, rules: Rules) -> Any:
    return gained(int(node.options["snr_shift"]), *arrays)


@interprets("SignalFramer")
def _framer(node: Node, arrays: Arrays, rules: Rules) -> Any:
    return framed(signal_streams.framer_numbers(node), *arrays)


@interprets("SignalOverlapAdd")
def _overlap_add(node: Node, arrays: Arrays, rules: Rules) -> Any:
    return overlapped(signal_streams.overlap_numbers(node)[3], *arrays)


@interprets("SignalStacker")
def _stacker(node: Node, arrays: Arrays, rules: Rules) -> Any:
    if len(arrays) == 1:
        return arrays[0], np.True_
    return stacked(signal_streams.stacker_numbers(node), *arrays)


@interprets("SignalDelay")
def _delay(node: Node, arrays: Arrays, rules: Rules) -> Any:
    return arrays[0] if len(arrays) == 1 else delayed(*arrays)
