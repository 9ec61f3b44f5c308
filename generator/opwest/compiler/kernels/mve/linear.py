# SPDX-License-Identifier: Apache-2.0
"""Sums of int8 values as one linear function of both, 16 at a time.

    result = clamp((C + P[a] + Q[b]) >> S rounded, low, high), P[a] = the high half of 2 * a * 2**24 * M rounded

M and C are searched so that the result is that of the sum, which rounds six times, for all 65,536 pairs of values:
the values of the sum at the ends of each step limit C.
"""

from __future__ import annotations

import functools
import itertools

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.ir.elements import AddQuantised
from opwest.compiler.kernels.mve.rows import Rows, Turn
from opwest.compiler.semantics.fixed_point import Rounding, scaled

SHIFTS = (23, 22, 21, 20)
"""S: the more places, the more often there are numbers; sums saturate at 32 bits."""
CHANGES = (0.0, *(sign * 2.0**-power for power, sign in itertools.product((22, 20, 19, 18, 17, 16, 15), (1, -1))))
"""Relative changes of the multipliers: halves are rounded away from zero, so that a slightly greater one is exact."""
CODES = np.arange(-128, 128, dtype=np.int64)


@dataclass(frozen=True)
class Linear:
    """The numbers of a linear function."""

    shift: int
    multipliers: tuple[int, int]
    constant: int
    low: int
    high: int


@functools.lru_cache(maxsize=256)
def linear_of(function: AddQuantised, operands: tuple[int, ...], is_scalar: bool = False) -> Linear | None:
    """Return the numbers, the operands in a given order; None if none are exact.

    `is_scalar`: C is added to the second operand first.
    """
    given = function.numbers
    low, high = max(given.low, -128), min(given.high, 127)
    signs = (1, -1 if function.subtract else 1)
    terms = [
        sign * scaled((CODES - zero) << given.left_shift, by.fixed, by.shift, Rounding.TWICE)
        for sign, zero, by in zip(signs, given.zeros, given.multipliers, strict=True)
    ]
    first, second = (terms[place] for place in operands)
    sums = first[:, None] + second[None, :]
    if np.abs(sums).max() >= 1 << 31 or given.result.shift > 0 or low >= high:
        return None
    wanted = np.clip(scaled(sums, given.result.fixed, given.result.shift, Rounding.TWICE) + given.zero, low, high)
    real = _real(given.result.fixed, given.result.shift) * 2.0**given.left_shift
    slopes = [signs[place] * _real(by.fixed, by.shift) * real for place, by in enumerate(given.multipliers)]
    for shift in SHIFTS:
        for change in CHANGES:
            unit = 2.0 ** (shift - 24 + 31) * (1 + change)
            multipliers = [round(slopes[place] * unit) for place in operands]
            if max(map(abs, multipliers)) >= 1 << 31:
                break
            one, other = ((CODES * (1 << 24) * by + (1 << 30)) >> 31 for by in multipliers)
            rests = (wanted << shift) - one[:, None] - other[None, :]
            least = int(rests[wanted > low].max(initial=-(1 << 31)))
            most = int(rests[wanted < high].min(initial=(1 << 31) - (1 << shift))) + (1 << shift) - 1
            constant = (least + most) // 2 - (1 << (shift - 1))
            # A saturated sum of both operands is beyond the limits, one of a single operand is wrong.
            part = np.abs((other if is_scalar else one) + constant).max()
            if max(part, abs(constant)) >= 1 << 31:
                break
            if least <= most:
                return Linear(shift, (multipliers[0], multipliers[1]), constant, low, high)
        else:
            # With fewer places the multipliers are less exact.
            return None
    return None


def _real(fixed: int, shift: int) -> float:
    return float(fixed) * 2.0 ** (shift - 31)


def linear_turn(linear: Linear, rows: Rows) -> Turn:
    """Return the instructions for 16 elements."""
    turn = Turn(rows, "int8", "int8", 16, 4)
    factor = turn.vector(linear.multipliers[0], 32)
    constant, other = turn.number(linear.constant), turn.number(linear.multipliers[1])
    if rows.is_scalar:
        base, constant = constant, turn.number(0)
        turn.start.add("ldrsb lr, [r1]", "lsl lr, #24", "vdup.32 q0, lr", f"vqrdmulh.s32 q0, q0, {other}")
        turn.start.add(f"vmov.32 {constant}, q0[0]", f"add {constant}, {base}")
    turn.load(("q0", "a"), *([] if rows.is_scalar else [("q1", "b")]))
    for byte, sums in (("b", "q6"), ("t", "q1")):
        turn.add(f"vshll{byte}.s8 q2, q0, #8", *([] if rows.is_scalar else [f"vshll{byte}.s8 q3, q1, #8"]))
        for half in "bt":
            turn.add(f"vshll{half}.s16 q4, q2, #16", *([] if rows.is_scalar else [f"vshll{half}.s16 q5, q3, #16"]))
            turn.add(f"vqrdmlash.s32 q4, {factor}, {constant}")
            turn.add(*([] if rows.is_scalar else [f"vqrdmlah.s32 q4, q5, {other}"]))
            turn.add(f"vshrn{half}.i32 {sums}, q4, #16")
    # GNU as encodes VQSHRN as VQRSHRN.
    turn.add(*(f"vqrshrn{byte}.s16 q0, {sums}, #{linear.shift - 16}" for byte, sums in (("b", "q6"), ("t", "q1"))))
    for name, limit, end in (("vmax", linear.low, -128), ("vmin", linear.high, 127)):
        if limit != end:
            turn.words.append(name)
            turn.add(f"vdup.8 q1, {turn.number(limit)}", f"{name}.s8 q0, q0, q1")
    turn.store("q0")
    return turn.named("add", "linear", str(linear.shift), comment="Sums of two arrays, 16 at a time.")
