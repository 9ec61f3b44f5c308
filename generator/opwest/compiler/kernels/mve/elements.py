# SPDX-License-Identifier: Apache-2.0
"""Sums and products of quantised values of equal shapes: 4 at a time, in a loop whose last turn is predicated.

Every number of the layer has a register, which no compiler would leave to it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.emission.function import Call, Lines, c_type, call_for, emits
from opwest.compiler.ir.elements import AddQuantised, Product
from opwest.compiler.ir.operations import Elementwise
from opwest.compiler.kernels.assembly import NAKED
from opwest.compiler.kernels.mve.epilogue import Assembly
from opwest.compiler.kernels.mve.pairs import ITEMS
from opwest.compiler.semantics.fixed_point import Multiplier

REGISTERS = ("r4", "r5", "r6", "r7", "r8", "r9", "r10", "r11", "r12", "r2")
"""For the numbers; r2 points to them until the last one is loaded."""


@emits(Elementwise, "mve-words")
def render_elements(operation: Elementwise) -> Call | None:
    """Return the call; None for other functions and dtypes, and for operands that are repeated."""
    function, [result] = operation.function, operation.results
    if not isinstance(function, AddQuantised | Product) or result.dtype not in ITEMS:
        return None
    if any(value.size != result.size or value.dtype != result.dtype for value in operation.inputs):
        return None
    loop = loop_of(function, result.dtype)
    lines = Lines()
    lines.add(f"{loop.name}(a, b, numbers, result, {result.size});")
    a, b = operation.inputs
    arguments = {"a": a, "b": b, "numbers": loop.numbers}
    return call_for(operation, loop.base, lines, arguments, ("a", "b"), definitions=(NAKED, loop.text))


@dataclass(frozen=True, eq=False)
class Loop:
    """The C function void f(a, b, numbers, result, count) and its numbers."""

    base: str
    name: str
    text: str
    numbers: Any


def loop_of(function: AddQuantised | Product, dtype: str) -> Loop:
    """Return the loop over the elements of two arrays."""
    given, turn = function.numbers, _Turn(dtype == "int8")
    if isinstance(function, AddQuantised):
        base = "subtract" if function.subtract else "add"
        scalings = [*function.numbers.multipliers, function.numbers.result]
        turn.sum(function)
    else:
        base = "multiply"
        scalings = [function.numbers.multiplier]
        turn.product(function)
    kinds = ("same", "left", "right")
    words = [kinds[(scaling.shift > 0) - (scaling.shift < 0)] for scaling in scalings]
    words += ["positive"] if given.low >= given.zero else []
    name = "_".join([f"mve_{base}{8 * ITEMS[dtype]}", *words])
    numbers = np.asarray([given.low, given.high, *turn.numbers], np.int32)
    return Loop(base, name, turn.function(name, c_type(dtype)), numbers)


class _Turn:
    """The instructions for 4 values in q0 and q1, and the numbers in their order."""

    def __init__(self, is_byte: bool) -> None:
        self.is_byte = is_byte
        self.numbers: list[int] = []
        self.code = Assembly()

    def number(self, value: int) -> str:
        """Return the register of a new number."""
        self.numbers.append(value)
        return REGISTERS[len(self.numbers) - 1]

    def scale(self, q: str, by: Multiplier, is_positive: bool = False) -> None:
        """Append a multiplication that rounds twice; `is_positive`: results of negative values are clamped later."""
        if by.shift > 0:
            self.code.add(f"vshl.s32 {q}, {self.number(by.shift)}")
        self.code.add(f"vqrdmulh.s32 {q}, {q}, {self.number(by.fixed)}")
        if by.shift < 0:
            if not is_positive:
                self.code.add(f"vshr.s32 q2, {q}, #31", f"vadd.i32 {q}, {q}, q2")
            self.code.add(f"vrshl.s32 {q}, {self.number(by.shift)}")

    def sum(self, function: AddQuantised) -> None:
        """Append a sum or a difference."""
        given = function.numbers
        for q, zero, by in zip(("q0", "q1"), given.zeros, given.multipliers, strict=True):
            self.code.add(f"vshl.i32 {q}, {q}, #{given.left_shift}")
            self.code.add(f"vadd.i32 {q}, {q}, {self.number(-zero * (1 << given.left_shift))}")
            self.scale(q, by)
        self.code.add(f"{'vsub' if function.subtract else 'vadd'}.i32 q0, q0, q1")
        self.scale("q0", given.result, given.low >= given.zero)
        self.code.add(f"vadd.i32 q0, q0, {self.number(given.zero)}")

    def product(self, function: Product) -> None:
        """Append a product."""
        given = function.numbers
        for q, zero in zip(("q0", "q1"), given.zeros, strict=True):
            self.code.add(f"vsub.i32 {q}, {q}, {self.number(zero)}")
        self.code.add("vmul.i32 q0, q0, q1")
        self.scale("q0", given.multiplier, given.low >= given.zero)
        self.code.add(f"vadd.i32 q0, q0, {self.number(given.zero)}")

    def function(self, name: str, kind: str) -> str:
        """Return the definition of void f(a, b, numbers, result, count)."""
        letter, moved = ("b", 4) if self.is_byte else ("h", 8)
        code = Assembly()
        code.add("push {r4-r11, lr}", "ldr lr, [sp, #36]", "ldrd r4, r5, [r2]", "vdup.32 q3, r5", "vpush {d8-d9}")
        code.add("vdup.32 q4, r4")
        used = REGISTERS[: len(self.numbers)]
        code.add(*(f"ldr {register}, [r2, #{8 + 4 * place}]" for place, register in enumerate(used)))
        code.add("dlstp.32 lr, lr", "2:")
        code.add(f"vldr{letter}.s32 q0, [r0], #{moved}", f"vldr{letter}.s32 q1, [r1], #{moved}", *self.code.lines)
        code.add("vmax.s32 q0, q0, q4", "vmin.s32 q0, q0, q3", f"vstr{letter}.32 q0, [r3], #{moved}", "letp lr, 2b")
        code.add("vpop {d8-d9}", "pop {r4-r11, pc}")
        parameters = [f"const {kind} *a", f"const {kind} *b", "const int32_t *numbers", f"{kind} *result", "int count"]
        return code.function(name, parameters, "Values of two arrays, 4 at a time.")
