# SPDX-License-Identifier: Apache-2.0
"""Binary arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from opwest.compiler.graph.types import Node, Rules
from opwest.compiler.reference.registry import Arrays, interprets
from opwest.compiler.semantics import arithmetic, tables
from opwest.compiler.semantics.elementwise import (
    COMPARISONS,
    LEFT_SHIFT,
    PLAIN,
    SAMPLED,
    compare_numbers,
    condition_shape,
    each_of,
    is_quantised_each,
    quantize_numbers,
)
from opwest.compiler.semantics.fixed_point import (
    RANGES,
    Multiplier,
    Rounding,
    doubled_high,
    one_quantization,
    round_shift,
    scaled,
)
from opwest.compiler.semantics.float_functions import FLOAT_FUNCTIONS
from opwest.compiler.semantics.tables import RELU_LIMITS, rescale_of


@interprets("ADD", "SUB")
def add(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """Both inputs are brought to a common scale."""
    one, other = arrays
    sign = 1 if node.kind == "ADD" else -1
    if not arithmetic.is_quantised(node):
        return _limited(node, one + other if sign > 0 else one - other)
    shifts = arithmetic.shift_numbers(node)
    if shifts is not None:
        first, second = (round_shift(array, by) for array, by in zip((one, other), shifts.places, strict=True))
        return np.clip(first + sign * second, shifts.low, shifts.high)
    numbers = arithmetic.add_numbers(node)
    first, second = _scaled_inputs(numbers, one, other)
    return np.clip(_times(first + sign * second, numbers.result) + numbers.zero, numbers.low, numbers.high)


def _scaled_inputs(numbers: arithmetic.AddNumbers, one: Any, other: Any) -> tuple[Any, Any]:
    """Return both inputs in the common scale."""
    parts = [
        _times((array.astype(np.int64) - zero) << numbers.left_shift, by)
        for array, zero, by in zip((one, other), numbers.zeros, numbers.multipliers, strict=True)
    ]
    return parts[0], parts[1]


def _times(values: Any, by: Multiplier) -> Any:
    return scaled(values, by.fixed, by.shift, Rounding.TWICE)


def _limited(node: Node, values: Any) -> Any:
    """Return plain numbers within the limits of the fused activation, in their dtype."""
    low, high = arithmetic.plain_limits(node)
    if values.dtype != np.float32:
        low, high = (None if limit is None else int(limit) for limit in (low, high))
    return values if (low, high) == (None, None) else np.clip(values, low, high)


@interprets("MUL")
def multiply(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """Quantised: one multiplication by the scales."""
    one, other = arrays
    if arithmetic.has_high_product(node):
        limits = arithmetic.high_product_numbers(node)
        high = (one.astype(np.int64) * other + (1 << 14)) >> 15
        return np.clip(round_shift(high, 8) + limits.zero, limits.low, limits.high)
    if not arithmetic.is_quantised(node):
        return _limited(node, one * other)
    numbers = arithmetic.product_numbers(node)
    product = (one.astype(np.int64) - numbers.zeros[0]) * (other.astype(np.int64) - numbers.zeros[1])
    return np.clip(_times(product.astype(np.int32), numbers.multiplier) + numbers.zero, numbers.low, numbers.high)


@interprets("DIV")
def divide(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """Integers are rounded to zero; quantised: the reciprocal in fixed point. Raises ValueError for a divisor 0."""
    one, other = arrays
    arithmetic.check_divisor(node, other)
    if node.output.dtype == "float32":
        return _limited(node, one / other)
    if not arithmetic.is_quantised(node):
        wide, divisor = one.astype(np.int64), other.astype(np.int64)
        divided = np.sign(wide) * np.sign(divisor) * (np.abs(wide) // np.abs(divisor))
        return _limited(node, divided.astype(np.int32))
    numbers = arithmetic.product_numbers(node)
    wide, divisor = one.astype(np.int64) - numbers.zeros[0], other.astype(np.int64) - numbers.zeros[1]
    wide, divisor = np.broadcast_arrays(np.where(divisor < 0, -wide, wide), np.abs(divisor))
    found = quotient(wide, divisor, numbers.multiplier)
    return np.clip(found + numbers.zero, numbers.low, numbers.high)


def quotient(wide: Any, divisor: Any, by: Multiplier) -> Any:
    """Return wide / divisor * by. Source: TFLite's GetReciprocal, gemmlowp's one_over_one_plus_x_for_x_in_0_1."""
    bits = np.floor(np.log2(divisor.astype(np.float64))).astype(np.int64)
    half = (divisor << (31 - bits)) >> 1
    inverse = 1515870810 + doubled_high(half, -1010580540)
    for _ in range(3):
        inverse = inverse + 4 * doubled_high(inverse, (1 << 29) - doubled_high(half, inverse))
    inverse = np.minimum(2 * inverse, 2**31 - 1)
    # The leading sign bits: those of ~value for values below 0.
    magnitude = np.where(wide < 0, ~wide, wide)
    used = np.where(magnitude == 0, 0, np.floor(np.log2(np.maximum(magnitude, 1).astype(np.float64))) + 1)
    headroom = 31 - used.astype(np.int64)
    fine = doubled_high(doubled_high(wide << headroom, inverse), by.fixed)
    right = bits + headroom - by.shift
    shifted = round_shift(fine, np.clip(right, 0, 62))
    return np.where(right < 0, np.sign(fine) * (1 << 40), shifted)


@interprets("ADD_N")
def add_all(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """In order."""
    total = arrays[0]
    for other in arrays[1:]:
        total = total + other
    return total


@interprets("MINIMUM")
def minimum(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """Of the stored values; the second one if one is NaN."""
    return np.where(arrays[0] < arrays[1], arrays[0], arrays[1])


@interprets("MAXIMUM")
def maximum(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """Of the stored values; the second one if one is NaN."""
    return np.where(arrays[0] > arrays[1], arrays[0], arrays[1])


@interprets("SQUARED_DIFFERENCE")
def squared_difference(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """int8: both inputs are brought to a common scale."""
    if not arithmetic.is_quantised(node):
        difference = arrays[0] - arrays[1]
        return difference * difference
    numbers = arithmetic.squared_difference_numbers(node)
    first, second = _scaled_inputs(numbers, *arrays)
    square = (first - second) ** 2
    return np.clip(_times(square, numbers.result) + numbers.zero, numbers.low, numbers.high)


@interprets("FLOOR_DIV")
def floor_divide(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """Float numbers are divided as float64. Raises ValueError for a divisor 0."""
    one, other = arrays
    arithmetic.check_divisor(node, other)
    if node.output.dtype == "float32":
        return np.floor(one.astype(np.float64) / other)
    return one.astype(np.int64) // other


@interprets("FLOOR_MOD")
def floor_modulo(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """The rest has the sign of the divisor. Raises ValueError for an integer divisor 0."""
    one, other = arrays
    arithmetic.check_divisor(node, other)
    if node.output.dtype == "float32":
        rest = np.fmod(one, other)
        return np.where((rest != 0) & ((rest < 0) != (other < 0)), rest + other, rest)
    # -1 is a special divisor: numpy's rest of the least int64 is undefined.
    divisor = np.where(other == -1, 1, other).astype(np.int64)
    return one.astype(np.int64) % divisor


@interprets("POW")
def power(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """Integers wrap; 0 for negative exponents."""
    one, other = np.broadcast_arrays(*arrays)
    if node.output.dtype == "float32":
        return np.power(one.astype(np.float64), other.astype(np.float64))
    found = [pow(int(b) % 2**32, int(e), 2**32) if e >= 0 else 0 for b, e in zip(one.flat, other.flat, strict=True)]
    return np.asarray(found, np.uint64).astype(np.uint32).astype(np.int32).reshape(one.shape)


@interprets("PRELU")
def prelu(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """Quantised: the slope's product has a multiplier of its own."""
    data, slope = arrays
    if not arithmetic.is_quantised(node):
        return np.where(data >= 0, data, data * slope)
    numbers = arithmetic.prelu_numbers(node)
    given = data.astype(np.int64) - numbers.zeros[0]
    below = _times(given * (slope.astype(np.int64) - numbers.zeros[1]), numbers.negative)
    found = np.where(given >= 0, _times(given, numbers.positive), below)
    return np.clip(found + numbers.zero, numbers.low, numbers.high)


_FUNCTIONS = {
    "==": np.equal,
    "!=": np.not_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "<": np.less,
    "<=": np.less_equal,
}


@interprets(*COMPARISONS)
def compare(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """Quantised values are scaled first."""
    numbers = compare_numbers(node)
    one, other = arrays
    if numbers is not None:
        one, other = (
            scaled((array.astype(np.int64) - zero) << LEFT_SHIFT, by.fixed, by.shift, Rounding.TWICE)
            for array, zero, by in zip(arrays, numbers.zeros, numbers.multipliers, strict=True)
        )
    return _FUNCTIONS[COMPARISONS[node.kind]](one, other)


@interprets("LOGICAL_AND")
def logical_and(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """Both."""
    return np.logical_and(*arrays)


@interprets("LOGICAL_OR")
def logical_or(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """One or both."""
    return np.logical_or(*arrays)


@interprets("LOGICAL_NOT")
def logical_not(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """The opposite."""
    return np.logical_not(arrays[0])


@interprets("SELECT")
def select(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """The condition's only dimension is the first one of the values."""
    return np.where(arrays[0].reshape(condition_shape(node)), arrays[1], arrays[2])


@interprets("SELECT_V2")
def select_broadcast(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """All inputs are broadcast."""
    return np.where(*arrays)


_ERFC = np.vectorize(math.erfc, otypes=[np.float64])
_ROOT = math.sqrt(2 / math.pi)
_UNARY_FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "LOGISTIC": lambda x: 1 / (1 + np.exp(-x)),
    "TANH": np.tanh,
    "HARD_SWISH": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "RELU": lambda x: np.maximum(x, 0),
    "RELU6": lambda x: np.clip(x, 0, 6),
    "RELU_N1_TO_1": lambda x: np.clip(x, -1, 1),
    "RELU_0_TO_1": lambda x: np.clip(x, 0, 1),
    "ELU": lambda x: np.where(x < 0, np.expm1(x), x),
    "EXP": np.exp,
    "LOG": np.log,
    "SQRT": np.sqrt,
    "RSQRT": lambda x: 1 / np.sqrt(x),
    "ABS": np.abs,
    "NEG": np.negative,
    "SQUARE": np.square,
    "SIGN": np.sign,
}
"""Functions of float32, and those of integers that wrap."""


@interprets(*FLOAT_FUNCTIONS)
def float_function(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """The row of the function."""
    return FLOAT_FUNCTIONS[node.kind].of(arrays)


@interprets("HARD_SWISH", "LEAKY_RELU", "ELU", "LOGISTIC", "TANH", "SQRT", "ABS", *RELU_LIMITS, *SAMPLED, *PLAIN)
def unary(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """Quantised: with the tables and the numbers of the operator."""
    [data] = arrays
    dtype = node.output.dtype
    is_plain = node.kind in PLAIN or (dtype == "int16" and node.kind == "ABS" and node.input(0).quantization is None)
    if is_plain or dtype not in RANGES or dtype == "int32":
        options = node.options
        return plain(node.kind, data, options.get("alpha", 0.0), options.get("approximate", False))
    if dtype != "int16":
        return by_table(node, data)
    if node.kind in SAMPLED:
        return tables.interpolated(data, tables.sample_table(node))
    if node.kind in ("LOGISTIC", "TANH"):
        return tables.sigmoid(node, data)
    if node.kind == "SQRT":
        source, target = one_quantization(node.input(0)), one_quantization(node.output)
        return root(data, source.scale, target.scale)
    return rescale_of(node).apply(data)


def root(data: Any, source: float, target: float) -> Any:
    """Return the roots of int16 values, for the scales of the data and the result."""
    real = np.sqrt(np.float32(source) * np.maximum(data, 0).astype(np.float32)) / np.float32(target)
    return np.minimum(np.trunc(real), 32767)


def by_table(node: Node, data: Any) -> Any:
    """Return the results of 8-bit values."""
    return tables.byte_table(node)[data.astype(np.int64) - RANGES[node.input(0).dtype][0]]


def plain(kind: str, data: Any, alpha: float, is_approximate: bool) -> Any:
    """Return the results of float32 numbers, or of integers without a scale."""
    if kind == "LEAKY_RELU":
        return np.where(data > 0, data, data * np.float32(alpha))
    if kind == "GELU":
        wide = data.astype(np.float64)
        if is_approximate:
            return 0.5 * wide * (1 + np.tanh(_ROOT * (wide + 0.044715 * wide**3)))
        return 0.5 * wide * _ERFC(wide * -math.sqrt(0.5))
    return _UNARY_FUNCTIONS[kind](data)


@interprets("QUANTIZE")
def quantize(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """Halves are rounded away from zero."""
    [data] = arrays
    if data.dtype in (np.int8, np.uint8):
        return by_table(node, data)
    if data.dtype != np.float32:
        return rescale_of(node).apply(data)
    low, high = RANGES[node.output.dtype]
    if is_quantised_each(node):
        scale, zero = each_of(node.output, data.shape)
    else:
        numbers = quantize_numbers(node)
        scale, zero = np.float32(numbers.scale), numbers.zero
    return quantised(data, scale, zero, low, high)


def quantised(data: Any, scale: Any, zero: Any, low: int, high: int) -> Any:
    """Return float32 numbers as quantised values: halves are rounded away from zero."""
    wide = (data / scale).astype(np.float64)
    rounded = np.copysign(np.floor(np.abs(wide) + 0.5), wide) + zero
    return np.clip(np.nan_to_num(rounded, nan=low), low, high)


@interprets("DEQUANTIZE")
def dequantize(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """With one scale, or one for each slice."""
    [data] = arrays
    if data.dtype == np.float32:
        return data
    found = node.input(0).quantization
    if found is None or found.axis is None:
        one = one_quantization(node.input(0))
        return np.float32(one.scale) * (data.astype(np.int32) - one.zero).astype(np.float32)
    scales, zeros = each_of(node.input(0), data.shape)
    return scales * (data.astype(np.int64) - zeros).astype(np.float32)


@interprets("CAST")
def cast(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """Integers wrap; float numbers are truncated and clamped, NaN becomes the greatest integer."""
    [data] = arrays
    return converted(data, np.dtype(node.output.dtype))


def converted(data: Any, target: Any) -> Any:
    """Return numbers in another dtype."""
    if data.dtype.kind != "f" or target.kind not in "iu":
        return data.astype(target)
    limits = np.iinfo(target)
    # The greatest integers of 32 and 64 bits are not float numbers; the next one above is.
    is_above = ~(data < float(limits.max) + 1.0) if target.itemsize < 8 else ~(data < 2.0**63)
    is_below = data < float(limits.min)
    inside = np.where(is_above | is_below, 0, data).astype(target)
    return np.where(is_above, limits.max, np.where(is_below, limits.min, inside))
