# SPDX-License-Identifier: Apache-2.0
"""Changes of scale of int16 and int32 values, with another one below zero: 4 at a time."""

from __future__ import annotations

from opwest.compiler.kernels.mve.rows import Rows, Turn
from opwest.compiler.kernels.mve.twice import form_of, scale
from opwest.compiler.semantics.fixed_point import RANGES, Multiplier
from opwest.compiler.semantics.tables import Rescale


def rescaled_turn(numbers: Rescale, source: str, target: str, rows: Rows) -> Turn | None:
    """Return the instructions; None for other dtypes, and for a negative slope below zero."""
    if source not in ("int16", "int32") or target not in ("int8", "int16", "int32") or numbers.sign < 0:
        return None
    turn = Turn(rows, source, target, 4)
    turn.load(("q0", "a"))
    words = [source, target]
    if numbers.source:
        words.append("source")
        turn.add(f"vsub.i32 q0, q0, {turn.number(numbers.source)}")
    if numbers.magnitude:
        words.append("magnitude")
        turn.add("vabs.s32 q0, q0")
    if numbers.positive == numbers.negative:
        words.append(form_of(numbers.positive))
        [q] = scale(turn, [("q0", "q1")], numbers.positive)
    else:
        turn.add("vmov q1, q0")
        q = _sloped(turn, words, numbers.positive, numbers.negative)
    if numbers.zero:
        words.append("zero")
        turn.add(f"vadd.i32 {q}, {q}, {turn.number(numbers.zero)}")
    if target == "int16" and (numbers.low, numbers.high) == RANGES[target]:
        words.append("full")
        turn.add(f"vqmovnb.s32 {q}, {q}")
    elif (numbers.low, numbers.high) != RANGES["int32"]:
        words.append("limits")
        _limit(turn, q, numbers.low, numbers.high)
    turn.store(q)
    return turn.named("rescale", *words, comment="Another scale, 4 at a time.")


def _limit(turn: Turn, q: str, low: int, high: int) -> None:
    turn.add(f"vmax.s32 {q}, {q}, {turn.vector(low, 32)}", f"vmin.s32 {q}, {q}, {turn.vector(high, 32)}")


def _sloped(turn: Turn, words: list[str], positive: Multiplier, negative: Multiplier) -> str:
    """Append the scaled values of q0 where they are not negative, else those of q1; return their register."""
    words += [form_of(positive, True), f"below_{form_of(negative)}"]
    turn.add("vcmp.s32 lt, q0, zr")
    [above] = scale(turn, [("q0", "q2")], positive, True)
    [below] = scale(turn, [("q1", "q2")], negative)
    turn.add(f"vpsel {above}, {below}, {above}")
    return above
