# SPDX-License-Identifier: Apache-2.0
"""Operations that normalise rows."""

from __future__ import annotations

import numpy as np

from opwest.importers.models.emit.expressions import clamped, plus
from opwest.importers.models.emit.function import Call, Function, Parameter, c_type
from opwest.importers.models.emit.registry import emits
from opwest.importers.models.emit.text import Lines, number
from opwest.importers.models.ir.normalisation import (
    LogSoftmaxFloat,
    LogSoftmaxTable,
    Softmax16,
    SoftmaxFloat,
    SoftmaxTable,
    UnitLength,
)
from opwest.importers.models.ir.program import Operation
from opwest.importers.models.operators.fixed_point import RANGES


def _rows(operation: Operation) -> tuple[str, int]:
    """Return the head of the loop over rows, and the length of a row."""
    data = operation.inputs[0]
    length = data.shape[-1]
    return f"for (int row = 0; row < {data.size // length}; row++, data += {length}, result += {length})", length


@emits(Softmax16)
def softmax(operation: Softmax16) -> Call:
    """Return the call: the powers of a row are kept in the result."""
    data, result = operation.inputs[0], operation.results[0]
    numbers, (head, length), lines = operation.numbers, _rows(operation), Lines()
    fixed, shift = numbers.multiplier.fixed, numbers.multiplier.shift
    scale = "scale_twice_left" if shift > 0 else "scale_twice"
    with lines.block(head):
        greatest(lines, "int16_t", length)
        lines.add("int32_t sum = 0;", "")
        with lines.loop("i", length):
            lines.add(f"int32_t x = {scale}(data[i] - greatest, {fixed}, {-shift}) + 32767;", "")
            lines.add("result[i] = (int16_t)looked_up(clamp(x, -32768, 32767), powers);", "sum += result[i];")
        lines.add("const int zeros = leading_zeros((uint32_t)sum);", "const int places = 31 - zeros;")
        lines.add("int32_t x = (int32_t)((((int64_t)sum << (zeros - 1)) + (1 << 13)) >> 14) - 98304;")
        lines.add("const int64_t inverse = looked_up(clamp(x, -32768, 32767), inverses);", "")
        with lines.loop("i", length):
            lines.add("x = (int32_t)((result[i] * inverse + (INT64_C(1) << (places - 1))) >> places);")
            lines.add(f"result[i] = {clamped('x', 0, 32767, 'int16')};")
    parameters = (
        Parameter("data", "int16"),
        Parameter("powers", "int16"),
        Parameter("inverses", "int16"),
        Parameter("result", "int16", "out", in_place=("data",)),
    )
    function = Function("softmax", parameters, str(lines), ("clamp", scale, "leading_zeros", "looked_up"))
    tables = (np.asarray(numbers.powers, np.int16), np.asarray(numbers.inverses, np.int16))
    return Call(function, (data, *tables, result), operation.label)


@emits(SoftmaxTable)
def softmax_table(operation: SoftmaxTable) -> Call:
    """Return the call."""
    data, result = operation.inputs[0], operation.results[0]
    (head, length), lines = _rows(operation), Lines()
    low, high = RANGES[result.dtype]
    bits = 16 if result.dtype == "int16" else 8
    with lines.block(head):
        greatest(lines, c_type(data.dtype), length)
        _sum(lines, length, "round_shift(powers[greatest - data[i]], 12)")
        lines.add("const int zeros = leading_zeros((uint32_t)sum);")
        # More than 511 elements that are equal: probabilities below half of a step.
        places = f"{43 - bits} - zeros"
        lines.add(
            f"const int places = {places} < 31 ? {places} : 31;" if length > 511 else f"const int places = {places};"
        )
        lines.add("const int32_t inverse = reciprocal((int32_t)(((uint32_t)sum << zeros) - 0x80000000));", "")
        with lines.loop("i", length):
            lines.add("const int32_t value = doubled_high(inverse, powers[greatest - data[i]]);", "")
            value = clamped(f"round_shift(value, places){plus(low)}", low, high, result.dtype)
            lines.add(f"result[i] = {value};")
    parameters = (
        Parameter("data", data.dtype),
        Parameter("powers", "int32"),
        Parameter("result", result.dtype, "out", in_place=("data",) if bits == 8 else ()),
    )
    helpers = ("clamp", "doubled_high", "round_shift", "leading_zeros", "reciprocal")
    function = Function("softmax", parameters, str(lines), helpers)
    return Call(function, (data, np.asarray(operation.powers, np.int32), result), operation.label)


@emits(SoftmaxFloat)
def softmax_float(operation: SoftmaxFloat) -> Call:
    """Return the call."""
    data, result = operation.inputs[0], operation.results[0]
    (head, length), lines = _rows(operation), Lines()
    with lines.block(head):
        greatest(lines, "float", length)
        lines.add("float sum = 0.0f;", "")
        with lines.loop("i", length):
            lines.add(f"result[i] = expf((data[i] - greatest) * {number(operation.beta, 'float32')});")
            lines.add("sum += result[i];")
        with lines.loop("i", length):
            lines.add("result[i] /= sum;")
    parameters = (Parameter("data", "float32"), Parameter("result", "float32", "out", in_place=("data",)))
    return Call(Function("softmax", parameters, str(lines), (), ("math.h",)), (data, result), operation.label)


def _sum(lines: Lines, length: int, power: str) -> None:
    """Append the sum of exponentials with 12 integer bits; TFLite's overflows for more than 4095 equal elements."""
    if length < 4096:
        lines.add("int32_t sum = 0;", "")
        with lines.loop("i", length):
            lines.add(f"sum += {power};")
        return
    lines.add("int64_t total = 0;", "")
    with lines.loop("i", length):
        lines.add(f"total += {power};")
    lines.add("const int32_t sum = total > INT32_MAX ? INT32_MAX : (int32_t)total;")


def greatest(lines: Lines, kind: str, length: int) -> None:
    """Append the search for the greatest element of a row."""
    lines.add(f"{kind} greatest = data[0];", "")
    with lines.block(f"for (int i = 1; i < {length}; i++)"):
        lines.add("greatest = data[i] > greatest ? data[i] : greatest;")


@emits(LogSoftmaxTable)
def log_softmax(operation: LogSoftmaxTable) -> Call:
    """Return the call."""
    data, result = operation.inputs[0], operation.results[0]
    numbers, (head, length), lines = operation.numbers, _rows(operation), Lines()
    low, high = RANGES[result.dtype]
    scale = "scale_twice_left" if numbers.reverse.shift > 0 else "scale_twice"
    with lines.block(head):
        greatest(lines, c_type(data.dtype), length)
        _sum(lines, length, "powers[greatest - data[i]]")
        lines.add("const int32_t log_sum = logarithm(sum);")
        lines.add(f"const int32_t limit = -{scale}(log_sum + INT32_MIN, {numbers.reverse.fixed}, ")
        lines.add(f"\t{-numbers.reverse.shift});")
        lines.add(f"const int32_t radius = limit < {numbers.radius + 1} ? limit : {numbers.radius + 1};", "")
        with lines.loop("i", length):
            lines.add("const int32_t difference = greatest - data[i];", f"{c_type(result.dtype)} value = {low};", "")
            with lines.block("if (difference < radius)"):
                value = clamped(f"round_shift(scaled[difference] - log_sum, 22){plus(high)}", low, high, result.dtype)
                lines.add(f"value = {value};")
            lines.add("result[i] = value;")
    parameters = (
        Parameter("data", data.dtype),
        Parameter("powers", "int32"),
        Parameter("scaled", "int32"),
        Parameter("result", result.dtype, "out", in_place=("data",)),
    )
    function = Function("log_softmax", parameters, str(lines), ("clamp", scale, "round_shift", "logarithm"))
    tables = (np.asarray(numbers.powers, np.int32), np.asarray(numbers.scaled, np.int32))
    return Call(function, (data, *tables, result), operation.label)


@emits(LogSoftmaxFloat)
def log_softmax_float(operation: LogSoftmaxFloat) -> Call:
    """Return the call."""
    data, result = operation.inputs[0], operation.results[0]
    (head, length), lines = _rows(operation), Lines()
    with lines.block(head):
        greatest(lines, "float", length)
        lines.add("float sum = 0.0f;", "")
        with lines.loop("i", length):
            lines.add("sum += expf(data[i] - greatest);")
        lines.add("const float log_sum = logf(sum);", "")
        with lines.loop("i", length):
            lines.add("result[i] = data[i] - greatest - log_sum;")
    parameters = (Parameter("data", "float32"), Parameter("result", "float32", "out", in_place=("data",)))
    return Call(Function("log_softmax", parameters, str(lines), (), ("math.h",)), (data, result), operation.label)


@emits(UnitLength)
def unit_length(operation: UnitLength) -> Call:
    """Return the call."""
    data, result = operation.inputs[0], operation.results[0]
    (head, length), lines = _rows(operation), Lines()
    helpers: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    with lines.block(head):
        if result.dtype == "float32":
            headers = ("math.h",)
            lines.add("float sum = 0.0f;", "")
            with lines.loop("i", length):
                lines.add("sum += data[i] * data[i];")
            lines.add("const float root = sqrtf(sum);", "const float norm = root < 1e-6f ? 1e-6f : root;", "")
            with lines.loop("i", length):
                lines.add("result[i] = data[i] / norm;")
        else:
            moved = f"data[i]{plus(-operation.zero)}"
            lines.add("int32_t sum = 0;", "int places;", "")
            with lines.loop("i", length):
                lines.add(f"const int32_t x = {moved};", "", "sum += x * x;")
            lines.add("const int32_t multiplier = inverse_root(sum, &places);", "")
            with lines.loop("i", length):
                if result.dtype == "uint8":
                    helpers = ("clamp", "doubled_high", "round_shift", "inverse_root")
                    lines.add(f"const int32_t high = doubled_high(128 * ({moved}), multiplier);", "")
                    lines.add(f"result[i] = {clamped('128 + round_shift(high, places)', 0, 255, 'uint8')};")
                else:
                    helpers = ("clamp", "scale_twice_left", "inverse_root")
                    lines.add(f"const int32_t x = scale_twice_left({moved}, multiplier, places - 7);", "")
                    lines.add(f"result[i] = {clamped('x', -128, 127, 'int8')};")
    parameters = (Parameter("data", data.dtype), Parameter("result", result.dtype, "out", in_place=("data",)))
    function = Function("unit_length", parameters, str(lines), helpers, headers)
    return Call(function, (data, result), operation.label)
