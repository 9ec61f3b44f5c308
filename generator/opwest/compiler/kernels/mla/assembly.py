# SPDX-License-Identifier: Apache-2.0
"""Parts of the functions in assembly for Armv7-M: the end of a sum, copies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.kernels.assembly import limited, naked
from opwest.compiler.kernels.scaling import Epilogue as Form
from opwest.compiler.kernels.scaling import Scaling

REGISTERS = (*(f"r{number}" for number in range(13)), "lr")


@dataclass(frozen=True)
class Epilogue(Form):
    """What a function in assembly does with a sum."""

    is_sum: bool = False
    """Whether sums are stored; C computes the results."""

    @property
    def name(self) -> str:
        """A part of the names of functions."""
        return "sums" if self.is_sum else super().name

    @property
    def size(self) -> int:
        """The bytes of a result."""
        return 4 if self.is_sum else 1

    @property
    def store(self) -> str:
        """The instruction that stores a result."""
        return "str" if self.is_sum else super().store

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
        # Rounding.TWICE: `high` of twice the sum; the addition of bit 31 of the low word rounds it half up.
        lines = [f"add {value}, {bias}, {value}{', lsl #1' if self.is_doubled else ''}"]
        lines.append(f"smull {low}, {value}, {value}, {multiplier}")
        if self.is_doubled:
            lines.append(f"add {value}, {value}, {low}, lsr #31")
        if self.is_signed:
            lines.append(f"add {value}, {value}, {value}, asr #31")
        lines += [f"add {value}, {value}, {addend}", f"asr {value}, {value}, {shift}"]
        if self.is_full:
            return [*lines, f"ssat {value}, #8, {value}"]
        return [*lines, *limited(value, "lt", f"#{self.low}"), *limited(value, "gt", f"#{self.high}")]


def epilogue_of(scaling: Scaling | None) -> Epilogue:
    """Return the end with the numbers of a scaling; without them sums are stored."""
    if scaling is None:
        return Epilogue(False, False, 0, 0, is_sum=True)
    return Epilogue(scaling.is_doubled, scaling.is_signed, scaling.low, scaling.high)


def numbers_of(scaling: Scaling | None, bias: Any) -> Any:
    """Return the words of each channel for `Epilogue.lines`, int32 [channels, words]."""
    start = np.asarray(bias, np.int64).reshape(-1, 1)
    if scaling is None:
        return start.astype(np.int32)
    # The high multiplication of Rounding.TWICE takes twice the sum.
    return np.concatenate([start * (2 if scaling.is_doubled else 1), scaling.ends], axis=1).astype(np.int32)


def tile_function(name: str, kind: str, sums: Sequence[Sequence[str]], block: Sequence[str]) -> str:
    """Return the function that multiplies some rows by blocks of channels; `block`: from zero sums to stored results.

    Arguments: the first element of the rows (`kind`), the first weight, the first result, the end of the rows, the
    bytes between rows of results, the end of the weights. In a block, r0 is the first element and r1 the next weight;
    at sp: the first element, the next result, the end of the rows; at sp + 48: the bytes between rows of results.
    """
    parameters = (
        f"const {kind} *x",
        "const int32_t *w",
        "void *y",
        f"const {kind} *x_end",
        "uint32_t stride",
        "const int32_t *w_end",
    )
    lines = ["push {r4-r11, lr}", "push {r0, r2, r3}", "1:", "ldr r0, [sp]"]
    lines += [f"mov {value}, #0" for row in sums for value in row]
    lines += [*block, "ldr r2, [sp, #52]", "cmp r1, r2", "bne 1b", "add sp, sp, #12", "pop {r4-r11, pc}"]
    return naked(name, parameters, lines)


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
