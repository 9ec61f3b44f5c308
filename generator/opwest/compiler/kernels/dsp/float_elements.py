# SPDX-License-Identifier: Apache-2.0
"""Runs of float32 elements for the FPU: eight at a time."""

from __future__ import annotations

from collections.abc import Iterator

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.kernels.assembly import naked
from opwest.compiler.kernels.dsp.float_tiles import HAS_FPU, span
from opwest.compiler.kernels.floats.elements import INSTRUCTIONS, PARAMETERS, Run
from opwest.compiler.kernels.floats.tiles import guarded

TURN = 8


@dataclass(frozen=True)
class FloatRun(Run):
    """A run whose operands are in s0 to s15, the limits in s16 and s17."""

    @property
    def name(self) -> str:
        """The name of the function."""
        return f"float_{self.shape}"

    def definition(self) -> str:
        """Return the C text of the function."""
        return guarded([(HAS_FPU, naked(self.name, PARAMETERS, self._lines()))], self.fallback())

    def _lines(self) -> Iterator[str]:
        has_limits = self.has_low or self.has_high
        yield from (["ldr r12, [sp]", "vpush {s16-s17}", "vldm r12, {s16-s17}"] if has_limits else [])
        operands = list(zip(("r0", "r1"), self.strides, (0, TURN), strict=True))
        yield from (f"vldr s{first}, [{register}]" for register, stride, first in operands if stride == 0)
        yield from (f"subs r3, r3, #{TURN}", "blt 2f", "1:", *self._turn(TURN), f"subs r3, r3, #{TURN}", "bge 1b")
        yield from ("2:", f"adds r3, r3, #{TURN}", "beq 4f", "3:", *self._turn(1), "subs r3, r3, #1", "bne 3b", "4:")
        yield from (["vpop {s16-s17}"] if has_limits else [])
        yield "bx lr"

    def _turn(self, count: int) -> Iterator[str]:
        """Yield the results of some elements."""
        one, other = self.strides
        yield from ([f"vldm r0!, {span(0, count)}"] if one else [])
        yield from ([f"vldm r1!, {span(TURN, count)}"] if other else [])
        # A single first operand is kept in s0: results are where the second operand was.
        first = 0 if one else TURN
        results = [f"s{first + i}" for i in range(count)]
        for i, result in enumerate(results):
            yield f"{INSTRUCTIONS[self.operator]} {result}, s{i * one}, s{TURN + i * other}"
        for limit, condition in [("s16", "mi")] * self.has_low + [("s17", "gt")] * self.has_high:
            for result in results:
                yield from (f"vcmp.f32 {result}, {limit}", "vmrs APSR_nzcv, FPSCR", f"it {condition}")
                yield f"vmov{condition}.f32 {result}, {limit}"
        yield f"vstm r2!, {span(first, count)}"
