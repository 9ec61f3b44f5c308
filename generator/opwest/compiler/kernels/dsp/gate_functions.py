# SPDX-License-Identifier: Apache-2.0
"""The functions of the gates of integer LSTMs, in assembly: logistic and tanh of int16 values, bit for bit.

The values of the input, forget, cell and output gate are in r2 to r5, and their functions replace them. r0, r1, r6 to
r12 and lr are free. The functions of LiteRT keep the values in the first 16 bytes of the stack.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.kernels.assembly import constant
from opwest.compiler.kernels.gates import FACTORS, exponential_table, sample_pairs, stages_of
from opwest.compiler.semantics.recurrent import LstmNumbers
from opwest.compiler.semantics.tables import SigmoidNumbers

GATE_BITS = 3
"""The integer bits of gates."""
WORDS = 10
"""The int32 numbers of the functions."""
INVERSE = 24
"""The place in bytes of those of Newton's method."""


@dataclass(frozen=True, eq=False)
class Functions:
    """The functions of a layer."""

    numbers: LstmNumbers
    pointer: str
    """The place of a pointer to `words`."""
    inverse: str
    """The place of a pointer to those at INVERSE."""
    samples: str
    """The place of a pointer to `table`, behind its first element for LiteRT's functions."""

    @property
    def name(self) -> str:
        """What the instructions depend on, beside the places of the pointers."""
        return f"{'samples' if self.numbers.is_micro else 'powers'}_m{-self.numbers.power}"

    @property
    def table(self) -> Any:
        """The constants that `samples` points to."""
        return sample_pairs() if self.numbers.is_micro else exponential_table(self._table_bits)

    @property
    def first(self) -> str:
        """The C expression of the pointer to the table."""
        return "table" if self.numbers.is_micro else "table + 1"

    @property
    def words(self) -> list[int]:
        """WORDS int32 numbers."""
        if self.numbers.is_micro:
            return [128 - (1 << 23)] + [0] * (WORDS - 1)
        # A product with a factor of at least a half is the value plus its product with the factor less 1.
        factors = [(factor - (1 << 15 if factor >= 1 << 14 else 0)) << 17 for factor in FACTORS]
        return [*factors, 8192 << 16, 16384 << 16, 2 * 23130, 2 * -15420]

    def gates(self, is_coupled: bool) -> Iterator[str]:
        """Yield the functions of all gates; those of coupled gates have no input gate."""
        logistic = ["r3", "r5"] if is_coupled else ["r2", "r3", "r5"]
        if self.numbers.is_micro:
            yield from self._start_of_samples()
            for value in logistic:
                yield f"adds r0, {value}, {value}, lsl #1"
                yield from sampled(value, 9)
            yield "adds r0, r4, r4, lsl #1"
            yield from sampled("r4", 8)
            return
        yield "stm sp, {r2-r5}"
        yield from self._start_of_powers()
        for value in logistic:
            yield from self._power(value, value, GATE_BITS)
        yield from self._power("r4", "r4", GATE_BITS + 1)
        yield from self._start_of_inverses()
        for value in [*logistic, "r4"]:
            yield from _inverse(value)
        yield "ldm sp, {r10-r12, lr}"
        signs = {"r2": "r10", "r3": "r11", "r5": "lr"}
        for value in logistic:
            yield from (f"usat {value}, #15, {value}", f"eor {value}, {value}, {signs[value]}, asr #31")
            yield f"ubfx {value}, {value}, #0, #15"
        yield from _tanh("r4", "r12")

    def cell(self) -> Iterator[str]:
        """Yield tanh of the cell in r2 to r3; r5 is kept."""
        if self.numbers.is_micro:
            by: SigmoidNumbers = self.numbers.tanh
            yield from self._start_of_samples()
            yield "adds r0, r2, r2, lsl #1"
            if by.places:
                yield from (f"add r0, r0, #{1 << (by.places - 1)}", f"asrs r0, r0, #{by.places}")
            elif by.multiplier > 3:
                yield f"lsls r0, r0, #{(by.multiplier // 3).bit_length() - 1}"
            yield from sampled("r3", 8)
            return
        yield from self._start_of_powers()
        yield from self._power("r3", "r2", 16 + self.numbers.power)
        yield from self._start_of_inverses()
        yield from _inverse("r3")
        yield from _tanh("r3", "r2")

    @property
    def _table_bits(self) -> int:
        return min(GATE_BITS, 16 + self.numbers.power)

    def _start_of_powers(self) -> Iterator[str]:
        """Yield the loads of the table to r6, of the factors to r7 to r12."""
        yield from (f"ldr r0, {self.pointer}", f"ldr r6, {self.samples}", "ldm r0, {r7-r12}")

    def _power(self, to: str, value: str, bits: int) -> Iterator[str]:
        """Yield exp of the negated magnitude of a value with `bits` integer bits."""
        places, more = 13 - bits, bits - self._table_bits
        # The magnitude less 1; -1 for 0, which has the first entry of the table and no factors.
        yield from (f"subs r0, {value}, #1", "it mi", f"mvnmi r0, {value}")
        yield from (f"usat r1, #{bits + 2}, r0, asr #{places}", f"sub r0, r0, r1, lsl #{places}")
        if more:
            yield f"add r0, r6, r0, lsl #{more + 1}"
            yield f"ldrsh {to}, [r0, #{(2 << more) - 2}]"
        else:
            yield f"ldrsh {to}, [r6, r0, lsl #1]"
        stages = stages_of(bits)
        if bits + 2 > stages:
            yield from (f"cmp r1, #{1 << stages}", "it cs", f"movcs {to}, #0")
        yield "rbit r1, r1"
        for stage in range(stages):
            if stage % 2 == 0:
                yield f"lsls r1, r1, #{2 if stage else 1}"
            condition, factor = ("mi", "cs")[stage % 2 == 0], f"r{7 + stage}"
            yield f"it {condition}"
            if FACTORS[stage] >= 1 << 14:
                yield f"smmlar{condition} {to}, {to}, {factor}, {to}"
            else:
                yield f"smmulr{condition} {to}, {to}, {factor}"

    def _start_of_inverses(self) -> Iterator[str]:
        """Yield the loads of the numbers of Newton's method to r6 to r9."""
        yield from (f"ldr r6, {self.inverse}", "ldm r6, {r6-r9}")

    def _start_of_samples(self) -> Iterator[str]:
        """Yield the load of the samples to r6, and the numbers that are added to products to r8 and r9."""
        yield from (f"ldr r6, {self.samples}", f"ldr r9, {self.pointer}", "ldr r9, [r9]", *constant("r8", 512))


def _inverse(value: str) -> Iterator[str]:
    """Yield twice the number 1 / ((1 + value) / 2) with 2 integer bits, in place; r0 is its divisor."""
    yield from (f"asr r0, {value}, #1", "add r0, r7, r0, lsl #16")
    yield from (f"smmulr {value}, r0, r9", f"add {value}, r8, {value}, lsl #1")
    for _ in range(3):
        yield from (f"smmulr r1, r0, {value}", "sub r1, r6, r1, lsl #16", f"smmulr r1, {value}, r1")
        yield f"add {value}, {value}, r1, lsl #3"


def _tanh(value: str, sign: str) -> Iterator[str]:
    """Yield tanh, in place, from the inverse."""
    yield from (f"sub {value}, {value}, #16384", f"ssat {value}, #16, {value}, lsl #1")
    yield from (f"eor {value}, {value}, {sign}, asr #31", f"sub {value}, {value}, {sign}, asr #31")


def sampled(to: str, bits: int) -> Iterator[str]:
    """Yield the function of the input in r0 between samples: 9 bits between two of them for logistic, 8 for tanh.

    The flags are those of the input. r6 points to the samples, r8 is 512 for logistic, r9 128 - 2**23 for tanh.
    """
    yield from ("it mi", "rsbmi r0, r0, #0", f"usat r7, #8, r0, asr #{bits}", "ldr r7, [r6, r7, lsl #2]")
    yield from (f"ubfx r0, r0, #0, #{bits}", f"smlabb r0, r0, r7, {'r8' if bits == 9 else 'r9'}")
    yield from ("lsr r7, r7, #16", f"add r0, r0, r7, lsl #{bits}")
    if bits == 9:
        yield from (f"lsr {to}, r0, #10", "it mi", f"rsbmi {to}, {to}, #32768")
    else:
        yield from (f"asr {to}, r0, #8", "it mi", f"rsbmi {to}, {to}, #0")
