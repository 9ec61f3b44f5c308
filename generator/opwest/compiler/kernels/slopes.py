# SPDX-License-Identifier: Apache-2.0
"""Lines of int8 sums: linear in one operand, with a table for the other one. Thumb-2, perhaps with the DSP extension.

A result is (a * slope + values[b]) >> places. Each of the 256 values is any number for which all elements of the first
operand have the result of the portable code; without such numbers there is no line.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from opwest.compiler.ir.elements import AddQuantised
from opwest.compiler.kernels.lines import Form, Line, Store, function_of, words_of
from opwest.compiler.semantics.fixed_point import Rounding, scaled

CODES = np.arange(-128, 128, dtype=np.int64)
"""All int8 values."""
_X, _Z = ("r5", "r6", "r7", "r8"), ("r9", "r10", "r11", "r12")


def sum_line(
    function: AddQuantised, is_swapped: bool, form: Form, content: Any = None, *, has_dsp: bool = True
) -> Line | None:
    """Return the line of a sum or difference; None where no slope gives all results.

    `is_swapped`: the first operand of the line is the second one of the function. `content`: the constant operand.
    """
    found = _linear(function, is_swapped)
    if found is None:
        return None
    slope, places, values = found
    given = function.numbers
    store = Store(8, given.low, given.high, places, has_dsp)
    start = ["ldr r4, [r2], #4"]
    group = [f"ldrsb {x}, [r0], #1" for x in _X]
    one = ["ldrsb r5, [r0], #1"]
    addends: tuple[str, ...] = _Z
    if form.is_single:
        start += ["add r2, r2, #512", "ldrsb r5, [r1]", "ldr r9, [r2, r5, lsl #2]"]
        if form is Form.WORD:
            start = ["ldr r4, [r2]", "ldr r9, [r1]"]
        addends = ("r9",) * 4
    elif form is Form.WORDS:
        group.append("ldm r1!, {r9-r12}")
        one.append("ldr r9, [r1], #4")
    else:
        start.append("add r2, r2, #512")
        group += [f"ldrsb {z}, [r1], #1" for z in _Z] + [f"ldr {z}, [r2, {z}, lsl #2]" for z in _Z]
        one += ["ldrsb r9, [r1], #1", "ldr r9, [r2, r9, lsl #2]"]
    group += [f"mla {x}, {x}, r4, {z}" for x, z in zip(_X, addends, strict=True)]
    one += ["mla r5, r5, r4, r9"]
    # The clamp of four results requires a register, which the single value does not leave otherwise.
    group += store.lines(_X, ("r10",), 0)
    one += store.lines(("r5",), ("r10",), 0)
    name = f"sum_{form.value}_{store.name}"
    definition = function_of(name, "int8", start, group, one)
    if form.is_constant:
        return Line(name, definition, words_of([slope]), values[np.asarray(content, np.int64) + 128])
    return Line(name, definition, np.concatenate([words_of([slope]), values]))


@functools.lru_cache(maxsize=256)
def _linear(function: AddQuantised, is_swapped: bool) -> tuple[int, int, Any] | None:
    """Return the slope, the places and the 256 values of the other operand, int32."""
    given = function.numbers
    parts = [
        scaled((CODES - zero) << given.left_shift, by.fixed, by.shift, Rounding.TWICE)
        for zero, by in zip(given.zeros, given.multipliers, strict=True)
    ]
    if function.subtract:
        parts[1] = -parts[1]
    order = (1, 0) if is_swapped else (0, 1)
    part, other = (parts[place] for place in order)
    sums = scaled(part + other[:, None], given.result.fixed, given.result.shift, Rounding.TWICE)
    wanted = np.clip(sums + given.zero, given.low, given.high)
    # The real numbers: the results are sums times `unit`.
    unit = float(np.ldexp(float(given.result.fixed), given.result.shift - 31))
    by = given.multipliers[order[0]]
    real = unit * float(np.ldexp(float(by.fixed), by.shift - 31 + given.left_shift))
    real = -real if function.subtract and is_swapped else real
    reach = unit * float(np.abs(part).max() + np.abs(other).max()) + 2 * abs(given.zero) + 2
    for places in PLACES:
        if reach >= 1 << (31 - places):
            continue
        offset = (given.zero << places) + (1 << (places - 1)) - round(given.zeros[order[0]] * real * (1 << places))
        values = np.rint(other * (unit * (1 << places))).astype(np.int64) + offset
        nearest = round(real * (1 << places))
        for slope in (nearest, nearest + 1, nearest - 1):
            moved = CODES * slope
            least = np.where(wanted > given.low, (wanted << places) - moved, -(1 << 40)).max(axis=1)
            most = np.where(wanted < given.high, ((wanted + 1) << places) - 1 - moved, 1 << 40).min(axis=1)
            if np.all(least <= most):
                return slope, places, np.clip(values, least, most).astype(np.int32)
    return None


PLACES = (22, 19, 16)
"""The fraction bits of the sums, the most first: results before the clamp have the other bits of 32."""
