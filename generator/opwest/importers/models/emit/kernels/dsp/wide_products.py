# SPDX-License-Identifier: Apache-2.0
"""Sums of one row of int16 data, which is read where it is: four channels of int16 weights at a time."""

from __future__ import annotations

from collections.abc import Iterator

from opwest.importers.models.emit.kernels.assembly import naked, repeated
from opwest.importers.models.emit.kernels.dsp.tile import Ending, results
from opwest.importers.models.emit.kernels.dsp.wide_tile import constant
from opwest.records import dataclass

CHANNELS = 4
WORDS = 4
"""The words of two taps of a step."""
UNROLLED = 4
"""The most steps without a branch."""
_SUMS = ("r2", "r3", "r4", "r5")
_DATA = ("r6", "r7", "r8", "r9")
_WEIGHTS = ("r10", "r11", "r12", "lr")
_PAIRS = tuple((f"r{low}", f"r{low + 1}") for low in range(2, 10, 2))
_FRAME = 48
"""The saved registers: the data, the result and the numbers of the ending at its start."""


@dataclass(frozen=True)
class WideProducts:
    """A function for all groups of four channels."""

    stored: int
    """The channels of a group that are results; the others pad the stream."""
    length: int
    """The taps."""
    has_each: bool
    """Whether the stream has multiplier, addend and shift of each channel; otherwise `numbers` has those of all."""
    ending: Ending
    """In the long form sums of 64 bits are stored instead of results."""

    @property
    def name(self) -> str:
        """The name of the C function."""
        if self.ending.is_long:
            return f"sums_wide_{self.length}"
        part = "" if self.stored == CHANNELS else f"_of_{self.stored}"
        each = "_each" if self.has_each else ""
        return f"products_wide{part}_{self.length}{each}_{self.ending.name}"

    def definition(self) -> str:
        """Return the C function (data, stream, result or sums, numbers of the ending, end of the stream)."""
        kind = "uint32_t" if self.ending.is_long else self.ending.kind
        parameters = ("const int16_t *data", "const int32_t *stream", f"{kind} *result", "const int32_t *numbers")
        return naked("void", self.name, (*parameters, "const int32_t *end"), self._lines())

    def _lines(self) -> Iterator[str]:
        is_long = self.ending.is_long
        yield "push {r0, r2-r11, lr}"
        yield "1:"
        yield f"ldm r1!, {{{'r2-r9' if is_long else 'r2-r5'}}}"
        step = self._long if is_long else self._short
        words, rest = divmod(self.length, 2)
        turns, last = divmod(words, WORDS * UNROLLED)
        one = list(step(WORDS))
        if turns > 1:
            # The end of the loop is below the saved registers.
            yield from constant("r10", turns * UNROLLED * WORDS * 4)
            yield "add r10, r10, r0"
            yield "str r10, [sp, #-8]!"
            yield "2:"
            yield from repeated(UNROLLED, one)
            yield "ldr r10, [sp]"
            yield "cmp r0, r10"
            yield "bne 2b"
            yield "add sp, sp, #8"
        else:
            yield from repeated(turns * UNROLLED, one)
        yield from repeated(last // WORDS, one)
        yield from step(last % WORDS)
        if rest:
            yield from step(1, "ldrh")
        yield from self._stored() if is_long else self._end()
        yield "ldr r0, [sp]"
        yield f"ldr r10, [sp, #{_FRAME}]"
        yield "cmp r1, r10"
        yield "bne 1b"
        yield "pop {r0, r2-r11, pc}"

    def _short(self, words: int, load: str = "ldr") -> Iterator[str]:
        """Yield the products of some words, with sums of 32 bits."""
        for data in _DATA[:words]:
            yield f"{load} {data}, [r0], #4"
        for data in _DATA[:words]:
            yield f"ldm r1!, {{{', '.join(_WEIGHTS)}}}"
            for one, weight in zip(_SUMS, _WEIGHTS, strict=True):
                yield f"smlad {one}, {data}, {weight}, {one}"

    def _long(self, words: int, load: str = "ldr") -> Iterator[str]:
        """Yield the products of some words, with sums of 64 bits."""
        count = words * CHANNELS
        for number in range(count):
            if number % CHANNELS == 0:
                yield f"{load} lr, [r0], #4"
            if number % 3 == 0:
                few = min(3, count - number)
                yield "ldr r10, [r1], #4" if few == 1 else f"ldm r1!, {{{', '.join(_WEIGHTS[:few])}}}"
            low, high = _PAIRS[number % CHANNELS]
            yield f"smlald {low}, {high}, lr, {_WEIGHTS[number % 3]}"

    def _stored(self) -> Iterator[str]:
        yield "ldr r10, [sp, #4]"
        yield "stm r10!, {r2-r9}"
        yield "str r10, [sp, #4]"

    def _end(self) -> Iterator[str]:
        """Yield the results of a group."""
        yield "ldrd r6, r7, [sp, #4]"
        sums = list(_SUMS[: self.stored])
        numbers = ("r10", "r11", "r12")
        if self.has_each:
            for one in sums:
                yield "ldm r1!, {r10-r12}"
                yield from results([one], self.ending, numbers)
            if self.stored < CHANNELS:
                yield f"add r1, r1, #{12 * (CHANNELS - self.stored)}"
        else:
            yield "ldm r7, {r10-r12}"
            yield from results(sums, self.ending, numbers)
        yield from (f"{self.ending.store} {one}, [r6], #{self.ending.bits // 8}" for one in sums)
        yield "str r6, [sp, #4]"
