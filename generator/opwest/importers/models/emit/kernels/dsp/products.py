# SPDX-License-Identifier: Apache-2.0
"""Sums of one row of data: four channels at a time, weights of int8 or int16 as in tiles.

Data for int8 weights is widened in registers; for int16 weights it is in memory in the widened form.
"""

from __future__ import annotations

from collections.abc import Iterator

from opwest.importers.models.emit.kernels.assembly import naked, repeated
from opwest.importers.models.emit.kernels.dsp.tile import Ending, results
from opwest.records import dataclass

CHANNELS = 4
TAPS = 8
"""The taps of a step."""
UNROLLED = 4
"""The most steps without a branch."""
_SUMS = ["r2", "r3", "r4", "r5"]
_DATA = ["r6", "r7", "r8", "r9"]
_WEIGHTS = ["r10", "r11", "r12", "lr"]
_FRAME = 48
"""The saved registers: the data, the result and the numbers of the ending at its start."""


@dataclass(frozen=True)
class Products:
    """A function for all groups of four channels."""

    stored: int
    """The channels of a group that are results; the others pad the stream."""
    length: int
    """Taps."""
    is_wide: bool
    """Whether weights are int16."""
    has_each: bool
    """Whether the stream has multiplier, addend and shift of each channel; otherwise `numbers` has those of all."""
    ending: Ending

    @property
    def name(self) -> str:
        """The name of the C function."""
        kind = "halves" if self.is_wide else "bytes"
        part = "" if self.stored == CHANNELS else f"_of_{self.stored}"
        each = "_each" if self.has_each else ""
        return f"products_{kind}{part}_{self.length}{each}_{self.ending.name}"

    def definition(self) -> str:
        """Return the C function (data, stream, result, numbers of the ending, end of the stream, last data).

        The last data of int8 weights are eight taps, of which those of the row are used.
        """
        data = "const uint32_t *data" if self.is_wide else "const int8_t *data"
        parameters = (data, "const int32_t *stream", "int8_t *result", "const int32_t *numbers")
        more = ("const int32_t *end", *([] if self.is_wide else ["const int8_t *last"]))
        return naked("void", self.name, (*parameters, *more), self._lines())

    def _lines(self) -> Iterator[str]:
        yield "push {r0, r2-r11, lr}"
        yield "1:"
        yield f"ldm r1!, {{{', '.join(_SUMS)}}}"
        # The last taps of int8 data that are no whole step are in other memory.
        steps = -(-self.length // TAPS) if self.is_wide else self.length // TAPS
        turns, rest = divmod(steps, UNROLLED)
        one = list(self._wide() if self.is_wide else self._narrow())
        if turns > 1:
            yield f"movw r10, #{turns * UNROLLED * TAPS * (2 if self.is_wide else 1)}"
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
        yield from repeated(rest, one)
        if not self.is_wide and self.length % TAPS:
            yield f"ldr r0, [sp, #{_FRAME + 4}]"
            yield from one
        yield from self._end()

    def _wide(self) -> Iterator[str]:
        yield f"ldm r0!, {{{', '.join(_DATA)}}}"
        for data in _DATA:
            yield f"ldm r1!, {{{', '.join(_WEIGHTS)}}}"
            for one, weight in zip(_SUMS, _WEIGHTS, strict=True):
                yield f"smlad {one}, {data}, {weight}, {one}"

    def _narrow(self) -> Iterator[str]:
        # Data need not be aligned: no LDM.
        first, second, third, fourth = _DATA
        yield f"ldr {first}, [r0], #4"
        yield f"ldr {third}, [r0], #4"
        for low, high in ((first, second), (third, fourth)):
            yield f"sxtb16 {high}, {low}, ror #8"
            yield f"sxtb16 {low}, {low}"
        for pair in (_DATA[:2], _DATA[2:]):
            yield f"ldm r1!, {{{', '.join(_WEIGHTS)}}}"
            for offset in (1, 0):
                if offset == 0:
                    yield from (f"sxtb16 {weight}, {weight}" for weight in _WEIGHTS)
                for place, weight in enumerate(_WEIGHTS):
                    one = _SUMS[2 * (place % 2) + offset]
                    yield f"smlad {one}, {pair[place // 2]}, {weight}, {one}"

    def _end(self) -> Iterator[str]:
        """Yield the results of a group and the branch to the next one."""
        if not self.is_wide:
            for first, second in (_SUMS[:2], _SUMS[2:]):
                yield f"sub {second}, {second}, {first}"
                if self.ending.is_doubled:
                    yield f"lsl {first}, {first}, #1"
                yield f"asr {second}, {second}, #{7 if self.ending.is_doubled else 8}"
        yield "ldrd r6, r7, [sp, #4]"
        sums = _SUMS[: self.stored]
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
        yield from (f"strb {one}, [r6], #1" for one in sums)
        yield "str r6, [sp, #4]"
        yield "ldr r0, [sp]"
        yield f"ldr r10, [sp, #{_FRAME}]"
        yield "cmp r1, r10"
        yield "bne 1b"
        yield "pop {r0, r2-r11, pc}"
