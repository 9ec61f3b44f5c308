# SPDX-License-Identifier: Apache-2.0
"""Static functions of assembly: a compiler neither allocates their registers nor moves their instructions.

The functions are naked, hence equal at every level of optimisation and with every calling convention that has the
vector registers (-mfloat-abi=hard or softfp). They keep r4 to r11 and, where they use them, q4 to q7.
"""

from __future__ import annotations

from collections.abc import Sequence

from opwest.importers.models.emit.text import Lines

NAKED = """\
/* Functions of assembly only. GCC must neither clone them nor derive from their C what they change. */
#if defined(__clang__)
#define MVE_NAKED static __attribute__((naked, noinline))
#else
#define MVE_NAKED static __attribute__((naked, noinline, noipa))
#endif
"""
COPY = """\
/* Copies of a few bytes: calls of memcpy() cost more than they do. */
static inline void mve_copy(int8_t *to, const int8_t *from, int count)
{
	__asm__ volatile("wlstp.8 lr, %[n], 2f\\n"
			 "1: vldrb.8 q0, [%[from]], #16\\n\\t"
			 "vstrb.8 q0, [%[to]], #16\\n\\t"
			 "letp lr, 1b\\n"
			 "2:"
			 : [to] "+r"(to), [from] "+r"(from)
			 : [n] "r"(count)
			 : "q0", "lr", "memory");
}
"""
FILL = """\
static inline void mve_fill(int8_t *to, int value, int count)
{
	__asm__ volatile("vdup.8 q0, %[value]\\n\\t"
			 "wlstp.8 lr, %[n], 2f\\n"
			 "1: vstrb.8 q0, [%[to]], #16\\n\\t"
			 "letp lr, 1b\\n"
			 "2:"
			 : [to] "+r"(to)
			 : [value] "r"(value), [n] "r"(count)
			 : "q0", "lr", "memory");
}
"""


class Assembly:
    """The instructions of a function."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def add(self, *lines: str) -> None:
        """Append instructions, or a label with its colon."""
        self.lines.extend(lines)

    def plus(self, register: str, amount: int, scratch: str = "r0") -> None:
        """Append the addition of a constant; `scratch` is overwritten for large ones."""
        if amount == 0:
            return
        name, size = ("add" if amount > 0 else "sub"), abs(amount)
        if size <= 4095:
            self.add(f"{name} {register}, {register}, #{size}")
            return
        self.constant(scratch, size)
        self.add(f"{name} {register}, {register}, {scratch}")

    def constant(self, register: str, value: int) -> None:
        """Append the load of a constant."""
        self.add(f"movw {register}, #{value & 0xFFFF}")
        if (value >> 16) & 0xFFFF:
            self.add(f"movt {register}, #{(value >> 16) & 0xFFFF}")

    def function(self, name: str, parameters: Sequence[str], comment: str) -> str:
        """Return the definition."""
        lines = Lines()
        for number, line in enumerate(self.lines):
            text = f"{line}\\n" if line.endswith(":") else f"\\t{line}\\n"
            lines.add(("__asm__ volatile(" if number == 0 else "\t\t ") + f'"{text}"')
        body = str(lines)[:-1] + ");\n"
        # The instructions read the parameters from their registers.
        listed = ", ".join(f"{one} __attribute__((unused))" for one in parameters)
        return f"/* {comment} */\nMVE_NAKED void {name}({listed})\n{{\n{body}}}\n"
