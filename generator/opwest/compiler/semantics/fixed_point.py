# SPDX-License-Identifier: Apache-2.0
"""Fixed-point numbers of TFLite: multipliers, roundings, clamps.

Sources in TFLite: kernels/internal/quantization_util.cc (QuantizeMultiplier), kernels/internal/common.cc
(MultiplyByQuantizedMultiplier), kernels/kernel_util.cc (CalculateActivationRangeQuantized), gemmlowp's fixedpoint.h.
"""

from __future__ import annotations

import enum
import math
from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.base.result import counted
from opwest.compiler.graph.types import Quantization, Tensor, Unsupported

MIN_SHIFT = -31
"""Smaller exponents are flushed: the multiplier becomes 0."""
RANGES = {"int8": (-128, 127), "uint8": (0, 255), "int16": (-32768, 32767), "int32": (-(2**31), 2**31 - 1)}
"""The least and greatest value of a quantised dtype."""


class Rounding(enum.Enum):
    """How a sum times a multiplier becomes an integer."""

    TWICE = "twice"
    """int32 sums: a doubling high multiplication rounded half up, then a shift rounded half away from zero."""
    ONCE = "once"
    """One shift of the 64-bit product, rounded half up."""
    SIXTEEN = "sixteen"
    """64-bit sums: the multiplier is reduced to 16 bits, then one shift, rounded half up."""
    FLOAT = "float"
    """onnxruntime: the sum as float32 times a float32 scale, rounded half to even."""


@dataclass(frozen=True)
class Multiplier:
    """fixed * 2**(shift - 31): `fixed` is 0 or between 2**30 and 2**31 - 1; a negative `shift` shifts to the right."""

    fixed: int
    shift: int

    def times(self, values: Any, rounding: Rounding = Rounding.TWICE) -> Any:
        """Return integers times the number, as int64."""
        return scaled(values, self.fixed, self.shift, rounding)


def quantize_multiplier(real: float) -> Multiplier:
    """Return the fixed-point number nearest to a multiplier that is not negative. Raises Unsupported above 2**30."""
    if real == 0.0:
        return Multiplier(0, 0)
    if not (math.isfinite(real) and real > 0):
        raise Unsupported(f"the scales give the multiplier {real:g}", "a positive number")
    fraction, shift = math.frexp(real)
    fixed = math.floor(fraction * (1 << 31) + 0.5)
    if fixed == 1 << 31:
        fixed //= 2
        shift += 1
    if shift < MIN_SHIFT:
        return Multiplier(0, 0)
    if shift > 30:
        raise Unsupported(f"the scales give the multiplier {real:g}", "at most 2**30")
    return Multiplier(fixed, shift)


def round_away(value: float) -> int:
    """Return the nearest integer, halves away from zero: C's round()."""
    return int(math.copysign(math.floor(abs(value) + 0.5), value))


def rounded_away(values: Any) -> Any:
    """Return the nearest integers as float64, halves away from zero."""
    wide = np.asarray(values, np.float64)
    return np.copysign(np.floor(np.abs(wide) + 0.5), wide)


def exponent_of(scale: float) -> int | None:
    """Return the exponent of a power of two. Source: TFLite's CheckedLog2, with its tolerance."""
    exact = math.log2(scale)
    nearest = round(exact)
    return nearest if abs(exact - nearest) < 1e-3 else None


def float32(value: float) -> float:
    """Return a number rounded to float32: infinity above its range."""
    with np.errstate(over="ignore"):
        return float(np.float32(value))


def one_quantization(tensor: Tensor) -> Quantization:
    """Return the quantisation of a tensor with one scale. Raises Unsupported."""
    quantization = tensor.quantization
    if quantization is None:
        raise Unsupported(f"'{tensor.name}' is {tensor.dtype} without a scale", "a quantised tensor")
    if len(quantization.scales) != 1:
        raise Unsupported(f"'{tensor.name}' has {counted(len(quantization.scales), 'scale')}", "one scale")
    low, high = RANGES[tensor.dtype]
    zero = quantization.zero
    if not low <= zero <= high:
        raise Unsupported(f"'{tensor.name}' is {tensor.dtype} with the zero point {zero}", f"{low} to {high}")
    if tensor.dtype == "int16" and zero != 0:
        raise Unsupported(f"'{tensor.name}' is int16 with the zero point {zero}", "0")
    return quantization


def quantize(value: float, quantization: Quantization) -> int:
    """Return a real number in the quantised domain: the division and the rounding are those of float32."""
    return quantization.zero + round_away(float(np.float32(value) / np.float32(quantization.scale)))


_LIMITS: dict[str, tuple[float | None, float | None]] = {
    "NONE": (None, None),
    "RELU": (0.0, None),
    "RELU6": (0.0, 6.0),
    "RELU_N1_TO_1": (-1.0, 1.0),
}
"""The clamp of a fused activation."""


def limits_of(activation: str) -> tuple[float | None, float | None]:
    """Return the real limits of a fused activation. Raises Unsupported."""
    if activation not in _LIMITS:
        raise Unsupported(f"fused activation {activation}", ", ".join(_LIMITS))
    return _LIMITS[activation]


def activation_range(activation: str, tensor: Tensor) -> tuple[int, int]:
    """Return the least and greatest quantised value of a result with a fused activation."""
    quantization = one_quantization(tensor)
    low, high = RANGES[tensor.dtype]
    least, greatest = limits_of(activation)
    return (
        low if least is None else max(low, quantize(least, quantization)),
        high if greatest is None else min(high, quantize(greatest, quantization)),
    )


@dataclass(frozen=True)
class Requantisation:
    """From sums to a quantised result: times a multiplier, plus the zero point, clamped."""

    multipliers: tuple[Multiplier, ...]
    """One, or one for each channel."""
    rounding: Rounding
    zero: int
    low: int
    high: int
    scales: tuple[float, ...] = ()
    """The float32 multipliers of Rounding.FLOAT; with `real` the scales of the weights."""
    biases: tuple[float, ...] = ()
    """The float32 biases with `real`; empty: none."""
    real: tuple[float, float] | None = None
    """PyTorch: the scale of the data, and the inverse of that of the result. The real sum with its bias is computed as
    double and rounded to float32, then multiplied by the inverse."""

    def each(self, channels: int) -> tuple[Multiplier, ...]:
        """Return the multiplier of each channel."""
        return self.multipliers if len(self.multipliers) == channels else self.multipliers * channels

    def apply(self, sums: Any) -> Any:
        """Return integer sums as int64 results; the last dimension of `sums` is that of the channels."""
        return np.clip(self.scaled(sums) + self.zero, self.low, self.high)

    def scaled(self, sums: Any) -> Any:
        """Return the sums times the multipliers, as int64."""
        sums = np.asarray(sums, np.int64)
        if self.rounding is Rounding.FLOAT:
            scales = np.asarray(self.scales, np.float32)
            if self.real is None:
                return np.rint(sums.astype(np.float32) * scales).astype(np.int64)
            data, inverse = self.real
            total = sums.astype(np.float64) * data * scales.astype(np.float64)
            total = total + np.asarray(self.biases, np.float64) if self.biases else total
            return np.rint(total.astype(np.float32) * np.float32(inverse)).astype(np.int64)
        fixed = np.asarray([m.fixed for m in self.multipliers], np.int64)
        shift = np.asarray([m.shift for m in self.multipliers], np.int64)
        return scaled(sums, fixed, shift, self.rounding)


def reduced(fixed: Any) -> Any:
    """Return multipliers of 16 bits, as int64. Source: DownScaleInt32ToInt16Multiplier."""
    fixed = np.asarray(fixed, np.int64)
    return np.where(fixed < 0x7FFF0000, (fixed + (1 << 15)) >> 16, 0x7FFF)


def scaled(sums: Any, fixed: Any, shift: Any, rounding: Rounding) -> Any:
    """Return int64 sums times fixed-point numbers. Sums of Rounding.TWICE wrap to 32 bits after the left shift."""
    sums, fixed, shift = (np.asarray(array, np.int64) for array in (sums, fixed, shift))
    if rounding is Rounding.ONCE:
        places = 31 - shift
        return (sums * fixed + (np.int64(1) << (places - 1))) >> places
    if rounding is Rounding.SIXTEEN:
        places = 15 - shift
        return (sums * reduced(fixed) + (np.int64(1) << (places - 1))) >> places
    left, right = np.maximum(shift, 0), np.maximum(-shift, 0)
    shifted = wrapped(sums << left)
    return round_shift(doubled_high(shifted, fixed), right)


def wrapped(values: Any, width: int = 32) -> Any:
    """Return int64 values wrapped to 32 or 16 bits."""
    return np.asarray(values).astype(f"int{width}").astype(np.int64)


def saturated(values: Any, width: int = 32) -> Any:
    """Return numbers clamped to the range of 32 or 16 bits."""
    return np.clip(values, -1 << (width - 1), (1 << (width - 1)) - 1)


def doubled_high(one: Any, other: Any, width: int = 32) -> Any:
    """Return the high bits of twice the product, rounded. Source: gemmlowp, SaturatingRoundingDoublingHighMul."""
    one, other = np.asarray(one, np.int64), np.asarray(other, np.int64)
    # For INT32_MIN * INT32_MIN the sum is 2**31, which saturates.
    return np.minimum((one * other + (1 << (width - 2))) >> (width - 1), (1 << (width - 1)) - 1)


def round_shift(value: Any, places: Any) -> Any:
    """Return a shift to the right, rounded half away from zero. Source: gemmlowp, RoundingDivideByPOT."""
    value, places = np.asarray(value, np.int64), np.asarray(places, np.int64)
    mask = (np.int64(1) << places) - 1
    threshold = (mask >> 1) + (value < 0)
    return (value >> places) + ((value & mask) > threshold)


GREATEST = 2**31 - 1
EXPONENTIALS = {
    32: (1895147668, 715827883, (1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242)),
    16: (28918, 10923, (25520, 19875, 12055, 4435, 600, 11, 0)),
}
"""By width, with 0 integer bits: exp(-1/8), 1/3, and exp(-2**k) for k from -2 to 4."""


def shift_left(value: Any, places: Any) -> Any:
    """Return a saturating shift to the left."""
    return saturated(np.asarray(value, np.int64) << places)


def leading_zeros(value: Any) -> Any:
    """Return the number of zeros above the highest bit of positive 32-bit numbers."""
    return 32 - np.frexp(np.asarray(value, np.float64))[1].astype(np.int64)


def exponential(value: Any, bits: int = 5, width: int = 32) -> Any:
    """Return exp with 0 integer bits of numbers that are not positive, with `bits` integer bits."""
    value = np.asarray(value, np.int64)
    eighth, third, powers = EXPONENTIALS[width]
    quarter = 1 << (width - 3 - bits)
    rest = (value & (quarter - 1)) - quarter
    x = (rest << bits) + (1 << (width - 4))
    square = doubled_high(x, x, width)
    fourth = round_shift(doubled_high(square, square, width), 2)
    tail = round_shift(doubled_high(fourth + doubled_high(square, x, width), third, width) + square, 1)
    result = saturated(eighth + doubled_high(eighth, x + tail, width), width)
    remainder = wrapped(rest - value, width)
    for number, factor in enumerate(powers[: bits + 2]):
        result = np.where(remainder & (quarter << number), doubled_high(result, factor, width), result)
    if bits > 5:
        result = np.where(value < -(1 << (width + 4 - bits)), 0, result)
    return np.where(value == 0, (1 << (width - 1)) - 1, result)


def _inverse(value: Any, width: int) -> Any:
    """Return 1 / ((1 + value) / 2) with 2 integer bits for numbers between 0 and 1."""
    start, slope = {32: (1515870810, -1010580540), 16: (23130, -15420)}[width]
    half = (np.asarray(value, np.int64) + (1 << (width - 1))) >> 1
    x = start + doubled_high(half, slope, width)
    for _ in range(3):
        x = x + saturated(doubled_high(x, (1 << (width - 3)) - doubled_high(half, x, width), width) << 2, width)
    return x


def reciprocal(value: Any) -> Any:
    """Return 1 / (1 + value) for numbers between 0 and 1: both have 0 integer bits."""
    return shift_left(_inverse(value, 32), 1)


def logarithm(value: Any) -> Any:
    """Return the natural logarithm with 5 integer bits of numbers of at least 1, with 12 integer bits."""
    value = np.asarray(value, np.int64)
    root, fourth_root = 1518500250, 1805811301
    zeros = leading_zeros(value)
    one = shift_left(doubled_high(shift_left(value, zeros - 1), root), 1)
    one_power = shift_left(12 - zeros, 25) + (1 << 23)
    headroom = leading_zeros(doubled_high(value, root)) - 1
    other = shift_left(value, headroom)
    other_power = shift_left(12 - headroom, 25) - (1 << 23)
    r = np.minimum(one, other)
    power = np.maximum(one_power, other_power)
    p = (r + fourth_root + 1) >> 1
    q = 2 * (r - fourth_root)
    square = doubled_high(q, q)
    numerator = doubled_high(q, r) + doubled_high(doubled_high(q, square), 117049297)
    denominator = doubled_high(p, 1057819769 + q + doubled_high(127690142, square)) + doubled_high(638450708, q)
    product = doubled_high(round_shift(numerator, 6), reciprocal(denominator))
    return shift_left(doubled_high(power, 1488522236) + product, 1)


def inverse_root(value: Any) -> tuple[Any, Any]:
    """Return 1 / sqrt of positive numbers as multipliers and shifts to the right; 0 is taken for 1."""
    value = np.asarray(value, np.int64)
    number, places = np.maximum(value, 2), np.full(value.shape, 11, np.int64)
    while (large := number >= 1 << 29).any():
        number = np.where(large, number >> 2, number)
        places = places + large
    pairs = (leading_zeros(number) - 1) // 2 - 1
    places = places - pairs
    number = (number << (2 * pairs)) >> 1
    half, x = round_shift(number, 1), np.full(value.shape, 1 << 28, np.int64)
    for _ in range(5):
        cube = shift_left(doubled_high(doubled_high(x, x), x), 6)
        x = shift_left(doubled_high((1 << 28) + (1 << 27), x) - doubled_high(half, cube), 3)
    x = doubled_high(x, 1518500250)
    x = np.where(places < 0, x << np.maximum(-places, 0), x)
    small = value <= 1
    return np.where(small, GREATEST, x), np.where(small, 0, np.maximum(places, 0))


def logistic(value: Any) -> Any:
    """Return 1 / (1 + exp(-x)) with 0 integer bits of int16 numbers with 3 integer bits."""
    value = np.asarray(value, np.int64)
    magnitude = np.where(value > 0, value, wrapped(-value, 16))
    above = saturated(_inverse(exponential(wrapped(-magnitude, 16), 3, 16), 16) << 1, 16)
    return np.where(value == 0, 1 << 14, np.where(value > 0, above, 32767 - above))


def tanh(value: Any, bits: int) -> Any:
    """Return tanh with 0 integer bits of int16 numbers with up to 6 integer bits."""
    value = np.asarray(value, np.int64)
    below = np.where(value < 0, value, wrapped(-value, 16))
    result = saturated((_inverse(exponential(below, bits + 1, 16), 16) - (1 << 13)) << 2, 16)
    return np.where(value == 0, 0, np.where(value < 0, wrapped(-result, 16), result))
