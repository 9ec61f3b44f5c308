# SPDX-License-Identifier: Apache-2.0
"""Functions of elements without multiplications: maxima, minima, limits, sums of shifted int16 values."""

from __future__ import annotations

from opwest.compiler.ir.elements import AddShifted, Clamped, Plain
from opwest.compiler.kernels.mve.rows import Rows, Turn
from opwest.compiler.kernels.mve.twice import scalar
from opwest.compiler.semantics.fixed_point import RANGES

_KINDS = {"MAXIMUM": "vmax", "MINIMUM": "vmin"}


def extreme_turn(function: Plain | Clamped, dtype: str, rows: Rows) -> Turn | None:
    """Return the instructions for maxima, minima or limits; None for other functions and dtypes."""
    if dtype not in RANGES:
        return None
    sign, bits = dtype[0].replace("i", "s"), int(dtype.strip("uint"))
    turn = Turn(rows, dtype, dtype, 128 // bits)
    if isinstance(function, Clamped):
        turn.load(("q0", "a"))
        turn.clamp("q0", function.low, function.high)
        base = "limit"
    elif function.kind in _KINDS:
        base = function.kind.lower()
        turn.load(("q0", "a"), *([] if rows.is_scalar else [("q1", "b")]))
        if rows.is_scalar:
            turn.start.add(f"ldr{ {8: 'b', 16: 'h', 32: ''}[bits] } lr, [r1]", f"vdup.{bits} q1, lr")
        turn.add(f"{_KINDS[function.kind]}.{sign}{bits} q0, q0, q1")
    else:
        return None
    turn.store("q0")
    return turn.named(base, dtype, comment=f"Limits, {turn.lanes} at a time.")


def shifted_turn(function: AddShifted, rows: Rows) -> Turn:
    """Return the instructions for sums of int16 values that are shifted to the right."""
    numbers = function.numbers
    turn = Turn(rows, "int16", "int16", 8)
    turn.load(("q0", "a"), *([] if rows.is_scalar else [("q1", "b")]))
    if rows.is_scalar:
        turn.start.add(scalar("int16"), "vdup.16 q3, lr")
    operands = ["q0", "q3" if rows.is_scalar else "q1"]
    words = []
    for number, place in enumerate(rows.operands):
        if numbers.places[place]:
            # Halves are moved away from zero. -32768 - 1 saturates, with the same shifted result.
            q, right = operands[number], turn.number(-numbers.places[place])
            code = turn.start if rows.is_scalar and number else turn.code
            code.add(f"vshr.s16 q2, {q}, #15", f"vqadd.s16 {q}, {q}, q2", f"vrshl.s16 {q}, {right}")
            words.append(f"right{number}")
    is_reversed = function.subtract and rows.operands[0] == 1
    if is_reversed:
        operands = operands[::-1]
    turn.add(f"{'vqsub' if function.subtract else 'vqadd'}.s16 q0, {', '.join(operands)}")
    turn.clamp("q0", numbers.low, numbers.high)
    turn.store("q0")
    base, words = "subtract" if function.subtract else "add", [*words, *["reversed"] * is_reversed]
    return turn.named(base, "shifted", *words, comment="Sums of two arrays, 8 at a time.")
