# SPDX-License-Identifier: Apache-2.0
"""Averages and maxima of float32 windows for the vector extension with floating point.

Registers: r0 first pixel, r1 result, r2 numbers, r3 rows, r4 columns, r5 channels, r6 and r7 bytes between columns and
rows, r8 to r10 rows left, row, pixel; q0 values, q1 a pixel, s8 (in q2) the number of pixels.
"""

from __future__ import annotations

from collections.abc import Iterator

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.kernels.assembly import constant, naked
from opwest.compiler.kernels.floats.pools import LEAST, PARAMETERS, PoolFunction, offset_of
from opwest.compiler.kernels.floats.tiles import guarded
from opwest.compiler.kernels.mve.float_tiles import HAS_MVE_FLOAT, LANES, limited

SAVED = 8 * 4
"""The bytes of r4 to r10 and lr on the stack."""


@dataclass(frozen=True)
class VectorPool(PoolFunction):
    """A function of vectors, the last one in part."""

    @property
    def name(self) -> str:
        """The name of the function."""
        return f"mve_float_{self.kind}"

    def definition(self) -> str:
        """Return the C text of the function."""
        return guarded([(HAS_MVE_FLOAT, naked(self.name, PARAMETERS, self._lines()))], self.fallback())

    def _lines(self) -> Iterator[str]:
        yield from ("push {r4-r10, lr}", f"ldr r4, [sp, #{SAVED}]", f"ldr r5, [r2, #{offset_of('channels')}]")
        yield from (f"ldr r6, [r2, #{offset_of('column')}]", f"ldr r7, [r2, #{offset_of('row')}]")
        if self.is_average:
            yield from ("mul r12, r3, r4", "vmov s8, r12", "vcvt.f32.s32 s8, s8")
        yield from ("1:", "vctp.32 r5", *constant("r12", 0 if self.is_average else LEAST), "vdup.32 q0, r12")
        yield from ("mov r8, r3", "mov r9, r0", "3:", "mov r10, r9", "dls lr, r4", "4:", "vpst", "vldrwt.32 q1, [r10]")
        yield from ("add r10, r10, r6", "vadd.f32 q0, q0, q1" if self.is_average else "vmaxnm.f32 q0, q0, q1")
        yield from ("le lr, 4b", "add r9, r9, r7", "subs r8, #1", "bne 3b")
        # VDIV has no vector form: the scalar one rounds as in C.
        yield from (f"vdiv.f32 s{lane}, s{lane}, s8" for lane in range(LANES) if self.is_average)
        yield from (*limited([0], "r2", offset_of, "r12"), "vctp.32 r5", "vpst", "vstrwt.32 q0, [r1], #16")
        yield from (f"adds r0, #{4 * LANES}", f"subs r5, #{LANES}", "bgt 1b", "pop {r4-r10, pc}")
