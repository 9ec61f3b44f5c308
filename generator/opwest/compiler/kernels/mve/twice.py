# SPDX-License-Identifier: Apache-2.0
"""Sums and products of quantised values, 8 at a time: widened to 32 bits for multiplications that round twice.

Halves of negative values are moved by an accumulation: the high half of twice the product, plus -1 for a negative
value. A value whose product is 0 becomes -1 so, which the rounding shift makes 0 again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opwest.compiler.ir.elements import AddQuantised, SquaredDifference
from opwest.compiler.kernels.mve.rows import Rows, Turn
from opwest.compiler.semantics.arithmetic import PreluNumbers, ProductNumbers
from opwest.compiler.semantics.fixed_point import Multiplier

HALF = Multiplier(1 << 30, 0)


def form_of(by: Multiplier, is_positive: bool = False) -> str:
    """Return the form of a multiplication that rounds twice, on which its instructions depend.

    `is_positive`: values are not negative, or results of negative ones are clamped later.
    """
    return "left" if by.shift > 0 else "same" if by.shift == 0 else "positive" if is_positive else "right"


def scaled(pairs: Sequence[tuple[str, str]], form: str, fixed: str, shift: str) -> tuple[list[str], list[str]]:
    """Return a multiplication that rounds twice for (vector, free vector) pairs, and the registers of the results.

    `fixed`: a register, `shift`: a register or a vector.
    """
    lines = [_moved("vshl", q, shift) for q, _ in pairs] if form == "left" else []
    if form == "right":
        for q, free in pairs:
            lines += [f"vshr.s32 {free}, {q}, #31", f"vqrdmlah.s32 {free}, {q}, {fixed}"]
    else:
        lines += [f"vqrdmulh.s32 {q}, {q}, {fixed}" for q, _ in pairs]
    found = [free if form == "right" else q for q, free in pairs]
    return [*lines, *(_moved("vrshl", q, shift) for q in found if form in ("right", "positive"))], found


def _moved(name: str, q: str, by: str) -> str:
    """Return a shift by a register or a vector."""
    return f"{name}.s32 {q}, {by}" if by.startswith("r") else f"{name}.s32 {q}, {q}, {by}"


def scale(turn: Turn, pairs: Sequence[tuple[str, str]], by: Multiplier, is_positive: bool = False) -> list[str]:
    """Append the instructions of `scaled` with numbers of the turn; return the registers of the results."""
    fixed = turn.number(by.fixed)
    shift = turn.number(by.shift) if by.shift else ""
    lines, found = scaled(pairs, form_of(by, is_positive), fixed, shift)
    turn.add(*lines)
    return found


def scalar(dtype: str) -> str:
    """Return the load of the value of a row to lr."""
    return f"ldrs{'b' if dtype == 'int8' else 'h'} lr, [r1]"


def _narrow(turn: Turn, even: str, odd: str) -> str:
    """Append the saturation of words to halfwords; return their register."""
    turn.add(f"vqmovnb.s32 {even}, {even}", f"vqmovnt.s32 {even}, {odd}")
    return even


def _end(turn: Turn, q: str, numbers: Any) -> None:
    """Append the end of a turn: halfwords to results, with the zero point and the limits."""
    if turn.target == "int8":
        turn.add(f"vqadd.s16 {q}, {q}, {turn.number(numbers.zero)}", f"vqmovnb.s16 {q}, {q}")
        turn.clamp(q, numbers.low, numbers.high, bits=16)
    else:
        turn.clamp(q, numbers.low, numbers.high)
    turn.store(q)


def _factors(turn: Turn, zeros: list[int], free: str) -> str:
    """Append the loads of two operands to q0 and a returned register, without their zero points.

    An operand with one value for each row is in `free`.
    """
    turn.load(("q0", "a"), *([] if turn.rows.is_scalar else [("q1", "b")]))
    subtracted = [turn.number(zero) for zero in zeros] if turn.source == "int8" else []
    turn.add(*(f"vsub.i16 q0, q0, {zero}" for zero in subtracted[:1]))
    if not turn.rows.is_scalar:
        turn.add(*(f"vsub.i16 q1, q1, {zero}" for zero in subtracted[1:]))
        return "q1"
    turn.start.add(scalar(turn.source), *(f"sub lr, {zero}" for zero in subtracted[1:]), f"vdup.16 {free}, lr")
    return free


def product_turn(numbers: ProductNumbers, dtype: str, rows: Rows) -> Turn:
    """Return the instructions for products. int16: zero points are 0."""
    turn = Turn(rows, dtype, dtype, 8, 2)
    other = _factors(turn, [numbers.zeros[place] for place in rows.operands], "q4")
    turn.add(f"vmullb.s16 q2, q0, {other}", f"vmullt.s16 q3, q0, {other}")
    is_positive = numbers.low >= numbers.zero
    even, odd = scale(turn, [("q2", "q0"), ("q3", "q1")], numbers.multiplier, is_positive)
    _end(turn, _narrow(turn, even, odd), numbers)
    form = form_of(numbers.multiplier, is_positive)
    return turn.named("multiply", dtype, form, comment="Products of two arrays, 8 at a time.")


MAX_LEFT = (15, 8)
"""The most places to the left that leave values of 9 bits, and products of 17 bits, far from the limits of words."""


def prelu_turn(numbers: PreluNumbers, dtype: str, rows: Rows) -> Turn | None:
    """Return the instructions for slopes below zero; None for int16, for slopes with more dimensions than the data, and
    for large multipliers."""
    shifts = numbers.positive.shift, numbers.negative.shift
    if dtype != "int8" or rows.operands != (0, 1) or any(s > most for s, most in zip(shifts, MAX_LEFT, strict=True)):
        return None
    turn = Turn(rows, dtype, dtype, 8, 2)
    other = _factors(turn, list(numbers.zeros), "q6")
    turn.add(f"vmullb.s16 q2, q0, {other}", f"vmullt.s16 q3, q0, {other}")
    below = _narrow(turn, *scale(turn, [("q2", "q4"), ("q3", "q5")], numbers.negative))
    turn.add("vmovlb.s16 q1, q0", "vmovlt.s16 q3, q0")
    above = _narrow(turn, *scale(turn, [("q1", "q5"), ("q3", "q5")], numbers.positive, True))
    turn.add("vcmp.s16 lt, q0, zr", f"vpsel {above}, {below}, {above}")
    if not turn.is_whole:
        # The comparison has replaced the predicate of the loop.
        turn.add("vctp.16 lr")
    _end(turn, above, numbers)
    words = [form_of(numbers.positive, True), f"below_{form_of(numbers.negative)}"]
    return turn.named("prelu", *words, comment="Slopes below zero, 8 at a time.")


def sum_turn(function: AddQuantised | SquaredDifference, dtype: str, rows: Rows) -> Turn | None:
    """Return the instructions for sums or differences, or the squares of differences. int16: zero points are 0.

    None: both operands have multipliers other than one half, or squares are shifted to the left.
    """
    numbers, is_square = function.numbers, isinstance(function, SquaredDifference)
    multipliers = [numbers.multipliers[place] for place in rows.operands]
    if HALF not in multipliers or (is_square and numbers.result.shift > 0):
        return None
    turn = Turn(rows, dtype, dtype, 8, 2)
    terms = _Terms(turn, function, multipliers)
    turn.load(("q0", "a"), *([] if rows.is_scalar else [("q1", "b")]))
    if rows.is_scalar:
        turn.code, loop = turn.start, turn.code
        turn.add(scalar(dtype), "vdup.16 q1, lr")
        [value] = terms.add("q1", ["q2"], ["q4"], 1)
        constant = turn.number(0)
        turn.add(f"vmov.32 {constant}, {value}[0]")
        turn.code = loop
        first = terms.add("q0", ["q2", "q3"], ["q4", "q0"], 0)
        second = [constant, constant]
    else:
        first = terms.add("q0", ["q2", "q3"], ["q4", "q0"], 0)
        free = [q for q in ("q0", "q4", "q3", "q2") if q not in first]
        second = terms.add("q1", [free[0], "q1"], [free[1], free[0]], 1)
    is_difference = isinstance(function, SquaredDifference) or function.subtract
    is_reversed = is_difference and rows.operands[0] == 1 and not is_square
    for q, other in zip(first, second, strict=True):
        if is_reversed and rows.is_scalar:
            turn.add(f"vsub.i32 {q}, {q}, {other}", f"vneg.s32 {q}, {q}")
        elif is_reversed:
            turn.add(f"vsub.i32 {q}, {other}, {q}")
        else:
            turn.add(f"{'vsub' if is_difference else 'vadd'}.i32 {q}, {q}, {other}")
        if is_square:
            turn.add(f"vmul.i32 {q}, {q}, {q}")
    is_positive = is_square or numbers.low >= numbers.zero
    unused = [q for q in ("q0", "q1", "q2", "q3", "q4") if q not in first]
    even, odd = scale(turn, list(zip(first, unused, strict=False)), numbers.result, is_positive)
    _end(turn, _narrow(turn, even, odd), numbers)
    base = "square" if is_square else "subtract" if is_difference else "add"
    words = [dtype, *terms.words, *["reversed"] * is_reversed, form_of(numbers.result, is_positive)]
    return turn.named(base, *words, comment="Sums of two arrays, 8 at a time.")


class _Terms:
    """The operands of a sum: without their zero points, shifted to the left, multiplied."""

    def __init__(self, turn: Turn, function: AddQuantised | SquaredDifference, multipliers: list[Multiplier]) -> None:
        self.turn, self.halved = turn, multipliers.index(HALF)
        self.other, self.left = multipliers[1 - self.halved], function.numbers.left_shift
        self.words = [str(self.left), f"halved{self.halved}", f"other_{form_of(self.other)}"]
        zeros = [function.numbers.zeros[place] for place in turn.rows.operands]
        self.zeros = [turn.number(zero) for zero in zeros] if turn.source == "int8" else []

    def add(self, source: str, targets: list[str], free: list[str], place: int) -> list[str]:
        """Append the terms of an operand in even and odd words; return their registers."""
        turn = self.turn
        if self.zeros:
            turn.add(f"vsub.i16 {source}, {source}, {self.zeros[place]}")
        # An instruction shifts by at most 16 places while it widens.
        before = max(0, self.left - 16)
        if before:
            turn.add(f"vshl.i16 {source}, {source}, #{before}")
        left = self.left - before - (place == self.halved)
        turn.add(*(f"vshll{end}.s16 {target}, {source}, #{left}" for target, end in zip(targets, "bt", strict=False)))
        if place == self.halved:
            return targets
        return scale(turn, list(zip(targets, free, strict=True)), self.other)
