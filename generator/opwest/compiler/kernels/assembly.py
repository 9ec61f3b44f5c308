# SPDX-License-Identifier: Apache-2.0
"""Functions in Thumb assembly as C text.

They are naked: the compiler adds no code, so that all registers are free at every level of optimisation.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def naked(result: str, name: str, parameters: Sequence[str], lines: Iterable[str]) -> str:
    """Return a static function. Its parameters are in r0 to r3, further ones on the stack (AAPCS32)."""
    unused = ",\n\t".join(f"{parameter} __attribute__((unused))" for parameter in parameters)
    body = "".join(f'\t\t"{line}\\n"\n' for line in lines)
    head = f"static __attribute__((naked, noinline)) {result} {name}(\n\t{unused})"
    return f"{head}\n{{\n\t__asm__ volatile(\n{body.rstrip()});\n}}\n"


def repeated(count: int, lines: Sequence[str]) -> list[str]:
    """Return lines that the assembler repeats."""
    if count == 0:
        return []
    return list(lines) if count == 1 else [f".rept {count}", *lines, ".endr"]


COPY = naked(
    "int8_t *",
    "copy_bytes",
    ("int8_t *to", "const int8_t *from", "int32_t size"),
    (
        "subs r2, r2, #8",
        "blt 2f",
        "1: ldr r3, [r1], #4",
        "ldr r12, [r1], #4",
        "subs r2, r2, #8",
        "str r3, [r0], #4",
        "str r12, [r0], #4",
        "bge 1b",
        "2: adds r2, r2, #8",
        "beq 4f",
        "3: ldrsb r3, [r1], #1",
        "subs r2, r2, #1",
        "strb r3, [r0], #1",
        "bne 3b",
        "4: bx lr",
    ),
).replace("int8_t * copy", "int8_t *copy")
"""copy_bytes(to, from, size) of memory that does not overlap, or with `to` below `from`; returns the end of `to`."""
FILL = naked(
    "int8_t *",
    "fill_bytes",
    ("int8_t *to", "int32_t value", "int32_t size"),
    (
        "uxtb r1, r1",
        "orr r1, r1, r1, lsl #8",
        "orr r1, r1, r1, lsl #16",
        "subs r2, r2, #8",
        "blt 2f",
        "1: subs r2, r2, #8",
        "str r1, [r0], #4",
        "str r1, [r0], #4",
        "bge 1b",
        "2: adds r2, r2, #8",
        "beq 4f",
        "3: subs r2, r2, #1",
        "strb r1, [r0], #1",
        "bne 3b",
        "4: bx lr",
    ),
).replace("int8_t * fill", "int8_t *fill")
"""fill_bytes(to, value, size); returns the end of `to`."""
