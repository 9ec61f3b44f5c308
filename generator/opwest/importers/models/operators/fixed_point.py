# SPDX-License-Identifier: Apache-2.0
"""Fixed-point numbers of TFLite: multipliers, roundings, clamps.

Sources in TFLite: kernels/internal/quantization_util.cc (QuantizeMultiplier), kernels/internal/common.cc
(MultiplyByQuantizedMultiplier), kernels/kernel_util.cc (CalculateActivationRangeQuantized), gemmlowp's fixedpoint.h.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from opwest.importers.models.graph.faults import Unsupported
from opwest.importers.models.graph.types import Quantization, Tensor
from opwest.records import dataclass

LEAST_SHIFT = -31
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
    if shift < LEAST_SHIFT:
        return Multiplier(0, 0)
    if shift > 30:
        raise Unsupported(f"the scales give the multiplier {real:g}", "at most 2**30")
    return Multiplier(fixed, shift)


def round_away(value: float) -> int:
    """Return the nearest integer, halves away from zero: C's round()."""
    return int(math.copysign(math.floor(abs(value) + 0.5), value))


def float32(value: float) -> float:
    """Return a number rounded to float32: infinity above its range."""
    with np.errstate(over="ignore"):
        return float(np.float32(value))


def one_quantization(tensor: Tensor) -> Quantization:
    """Return the quantisation of a tensor with one scale. Raises Unsupported."""
    found = tensor.quantization
    if found is None:
        raise Unsupported(f"'{tensor.name}' is {tensor.dtype} without a scale", "a quantised tensor")
    if len(found.scales) != 1:
        raise Unsupported(f"'{tensor.name}' has {len(found.scales)} scales", "one scale")
    low, high = RANGES[tensor.dtype]
    if not low <= found.zero <= high:
        raise Unsupported(f"'{tensor.name}' is {tensor.dtype} with the zero point {found.zero}", f"{low} to {high}")
    if tensor.dtype == "int16" and found.zero != 0:
        raise Unsupported(f"'{tensor.name}' is int16 with the zero point {found.zero}", "0")
    return found


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
    """The float32 multipliers of Rounding.FLOAT."""

    def apply(self, sums: Any) -> Any:
        """Return integer sums as int64 results; the last dimension of `sums` is that of the channels."""
        return np.clip(self.scaled(sums) + self.zero, self.low, self.high)

    def scaled(self, sums: Any) -> Any:
        """Return the sums times the multipliers, as int64."""
        sums = np.asarray(sums, np.int64)
        if self.rounding is Rounding.FLOAT:
            scales = np.asarray(self.scales, np.float32)
            return np.rint(sums.astype(np.float32) * scales).astype(np.int64)
        fixed = np.asarray([m.fixed for m in self.multipliers], np.int64)
        shift = np.asarray([m.shift for m in self.multipliers], np.int64)
        return scaled(sums, fixed, shift, self.rounding)


def scaled(sums: Any, fixed: Any, shift: Any, rounding: Rounding) -> Any:
    """Return int64 sums times fixed-point numbers. Sums of Rounding.TWICE wrap to 32 bits after the left shift."""
    sums, fixed, shift = (np.asarray(one, np.int64) for one in (sums, fixed, shift))
    if rounding is Rounding.ONCE:
        places = 31 - shift
        return (sums * fixed + (np.int64(1) << (places - 1))) >> places
    if rounding is Rounding.SIXTEEN:
        reduced = np.where(fixed < 0x7FFF0000, (fixed + (1 << 15)) >> 16, 0x7FFF)
        places = 15 - shift
        return (sums * reduced + (np.int64(1) << (places - 1))) >> places
    left, right = np.maximum(shift, 0), np.maximum(-shift, 0)
    shifted = (sums << left).astype(np.int32).astype(np.int64)
    return round_shift(doubled_high(shifted, fixed), right)


def doubled_high(one: Any, other: Any) -> Any:
    """Return the high 32 bits of twice the product, rounded. Source: gemmlowp, SaturatingRoundingDoublingHighMul."""
    one, other = np.asarray(one, np.int64), np.asarray(other, np.int64)
    # For INT32_MIN * INT32_MIN the sum is 2**31, which saturates.
    return np.minimum((one * other + (1 << 30)) >> 31, 2**31 - 1)


def round_shift(value: Any, places: Any) -> Any:
    """Return a shift to the right, rounded half away from zero. Source: gemmlowp, RoundingDivideByPOT."""
    value, places = np.asarray(value, np.int64), np.asarray(places, np.int64)
    mask = (np.int64(1) << places) - 1
    threshold = (mask >> 1) + (value < 0)
    return (value >> places) + ((value & mask) > threshold)


def multipliers_of(reals: Iterable[float]) -> tuple[Multiplier, ...]:
    """Return the fixed-point numbers of several multipliers."""
    return tuple(quantize_multiplier(real) for real in reals)
