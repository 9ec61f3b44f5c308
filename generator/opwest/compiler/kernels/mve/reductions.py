# SPDX-License-Identifier: Apache-2.0
"""Sums, means and extremes over dimensions: rows of elements, or several results at a time.

All shapes share functions: the counts and steps of the loops are in `numbers`.
"""

from __future__ import annotations

import contextlib
from math import prod

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.emission.expressions import times
from opwest.compiler.emission.function import Call, Lines, c_type, call_for, emits
from opwest.compiler.emission.rows import Loops, loops_of
from opwest.compiler.ir.operations import Reduce
from opwest.compiler.kernels.assembly import NAKED
from opwest.compiler.kernels.mve.epilogue import Assembly
from opwest.compiler.kernels.mve.pairs import ITEMS
from opwest.compiler.kernels.mve.twice import form_of, scaled
from opwest.compiler.semantics.fixed_point import RANGES, Multiplier

MAX_HALVES = 255
"""The int8 elements whose sum has 16 bits."""
EXTREMES = {"maximum": "vmax", "minimum": "vmin"}


@dataclass(frozen=True)
class _Sum:
    """A reduction without its outer loops."""

    dtype: str
    kind: str
    """sum, maximum, minimum."""
    kept: tuple[int, int]
    """Results, and the elements from one to the next."""
    joined: Loops
    """Two loops: counts and steps."""
    by: Multiplier
    bias: int
    zero: int

    @property
    def item(self) -> int:
        """The bytes of an element."""
        return ITEMS[self.dtype]

    @property
    def first(self) -> int:
        """What the elements are added to, or compared with."""
        return {"sum": self.bias, "maximum": RANGES[self.dtype][0], "minimum": RANGES[self.dtype][1]}[self.kind]

    @property
    def form(self) -> str:
        """The form of the multiplication."""
        return form_of(self.by)


@emits(Reduce, "mve-lanes")
def render(operation: Reduce) -> Call | None:
    """Return the call; None for other dtypes and kinds, and for elements in more than two loops."""
    data, [result], finish = operation.inputs[0], operation.results, operation.finish
    is_extreme = operation.kind in EXTREMES
    if data.dtype not in ITEMS or result.dtype != data.dtype or (finish is None) != is_extreme:
        return None
    if finish is not None and (operation.kind == "product" or (finish.low, finish.high) != RANGES[result.dtype]):
        return None
    kept, joined = loops_of(data.shape, operation.axes)
    if len(joined) > 2:
        return None
    inner, outer = kept[-1] if kept else (1, 0), kept[:-1]
    loops = [(1, 0)] * (2 - len(joined)) + joined
    by, zero, bias = Multiplier(0, 0), 0, 0
    if finish is not None:
        by, zero, bias = finish.multipliers[0], finish.zero, -operation.zero * prod(n for n, _ in joined)
    part = _Sum(data.dtype, operation.kind if is_extreme else "sum", inner, loops, by, bias, zero)
    is_row = inner[1] != 1 or inner[0] == 1
    name, text, numbers = (_rows if is_row else _columns)(part)
    lines = Lines()
    element = c_type(data.dtype)
    with contextlib.ExitStack() as stack:
        if outer:
            lines.add(f"{element} *y = result;", "")
        for level, (count, _) in enumerate(outer):
            stack.enter_context(lines.loop(f"i{level}", count))
        start = " + ".join(["data", *(times(f"i{level}", step) for level, (_, step) in enumerate(outer))])
        lines.add(f"{name}({start}, {'y' if outer else 'result'}, numbers);")
        if outer:
            lines.add(f"y += {inner[0]};")
    arguments = {"data": data, "numbers": np.asarray(numbers, np.int32)}
    return call_for(operation, f"reduce_{operation.kind}", lines, arguments, definitions=(NAKED, text))


def _parameters(dtype: str) -> list[str]:
    return [f"const {c_type(dtype)} *data", f"{c_type(dtype)} *result", "const int32_t *numbers"]


def _rows(part: _Sum) -> tuple[str, str, list[int]]:
    """Return the function for elements that follow each other: its name, definition and numbers."""
    (outer, step), (count, _) = part.joined
    item, bits, is_sum = part.item, 8 * part.item, part.kind == "sum"
    turns, letter = -(-count * item // 16), "b" if item == 1 else "h"
    code = Assembly()
    code.add("push {r4-r11, lr}", "ldm r2, {r3, r4, r5, r7, r8, r9, r10, r11, r12}", "vdup.32 q3, r9")
    code.add("1: mov r2, r0", "mov r6, r7", "mov r9, r5", "2:", f"dlstp.{bits} lr, r4")
    joins = "vaddva" if is_sum else f"{EXTREMES[part.kind]}v"
    code.add(f"3: vldr{letter}.u{bits} q0, [r2], #16", f"{joins}.s{bits} r6, q0", "letp lr, 3b")
    code.add("add r2, r3", "subs r9, #1", "bne 2b")
    if is_sum:
        lines, [q] = scaled([("q0", "q1")], part.form, "r8", "q3")
        code.add("vdup.32 q0, r6", *lines, f"vmov.32 r6, {q}[0]", "add r6, r10", f"ssat r6, #{bits}, r6")
    code.add(f"str{letter} r6, [r1], #{item}", "add r0, r12", "subs r11, #1", "bne 1b", "pop {r4-r11, pc}")
    name = "_".join([f"mve_{part.kind}_of_rows_{part.dtype}", *[part.form] * is_sum])
    numbers = [step * item - 16 * turns, count, outer, part.first, part.by.fixed, part.by.shift, part.zero]
    numbers += [part.kept[0], part.kept[1] * item]
    return name, code.function(name, _parameters(part.dtype), "Rows of elements."), numbers


def _columns(part: _Sum) -> tuple[str, str, list[int]]:
    """Return the function for results that follow each other: its name, definition and numbers."""
    (outer, step), (count, inner) = part.joined
    item, bits, is_sum, letter = part.item, 8 * part.item, part.kind == "sum", "b" if part.item == 1 else "h"
    lanes = 128 // bits
    if is_sum:
        lanes = 8 if item == 1 and outer * count <= MAX_HALVES else 4
    is_whole, width = part.kept[0] % lanes == 0, 128 // lanes
    then = "" if is_whole else "t"
    predicate = [] if is_whole else ["vpst"]
    code = Assembly()
    code.add("push {r4-r11, lr}", "ldr r12, [r2, #32]", "ldm r2, {r4-r11}")
    code.add("1:" if is_whole else f"1: vctp.{width} r4", "vmov.i32 q0, #0" if is_sum else f"vdup.{width} q0, r9")
    code.add("mov r3, r0", "mov r2, r7", "2: dls lr, r5", "3:", *predicate)
    code.add(f"vldr{letter}{then}.s{width} q1, [r3]", "add r3, r6")
    code.add(f"vadd.i{width} q0, q0, q1" if is_sum else f"{EXTREMES[part.kind]}.s{width} q0, q0, q1", "le lr, 3b")
    code.add("add r3, r8", "subs r2, #1", "bne 2b")
    if is_sum and lanes == 8:
        code.add("vmovlb.s16 q1, q0", "vmovlt.s16 q2, q0", "vadd.i32 q1, q1, r9", "vadd.i32 q2, q2, r9")
        lines, [even, odd] = scaled([("q1", "q0"), ("q2", "q3")], part.form, "r10", "r11")
        code.add(*lines, f"vqmovnb.s32 {even}, {even}", f"vqmovnt.s32 {even}, {odd}", f"vqadd.s16 q0, {even}, r12")
        code.add("vqmovnb.s16 q0, q0")
    elif is_sum:
        lines, [q] = scaled([("q0", "q1")], part.form, "r10", "r11")
        code.add("vadd.i32 q0, q0, r9", *lines, f"vadd.i32 q0, {q}, r12", "vqmovnb.s32 q0, q0")
        code.add(*(["vqmovnb.s16 q0, q0"] if item == 1 else []))
    moved = lanes * item
    code.add(*predicate, f"vstr{letter}{then}.{width} q0, [r1], #{moved}", f"add r0, #{moved}", f"subs r4, #{lanes}")
    code.add("bgt 1b", "pop {r4-r11, pc}")
    words = [part.dtype, str(lanes), *["part"] * (not is_whole), *[part.form] * is_sum]
    name = "_".join([f"mve_{part.kind}_of_columns", *words])
    numbers = [part.kept[0], count, inner * item, outer, (step - count * inner) * item, part.first]
    numbers += [part.by.fixed, part.by.shift, part.zero]
    return name, code.function(name, _parameters(part.dtype), f"Columns of elements, {lanes} at a time."), numbers
