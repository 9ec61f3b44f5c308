# SPDX-License-Identifier: Apache-2.0
"""Functions of elements: arithmetic, comparisons, functions of one element, conversions of dtypes."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from opwest.compiler.graph.types import Node, Rules
from opwest.compiler.reference.run import FUNCTIONS, Arrays, interprets
from opwest.compiler.semantics import arithmetic, elementwise, tables
from opwest.compiler.semantics.fixed_point import (
    RANGES,
    Multiplier,
    doubled_high,
    one_quantization,
    reciprocal,
    round_shift,
    rounded_away,
)
from opwest.compiler.semantics.float_functions import FLOAT_FUNCTIONS
from opwest.compiler.semantics.tables import rescale_of

_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide}
_ARITHMETIC = {"ADD": "+", "SUB": "-", "MUL": "*", "DIV": "/"}


@interprets(*_ARITHMETIC)
def binary(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """Quantised: by the numbers of the operator. Raises ValueError for a divisor 0."""
    one, other = arrays
    arithmetic.check_divisor(node, other)
    if arithmetic.has_high_product(node) and node.kind == "MUL":
        return high_product(arithmetic.high_product_numbers(node), one, other)
    if not arithmetic.is_quantised(node):
        low, high = arithmetic.plain_limits(node)
        return plain_result(_ARITHMETIC[node.kind], one, other, low=low, high=high)
    if node.kind in ("ADD", "SUB"):
        is_difference = node.kind == "SUB"
        shifts = arithmetic.shift_numbers(node)
        if shifts is not None:
            return shifted_sum(shifts, one, other, is_difference=is_difference)
        return quantised_sum(arithmetic.add_numbers(node), one, other, is_difference=is_difference)
    numbers = arithmetic.product_numbers(node)
    return product(numbers, one, other) if node.kind == "MUL" else quotient(numbers, one, other)


def plain_result(operator: str, one: Any, other: Any, *, low: float | None, high: float | None) -> Any:
    """Return the result of an operator of C on numbers without a scale, clamped; integers are divided towards zero."""
    if operator == "/" and one.dtype != np.float32:
        wide, divisor = one.astype(np.int64), other.astype(np.int64)
        values = (np.abs(wide) // np.abs(divisor) * np.sign(wide) * np.sign(divisor)).astype(np.int32)
    else:
        values = _OPERATORS[operator](one, other)
    if values.dtype != np.float32:
        low, high = (None if limit is None else int(limit) for limit in (low, high))
    return values if (low, high) == (None, None) else np.clip(values, low, high)


def centred(arrays: Arrays, zeros: tuple[int, int]) -> tuple[Any, Any]:
    """Return two operands without their zero points, as int64."""
    one, other = (array.astype(np.int64) - zero for array, zero in zip(arrays, zeros, strict=True))
    return one, other


def _scaled_operands(
    numbers: arithmetic.AddNumbers | elementwise.CompareNumbers, arrays: Arrays, places: int
) -> list[Any]:
    """Return two operands in a common scale, shifted to the left before their multiplications."""
    operands = centred(arrays, numbers.zeros)
    return [by.times(operand << places) for operand, by in zip(operands, numbers.multipliers, strict=True)]


def quantised_sum(numbers: arithmetic.AddNumbers, one: Any, other: Any, *, is_difference: bool) -> Any:
    """Return the sum or the difference of two operands that are brought to a common scale."""
    first, second = _scaled_operands(numbers, (one, other), numbers.left_shift)
    total = numbers.result.times(first - second if is_difference else first + second)
    return np.clip(total + numbers.zero, numbers.low, numbers.high)


def shifted_sum(numbers: arithmetic.ShiftNumbers, one: Any, other: Any, *, is_difference: bool) -> Any:
    """Return the sum or the difference of two int16 operands with scales that are powers of two."""
    first, second = (round_shift(array, by) for array, by in zip((one, other), numbers.places, strict=True))
    return np.clip(first - second if is_difference else first + second, numbers.low, numbers.high)


def product(numbers: arithmetic.ProductNumbers, one: Any, other: Any) -> Any:
    """Return a quantised product: one multiplication by the scales."""
    first, second = centred((one, other), numbers.zeros)
    total = numbers.multiplier.times((first * second).astype(np.int32))
    return np.clip(total + numbers.zero, numbers.low, numbers.high)


def high_product(numbers: arithmetic.HighProductNumbers, one: Any, other: Any) -> Any:
    """Return the 8-bit product of int16 operands."""
    high = (one.astype(np.int64) * other + (1 << 14)) >> 15
    return np.clip(round_shift(high, 8) + numbers.zero, numbers.low, numbers.high)


def quotient(numbers: arithmetic.ProductNumbers, one: Any, other: Any) -> Any:
    """Return a quantised quotient, by the reciprocal in fixed point."""
    wide, divisor = np.broadcast_arrays(*centred((one, other), numbers.zeros))
    fraction = _fraction(np.where(divisor < 0, -wide, wide), np.abs(divisor), numbers.multiplier)
    return np.clip(fraction + numbers.zero, numbers.low, numbers.high)


def _fraction(wide: Any, divisor: Any, by: Multiplier) -> Any:
    """Return wide / divisor * by. Source: TFLite's GetReciprocal."""
    bits = np.floor(np.log2(divisor.astype(np.float64))).astype(np.int64)
    inverse = reciprocal((divisor << (31 - bits)) - 2**31)
    # The leading sign bits: those of ~value for values below 0.
    magnitude = np.where(wide < 0, ~wide, wide)
    used = np.where(magnitude == 0, 0, np.floor(np.log2(np.maximum(magnitude, 1).astype(np.float64))) + 1)
    headroom = 31 - used.astype(np.int64)
    fine = doubled_high(doubled_high(wide << headroom, inverse), by.fixed)
    right = bits + headroom - by.shift
    shifted = round_shift(fine, np.clip(right, 0, 62))
    return np.where(right < 0, np.sign(fine) * (1 << 40), shifted)


def _floor_quotient(one: Any, other: Any) -> Any:
    if one.dtype == np.float32:
        return np.floor(one.astype(np.float64) / other)
    return one.astype(np.int64) // other


def _floor_rest(one: Any, other: Any) -> Any:
    """Return the rest with the sign of the divisor."""
    if one.dtype == np.float32:
        rest = np.fmod(one, other)
        return np.where((rest != 0) & ((rest < 0) != (other < 0)), rest + other, rest)
    # -1 is a special divisor: numpy's rest of the least int64 is undefined.
    return one.astype(np.int64) % np.where(other == -1, 1, other).astype(np.int64)


def _power(one: Any, other: Any) -> Any:
    """Return powers; those of integers wrap, and are 0 for negative exponents."""
    one, other = np.broadcast_arrays(one, other)
    if one.dtype == np.float32:
        return np.power(one.astype(np.float64), other.astype(np.float64))
    powers = [pow(int(b) % 2**32, int(e), 2**32) if e >= 0 else 0 for b, e in zip(one.flat, other.flat, strict=True)]
    return np.asarray(powers, np.uint64).astype(np.uint32).astype(np.int32).reshape(one.shape)


PAIRS: dict[str, Callable[[Any, Any], Any]] = {
    # The second one if one is NaN.
    "MINIMUM": lambda one, other: np.where(one < other, one, other),
    "MAXIMUM": lambda one, other: np.where(one > other, one, other),
    "FLOOR_DIV": _floor_quotient,
    "FLOOR_MOD": _floor_rest,
    "POW": _power,
    "SQUARED_DIFFERENCE": lambda one, other: (one - other) * (one - other),
    "PRELU": lambda data, slope: np.where(data >= 0, data, data * slope),
}
"""Functions of two numbers without a scale, or of two stored values."""


@interprets(*PAIRS)
def pair(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """Quantised squared differences and PRELU have multipliers. Raises ValueError for an integer divisor 0."""
    if arithmetic.is_quantised(node) and node.kind == "SQUARED_DIFFERENCE":
        return squared_difference(arithmetic.squared_difference_numbers(node), *arrays)
    if arithmetic.is_quantised(node) and node.kind == "PRELU":
        return prelu(arithmetic.prelu_numbers(node), *arrays)
    arithmetic.check_divisor(node, arrays[1])
    return PAIRS[node.kind](*arrays)


def squared_difference(numbers: arithmetic.AddNumbers, one: Any, other: Any) -> Any:
    """Return the squared difference of two quantised operands that are brought to a common scale."""
    first, second = _scaled_operands(numbers, (one, other), numbers.left_shift)
    return np.clip(numbers.result.times((first - second) ** 2) + numbers.zero, numbers.low, numbers.high)


def prelu(numbers: arithmetic.PreluNumbers, data: Any, slope: Any) -> Any:
    """Return a quantised PRELU: the product with the slope has a multiplier of its own."""
    data, slope = centred((data, slope), numbers.zeros)
    values = np.where(data >= 0, numbers.positive.times(data), numbers.negative.times(data * slope))
    return np.clip(values + numbers.zero, numbers.low, numbers.high)


_RELATIONS = {
    "==": np.equal,
    "!=": np.not_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "<": np.less,
    "<=": np.less_equal,
}


def relation(operator: str, numbers: elementwise.CompareNumbers | None, arrays: Arrays) -> Any:
    """Return whether a relation of C holds; `numbers` are those of quantised operands."""
    if numbers is not None:
        arrays = _scaled_operands(numbers, arrays, elementwise.LEFT_SHIFT)
    return _RELATIONS[operator](*arrays)


LOGIC = {"LOGICAL_AND": np.logical_and, "LOGICAL_OR": np.logical_or, "LOGICAL_NOT": np.logical_not}


_ERFC = np.vectorize(math.erfc, otypes=[np.float64])
_ROOT = math.sqrt(2 / math.pi)
UNARY_FUNCTIONS: dict[str, Callable[[Any], Any]] = {
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


@interprets(*UNARY_FUNCTIONS, "LEAKY_RELU", "GELU")
def unary(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """Quantised: with the tables and the numbers of the operator."""
    [data] = arrays
    dtype = node.output.dtype
    is_magnitude = node.kind == "ABS" and dtype == "int16" and node.input(0).quantization is None
    if is_magnitude or node.kind in elementwise.PLAIN or dtype not in RANGES or dtype == "int32":
        options = node.options
        return plain(node.kind, data, options.get("alpha", 0.0), options.get("approximate", False))
    if dtype != "int16":
        return by_table(node, data)
    if node.kind in elementwise.SAMPLED:
        return tables.interpolated(data, tables.sample_table(node))
    if node.kind in ("LOGISTIC", "TANH"):
        return tables.interpolated_sigmoid(data, tables.sigmoid_numbers(node), node.kind == "TANH")
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
    return UNARY_FUNCTIONS[kind](data)


@interprets("QUANTIZE")
def quantize(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """Halves are rounded away from zero."""
    [data] = arrays
    if data.dtype in (np.int8, np.uint8):
        return by_table(node, data)
    if data.dtype != np.float32:
        return rescale_of(node).apply(data)
    if not elementwise.is_quantised_each(node):
        return quantised_once(data, elementwise.quantize_numbers(node))
    low, high = RANGES[node.output.dtype]
    return quantised(data, *elementwise.each_of(node.output, data.shape), low=low, high=high)


def quantised(data: Any, scale: Any, zero: Any, *, low: int, high: int) -> Any:
    """Return float32 numbers as quantised values: halves are rounded away from zero."""
    return np.clip(np.nan_to_num(rounded_away(data / scale) + zero, nan=low), low, high)


def quantised_once(data: Any, numbers: elementwise.QuantizeNumbers) -> Any:
    """Return float32 numbers as quantised values of one scale."""
    return quantised(data, np.float32(numbers.scale), numbers.zero, low=numbers.low, high=numbers.high)


def quantised_even(data: Any, numbers: elementwise.QuantizeNumbers) -> Any:
    """Return float32 numbers as quantised values: halves are rounded to even, NaN is the zero point."""
    with np.errstate(all="ignore"):
        scaled = data * np.float32(numbers.inverse) if numbers.by_inverse else data / np.float32(numbers.scale)
    quotients = np.nan_to_num(scaled, nan=0.0, posinf=1e9, neginf=-1e9)
    limited = np.clip(quotients, numbers.low - numbers.zero, numbers.high - numbers.zero)
    return np.rint(limited).astype(np.int64) + numbers.zero


def dynamically_quantised(data: Any) -> tuple[Any, Any]:
    """Return integers without their zero point, and their scale: the range of the data and zero becomes 0 to 255."""
    low, high = np.float32(min(data.min(), 0)), np.float32(max(data.max(), 0))
    scale = np.float32(1) if low == high else np.float32(high - low) / np.float32(255)
    zero = np.rint(np.clip(-low / scale, 0, 255))
    integers = np.clip(np.rint(data / scale) + zero, 0, 255) - zero
    return integers, np.asarray(scale)


@interprets("DEQUANTIZE")
def dequantize(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """With one scale, or one for each slice."""
    [data] = arrays
    if data.dtype == np.float32:
        return data
    quantization = node.input(0).quantization
    if quantization is None or quantization.axis is None:
        quantization = one_quantization(node.input(0))
        return dequantised(data, np.float32(quantization.scale), quantization.zero)
    return dequantised(data, *elementwise.each_of(node.input(0), data.shape))


def dequantised(data: Any, scales: Any, zeros: Any) -> Any:
    """Return quantised values as float32 numbers."""
    return scales * (data.astype(np.int64) - zeros).astype(np.float32)


def converted(data: Any, target: Any) -> Any:
    """Return numbers in another dtype: integers wrap, float numbers are truncated and clamped, NaN is the greatest."""
    if data.dtype.kind != "f" or target.kind not in "iu":
        return data.astype(target)
    limits = np.iinfo(target)
    # The greatest integers of 32 and 64 bits are not float numbers; the next one above is.
    is_above = ~(data < float(limits.max) + 1.0) if target.itemsize < 8 else ~(data < 2.0**63)
    is_below = data < float(limits.min)
    inside = np.where(is_above | is_below, 0, data).astype(target)
    return np.where(is_above, limits.max, np.where(is_below, limits.min, inside))


FUNCTIONS.update(
    {
        **dict.fromkeys(FLOAT_FUNCTIONS, lambda node, arrays, rules: FLOAT_FUNCTIONS[node.kind].of(arrays)),
        **dict.fromkeys(
            elementwise.COMPARISONS,
            lambda node, arrays, rules: relation(
                elementwise.COMPARISONS[node.kind], elementwise.compare_numbers(node), arrays
            ),
        ),
        **dict.fromkeys(LOGIC, lambda node, arrays, rules: LOGIC[node.kind](*arrays)),
        "ADD_N": lambda node, arrays, rules: functools.reduce(np.add, arrays),
        # The condition's only dimension is the first one of the values.
        "SELECT": lambda node, arrays, rules: np.where(
            arrays[0].reshape(elementwise.condition_shape(node)), arrays[1], arrays[2]
        ),
        "SELECT_V2": lambda node, arrays, rules: np.where(*arrays),
        "CAST": lambda node, arrays, rules: converted(arrays[0], np.dtype(node.output.dtype)),
        "ONNX_QUANTIZE": lambda node, arrays, rules: quantised_even(arrays[0], elementwise.quantize_numbers(node)),
        # The table starts with the least value of the data.
        "ONNX_LOOKUP": lambda node, arrays, rules: arrays[1][
            arrays[0].astype(np.int64) - RANGES[str(arrays[0].dtype)][0]
        ],
        "ONNX_DYNAMIC_QUANTIZE": lambda node, arrays, rules: dynamically_quantised(arrays[0]),
    }
)
