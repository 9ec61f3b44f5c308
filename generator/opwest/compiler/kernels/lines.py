# SPDX-License-Identifier: Apache-2.0
"""Lines: C functions over elements of two operands that follow each other, or of one operand and one other element.

    void line(a, b, constants, result, groups of four elements, other elements)

r0 a, r1 b, r2 constants, r3 result, lr the turns that are left; a line uses r2 and r4 to r12 as it requires.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.kernels.assembly import limited, naked
from opwest.compiler.kernels.scaling import Scaling

GROUP = 4
_SAVED = 36
"""The bytes of the saved registers: the distance from sp to the counts."""


class Form(enum.Enum):
    """What the second operand of a line is."""

    PAIR = "pair"
    """An element for each of the first operand."""
    ROW = "row"
    """One element for all."""
    WORDS = "words"
    """Constants: the scaled value of an element for each of the first operand."""
    WORD = "word"
    """A constant: the scaled value of one element for all."""

    @property
    def is_single(self) -> bool:
        """Whether there is one element for all."""
        return self in (Form.ROW, Form.WORD)

    @property
    def is_constant(self) -> bool:
        """Whether the elements are constants."""
        return self in (Form.WORDS, Form.WORD)


@dataclass(frozen=True, eq=False)
class Line:
    """A function, its constants, and what replaces a constant second operand."""

    name: str
    definition: str
    constants: Any
    other: Any = None
    """In the shape of the constant; None: the operand itself."""
    is_exchanged: bool = False
    """Whether the operands of a pair are exchanged."""


@dataclass(frozen=True)
class Store:
    """The shift, the clamp and the store of results."""

    bits: int
    low: int
    high: int
    shift: int
    has_dsp: bool = True
    """Whether the processor clamps four bytes in one instruction."""

    @property
    def name(self) -> str:
        """A part of the names of functions."""
        limits = "" if self.is_full else f"_{self.low}_{self.high}".replace("-", "m")
        return f"{self.bits}_{self.shift}{limits}{'' if self.has_dsp or self.is_saturated else '_each'}"

    @property
    def is_full(self) -> bool:
        """Whether the limits are those of the type."""
        return (self.low, self.high) == (-(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1)

    @property
    def is_saturated(self) -> bool:
        """Whether one instruction clamps: the limits are those of an integer of some bits."""
        return self.is_full or (self.low == 0 and self.high > 0 and self.high & (self.high + 1) == 0)

    @property
    def numbers(self) -> list[int]:
        """The constants: those of the clamp of two int16 results."""
        if self.is_saturated or self.bits == 8:
            return []
        # Results plus 2**15: less the low limit, saturated; plus the distances to the limits, saturated; moved back.
        low, above = self.low + 32768, 32767 - self.high
        halves = (low, low + above, (above + 32768) & 0xFFFF)
        return [half | half << 16 for half in halves]

    def lines(self, registers: Sequence[str], free: Sequence[str], place: int) -> Iterator[str]:
        """Yield the code for one, two or four results; two are int16. `place`: the offset of `numbers` at r2."""
        for register in registers:
            yield from self._saturated(register)
        store = f"str{'b' if self.bits == 8 else 'h'}"
        if self.is_saturated:
            yield from (f"{store} {register}, [r3], #{self.bits // 8}" for register in registers)
        elif len(registers) == 1 or not self.has_dsp:
            for register in registers:
                yield from self._limited(register, free, place)
                yield f"{store} {register}, [r3], #{self.bits // 8}"
        else:
            yield from self._packed(registers, free, place)
            yield f"str {registers[0]}, [r3], #4"

    def _saturated(self, register: str) -> Iterator[str]:
        shift = f", asr #{self.shift}" if self.shift else ""
        if self.is_saturated and self.low == 0:
            yield f"usat {register}, #{self.high.bit_length()}, {register}{shift}"
        else:
            yield f"ssat {register}, #{self.bits}, {register}{shift}"

    def _limited(self, register: str, free: Sequence[str], place: int) -> Iterator[str]:
        """Yield the clamp of one result."""
        if self.bits == 8:
            yield from limited(register, "lt", f"#{self.low}")
            yield from limited(register, "gt", f"#{self.high}")
        else:
            yield from self._halves(register, free, place)

    def _packed(self, registers: Sequence[str], free: Sequence[str], place: int) -> Iterator[str]:
        """Yield the clamp of all results in the first register."""
        word, limit = registers[0], free[0]
        if self.bits == 16:
            yield f"pkhbt {word}, {word}, {registers[1]}, lsl #16"
            yield from self._halves(word, free, place)
            return
        yield from (f"bfi {word}, {other}, #{8 * number}, #8" for number, other in enumerate(registers) if number)
        low, above = self.low + 128, 127 - self.high
        yield f"eor {word}, {word}, #{0x80808080:#x}"
        steps = [("uqsub8", low)] if low else []
        steps += [("uqadd8", low + above), ("usub8", above + 128 & 0xFF)] if above else [("uadd8", low - 128 & 0xFF)]
        for name, byte in steps:
            yield f"mov {limit}, #{byte * 0x01010101:#x}"
            yield f"{name} {word}, {word}, {limit}"

    def _halves(self, word: str, free: Sequence[str], place: int) -> Iterator[str]:
        yield f"eor {word}, {word}, #{0x80008000:#x}"
        for number, name in enumerate(("uqsub16", "uqadd16", "usub16")):
            yield f"ldr {free[0]}, [r2, #{place + 4 * number}]"
            yield f"{name} {word}, {word}, {free[0]}"


@dataclass(frozen=True)
class End:
    """From sums in registers to their scaled values before the shift of a `Store`."""

    multiplier: str
    """The register."""
    addend: str
    is_signed: bool
    is_doubled: bool
    """Whether registers have twice the sums; otherwise the multiplier is that of `whole`."""

    @property
    def name(self) -> str:
        """A part of the names of functions."""
        return ("twice" if self.is_doubled else "whole") + ("_signed" if self.is_signed else "")

    def lines(self, registers: Sequence[str], free: Sequence[str]) -> Iterator[str]:
        """Yield the code; as many free registers as sums.

        Halves are rounded away from zero: 1 is subtracted where the sum is below 0. Where only `high` is 0, the
        addend contains at least 1 below the step of the shift, so that the result is the same.
        """
        addends = [self.addend] * len(registers)
        if not self.is_doubled:
            addends = list(free[: len(registers)])
            yield from (f"add {to}, {register}, {self.addend}" for to, register in zip(addends, registers, strict=True))
        if self.is_signed:
            to = list(free[: len(registers)])
            for one, register, addend in zip(to, registers, addends, strict=True):
                yield f"add {one}, {addend}, {register}, asr #31"
            addends = to
        for register, addend in zip(registers, addends, strict=True):
            yield f"smmlar {register}, {register}, {self.multiplier}, {addend}"


def exchanged(line: Line | None) -> Line | None:
    """Return the line of a pair whose operands are exchanged."""
    return None if line is None else dataclasses.replace(line, is_exchanged=True)


def ends_of(scaling: Scaling, is_doubled: bool) -> tuple[int, int, int] | None:
    """Return multiplier, addend and shift of the only channel; None where the form does not fit.

    Not doubled: SMMLAR of the sum, 2 * multiplier - 2**32 and the sum is the high part of the doubled product.
    """
    multiplier, addend, shift = (int(number) for number in scaling.ends[0])
    # Without a multiplier the addend contains no half, from which 1 could be subtracted.
    addend += 1 if multiplier == 0 else 0
    if is_doubled:
        return multiplier, addend, shift
    return None if multiplier < 1 << 30 else (2 * multiplier - (1 << 32), addend, shift)


def words_of(numbers: Sequence[int]) -> Any:
    """Return integers of 32 bits, signed or not, as int32."""
    return (np.asarray(numbers, np.int64) & 0xFFFFFFFF).astype(np.uint32).view(np.int32)


def function_of(
    name: str, dtype: str, start: Sequence[str], group: Sequence[str], one: Sequence[str], result: str = ""
) -> str:
    """Return the definition of a line: the code before the loops, of four elements, of one element.

    `result`: the dtype of results, if it is another one.
    """
    parameters = (f"const {dtype}_t *a", "const void *b", "const int32_t *constants", f"{result or dtype}_t *result")
    lines = ["push {r4-r11, lr}", f"ldr lr, [sp, #{_SAVED}]", *start, "cmp lr, #0", "beq 2f", "1:", *group]
    lines += ["subs lr, lr, #1", "bne 1b", f"2: ldr lr, [sp, #{_SAVED + 4}]", "cmp lr, #0", "beq 4f", "3:", *one]
    lines += ["subs lr, lr, #1", "bne 3b", "4: pop {r4-r11, pc}"]
    return naked(name, (*parameters, "int32_t groups", "int32_t rest"), lines)
