# SPDX-License-Identifier: Apache-2.0
"""Runs of float32 elements for the vector extension with floating point."""

from __future__ import annotations

from collections.abc import Iterator

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.kernels.assembly import naked
from opwest.compiler.kernels.floats.elements import INSTRUCTIONS, PARAMETERS, Run
from opwest.compiler.kernels.floats.tiles import guarded
from opwest.compiler.kernels.mve.float_tiles import HAS_MVE_FLOAT


@dataclass(frozen=True)
class VectorRun(Run):
    """A run with the operands in q0 and q1. One element is a vector of it."""

    @property
    def name(self) -> str:
        """The name of the function."""
        return f"mve_float_{self.shape}"

    def definition(self) -> str:
        """Return the C text of the function."""
        return guarded([(HAS_MVE_FLOAT, naked(self.name, PARAMETERS, self._lines()))], self.fallback())

    def _lines(self) -> Iterator[str]:
        yield from ("push {r4-r6, lr}", "ldr r4, [sp, #16]", "ldrd r5, r6, [r4]")
        operands = list(zip(("q0", "q1"), ("r0", "r1"), self.strides, strict=True))
        for vector, register, stride in operands:
            yield from ([f"ldr r4, [{register}]", f"vdup.32 {vector}, r4"] if stride == 0 else [])
        yield from ("wlstp.32 lr, r3, 2f", "1:")
        yield from (f"vldrw.32 {vector}, [{register}], #16" for vector, register, stride in operands if stride)
        yield f"{INSTRUCTIONS[self.operator]} q2, q0, q1"
        for limit, condition in [("r5", "lt")] * self.has_low + [("r6", "gt")] * self.has_high:
            yield from (f"vpt.f32 {condition}, q2, {limit}", f"vdupt.32 q2, {limit}")
        yield from ("vstrw.32 q2, [r2], #16", "letp lr, 1b", "2: pop {r4-r6, pc}")
