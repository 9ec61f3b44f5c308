# SPDX-License-Identifier: Apache-2.0
"""Binary arithmetic."""

from __future__ import annotations

from typing import Any

import numpy as np

from opwest.importers.models.graph.types import Node, Rules
from opwest.importers.models.interpret.registry import Arrays, interprets
from opwest.importers.models.operators import arithmetic
from opwest.importers.models.operators.fixed_point import Multiplier, Rounding, doubled_high, round_shift, scaled


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
