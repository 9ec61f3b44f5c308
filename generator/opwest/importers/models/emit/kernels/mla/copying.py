# SPDX-License-Identifier: Apache-2.0
"""The copy of bytes of any alignment."""

from __future__ import annotations

from opwest.importers.models.emit.kernels.mla.assembly import naked


def _copy() -> str:
    """Return the function that copies bytes: memory has any alignment."""
    lines = ["push {r4-r9}", "subs r2, r2, #32", "blo 2f", "1:"]
    registers = ("r3", "r4", "r5", "r6", "r7", "r8", "r9", "r12")
    lines += [f"ldr {one}, [r1, #{4 * place}]" for place, one in enumerate(registers) if place]
    lines.append("ldr r3, [r1], #32")
    lines += [f"str {one}, [r0, #{4 * place}]" for place, one in enumerate(registers) if place]
    lines += ["str r3, [r0], #32", "subs r2, r2, #32", "bhs 1b"]
    lines += ["2:", "adds r2, r2, #28", "bmi 4f", "3:", "ldr r3, [r1], #4", "str r3, [r0], #4"]
    lines += ["subs r2, r2, #4", "bpl 3b", "4:", "adds r2, r2, #4", "beq 6f"]
    lines += ["5:", "ldrb r3, [r1], #1", "strb r3, [r0], #1", "subs r2, r2, #1", "bne 5b", "6:", "pop {r4-r9}", "bx lr"]
    return naked("mla_copy", ("int8_t *to", "const int8_t *from", "uint32_t count"), lines)


COPY = _copy()
