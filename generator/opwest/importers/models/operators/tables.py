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

from opwest.importers.models.graph.faults import Unsupported
from opwest.importers.models.graph.types import Node
from opwest.importers.models.operators.fixed_point import RANGES, float32, one_quantization
from opwest.importers.models.operators.hard_swish import hard_swish
from opwest.importers.models.operators.inverse_root import inverse_root
from opwest.importers.models.operators.rescale import RELU_LIMITS, rescale_of
from opwest.records import dataclass

Function = Callable[[Any], Any]
"""From an array of float32 to another."""
SAMPLES = 513
"""The samples of a 16-bit function: 512 intervals of 128 values."""


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
    target = one_quantization(node.output)
    least = np.float32((RANGES[node.output.dtype][0] - target.zero) * float32(target.scale))
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
    low, high = RANGES[data.dtype]
    values = np.arange(low, high + 1, dtype=np.int64)
    with np.errstate(all="ignore"):
        return np.clip(_bytes(node, values), *RANGES[result.dtype]).astype(result.dtype)


def _bytes(node: Node, values: Any) -> Any:
    if node.kind in RELU_LIMITS or node.kind in ("LEAKY_RELU", "ABS", "QUANTIZE"):
        return rescale_of(node).apply(values)
    if node.kind == "HARD_SWISH":
        return hard_swish(node, values)
    source, target = one_quantization(node.input(0)), one_quantization(node.output)
    if node.kind == "RSQRT":
        return inverse_root(node, values)
    real = np.float32(source.scale) * (values - source.zero).astype(np.float32)
    if node.kind == "SQRT":
        return np.trunc(np.sqrt(np.maximum(real, 0)) / np.float32(target.scale)).astype(np.int64) + target.zero
    inverse = _ONE / np.float32(target.scale)
    rescaled = _away(real_function(node)(real) * inverse) + np.float32(target.zero)
    return np.trunc(np.clip(rescaled.astype(np.float64), -(2.0**31), 2.0**31 - 1)).astype(np.int64)


def _away(x: Any) -> Any:
    """Return float32 numbers rounded to integers, halves away from zero."""
    wide = np.asarray(x, np.float64)
    return np.copysign(np.floor(np.abs(wide) + 0.5), wide).astype(np.float32)


def sample_table(node: Node) -> Any:
    """Return 513 samples of an int16 function, each corrected by half of the error in the middle of its interval."""
    source, target = (np.float32(one_quantization(t).scale) for t in (node.input(0), node.output))
    function = real_function(node)
    least, greatest = np.float32(source * np.float32(-32768)), np.float32(source * np.float32(32767))
    step = np.float32((greatest - least) / np.float32(512))
    scaling = np.float32(np.float32(65536) / (target * np.float32(32767) - target * np.float32(-32768)))
    at = least + np.arange(512, dtype=np.float32) * step
    after = least + np.arange(1, 513, dtype=np.float32) * step
    with np.errstate(all="ignore"):
        sample = _away(function(at) * scaling)
        between = _away((function(after) * scaling + sample) / np.float32(2))
        middle = _away(function(at + step / np.float32(2)) * scaling)
        bias = _away((between - middle) / np.float32(2))
        last = _away(function(np.asarray([greatest], np.float32)) * scaling)
        found = np.concatenate([sample - bias, last])
    return np.clip(np.nan_to_num(found, nan=-32768.0), -32768, 32767).astype(np.int16)


def interpolated(values: Any, table: Any) -> Any:
    """Return the results of int16 values by linear interpolation, as int64. Slopes wrap to 16 bits."""
    values = np.asarray(values, np.int64)
    index = 256 + (values >> 7)
    base, following = table.astype(np.int64)[index], table.astype(np.int64)[index + 1]
    slope = (following - base).astype(np.int16).astype(np.int64)
    return (base + ((slope * (values & 127) + 64) >> 7)).astype(np.int16).astype(np.int64)


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


_GREATEST_SCALE = 5.0
"""Products of int16 values fit in 32 bits up to this scale of the input."""


@dataclass(frozen=True)
class SigmoidNumbers:
    """The numbers of int16 LOGISTIC and TANH: inputs times a multiplier, in 1/4096 * 3, shifted to the right."""

    multiplier: int
    places: int


def sigmoid_numbers(node: Node) -> SigmoidNumbers:
    """Return the numbers of int16 LOGISTIC or TANH. Source: activations.cc, TanhPrepare, SigmoidPrepare."""
    scale = one_quantization(node.input(0)).scale
    if scale > _GREATEST_SCALE:
        raise Unsupported(f"'{node.input(0).name}' has the scale {scale:g}", f"at most {_GREATEST_SCALE:g}")
    exact = math.log2(scale)
    shift = 12 + round(exact)
    if abs(exact - round(exact)) < 1e-3 and (shift == 0 or (shift == 1 and node.kind == "TANH")):
        return SigmoidNumbers(3 << shift, 0)
    multiplier, places = scale * 4096.0 * 3.0, 0
    while multiplier <= 32767.0 / 2.0 and places <= 30:
        places += 1
        multiplier *= 2.0
    return SigmoidNumbers(int(multiplier), places)


def sigmoid(node: Node, values: Any) -> Any:
    """Return the results of int16 LOGISTIC or TANH as int64."""
    return interpolated_sigmoid(values, sigmoid_numbers(node), node.kind == "TANH")


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
