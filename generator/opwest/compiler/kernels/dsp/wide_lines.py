# SPDX-License-Identifier: Apache-2.0
"""Lines of int16 values: sums and differences, products. `byte_lines.py` describes the parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opwest.compiler.ir.elements import AddQuantised, Product
from opwest.compiler.kernels.lines import End, Form, Line, Store, ends_of, exchanged, function_of, words_of
from opwest.compiler.kernels.scaling import scaling_of
from opwest.compiler.semantics.arithmetic import HALF
from opwest.compiler.semantics.fixed_point import Requantisation, Rounding, scaled

GREATEST = 1 << 15
"""The greatest magnitude of data."""


def wide_sum_line(function: AddQuantised, is_swapped: bool, form: Form, content: Any = None) -> Line | None:
    """Return the line of a sum or difference.

    The operand with the larger scale is shifted, the other one is multiplied and rounded twice. Constants: multiplier
    and addend of the end, multiplier and half of the shift of the other operand, the numbers of the store.
    """
    given = function.numbers
    order = (1, 0) if is_swapped else (0, 1)
    is_shifted = [given.multipliers[place] == HALF for place in order]
    if not any(is_shifted) or given.zeros != (0, 0):
        return None
    if form is Form.PAIR and not is_shifted[0]:
        return exchanged(wide_sum_line(function, not is_swapped, form, content))
    signs = [-1 if function.subtract and place else 1 for place in order]
    places = given.left_shift - 1
    other = next((given.multipliers[place] for place in order if given.multipliers[place] != HALF), HALF)
    if other != HALF and not (other.fixed and other.shift < 0):
        return None
    bound = sum(int(abs(by.times(-GREATEST << given.left_shift))) for by in given.multipliers)
    is_doubled = form is not Form.PAIR and bound < 1 << 30
    finish = Requantisation((given.result,), Rounding.TWICE, given.zero, given.low, given.high)
    scaling = scaling_of(finish, [bound], bits=31)
    ends = None if scaling is None else ends_of(scaling, is_doubled)
    if scaling is None or ends is None:
        return None
    end, store = End("r4", "r11", scaling.is_signed, is_doubled), Store(16, given.low, given.high, ends[2])
    free = "r7" if form.is_single else "r12"
    # The values of single operands and constants have the factor of the sum.
    factor = int(is_doubled)

    def turn(some: int) -> list[str]:
        x, z = ("r5", "r6")[:some], ("r7", "r8")[:some]
        lines = [f"ldrsh {register}, [r0], #2" for register in x]
        if form is Form.PAIR:
            lines += [f"ldrsh {register}, [r1], #2" for register in z]
            lines += _scaled_lines(z, free, -other.shift) if not all(is_shifted) else []
            lines += _sums(x, z, signs, places, all(is_shifted))
        else:
            values = z if form is Form.WORDS else ("r12",) * some
            shift = places + factor if is_shifted[0] else factor
            lines += _scaled_lines(x, free, -other.shift) if not is_shifted[0] else []
            lines += [f"ldr {register}, [r1], #4" for register in z] if form is Form.WORDS else []
            lines += [
                f"{'add' if signs[0] > 0 else 'sub'} {one}, {value}, {one}{f', lsl #{shift}' if shift else ''}"
                for one, value in zip(x, values, strict=True)
            ]
        return [*lines, *end.lines(x, ("r7", "r8")), *store.lines(x, ("r7",), 16)]

    start = ["ldm r2, {r4, r9, r10, r11}"]
    if form is Form.WORD:
        start.append("ldr r12, [r1]")
    elif form is Form.ROW:
        start.append("ldrsh r12, [r1]")
        shift_of_row = [f"lsl r12, r12, #{places + factor}"]
        start += shift_of_row if is_shifted[1] else _scaled_lines(("r12",), "r5", -other.shift)
        start += ["lsl r12, r12, #1"] if factor and not is_shifted[1] else []
        start += ["rsb r12, r12, #0"] if signs[1] < 0 else []
    kinds = "".join("s" if one else "m" for one in is_shifted) + "".join("p" if sign > 0 else "n" for sign in signs)
    name = f"wide_sum_{form.value}_{kinds}_{places}_{-other.shift}_{end.name}_{store.name}"
    pair = turn(2)
    if form is Form.PAIR and not all(is_shifted) and signs[1] > 0:
        # Two elements in a word: SMLABB and SMLATB shift and add one of them.
        start.append(f"movw r8, #{signs[0] * (1 << places) & 0xFFFF}")
        pair = ["ldr r5, [r0], #4", "ldr r7, [r1], #4", "lsl r6, r7, #16", "bfc r7, #0, #16"]
        pair += [*_multiplied(("r6", "r7"), free, -other.shift), "smlabb r6, r5, r8, r6", "smlatb r7, r5, r8, r7"]
        pair += [*end.lines(("r6", "r7"), ("r5", "r12")), *store.lines(("r6", "r7"), ("r5",), 16)]
    definition = function_of(name, "int16", start, [*pair, *pair], turn(1))
    half = 1 << (-other.shift - 1) if other.shift else 0
    # In the order of the registers r4, r9, r10, r11.
    constants = words_of([ends[0], other.fixed, half, ends[1], *store.numbers])
    if not form.is_constant:
        return Line(name, definition, constants)
    by = given.multipliers[order[1]]
    terms = scaled(np.asarray(content, np.int64) << given.left_shift, by.fixed, by.shift, Rounding.TWICE)
    return Line(name, definition, constants, words_of(signs[1] * (terms << factor)))


def _scaled_lines(registers: Sequence[str], free: str, shift: int) -> list[str]:
    """Return the code of the operand that is multiplied."""
    return [*(f"lsl {register}, {register}, #16" for register in registers), *_multiplied(registers, free, shift)]


def _multiplied(registers: Sequence[str], free: str, shift: int) -> list[str]:
    """Return the code of elements in upper halfwords: r9 multiplier, r10 half of the shift."""
    lines = []
    for register in registers:
        lines += [f"add {free}, r10, {register}, asr #31", f"smmlar {register}, {register}, r9, {free}"]
    return [*lines, *(f"asr {register}, {register}, #{shift}" for register in registers)]


def _sums(
    shifted: Sequence[str], others: Sequence[str], signs: Sequence[int], places: int, are_equal: bool
) -> list[str]:
    """Return the sums or differences of operands of which the first ones are shifted; `are_equal`: both are."""
    lines = []
    for x, z in zip(shifted, others, strict=True):
        if are_equal:
            lines += [f"sub {x}, {z}, {x}" if signs[0] < 0 else f"{'add' if signs[1] > 0 else 'sub'} {x}, {x}, {z}"]
            lines.append(f"lsl {x}, {x}, #{places}")
        else:
            name = "rsb" if signs[1] < 0 else "sub" if signs[0] < 0 else "add"
            lines.append(f"{name} {x}, {z}, {x}, lsl #{places}")
    return lines


def wide_product_line(function: Product, is_swapped: bool, form: Form, content: Any = None) -> Line | None:
    """Return the line of a product; constants are not changed. Constants: multiplier, addend, numbers of the store."""
    given = function.numbers
    finish = Requantisation((given.multiplier,), Rounding.TWICE, given.zero, given.low, given.high)
    scaling = scaling_of(finish, [GREATEST * GREATEST], bits=31)
    ends = None if scaling is None else ends_of(scaling, False)
    if scaling is None or ends is None or given.zeros != (0, 0):
        return None
    end, store = End("r4", "r11", scaling.is_signed, False), Store(16, given.low, given.high, ends[2])
    is_single = form.is_single
    other, high = ("r12", "tb") if is_single else ("r7", "tt")
    pair = ["ldr r5, [r0], #4", *([] if is_single else ["ldr r7, [r1], #4"])]
    pair += [f"smul{high} r6, r5, {other}", f"smulbb r5, r5, {other}", *end.lines(("r5", "r6"), ("r7", "r8"))]
    pair += store.lines(("r5", "r6"), ("r7",), 8)
    one = ["ldrsh r5, [r0], #2", *([] if is_single else ["ldrsh r7, [r1], #2"]), f"smulbb r5, r5, {other}"]
    one += [*end.lines(("r5",), ("r7",)), *store.lines(("r5",), ("r7",), 8)]
    start = ["ldrd r4, r11, [r2]", *(["ldrsh r12, [r1]"] if is_single else [])]
    kind = "row" if is_single else "pair"
    name = f"wide_product_{kind}_{end.name}_{store.name}"
    return Line(
        name,
        function_of(name, "int16", start, [*pair, *pair], one),
        words_of([ends[0], ends[1], *store.numbers]),
    )
