# SPDX-License-Identifier: Apache-2.0
"""Functions in assembly with vector instructions, and the end of a layer in them.

They are equal with every calling convention that has the vector registers (-mfloat-abi=hard or softfp): they keep r4 to
r11 and, where they use them, q4 to q7.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.ir.operations import Finish
from opwest.compiler.kernels.assembly import added, constant, naked
from opwest.compiler.semantics.fixed_point import RANGES, Requantisation, Rounding, reduced

COPY = """\
/* Copies of a few bytes: calls of memcpy() cost more than they do. */
static inline void mve_copy(int8_t *to, const int8_t *from, int count)
{
	__asm__ volatile("wlstp.8 lr, %[n], 2f\\n"
			 "1: vldrb.8 q0, [%[from]], #16\\n\\t"
			 "vstrb.8 q0, [%[to]], #16\\n\\t"
			 "letp lr, 1b\\n"
			 "2:"
			 : [to] "+r"(to), [from] "+r"(from)
			 : [n] "r"(count)
			 : "q0", "lr", "memory");
}
"""
FILL = """\
static inline void mve_fill(int8_t *to, int value, int count)
{
	__asm__ volatile("vdup.8 q0, %[value]\\n\\t"
			 "wlstp.8 lr, %[n], 2f\\n"
			 "1: vstrb.8 q0, [%[to]], #16\\n\\t"
			 "letp lr, 1b\\n"
			 "2:"
			 : [to] "+r"(to)
			 : [value] "r"(value), [n] "r"(count)
			 : "q0", "lr", "memory");
}
"""


class Assembly:
    """The instructions of a function."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def add(self, *lines: str) -> None:
        """Append instructions, or a label with its colon."""
        self.lines.extend(lines)

    def plus(self, register: str, amount: int, scratch: str = "r0") -> None:
        """Append the addition of a constant; `scratch` is overwritten for large ones."""
        self.add(*added(register, amount, scratch))

    def constant(self, register: str, value: int) -> None:
        """Append the load of a constant."""
        self.add(*constant(register, value))

    def function(self, name: str, parameters: Sequence[str], comment: str) -> str:
        """Return the definition."""
        return f"/* {comment} */\n{naked(name, parameters, self.lines)}"


@dataclass(frozen=True, eq=False)
class Epilogue:
    """The numbers of each channel, int32 [channels], and what the instructions depend on."""

    multipliers: Any
    lefts: Any
    rights: Any
    """At most 0: the places of vrshl."""
    is_doubled: bool
    fix: str
    """How halves of negative values are moved: "" for not at all, sign, or masked where some shifts are 0."""
    has_left: bool
    has_clamp: bool
    zero: int
    low: int
    high: int
    is_sums: bool = False
    """Whether results are the int32 sums."""

    @property
    def group_bytes(self) -> int:
        """The bytes of the numbers of 4 channels."""
        return 16 if self.is_sums else 36 + 4 * self.has_left

    @property
    def name(self) -> str:
        """The part of a function's name that stands for the instructions."""
        if self.is_sums:
            return "sums"
        parts = ["twice" if self.is_doubled else "once", self.fix, "left" * self.has_left, "clamp" * self.has_clamp]
        return "_".join(part for part in parts if part)

    def of(self, channels: slice) -> Epilogue:
        """Return the end of some channels, with the same instructions."""
        parts = {name: getattr(self, name)[channels] for name in ("multipliers", "lefts", "rights")}
        return replace(self, **parts)

    def numbers(self, fill: int) -> Any:
        """Return the numbers of the layer that functions read: NUMBERS."""
        return np.asarray([self.zero, self.low, self.high, fill], np.int32)

    def group(self, bias: Any, places: list[int]) -> Any:
        """Return the bytes of some channels: biases, shifts to the left, multipliers, shifts; a place of -1 pads."""

        def chosen(values: Any, dtype: str) -> Any:
            return np.asarray([values[place] if place >= 0 else 0 for place in places], dtype).view(np.int8)

        parts = [chosen(bias, "int32")]
        if self.is_sums:
            return parts[0]
        if self.has_left:
            parts.append(chosen(self.lefts, "int8"))
        return np.concatenate([*parts, chosen(self.multipliers, "int32"), chosen(self.rights, "int8")])


NUMBERS = ("zero", "low", "high", "fill")
"""The int32 numbers before the packed weights."""


def sums_of(channels: int) -> Epilogue:
    """Return the end of a layer whose results are its sums."""
    none = np.zeros(channels, np.int64)
    return Epilogue(none, none, none, False, "", False, False, 0, 0, 0, is_sums=True)


def epilogue_of(finish: Finish, channels: int, bounds: Any, dtype: str = "int8") -> Epilogue | None:
    """Return the end of a layer whose sums have magnitudes up to `bounds` [channels]; None: another form of end."""
    if not isinstance(finish, Requantisation) or finish.rounding is Rounding.FLOAT:
        return None
    if (finish.rounding is Rounding.SIXTEEN) != (dtype == "int16"):
        return None
    given = finish.each(channels)
    fixed = np.asarray([multiplier.fixed for multiplier in given], np.int64)
    shifts = np.asarray([multiplier.shift for multiplier in given], np.int64)
    is_doubled = finish.rounding is Rounding.TWICE
    if finish.rounding is Rounding.SIXTEEN:
        fixed = reduced(fixed) << 16
    if is_doubled:
        shifts = np.where(fixed == 0, -1, shifts)
        lefts, rights = np.maximum(shifts, 0), np.minimum(shifts, 0)
    else:
        # VMULH gives sum * fixed >> 32, of which -(shift + 1) places to the right remain. VRSHL rounds only with at
        # least one place: where fewer remain, sums are shifted to the left before, and must not overflow.
        shifts = np.where(fixed == 0, -2, shifts)
        lefts = np.maximum(shifts + 2, 0)
        rights = shifts + 1 - lefts
        if np.any(np.asarray(bounds, np.float64) * 2.0**lefts >= 2**31):
            return None
    fix = ""
    if is_doubled and finish.low < finish.zero:
        fix = "masked" if rights.max() == 0 else "sign"
    clamp = (finish.low, finish.high) != RANGES[dtype]
    left = bool(lefts.max() > 0)
    return Epilogue(fixed, lefts, rights, is_doubled, fix, left, clamp, finish.zero, finish.low, finish.high)


def start(code: Assembly, ending: Epilogue, moves: Sequence[str], numbers: str, item: int) -> None:
    """Append the start of a function: saved registers, `moves`, and the limits of results in q4 and q5.

    `numbers` is the register that points to NUMBERS; r4 and r6 are changed.
    """
    code.add("push {r4-r11, lr}", *(["vpush {d8-d11}"] if ending.has_clamp else []), *filter(None, moves))
    if ending.has_clamp:
        code.add(f"ldr r4, [{numbers}, #4]", f"ldr r6, [{numbers}, #8]")
        code.add(f"vdup.{8 * item} q4, r4", f"vdup.{8 * item} q5, r6")


def finish(code: Assembly, ending: Epilogue, saved: int, restored: str = "") -> None:
    """Append the end of a function with `saved` bytes on the stack; `restored`: an instruction after their removal."""
    code.add(f"add sp, #{saved}", *([restored] if restored else []))
    code.add(*(["vpop {d8-d11}"] if ending.has_clamp else []), "pop {r4-r11, pc}")


def add_steps(code: Assembly, count: int, sizes: range, cost: int, step: Callable[[bool], None]) -> None:
    """Append `count` steps: the first ones that are no whole turn, then a loop with a number of steps of `sizes`.

    `step` appends a step, told whether it is the first one. `cost`: the instructions of a step; a branch costs 16.
    """
    rest = count - 1
    size = min(sizes, key=lambda some: 16 * (rest // some) + cost * (rest % some + some))
    turns, more = divmod(rest, size)
    step(True)
    for _ in range(more):
        step(False)
    code.constant("r11", turns)
    code.add("5:")
    for _ in range(size):
        step(False)
    code.add("subs r11, #1", "bne 5b")


def gather_sums(code: Assembly) -> None:
    """Append the moves of 8 sums to lanes: r0, r4, r8 and r12 are q0, the other ones q1."""
    code.add("vmov q0[2], q0[0], r0, r8", "vmov q1[2], q1[0], r2, r10")
    code.add("vmov q0[3], q0[1], r4, r12", "vmov q1[3], q1[1], r6, lr")


def scale(code: Assembly, ending: Epilogue, vectors: list[str], stream: str, free: tuple[str, str]) -> None:
    """Append instructions from sums to rounded int32 values: one group of numbers for all vectors; `free` is changed.

    `stream` is the register that points to the numbers and moves past them.
    """
    one, other = free
    code.add(f"vldrw.32 {one}, [{stream}], #16", *(f"vadd.i32 {q}, {q}, {one}" for q in vectors))
    if ending.is_sums:
        return
    if ending.has_left:
        code.add(f"vldrb.s32 {one}, [{stream}], #4", *(f"vshl.s32 {q}, {q}, {one}" for q in vectors))
    multiply = "vqrdmulh" if ending.is_doubled else "vmulh"
    code.add(f"vldrw.32 {one}, [{stream}], #16", f"vldrb.s32 {other}, [{stream}], #4")
    code.add(*(f"{multiply}.s32 {q}, {q}, {one}" for q in vectors))
    for q in vectors:
        if ending.fix == "masked":
            code.add(f"vand {one}, {q}, {other}", f"vshr.s32 {one}, {one}, #31", f"vadd.i32 {q}, {q}, {one}")
        elif ending.fix:
            code.add(f"vshr.s32 {one}, {q}, #31", f"vadd.i32 {q}, {q}, {one}")
    code.add(*(f"vrshl.s32 {q}, {q}, {other}" for q in vectors))


def narrow(code: Assembly, ending: Epilogue, vector: str, zero: str, item: int) -> None:
    """Append instructions from int16 values in all lanes to results: int8 ones in the even bytes. q4, q5: limits."""
    if item == 1:
        code.add(f"vqadd.s16 {vector}, {vector}, {zero}", f"vqmovnb.s16 {vector}, {vector}")
    if ending.has_clamp:
        kind = f"s{8 * item}"
        code.add(f"vmax.{kind} {vector}, {vector}, q4", f"vmin.{kind} {vector}, {vector}, q5")
