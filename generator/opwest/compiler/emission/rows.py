# SPDX-License-Identifier: Apache-2.0
"""Operations along rows: softmax, reductions, positions, sums, quantisation."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from math import prod
from typing import NamedTuple

import numpy as np

from opwest.compiler.emission.epilogue import ending
from opwest.compiler.emission.expressions import (
    Expression,
    clamped,
    distance_of,
    expression_of,
    plus,
    scale_twice,
    times,
)
from opwest.compiler.emission.function import Call, Lines, c_type, call_of, emits, number
from opwest.compiler.graph.types import Shape
from opwest.compiler.ir.operations import (
    DynamicQuantize,
    Greatest,
    LogSoftmaxFloat,
    LogSoftmaxTable,
    Lookup,
    Position,
    QuantizeEven,
    Reduce,
    RunningSum,
    Softmax16,
    SoftmaxFloat,
    SoftmaxTable,
    UnitLength,
)
from opwest.compiler.ir.program import Operation
from opwest.compiler.semantics.fixed_point import RANGES
from opwest.compiler.semantics.rows import SUM_SHIFT


def _rows(operation: Operation) -> tuple[str, int]:
    """Return the head of the loop over rows, and the length of a row."""
    data = operation.inputs[0]
    length = data.shape[-1]
    return f"for (int row = 0; row < {data.size // length}; row++, data += {length}, result += {length})", length


@emits(Softmax16)
def softmax(operation: Softmax16) -> Call:
    """Return the call: the powers of a row are kept in the result."""
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
        # The product of two numbers of 15 bits, and half of a shift by at most 30 places.
        lines.add("const int32_t inverse = looked_up(clamp(x, -32768, 32767), inverses);", "")
        with lines.loop("i", length):
            lines.add("x = (result[i] * inverse + (1 << (places - 1))) >> places;")
            lines.add(f"result[i] = {clamped('x', 0, 32767, 'int16')};")
    tables = [(name, np.asarray(getattr(numbers, name), np.int16)) for name in ("powers", "inverses")]
    helpers = ("clamp", scale, "leading_zeros", "looked_up")
    return call_of(operation, "softmax", lines, constants=tables, in_place=("data",), helpers=helpers)


@emits(SoftmaxTable)
def softmax_table(operation: SoftmaxTable) -> Call:
    """Return the call."""
    data, result = operation.inputs[0], operation.results[0]
    (head, length), lines = _rows(operation), Lines()
    low, high = RANGES[result.dtype]
    bits = 16 if result.dtype == "int16" else 8
    with lines.block(head):
        greatest(lines, c_type(data.dtype), length)
        # Powers are not negative, so that the half of a shift can be added without a sign.
        _exponential_sum(lines, length, "(int32_t)(((uint32_t)powers[greatest - data[i]] + 2048) >> 12)")
        lines.add("const int zeros = leading_zeros((uint32_t)sum);")
        # More than 511 elements that are equal: probabilities below half of a step.
        places = f"{43 - bits} - zeros"
        lines.add(
            f"const int places = {places} < 31 ? {places} : 31;" if length > 511 else f"const int places = {places};"
        )
        lines.add("const int32_t inverse = reciprocal((int32_t)(((uint32_t)sum << zeros) - 0x80000000));")
        lines.add("const uint32_t half = UINT32_C(1) << (places - 1);", "")
        with lines.loop("i", length):
            lines.add("const uint32_t value =")
            lines.add("\t((uint32_t)doubled_high(inverse, powers[greatest - data[i]]) + half) >> places;")
            above = f"value > {high - low} ? {high} : (int32_t)value{plus(low)}"
            lines.add("", f"result[i] = ({c_type(result.dtype)})({above});")
    helpers = ("doubled_high", "leading_zeros", "reciprocal")
    powers = [("powers", np.asarray(operation.powers, np.int32))]
    in_place = ("data",) if bits == 8 else ()
    return call_of(operation, "softmax", lines, constants=powers, in_place=in_place, helpers=helpers)


@emits(SoftmaxFloat)
def softmax_float(operation: SoftmaxFloat) -> Call:
    """Return the call."""
    (head, length), lines = _rows(operation), Lines()
    with lines.block(head):
        greatest(lines, "float", length)
        lines.add("float sum = 0.0f;", "")
        with lines.loop("i", length):
            lines.add(f"result[i] = expf((data[i] - greatest) * {number(operation.beta, 'float32')});")
            lines.add("sum += result[i];")
        with lines.loop("i", length):
            lines.add("result[i] /= sum;")
    return call_of(operation, "softmax", lines, in_place=("data",), headers=("math.h",))


def _exponential_sum(lines: Lines, length: int, power: str) -> None:
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
        _exponential_sum(lines, length, "powers[greatest - data[i]]")
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
    tables = [(name, np.asarray(getattr(numbers, name), np.int32)) for name in ("powers", "scaled")]
    helpers = ("clamp", scale, "round_shift", "logarithm")
    return call_of(operation, "log_softmax", lines, constants=tables, in_place=("data",), helpers=helpers)


@emits(LogSoftmaxFloat)
def log_softmax_float(operation: LogSoftmaxFloat) -> Call:
    """Return the call."""
    (head, length), lines = _rows(operation), Lines()
    with lines.block(head):
        greatest(lines, "float", length)
        lines.add("float sum = 0.0f;", "")
        with lines.loop("i", length):
            lines.add("sum += expf(data[i] - greatest);")
        lines.add("const float log_sum = logf(sum);", "")
        with lines.loop("i", length):
            lines.add("result[i] = data[i] - greatest - log_sum;")
    return call_of(operation, "log_softmax", lines, in_place=("data",), headers=("math.h",))


@emits(UnitLength)
def unit_length(operation: UnitLength) -> Call:
    """Return the call."""
    result, (head, length), lines = operation.results[0], _rows(operation), Lines()
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
    return call_of(operation, "unit_length", lines, in_place=("data",), helpers=helpers, headers=headers)


Loops = list[tuple[int, int]]
"""Counts and strides."""


def loops_of(shape: Shape, axes: tuple[int, ...]) -> tuple[Loops, Loops]:
    """Return the kept and the joined dimensions as loops; neighbours of one sort are one loop."""
    groups: list[tuple[bool, int, int]] = []
    for axis, count in enumerate(shape):
        if count == 1:
            continue
        is_joined, stride = axis in axes, prod(shape[axis + 1 :])
        if groups and groups[-1][0] == is_joined:
            groups[-1] = (is_joined, groups[-1][1] * count, stride)
        else:
            groups.append((is_joined, count, stride))
    return [(n, s) for joined, n, s in groups if not joined], [(n, s) for joined, n, s in groups if joined]


@emits(Reduce)
def render_reduction(operation: Reduce) -> Call:
    """Return the call."""
    data, result = operation.inputs[0], operation.results[0]
    kept, joined = loops_of(data.shape, operation.axes)
    count = prod(n for n, _ in joined)
    lines, body = Lines(), _body(operation, data.dtype, count)
    lines.add(f"{c_type(result.dtype)} *y = result;", "")
    with contextlib.ExitStack() as stack:
        for level, (turns, _) in enumerate(kept):
            stack.enter_context(lines.loop(f"i{level}", turns))
        terms = [times(f"i{level}", stride) for level, (_, stride) in enumerate(kept)]
        lines.add(f"const {c_type(data.dtype)} *p = {' + '.join(['data', *terms])};", *body.start, "")
        with contextlib.ExitStack() as inner:
            for level, (turns, _) in enumerate(joined):
                inner.enter_context(lines.loop(f"j{level}", turns))
            place = " + ".join(times(f"j{level}", stride) for level, (_, stride) in enumerate(joined))
            lines.add(*(line.replace("@", f"p[{place or '0'}]") for line in body.step))
        lines.add(*body.end)
    return call_of(operation, f"reduce_{operation.kind}", lines, helpers=body.helpers)


class _Body(NamedTuple):
    """The lines around and inside of the loops over the joined elements; @ is an element."""

    start: list[str]
    step: list[str]
    end: list[str]
    helpers: tuple[str, ...] = ()


def _body(operation: Reduce, dtype: str, count: int) -> _Body:
    kind = operation.kind
    if operation.finish is not None:
        return _product(operation, count) if kind == "product" else _sum(operation, count)
    if kind in ("any", "all"):
        operator, first = ("|=", 0) if kind == "any" else ("&=", 1)
        return _Body([f"uint8_t value = {first};"], [f"value {operator} @;"], ["*y++ = value;"])
    if kind in ("maximum", "minimum"):
        sign = ">" if kind == "maximum" else "<"
        start = [f"{c_type(dtype)} value = p[0];"]
        return _Body(start, [f"value = @ {sign} value ? @ : value;"], ["*y++ = value;"])
    first, operator = (1, "*=") if kind == "product" else (0, "+=")
    if dtype == "float32":
        end = [f"*y++ = value / {count};" if kind == "mean" else "*y++ = value;"]
        if operation.is_wide:
            return _Body(["double value = 0.0;"], ["value += (double)@;"], [end[0].replace("value", "(float)value")])
        return _Body([f"float value = {first};"], [f"value {operator} @;"], end)
    if kind == "mean":
        # TFLite adds int32 elements in 64 bits.
        return _Body(
            ["uint64_t value = 0;"], ["value += (uint64_t)@;"], [f"*y++ = ({c_type(dtype)})((int64_t)value / {count});"]
        )
    unsigned = "uint64_t" if dtype == "int64" else "uint32_t"
    return _Body(
        [f"{unsigned} value = {first};"], [f"value {operator} ({unsigned})@;"], [f"*y++ = ({c_type(dtype)})value;"]
    )


def _sum(operation: Reduce, count: int) -> _Body:
    """Return the body of a quantised sum or mean."""
    finish = operation.finish
    assert finish is not None
    [by] = finish.multipliers
    bound = count * distance_of(operation.inputs[0].dtype, operation.zero)
    text, helper = scale_twice(f"sum{plus(-operation.zero * count)}", by, bound)
    end = clamped(f"{text}{plus(finish.zero)}", finish.low, finish.high, operation.results[0].dtype)
    return _Body(["int32_t sum = 0;"], ["sum += @;"], [f"*y++ = {end};"], ("clamp", helper))


def _product(operation: Reduce, count: int) -> _Body:
    """Return the body of a quantised product: the first element is not rescaled."""
    finish = operation.finish
    assert finish is not None
    [by] = finish.multipliers
    reduced = (by.fixed + (1 << 15)) >> 16 if by.fixed < 0x7FFF0000 else 0x7FFF
    numbers = f"{reduced}, {15 - by.shift}"
    element = f"(@{plus(-operation.zero)})"
    step = [
        f"value = is_first ? {element} : scale_once((int64_t)value * {element}, {numbers});",
        "is_first = 0;",
    ]
    scaled = f"scale_once(value, {numbers}){plus(finish.zero)}"
    end = clamped(scaled, finish.low, finish.high, operation.results[0].dtype)
    start = ["int32_t value = 0;", "int is_first = 1;"]
    return _Body(start, step, [f"*y++ = {end};"], ("clamp", "scale_once"))


def _split(shape: Shape, axis: int) -> tuple[int, int, int]:
    """Return the elements before a dimension, in it and behind it."""
    return prod(shape[:axis]), shape[axis], prod(shape[axis + 1 :])


@emits(Position)
def position(operation: Position) -> Call:
    """Return the call."""
    data, result = operation.inputs[0], operation.results[0]
    outer, count, inner = _split(data.shape, operation.axis)
    lines, kind = Lines(), c_type(data.dtype)
    sign = ">" if operation.is_greatest else "<"
    lines.add(f"{c_type(result.dtype)} *y = result;", "")
    with lines.block(f"for (int i = 0; i < {outer}; i++, data += {count * inner})"), lines.loop("j", inner):
        lines.add(f"{kind} best = data[j];", "int place = 0;", "")
        with lines.block(f"for (int k = 1; k < {count}; k++)"):
            lines.add(f"const {kind} value = data[k * {inner} + j];" if inner > 1 else f"const {kind} value = data[k];")
            lines.add("")
            # A number is before not a number.
            better = (
                f"value {sign} best"
                if data.dtype != "float32"
                else f"value {sign} best || (best != best && value == value)"
            )
            with lines.block(f"if ({better})"):
                lines.add("best = value;", "place = k;")
        lines.add("*y++ = place;")
    return call_of(operation, "position_of_greatest" if operation.is_greatest else "position_of_least", lines)


@emits(Greatest)
def render_greatest(operation: Greatest) -> Call:
    """Return the call: elements are inserted into the sorted result."""
    data, count = operation.inputs[0], operation.count
    length = data.shape[-1]
    lines, kind = Lines(), c_type(data.dtype)
    before = "value > values[k - 1]"
    if data.dtype == "float32":
        before = f"({before} || (values[k - 1] != values[k - 1] && value == value))"
    head = f"for (int row = 0; row < {data.size // length}; row++, data += {length}"
    with lines.block(f"{head}, values += {count}, positions += {count})"), lines.loop("i", length):
        lines.add(f"const {kind} value = data[i];", f"int k = i < {count} ? i : {count};", "")
        with lines.block(f"for (; k > 0 && {before}; k--)"), lines.block(f"if (k < {count})"):
            lines.add("values[k] = values[k - 1];", "positions[k] = positions[k - 1];")
        with lines.block(f"if (k < {count})"):
            lines.add("values[k] = value;", "positions[k] = i;")
    return call_of(operation, "greatest", lines, results=("values", "positions"))


@emits(RunningSum)
def running_sum(operation: RunningSum) -> Call:
    """Return the call."""
    data, result = operation.inputs[0], operation.results[0]
    outer, count, inner = _split(data.shape, operation.axis)
    lines = Lines()
    kind = {"int8": "uint32_t", "int32": "uint32_t", "int64": "uint64_t"}.get(data.dtype, "float")
    end, start, element = None, "0", f"({kind})data[{{}}]"
    stored = f"({c_type(data.dtype)})sum"
    if operation.finish is not None:
        end = ending(operation.finish, result=result.dtype)
        start = f"UINT32_C({(-operation.zero << SUM_SHIFT) % (1 << 32)})"
        element = f"(uint32_t)(data[{{}}]{plus(-operation.zero)}) << {SUM_SHIFT}"
        stored = end.result("(int32_t)sum")
    order = f"int k = {count - 1}; k >= 0; k--" if operation.is_reverse else f"int k = 0; k < {count}; k++"
    with (
        lines.block(f"for (int i = 0; i < {outer}; i++, data += {count * inner}, result += {count * inner})"),
        lines.loop("j", inner),
    ):
        lines.add(f"{kind} sum = {start};", "")
        with lines.block(f"for ({order})"):
            place = f"k * {inner} + j" if inner > 1 else "k"
            add = [f"sum += {element.format(place)};"]
            store = [f"result[{place}] = {stored};"]
            if operation.is_exclusive:
                add = [f"const {kind} value = {element.format(place)};", ""]
                store = [*store, "sum += value;"]
            lines.add(*add, *store)
    helpers = () if end is None else end.helpers
    return call_of(operation, "running_sum", lines, in_place=("data",), helpers=helpers)


@expression_of.register
def _(function: Lookup, dtypes: Sequence[str], result: str) -> Expression:
    table = np.asarray(function.table, result)
    return Expression("look_up", "table[(uint8_t){0}]", arrays=(("table", table),))


@expression_of.register
def _(function: QuantizeEven, dtypes: Sequence[str], result: str) -> Expression:
    numbers = function.numbers
    low, high = (number(float(limit - numbers.zero), "float32") for limit in (numbers.low, numbers.high))
    value = f"{{0}} / {number(numbers.scale, 'float32')}"
    if numbers.by_inverse:
        value = f"{{0}} * {number(numbers.inverse, 'float32')}"
    # A comparison with NaN is false: the result is the zero point.
    line = f"const float scaled = {value};"
    whole = f"scaled == scaled ? (int32_t)lrintf(clampf(scaled, {low}, {high})){plus(numbers.zero)}"
    return Expression("quantize", f"({c_type(result)})({whole} : {numbers.zero})", (line,), ("clampf",), ("math.h",))


@emits(DynamicQuantize)
def render_dynamic_quantize(operation: DynamicQuantize) -> Call:
    """Return the call."""
    [data] = operation.inputs
    lines = Lines()
    lines.add("float low = 0.0f, high = 0.0f;", "")
    with lines.loop("i", data.size):
        lines.add("low = data[i] < low ? data[i] : low;", "high = data[i] > high ? data[i] : high;")
    lines.add(
        "",
        "const float step = low == high ? 1.0f : (high - low) / 255.0f;",
        "const int32_t zero = (int32_t)lrintf(clampf(-low / step, 0.0f, 255.0f));",
        "",
        "*scale = step;",
    )
    with lines.loop("i", data.size):
        lines.add(
            "const int32_t whole = (int32_t)lrintf(clampf(data[i] / step, -512.0f, 512.0f));",
            "",
            f"result[i] = {clamped('whole', '-zero', '255 - zero', 'int16')};",
        )
    helpers, headers = ("clamp", "clampf"), ("math.h",)
    return call_of(operation, "quantize_dynamic", lines, results=("result", "scale"), helpers=helpers, headers=headers)
