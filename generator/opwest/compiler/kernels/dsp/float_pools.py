# SPDX-License-Identifier: Apache-2.0
"""Averages and maxima of float32 windows for the FPU: four channels at a time.

Registers: r0 first pixel, r1 result, r2 numbers, r3 rows, r4 columns, r5 channels, r6 and r7 bytes between columns and
rows, r8 to r10 rows left, row, pixel; s0 to s3 values, s4 to s7 pixel, s8 the number of pixels, s9 a limit.
"""

from __future__ import annotations

from collections.abc import Iterator

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.kernels.assembly import constant, naked
from opwest.compiler.kernels.dsp.float_tiles import HAS_FPU, limited, span
from opwest.compiler.kernels.floats.pools import LEAST, PARAMETERS, PoolFunction, offset_of
from opwest.compiler.kernels.floats.tiles import guarded

CHANNELS = 4
SAVED = 8 * 4
"""The bytes of r4 to r10 and lr on the stack."""


@dataclass(frozen=True)
class FloatPool(PoolFunction):
    """A function of 4 channels, then of single ones."""

    @property
    def name(self) -> str:
        """The name of the function."""
        return f"float_{self.kind}"

    def definition(self) -> str:
        """Return the C text of the function."""
        return guarded([(HAS_FPU, naked(self.name, PARAMETERS, self._lines()))], self.fallback())

    def _lines(self) -> Iterator[str]:
        yield from ("push {r4-r10, lr}", f"ldr r4, [sp, #{SAVED}]", f"ldr r5, [r2, #{offset_of('channels')}]")
        yield from (f"ldr r6, [r2, #{offset_of('column')}]", f"ldr r7, [r2, #{offset_of('row')}]")
        if self.is_average:
            yield from ("mul r12, r3, r4", "vmov s8, r12", "vcvt.f32.s32 s8, s8")
        yield from (f"subs r5, r5, #{CHANNELS}", "blt 2f", "1:", *self._channels(CHANNELS, (3, 4, 5, 6)))
        yield from (f"subs r5, r5, #{CHANNELS}", "bge 1b", "2:", f"adds r5, r5, #{CHANNELS}", "beq 8f", "7:")
        yield from (*self._channels(1, (13, 14, 15, 16)), "subs r5, r5, #1", "bne 7b", "8: pop {r4-r10, pc}")

    def _channels(self, count: int, labels: tuple[int, int, int, int]) -> Iterator[str]:
        """Yield the results of some channels."""
        row, column, low, high = labels
        values, data = [f"s{i}" for i in range(count)], [f"s{CHANNELS + i}" for i in range(count)]
        yield from constant("r12", 0 if self.is_average else LEAST)
        yield from (*(f"vmov {value}, r12" for value in values), "mov r8, r3", "mov r9, r0", f"{row}:")
        yield from ("mov r10, r9", "mov r12, r4")
        yield from (f"{column}:", f"vldm r10, {span(CHANNELS, count)}", "add r10, r10, r6")
        for value, one in zip(values, data, strict=True):
            if self.is_average:
                yield f"vadd.f32 {value}, {value}, {one}"
            else:
                yield from (f"vcmp.f32 {one}, {value}", "vmrs APSR_nzcv, FPSCR", "it gt", f"vmovgt.f32 {value}, {one}")
        yield from ("subs r12, r12, #1", f"bne {column}b", "add r9, r9, r7", "subs r8, r8, #1", f"bne {row}b")
        yield from (f"vdiv.f32 {value}, {value}, s8" for value in values if self.is_average)
        yield from limited(values, "s9", ("r2", offset_of), (low, high))
        yield from (f"vstm r1!, {span(0, count)}", f"add r0, r0, #{4 * count}")
