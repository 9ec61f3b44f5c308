# SPDX-License-Identifier: Apache-2.0
"""Sums, differences and products of quantised int8 values, as vectors of 32-bit values."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.emission.elementwise import joined
from opwest.compiler.emission.expressions import times
from opwest.compiler.emission.function import Call, Lines, call_for, emits
from opwest.compiler.ir.elements import AddQuantised, Product
from opwest.compiler.ir.operations import Elementwise
from opwest.compiler.kernels.rvv.assembly import BASE, function
from opwest.compiler.semantics.fixed_point import Multiplier

REGISTERS = ("a5", "a6", "a7", "t1", "t2", "t3", "t4", "t5", "t6")
"""For the numbers after zero point, least and greatest result."""


@emits(Elementwise, "rvv-elements")
def render(operation: Elementwise) -> Call | None:
    """Return the call; None for other functions and dtypes."""
    function, [result] = operation.function, operation.results
    if not isinstance(function, AddQuantised | Product):
        return None
    if any(value.dtype != "int8" for value in (*operation.inputs, result)):
        return None
    dimensions, strides = joined([value.shape for value in operation.inputs], result.shape)
    loop = loop_of(function, (strides[0][-1] == 0, strides[1][-1] == 0))
    lines = Lines()
    with ExitStack() as stack:
        if len(dimensions) > 1:
            lines.add("int8_t *y = result;", "")
        for level, count in enumerate(dimensions[:-1]):
            stack.enter_context(lines.loop(f"i{level}", count))
        operands = []
        for name, steps in zip("ab", strides, strict=True):
            offsets = [times(f"i{level}", step) for level, step in enumerate(steps[:-1]) if step]
            operands.append(" + ".join([name, *offsets]))
        target = "y" if len(dimensions) > 1 else "result"
        lines.add(f"{loop.name}({', '.join(operands)}, numbers, {target}, {dimensions[-1]});")
        if len(dimensions) > 1:
            lines.add(f"y += {dimensions[-1]};")
    a, b = operation.inputs
    arguments = {"a": a, "b": b, "numbers": loop.numbers}
    in_place = tuple(name for name, value in (("a", a), ("b", b)) if value.size == result.size)
    return call_for(operation, loop.base, lines, arguments, in_place, definitions=(*BASE, loop.text))


@dataclass(frozen=True, eq=False)
class Loop:
    """The C function void f(a, b, numbers, y, count) and its numbers."""

    base: str
    name: str
    text: str
    numbers: Any


def loop_of(function: AddQuantised | Product, are_single: tuple[bool, bool] = (False, False)) -> Loop:
    """Return the loop over the elements of two arrays; `are_single`: whether an operand is one element for all."""
    given, turn = function.numbers, _Turn(are_single)
    if isinstance(function, AddQuantised):
        base = "subtract" if function.subtract else "add"
        turn.sum(function)
        last = function.numbers.result
    else:
        base = "multiply"
        turn.product(function)
        last = function.numbers.multiplier
    if given.low < given.zero:
        turn.words.append("signed")
    turn.end("v8", last, given.low < given.zero)
    turn.words += [f"single_{letter}" for letter, is_single in zip("ab", are_single, strict=True) if is_single]
    name = "_".join([f"rvv_{base}", *turn.words])
    if (given.low, given.high) != (-128, 127):
        name += "_clamp"
        turn.lines += ["vmax.vx v8, v8, t0", "vmin.vx v8, v8, a4"]
    numbers = np.asarray([given.zero, given.low, given.high, *turn.numbers], np.int32)
    return Loop(base, name, turn.function(name), numbers)


class _Turn:
    """The instructions for a vector of values, 32 bits wide in v8 and v16, and the numbers in their order."""

    def __init__(self, are_single: tuple[bool, bool]) -> None:
        self.are_single = are_single
        self.numbers: list[int] = []
        self.lines: list[str] = []
        self.words: list[str] = []
        """Parts of the name: what differs in the instructions."""

    def number(self, value: int) -> str:
        """Return the register of a new number."""
        self.numbers.append(value)
        return REGISTERS[len(self.numbers) - 1]

    def high(self, group: str, by: Multiplier, is_signed: bool) -> None:
        """Append a doubling high multiplication; `is_signed`: 1 is subtracted from negative values."""
        if by.shift > 0:
            self.lines.append(f"vsll.vx {group}, {group}, {self.number(by.shift)}")
        self.lines.append(f"vsmul.vx {group}, {group}, {self.number(by.fixed)}")
        if by.shift < 0 and is_signed:
            self.lines += [f"vmslt.vx v0, {group}, zero", f"vadd.vi {group}, {group}, -1, v0.t"]

    def operand(self, group: str, zero: int, by: Multiplier, left: int) -> None:
        """Append the scaled value of an operand without its zero point."""
        # A half of a number with zeros on its right is exact.
        is_half = (by.fixed, by.shift) == (1 << 30, 0) and left > 0
        self.lines += [f"vadd.vx {group}, {group}, {self.number(-zero)}"]
        self.lines += [f"vsll.vi {group}, {group}, {left - is_half}"]
        self.words.append("half" if is_half else _kind(by))
        if is_half:
            return
        self.high(group, by, True)
        if by.shift < 0:
            self.lines.append(f"vssra.vx {group}, {group}, {self.number(-by.shift)}")

    def sum(self, function: AddQuantised) -> None:
        """Append a sum or a difference."""
        given = function.numbers
        self.words.append(str(given.left_shift))
        for group, zero, by in zip(("v8", "v16"), given.zeros, given.multipliers, strict=True):
            self.operand(group, zero, by, given.left_shift)
        self.lines.append(f"{'vsub' if function.subtract else 'vadd'}.vv v8, v8, v16")

    def product(self, function: Product) -> None:
        """Append a product."""
        for group, zero in zip(("v8", "v16"), function.numbers.zeros, strict=True):
            self.lines.append(f"vadd.vx {group}, {group}, {self.number(-zero)}")
        self.lines.append("vmul.vv v8, v8, v16")

    def end(self, group: str, by: Multiplier, is_signed: bool) -> None:
        """Append the scaling of the result, the zero point and the limits of int8."""
        self.words.append(_kind(by))
        self.high(group, by, is_signed)
        shift = self.number(-by.shift) if by.shift < 0 else "zero"
        self.lines += ["vsetvli zero, zero, e16, m4, ta, ma", f"vnclip.wx {group}, {group}, {shift}"]
        self.lines += [f"vsadd.vx {group}, {group}, s0", "vsetvli zero, zero, e8, m2, ta, ma"]
        self.lines.append(f"vnclip.wi {group}, {group}, 0")

    def function(self, name: str) -> str:
        """Return the definition of void f(a, b, numbers, y, count)."""
        used = REGISTERS[: len(self.numbers)]
        lines = ["addi sp, sp, -16", "sw s0, 0(sp)", "sw s1, 4(sp)", "csrwi vxrm, 0", "mv s1, a4"]
        lines += ["lw s0, 0(a2)", "lw t0, 4(a2)", "lw a4, 8(a2)"]
        lines += [f"lw {register}, {12 + 4 * place}(a2)" for place, register in enumerate(used)]
        lines += ["1:", "vsetvli a2, s1, e32, m8, ta, mu"]
        for place, (loaded, group) in enumerate((("v24", "v8"), ("v26", "v16"))):
            if self.are_single[place]:
                lines.append(f"vlse8.v {loaded}, (a{place}), zero")
            else:
                lines += [f"vle8.v {loaded}, (a{place})", f"add a{place}, a{place}, a2"]
            lines.append(f"vsext.vf4 {group}, {loaded}")
        lines += self.lines
        lines += ["sub s1, s1, a2", "vse8.v v8, (a3)", "add a3, a3, a2", "bnez s1, 1b"]
        lines += ["lw s0, 0(sp)", "lw s1, 4(sp)", "addi sp, sp, 16"]
        parameters = ["const int8_t *a", "const int8_t *b", "const int32_t *numbers", "int8_t *y", "int32_t count"]
        return function(name, parameters, lines, "Values of two arrays.")


def _kind(by: Multiplier) -> str:
    return "left" if by.shift > 0 else "right" if by.shift < 0 else "same"
