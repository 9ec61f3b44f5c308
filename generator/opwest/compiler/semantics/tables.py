# SPDX-License-Identifier: Apache-2.0
"""Tables of unary functions: all results of 8-bit inputs, and 513 samples for 16-bit ones.

Sources in TFLite: kernels/internal/common.h (LUTPopulate, LUTLookup), kernels/elementwise.cc (LOG, SQRT, RSQRT),
exp.cc, activations.cc, internal/reference/gelu.h, integer_ops/logistic.h, tanh.h. Every function is computed with
float64 and rounded to float32; the operations around it are those of float32.

Differences from LiteRT are only possible where it has no defined result: SQRT and RSQRT below 0, where it stops the
model, are 0 and the greatest result here; results too large for int32 are clamped here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.graph.types import Node, Quantization, Tensor, Unsupported
from opwest.compiler.semantics import fixed_point
from opwest.compiler.semantics.arithmetic import float_multiplier

RELU_LIMITS: dict[str, tuple[float, float | None]] = {
    "RELU": (0.0, None),
    "RELU6": (0.0, 6.0),
    "RELU_N1_TO_1": (-1.0, 1.0),
    "RELU_0_TO_1": (0.0, 1.0),
}
"""The limits of the operators that clamp."""


@dataclass(frozen=True)
class Rescale:
    """zero + (value - source) * multiplier, clamped. 32-bit sums wrap."""

    source: int
    """The zero point of the input."""
    positive: fixed_point.Multiplier
    negative: fixed_point.Multiplier
    """The multiplier of differences below 0."""
    sign: int
    """1; -1 if the slope below 0 is negative: the product with the magnitude of the slope is then negated."""
    magnitude: bool
    """Whether the magnitude of the difference is multiplied."""
    zero: int
    low: int
    high: int

    def apply(self, values: Any) -> Any:
        """Return integers as int64 results."""
        given = fixed_point.wrapped(np.asarray(values, np.int64) - self.source)
        given = np.abs(given) if self.magnitude else given
        scaled = np.where(given >= 0, self.positive.times(given), self.negative.times(given) * self.sign)
        return np.clip(fixed_point.wrapped(scaled + self.zero), self.low, self.high)


def rescale_of(node: Node) -> Rescale:
    """Return the numbers of RELU and its variants, LEAKY_RELU, ABS or QUANTIZE with a quantised input."""
    data, result = node.input(0), node.output
    source, target = (_quantization(tensor, node.kind == "QUANTIZE") for tensor in (data, result))
    low, high = fixed_point.RANGES[result.dtype]
    sign = 1
    if node.kind == "QUANTIZE":
        positive = negative = fixed_point.quantize_multiplier(source.scale / target.scale)
    else:
        positive = negative = float_multiplier(data, result)
    if node.kind in RELU_LIMITS:
        least, greatest = RELU_LIMITS[node.kind]
        low = max(low, fixed_point.quantize(least, target))
        high = high if greatest is None else min(high, fixed_point.quantize(greatest, target))
    elif node.kind == "LEAKY_RELU":
        slope = np.float32(source.scale) * np.float32(node.options["alpha"]) / np.float32(target.scale)
        negative, sign = fixed_point.quantize_multiplier(float(abs(slope))), -1 if slope < 0 else 1
    return Rescale(source.zero, positive, negative, sign, node.kind == "ABS", target.zero, low, high)


def _quantization(tensor: Tensor, can_have_zero: bool) -> Quantization:
    """Return the quantisation; that of int32 has any zero point, and no scale means 1.

    An int16 input or result of QUANTIZE can have a zero point too: SOFTMAX from int8 to int16 writes -32768.
    """
    if tensor.dtype == "int16" and can_have_zero and tensor.quantization is not None and tensor.quantization.zero:
        return tensor.quantization
    if tensor.dtype == "int32":
        return tensor.quantization or Quantization((1.0,), (0,))
    return fixed_point.one_quantization(tensor)


def hard_swish(node: Node, values: Any) -> Any:
    """Return the results of 8-bit values as int64."""
    source, target = fixed_point.one_quantization(node.input(0)), fixed_point.one_quantization(node.output)
    fine = np.float32(1 / 128) * np.float32(source.scale)
    result = fixed_point.quantize_multiplier(float(fine / np.float32(target.scale)))
    if result.shift > 0:
        ratio = source.scale / target.scale
        raise Unsupported(f"the input's scale is {ratio:g} times that of the result", "at most 128 times")
    gate = fixed_point.quantize_multiplier(float(fine / np.float32(3 / 32768)))
    high = fixed_point.wrapped(fixed_point.wrapped(values - source.zero, 16) * 128, 16)
    outer = fixed_point.doubled_high(high, fixed_point.reduced(result.fixed), 16)
    inner = high
    if gate.shift > 0:
        inner = fixed_point.saturated(inner * (1 << (gate.shift - 1)), 16)
    inner = fixed_point.doubled_high(inner, fixed_point.reduced(gate.fixed), 16)
    if gate.shift > 0:
        inner = fixed_point.saturated(inner * 2, 16)
    elif gate.shift < 0:
        inner = fixed_point.wrapped(_divided(inner, -gate.shift), 16)
    inner = (inner + (1 << 15)) >> 1
    product = inner * outer
    # Rounded to zero.
    truncated = np.where(product < 0, -(-product >> 15), product >> 15)
    return np.clip(
        fixed_point.wrapped(_divided(truncated, -result.shift) + target.zero, 16),
        *fixed_point.RANGES[node.output.dtype],
    )


def _divided(value: Any, places: int) -> Any:
    """Return a shift to the right. Source: gemmlowp's RoundingDivideByPOT of int16, whose mask has 16 bits.

    By 16 places and more its threshold is below each remainder from 0 on: the result is then 1, and -1 below 0.
    """
    return fixed_point.round_shift(value, places) if places < 16 else np.where(value < 0, -1, 1)


_PLACES = 20
"""The fraction bits of a root before the multiplication by the scale."""


def inverse_root(node: Node, values: Any) -> Any:
    """Return the results of int8 values as int64; the greatest value where the input is not above 0."""
    source, target = fixed_point.one_quantization(node.input(0)), fixed_point.one_quantization(node.output)
    root = float(np.float32(math.sqrt(np.float32(source.scale))) * np.float32(target.scale))
    by = fixed_point.quantize_multiplier(1.0 / root)
    given = np.asarray(values, np.int64) - source.zero
    inverse, places = fixed_point.inverse_root(given)
    fine = fixed_point.scaled(1, inverse, _PLACES - places, fixed_point.Rounding.TWICE)
    results = fixed_point.scaled(fine, by.fixed, by.shift - _PLACES, fixed_point.Rounding.TWICE) + target.zero
    return np.where(given <= 0, 127, results)


Function = Callable[[Any], Any]
"""From an array of float32 to another."""


def _exactly(function: Callable[[Any], Any]) -> Function:
    """Return a function of float64 as one of float32."""
    return lambda x: np.asarray(function(np.asarray(x, np.float64))).astype(np.float32)


_exp = _exactly(np.exp)
_tanh = _exactly(np.tanh)
_expm1 = _exactly(np.expm1)
_log = _exactly(np.log)
_erfc = _exactly(np.vectorize(math.erfc, otypes=[np.float64]))
_ONE, _HALF = np.float32(1), np.float32(0.5)


def _gelu(x: Any) -> Any:
    return _HALF * x * _erfc(x * np.float32(-math.sqrt(0.5)))


def _gelu_approximate(x: Any) -> Any:
    cubed = np.float32(0.044715) * x * x * x
    return _HALF * x * (_ONE + _tanh(np.float32(math.sqrt(2 / math.pi)) * (x + cubed)))


def real_function(node: Node) -> Function:
    """Return the function of float32 that the table of an operator samples."""
    target = fixed_point.one_quantization(node.output)
    least = np.float32((fixed_point.RANGES[node.output.dtype][0] - target.zero) * fixed_point.float32(target.scale))
    greatest = np.float32(np.float32(32767) * np.float32(target.scale))
    functions: dict[str, Function] = {
        "LOGISTIC": lambda x: _ONE / (_ONE + _exp(-x)),
        "TANH": _tanh,
        "EXP": _exp,
        "ELU": lambda x: np.where(x < 0, _expm1(x), x),
        "GELU": _gelu_approximate if node.options.get("approximate") else _gelu,
        "LOG": lambda x: np.where(x <= 0, least, _log(x)),
        "RSQRT": lambda x: np.where(x <= 0, greatest, _ONE / np.sqrt(x)),
    }
    return functions[node.kind]


def byte_table(node: Node) -> Any:
    """Return the results of a quantised 8-bit input, from its least value to its greatest, in the result's dtype."""
    data, result = node.input(0), node.output
    low, high = fixed_point.RANGES[data.dtype]
    values = np.arange(low, high + 1, dtype=np.int64)
    with np.errstate(all="ignore"):
        return np.clip(_bytes(node, values), *fixed_point.RANGES[result.dtype]).astype(result.dtype)


def _bytes(node: Node, values: Any) -> Any:
    if node.kind in RELU_LIMITS or node.kind in ("LEAKY_RELU", "ABS", "QUANTIZE"):
        return rescale_of(node).apply(values)
    if node.kind == "HARD_SWISH":
        return hard_swish(node, values)
    source, target = fixed_point.one_quantization(node.input(0)), fixed_point.one_quantization(node.output)
    if node.kind == "RSQRT":
        return inverse_root(node, values)
    real = np.float32(source.scale) * (values - source.zero).astype(np.float32)
    if node.kind == "SQRT":
        return np.trunc(np.sqrt(np.maximum(real, 0)) / np.float32(target.scale)).astype(np.int64) + target.zero
    inverse = _ONE / np.float32(target.scale)
    whole = fixed_point.rounded_away(real_function(node)(real) * inverse).astype(np.float32)
    rescaled = whole + np.float32(target.zero)
    return np.trunc(np.clip(rescaled.astype(np.float64), -(2.0**31), 2.0**31 - 1)).astype(np.int64)


def sample_table(node: Node) -> Any:
    """Return 513 samples of an int16 function."""
    source, target = (np.float32(fixed_point.one_quantization(t).scale) for t in (node.input(0), node.output))
    least, greatest = np.float32(source * np.float32(-32768)), np.float32(source * np.float32(32767))
    scaling = np.float32(np.float32(65536) / (target * np.float32(32767) - target * np.float32(-32768)))
    samples = samples_of(real_function(node), least, greatest, scaling)
    return np.clip(np.nan_to_num(samples, nan=-32768.0), -32768, 32767).astype(np.int16)


def samples_of(function: Function, least: Any, greatest: Any, scaling: Any) -> Any:
    """Return 513 samples in the dtype of the limits, each corrected by half of the error inside of its interval."""
    dtype = type(least)

    def rounded(values: Any) -> Any:
        return fixed_point.rounded_away(values).astype(dtype)

    step = dtype((greatest - least) / dtype(512))
    at = least + np.arange(512, dtype=dtype) * step
    after = least + np.arange(1, 513, dtype=dtype) * step
    with np.errstate(all="ignore"):
        sample = rounded(function(at) * scaling)
        between = rounded((function(after) * scaling + sample) / dtype(2))
        middle = rounded(function(at + step / dtype(2)) * scaling)
        last = rounded(function(np.asarray([greatest], dtype)) * scaling)
        return np.concatenate([sample - rounded((between - middle) / dtype(2)), last])


def interpolated(values: Any, table: Any) -> Any:
    """Return the results of int16 values by linear interpolation, as int64. Slopes wrap. Source: LUTLookup."""
    values = np.asarray(values, np.int64)
    index = 256 + (values >> 7)
    table = np.asarray(table, np.int64)
    slope = fixed_point.wrapped(table[index + 1] - table[index], 16)
    return fixed_point.wrapped(table[index] + ((slope * (values & 127) + 64) >> 7), 16)


def sigmoid_table() -> Any:
    """Return the logistic function at i / 24 in 1/65536, as uint16, for linear interpolation.

    Each sample is raised by half of the greatest error of the chord next to it: -f''(x) / (16 * 24**2).
    """
    x = np.arange(256) / 24.0
    value = 1 / (1 + np.exp(-x))
    second = value * (1 - value) * (1 - 2 * value)
    table = np.floor(65536 * (value - second / (16 * 24**2)) + 0.5)
    table[-1] = 65535
    return table.astype(np.uint16)


_MAX_SCALE = 5.0
"""Products of int16 values fit in 32 bits up to this scale of the input."""


@dataclass(frozen=True)
class SigmoidNumbers:
    """The numbers of int16 LOGISTIC and TANH: inputs times a multiplier, in 1/4096 * 3, shifted to the right."""

    multiplier: int
    places: int


def sigmoid_numbers(node: Node) -> SigmoidNumbers:
    """Return the numbers of int16 LOGISTIC or TANH. Source: activations.cc, TanhPrepare, SigmoidPrepare."""
    scale = fixed_point.one_quantization(node.input(0)).scale
    if scale > _MAX_SCALE:
        raise Unsupported(f"'{node.input(0).name}' has the scale {scale:g}", f"at most {_MAX_SCALE:g}")
    exponent = fixed_point.exponent_of(scale)
    if exponent == -12 or (exponent == -11 and node.kind == "TANH"):
        return SigmoidNumbers(3 << (12 + exponent), 0)
    multiplier, places = scale * 4096.0 * 3.0, 0
    while multiplier <= 32767.0 / 2.0 and places <= 30:
        places += 1
        multiplier *= 2.0
    return SigmoidNumbers(int(multiplier), places)


def interpolated_sigmoid(values: Any, numbers: SigmoidNumbers, is_tanh: bool) -> Any:
    """Return the logistic function or tanh of int16 values as int64."""
    table = sigmoid_table().astype(np.int64)
    bits = 8 if is_tanh else 9
    half = 1 << (numbers.places - 1) if numbers.places else 0
    inputs = ((np.asarray(values, np.int64) * numbers.multiplier + half) >> numbers.places).astype(np.int32)
    magnitude = np.abs(inputs.astype(np.int64))
    index = np.minimum(magnitude >> bits, 254)
    rest = magnitude & ((1 << bits) - 1)
    smooth = (table[index] << bits) + rest * (table[index + 1] - table[index])
    result = np.where(magnitude >> bits >= 255, 0xFFFF << 8 if is_tanh else 0x7FFF << 10, smooth)
    if is_tanh:
        return np.where(inputs >= 0, result - (1 << 23) + 128, -result + (1 << 23) + 127) >> 8
    return np.where(inputs >= 0, result + 512, (1 << 25) - result + 511) >> 10
