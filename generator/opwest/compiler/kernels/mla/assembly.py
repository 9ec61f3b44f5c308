# SPDX-License-Identifier: Apache-2.0
"""Functions in assembly that need all registers: naked functions, the end of a sum.

A naked function saves its registers itself, so that its loops are the same at any optimisation level. GCC must not
look into it: it would believe that registers of the caller survive (`noipa`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.kernels.scaling import Scaling

NAKED = """#if defined(__clang__)
#define MLA_NAKED __attribute__((naked, noinline, used, unused))
#else
#define MLA_NAKED __attribute__((naked, noipa, used, unused))
#endif
"""
"""The definition before the first function."""
UNUSED = "__attribute__((unused)) "
REGISTERS = (*(f"r{number}" for number in range(13)), "lr")


def naked(name: str, parameters: Sequence[str], lines: Sequence[str], result: str = "void") -> str:
    """Return the definition of a static function. `parameters` are declarations, `lines` are assembly."""
    listed = ",\n\t".join(UNUSED + parameter for parameter in parameters)
    text = "".join(f'\n\t\t"{line}\\n"' for line in lines)
    return f"static MLA_NAKED {result} {name}(\n\t{listed})\n{{\n\t__asm__ volatile({text});\n}}\n"


@dataclass(frozen=True)
class Epilogue:
    """What a function in assembly does with a sum. Equal ends are the same code."""

    is_sum: bool = False
    """Whether sums are stored; C computes the results."""
    is_doubled: bool = False
    is_signed: bool = False
    low: int = -128
    high: int = 127

    @property
    def name(self) -> str:
        """A part of the names of functions."""
        if self.is_sum:
            return "sums"
        kind = ("twice_signed" if self.is_signed else "twice") if self.is_doubled else "once"
        limits = "" if (self.low, self.high) == (-128, 127) else f"_{self.low}_{self.high}".replace("-", "m")
        return f"{kind}{limits}"

    @property
    def size(self) -> int:
        """The bytes of a result."""
        return 4 if self.is_sum else 1

    @property
    def store(self) -> str:
        """The instruction that stores a result."""
        return "str" if self.is_sum else "strb"

    @property
    def numbers(self) -> int:
        """The words of a channel: the bias, and those of the scaling."""
        return 1 if self.is_sum else 4

    def lines(self, value: str, numbers: Sequence[str], low: str) -> list[str]:
        """Return the code from a sum without bias to the result, in the same register.

        `numbers` are registers: bias, multiplier, addend, shift; `low` is a free register.
        """
        if self.is_sum:
            return [f"add {value}, {value}, {numbers[0]}"]
        bias, multiplier, addend, shift = numbers
        found = [f"add {value}, {bias}, {value}{', lsl #1' if self.is_doubled else ''}"]
        found.append(f"smull {low}, {value}, {value}, {multiplier}")
        if self.is_doubled:
            found.append(f"add {value}, {value}, {low}, lsr #31")
        if self.is_signed:
            found.append(f"add {value}, {value}, {value}, asr #31")
        found += [f"add {value}, {value}, {addend}", f"asr {value}, {value}, {shift}"]
        if (self.low, self.high) == (-128, 127):
            return [*found, f"ssat {value}, #8, {value}"]
        for limit, name in ((self.low, "lt"), (self.high, "gt")):
            found += [f"cmp {value}, #{limit}", f"it {name}", f"mov{name} {value}, #{limit}"]
        return found


def epilogue_of(scaling: Scaling | None) -> Epilogue:
    """Return the end with the numbers of a scaling; without them sums are stored."""
    if scaling is None:
        return Epilogue(True)
    return Epilogue(False, scaling.is_doubled, scaling.is_signed, scaling.low, scaling.high)


def numbers_of(scaling: Scaling | None, bias: Any, channels: int) -> Any:
    """Return the words of each channel for `End.lines`, int32 [channels, words]."""
    start = np.zeros(channels, np.int64) if bias is None else np.asarray(bias, np.int64)
    if scaling is None:
        return start.astype(np.int32).reshape(channels, 1)
    start = start * 2 if scaling.is_doubled else start
    columns = [start, scaling.multipliers, scaling.addends, scaling.shifts]
    return np.stack([np.asarray(column, np.int64) for column in columns], 1).astype(np.int32)


def load_words(registers: Sequence[str], pointer: str) -> str:
    """Return the load of words from a pointer that it increments. The registers are in ascending order."""
    if len(registers) == 1:
        return f"ldr {registers[0]}, [{pointer}], #4"
    return f"ldmia {pointer}!, {{{', '.join(registers)}}}"


def _copy() -> str:
    """Return the function that copies bytes: memory has any alignment."""
    lines = ["push {r4-r9}", "subs r2, r2, #32", "blo 2f", "1:"]
    registers = ("r3", "r4", "r5", "r6", "r7", "r8", "r9", "r12")
    lines += [f"ldr {register}, [r1, #{4 * place}]" for place, register in enumerate(registers) if place]
    lines.append("ldr r3, [r1], #32")
    lines += [f"str {register}, [r0, #{4 * place}]" for place, register in enumerate(registers) if place]
    lines += ["str r3, [r0], #32", "subs r2, r2, #32", "bhs 1b"]
    lines += ["2:", "adds r2, r2, #28", "bmi 4f", "3:", "ldr r3, [r1], #4", "str r3, [r0], #4"]
    lines += ["subs r2, r2, #4", "bpl 3b", "4:", "adds r2, r2, #4", "beq 6f"]
    lines += ["5:", "ldrb r3, [r1], #1", "strb r3, [r0], #1", "subs r2, r2, #1", "bne 5b", "6:", "pop {r4-r9}", "bx lr"]
    return naked("mla_copy", ("int8_t *to", "const int8_t *from", "uint32_t count"), lines)


COPY = _copy()
