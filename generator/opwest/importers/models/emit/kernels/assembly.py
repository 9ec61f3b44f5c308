# SPDX-License-Identifier: Apache-2.0
"""Functions in Thumb assembly as C text.

They are naked: the compiler adds no code, so that all registers are free at every level of optimisation.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def naked(result: str, name: str, parameters: Sequence[str], lines: Iterable[str]) -> str:
    """Return a static function. Its parameters are in r0 to r3, further ones on the stack (AAPCS32)."""
    unused = ",\n\t".join(f"{one} __attribute__((unused))" for one in parameters)
    body = "".join(f'\t\t"{line}\\n"\n' for line in lines)
    head = f"static __attribute__((naked, noinline)) {result} {name}(\n\t{unused})"
    return f"{head}\n{{\n\t__asm__ volatile(\n{body.rstrip()});\n}}\n"


def repeated(count: int, lines: Sequence[str]) -> list[str]:
    """Return lines that the assembler repeats."""
    if count == 0:
        return []
    return list(lines) if count == 1 else [f".rept {count}", *lines, ".endr"]
