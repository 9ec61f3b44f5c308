# SPDX-License-Identifier: Apache-2.0
"""Functions of one int16 element: another scale, a slope below 0, values between samples, LOGISTIC and TANH."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from opwest.compiler.emission.function import Call, call_for, emits
from opwest.compiler.ir.elements import Interpolated, Rescaled, Sigmoid
from opwest.compiler.ir.operations import Elementwise
from opwest.compiler.kernels.assembly import NAKED
from opwest.compiler.kernels.lines import GROUP, Line, Store, function_of, words_of
from opwest.compiler.semantics.fixed_point import Multiplier
from opwest.compiler.semantics.tables import sigmoid_table

MAX_LEFT = 13
"""The places to the left by which a difference of 17 bits can be shifted, and doubled."""


@emits(Elementwise, "dsp-unary")
def render_unary(operation: Elementwise) -> Call | None:
    """Return the call; None for other functions, dtypes and numbers."""
    function, [result] = operation.function, operation.results
    data = operation.inputs[0]
    if data.dtype != "int16" or result.dtype not in ("int8", "int16"):
        return None
    if isinstance(function, Rescaled):
        line, base = _rescaled(function, result.dtype), function.kind.lower()
    elif isinstance(function, Interpolated) and result.dtype == "int16":
        line, base = _interpolated(function), function.kind.lower()
    elif isinstance(function, Sigmoid) and result.dtype == "int16":
        line, base = _sigmoid(function), function.kind.lower()
    else:
        return None
    if line is None:
        return None
    counts = f"{result.size // GROUP}, {result.size % GROUP}"
    body = f"\t{line.name}(data, {f'constants + {len(line.other) // 2}' if line.other is not None else 'data'}, "
    body += f"{'numbers' if line.other is not None else 'constants'}, result, {counts});\n"
    arguments = {"data": data, "constants": line.constants if line.other is None else line.other}
    if line.other is not None:
        arguments["numbers"] = line.constants
    in_place = ("data",) if result.dtype == data.dtype else ()
    return call_for(operation, base, body, arguments, in_place, definitions=(NAKED, line.definition))


def _places(by: Multiplier) -> tuple[int, int] | None:
    """Return the shifts of a value, doubled, to the left, and of the high part of its product to the right."""
    if by.fixed == 0 or by.shift > MAX_LEFT:
        return None
    return max(by.shift, 0) + 1, max(-by.shift, 0)


def _rescaled(function: Rescaled, result: str) -> Line | None:
    """Return the line of (value - source) times a multiplier: r4, r9 multipliers, r11, r10 addends, r12 source.

    The results of differences from 0 on, and below, have addends of their own, which contain the rounding.
    """
    given = function.numbers
    is_split = given.negative != given.positive and not given.magnitude
    above, below = _places(given.positive), _places(given.negative)
    if given.sign < 0 or above is None or below is None:
        return None
    left, moved = above[0], above[0] - below[0]
    halves = [1 << (right - 1) if right else 0 for right in (above[1], below[1])]
    addends = [(given.zero << above[1]) + halves[0], (given.zero << below[1]) + halves[1] - (below[1] > 0)]
    if max(map(abs, addends)) >= 1 << 29 or max(above[1], below[1]) > 31:
        return None
    bits = 8 if result == "int8" else 16
    store = Store(bits, given.low, given.high, 0 if is_split else above[1])

    def turn(count: int) -> list[str]:
        values, free = ("r5", "r6")[:count], ("r7", "r8")[:count]
        lines = [f"ldrsh {value}, [r0], #2" for value in values]
        for value, other in zip(values, free, strict=True):
            lines.append(f"rsb{'s' if is_split else ''} {value}, r12, {value}, lsl #{left}")
            if is_split:
                if moved:
                    lines.append(f"{'asr' if moved > 0 else 'lsl'} {other}, {value}, #{abs(moved)}")
                lines.append(f"smmlar {other}, {other if moved else value}, r9, r10")
                lines += [f"smmlar {value}, {value}, r4, r11", "ite ge"]
                lines += [_shifted("ge", value, value, above[1]), _shifted("lt", value, other, below[1])]
                continue
            if given.magnitude:
                lines += [f"cmp {value}, #0", "it lt", f"rsblt {value}, {value}, #0"]
            addend = "r11"
            if above[1] and not given.magnitude:
                lines.append(f"add {other}, r11, {value}, asr #31")
                addend = other
            lines.append(f"smmlar {value}, {value}, r4, {addend}")
        return [*lines, *store.lines(values, ("r7",), 20)]

    kind = f"split{below[0]}_{below[1]}_{above[1]}" if is_split else "magnitude" if given.magnitude else "scaled"
    name = f"rescale_{kind}_{left}_{store.name}"
    numbers = [given.positive.fixed, given.negative.fixed, addends[1], addends[0], given.source << left]
    start = ["ldm r2, {r4, r9, r10, r11, r12}"]
    group = [*turn(2), *turn(2)]
    definition = function_of(name, "int16", start, group, turn(1), result)
    return Line(name, definition, words_of([*numbers, *store.numbers]))


def _shifted(condition: str, to: str, value: str, places: int) -> str:
    return f"asr{condition} {to}, {value}, #{places}" if places else f"mov{condition} {to}, {value}"


def _interpolated(function: Interpolated) -> Line | None:
    """Return the line of values between two samples, whose weights are f and 128 - f: see `wide_softmax.py`."""
    table = np.asarray(function.table, np.int16)
    if np.abs(np.diff(table.astype(np.int64))).max() > 32767:
        return None

    def turn(values: Sequence[str], others: Sequence[str]) -> list[str]:
        pairs = list(zip(values, others, strict=True))
        lines = [f"ldrsh {value}, [r0], #2" for value in values]
        lines += [f"asr {other}, {value}, #7" for value, other in pairs]
        lines += [f"ldr {other}, [r1, {other}, lsl #1]" for other in others]
        lines += [f"and {value}, {value}, #127" for value in values]
        lines += [f"mla {value}, {value}, r4, r12" for value in values]
        lines += [f"smlad {value}, {value}, {other}, r7" for value, other in pairs]
        lines += [f"asr {value}, {value}, #7" for value in values]
        return [*lines, *(f"strh {value}, [r3], #2" for value in values)]

    group = [*turn(("r5", "r6"), ("r8", "r9")), *turn(("r5", "r6"), ("r8", "r9"))]
    start = ["ldm r2, {r4, r7, r12}"]
    name = "interpolate_samples"
    definition = function_of(name, "int16", start, group, turn(("r5",), ("r8",)))
    return Line(name, definition, words_of([65535, 64, 128]), table)


@functools.cache
def segments(is_tanh: bool) -> Any:
    """Return the segments from -256 to 255 of LOGISTIC or TANH as first values and steps, int32 [512 * 2].

    The results are the shifted values. The first value at -255 is that of the constant end: from there on to 0 the
    others have the same results, because their steps are 1.
    """
    bits = 8 if is_tanh else 9
    starts = np.arange(-256, 256) << bits
    first = _numerators(starts, is_tanh)
    steps = _numerators(starts + 2, is_tanh) - _numerators(starts + 1, is_tanh)
    return np.stack([first, steps], axis=1).astype(np.int32).reshape(-1)


def _numerators(inputs: Any, is_tanh: bool) -> Any:
    """Return the sums of `interpolated_sigmoid` before its last shift."""
    table, bits = sigmoid_table().astype(np.int64), 8 if is_tanh else 9
    magnitude = np.abs(inputs)
    index, rest = np.minimum(magnitude >> bits, 254), magnitude & ((1 << bits) - 1)
    smooth = (table[index] << bits) + rest * (table[index + 1] - table[index])
    value = np.where(magnitude >> bits >= 255, 0xFFFF << 8 if is_tanh else 0x7FFF << 10, smooth)
    if is_tanh:
        return np.where(inputs >= 0, value - (1 << 23) + 128, -value + (1 << 23) + 127)
    return np.where(inputs >= 0, value + 512, (1 << 25) - value + 511)


def _sigmoid(function: Sigmoid) -> Line | None:
    """Return the line of a function of 512 segments: r4 multiplier, r12 half of the shift."""
    is_tanh, numbers = function.kind == "TANH", function.numbers
    bits, places = 8 if is_tanh else 9, numbers.places
    if places + bits > 31:
        return None

    def turn(values: Sequence[str], others: Sequence[str], starts: Sequence[str]) -> list[str]:
        pairs = list(zip(values, others, strict=True))
        lines = [f"ldrsh {value}, [r0], #2" for value in values]
        lines += [f"mla {value}, {value}, r4, r12" for value in values]
        for (value, other), (start, step) in zip(pairs, (starts[:2], starts[2:]), strict=False):
            lines += [f"ssat {other}, #9, {value}, asr #{places + bits}", f"ubfx {value}, {value}, #{places}, #{bits}"]
            lines += [f"add {other}, r1, {other}, lsl #3", f"ldrd {start}, {step}, [{other}]"]
            lines.append(f"mla {value}, {value}, {step}, {start}")
        lines += [f"asr {value}, {value}, #{8 if is_tanh else 10}" for value in values]
        return [*lines, *(f"strh {value}, [r3], #2" for value in values)]

    pair = turn(("r5", "r6"), ("r7", "r8"), ("r9", "r10", "r11", "r2"))
    name = f"{function.kind.lower()}_segments_{places}"
    one = turn(("r5",), ("r7",), ("r9", "r10"))
    definition = function_of(name, "int16", ["ldrd r4, r12, [r2]"], [*pair, *pair], one)
    half = 1 << (places - 1) if places else 0
    return Line(name, definition, words_of([numbers.multiplier, half]), segments(is_tanh))
