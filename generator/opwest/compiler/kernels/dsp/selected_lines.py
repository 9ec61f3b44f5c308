# SPDX-License-Identifier: Apache-2.0
"""Lines that select one of two values: MAXIMUM, MINIMUM, PRELU. `byte_lines.py` describes the parameters."""

from __future__ import annotations

from typing import Any

import numpy as np

from opwest.compiler.ir.elements import Plain, Prelu
from opwest.compiler.kernels.lines import Form, Line, Store, function_of, words_of
from opwest.compiler.semantics.fixed_point import Multiplier

MAX_LEFT = 12
"""The places to the left by which a product of 17 bits can be shifted, and doubled."""


def extreme_line(dtype: str, function: Plain, is_swapped: bool, form: Form, content: Any = None) -> Line | None:
    """Return the line of the greater or the lesser elements: all of a word at a time. Constants are not changed.

    None for other functions.
    """
    if function.kind not in ("MAXIMUM", "MINIMUM"):
        return None
    item, sign = (2 if dtype == "int16" else 1), ("u" if dtype == "uint8" else "s")
    is_greater = function.kind == "MAXIMUM"
    load = {"int8": "ldrsb", "uint8": "ldrb", "int16": "ldrsh"}[dtype]
    other, start = "r6", []
    if form.is_single:
        other = "r12"
        start = [f"{load} r11, [r1]"]
        start += ["pkhbt r12, r11, r11, lsl #16"]
        start += ["uxtb16 r12, r12", "orr r12, r12, r12, lsl #8"] if item == 1 else []
    word = ["ldr r5, [r0], #4", *([] if form.is_single else ["ldr r6, [r1], #4"])]
    word += [f"{sign}sub{8 * item} r7, r5, {other}", f"sel r5, {f'r5, {other}' if is_greater else f'{other}, r5'}"]
    word.append("str r5, [r3], #4")
    single = "r11" if form.is_single else "r6"
    one = [f"{load} r5, [r0], #{item}", *([] if form.is_single else [f"{load} r6, [r1], #{item}"])]
    one += [f"cmp r5, {single}", f"it {'lt' if is_greater else 'gt'}"]
    one += [f"mov{'lt' if is_greater else 'gt'} r5, {single}", f"str{'b' if item == 1 else 'h'} r5, [r3], #{item}"]
    name = f"{function.kind.lower()}_{'row' if form.is_single else 'pair'}_{dtype}"
    return Line(name, function_of(name, dtype, start, word * item, one), words_of([0]))


def _places(by: Multiplier) -> tuple[int, int] | None:
    """Return the shifts of a value, doubled, to the left, and of the high part of its product to the right."""
    if by.fixed == 0 or by.shift > MAX_LEFT:
        return None
    return max(by.shift, 0) + 1, max(-by.shift, 0)


def slope_line(function: Prelu, is_swapped: bool, form: Form, content: Any = None) -> Line | None:
    """Return the line of int8 values, times a slope below 0; None for numbers that do not fit.

    r4, r9 multiplier and addend from 0 on, r10, r11 below, r12 the zero point, r8 the slope of a row.
    """
    given = function.numbers
    above, below = _places(given.positive), _places(given.negative)
    if is_swapped or above is None or below is None or max(above[1], below[1]) > 20:
        return None
    store = Store(8, given.low, given.high, 0)
    halves = [1 << (right - 1) if right else 0 for right in (above[1], below[1])]
    addends = [(given.zero << right) + half for right, half in zip((above[1], below[1]), halves, strict=True)]
    start = ["ldm r2, {r2, r4, r9, r10, r11, r12}"]
    if form.is_single:
        start += ["ldrsb r8, [r1]", "sub r8, r8, r2"] if form is Form.ROW else ["ldrsh r8, [r1]"]
    one = ["ldrsb r5, [r0], #1"]
    if form is Form.PAIR:
        one += ["ldrsb r6, [r1], #1", "sub r6, r6, r2"]
    elif form is Form.WORDS:
        one.append("ldrsh r6, [r1], #2")
    one += ["subs r5, r5, r12", f"smulbb r6, r5, {'r8' if form.is_single else 'r6'}", f"lsl r6, r6, #{below[0]}"]
    addend = "r11"
    if below[1]:
        one.append("add r7, r11, r6, asr #31")
        addend = "r7"
    one += [f"smmlar r6, r6, r10, {addend}", f"lsl r5, r5, #{above[0]}", "smmlar r5, r5, r4, r9", "ite ge"]
    for condition, value, right in (("ge", "r5", above[1]), ("lt", "r6", below[1])):
        one.append(f"asr{condition} r5, {value}, #{right}" if right else f"mov{condition} r5, {value}")
    one += store.lines(("r5",), ("r7",), 0)
    name = f"slope_{form.value}_{above[0]}_{above[1]}_{below[0]}_{below[1]}_{store.name}"
    numbers = [given.zeros[1], given.positive.fixed, addends[0], given.negative.fixed, addends[1], given.zeros[0]]
    line = Line(name, function_of(name, "int8", start, one * 4, one), words_of(numbers))
    if not form.is_constant:
        return line
    return Line(
        line.name, line.definition, line.constants, (np.asarray(content, np.int64) - given.zeros[1]).astype(np.int16)
    )
