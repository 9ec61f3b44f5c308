# SPDX-License-Identifier: Apache-2.0
"""Functions in Thumb assembly as C text, and instructions that all classes of processors have.

Functions are naked: the compiler adds no code, so that all registers are free, and the loops are the same, at every
level of optimisation. GCC must not look into them (`noipa`): it would derive from the C text, which has no clobbers,
that r0 to r3 and r12 survive a call.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from opwest.objects.targets import PAIRED

NAKED = """\
/*
 * Functions of assembly only, with parameters in registers. GCC must neither clone them nor derive from
 * their C what they change.
 */
#if defined(__clang__)
#define OPWEST_NAKED __attribute__((naked, noinline, unused))
#else
#define OPWEST_NAKED __attribute__((naked, noipa, unused))
#endif
#pragma GCC diagnostic ignored "-Wunused-parameter"
"""
"""The definition before the first naked function."""


def naked(
    name: str,
    parameters: Sequence[str],
    lines: Iterable[str],
    result: str = "void ",
    first: str = "",
    paired: Iterable[str] | None = None,
) -> str:
    """Return a static function; `result` is a C type, with the space before a name, `first` the name of
    more lines.

    Its parameters are in r0 to r3, further ones on the stack (AAPCS32). `paired`: the instructions for a Cortex-M7.
    """
    body = _statement(lines, first)
    if paired is not None:
        body = f"#if defined({PAIRED})\n{_statement(paired)}\n#else\n{body}\n#endif"
    return f"static OPWEST_NAKED {result}{name}({', '.join(parameters)})\n{{\n{body}\n}}\n"


def _statement(lines: Iterable[str], first: str = "") -> str:
    body = first + "\n\t\t\t ".join(f'"{line}\\n"' for line in lines)
    return f"\t__asm__ volatile({body});"


def code_bytes(definition: str) -> int:
    """Return the greatest number of bytes of a function of `naked` without repeated lines."""
    return 4 * definition.count('\\n"')


def repeated(count: int, lines: Sequence[str]) -> list[str]:
    """Return lines that the assembler repeats."""
    if count == 0:
        return []
    return list(lines) if count == 1 else [f".rept {count}", *lines, ".endr"]


def steps_of_loop(steps: int, size: int, room: int | None, most: int) -> int:
    """Return the steps of a turn with the fewest branches whose code, with the rest, has at most `room` bytes.

    `size`: the bytes of a step; `most`: the most steps of a turn. One turn for all steps is no loop.
    """
    options = []
    for turn in range(1, min(steps, most) + 1):
        turns, rest = divmod(steps, turn)
        copies, branches = (steps, 0) if turns == 1 else (turn + rest, turns)
        if room is None or copies * size <= room or turn == 1:
            options.append((room is not None and copies * size > room, branches, copies, turn))
    return min(options)[3]


def constant(register: str, value: int) -> Iterator[str]:
    """Yield the load of a constant of 32 bits."""
    yield f"movw {register}, #{value & 0xFFFF}"
    if (value >> 16) & 0xFFFF:
        yield f"movt {register}, #{(value >> 16) & 0xFFFF}"


def added(register: str, value: int, free: str) -> Iterator[str]:
    """Yield the addition of a constant; `free` is overwritten if its magnitude has more than 12 bits."""
    if value == 0:
        return
    name, size = ("add" if value > 0 else "sub"), abs(value)
    if size < 4096:
        yield f"{name} {register}, {register}, #{size}"
        return
    yield from constant(free, size)
    yield f"{name} {register}, {register}, {free}"


def limited(register: str, condition: str, limit: object) -> list[str]:
    """Return the clamp of a register to a limit: `condition` is lt for the least value, gt for the greatest one."""
    return [f"cmp {register}, {limit}", f"it {condition}", f"mov{condition} {register}, {limit}"]


COPY = naked(
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
    "int8_t *",
)
"""copy_bytes(to, from, size) of memory that does not overlap, or with `to` below `from`; returns the end of `to`."""
FILL = naked(
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
    "int8_t *",
)
"""fill_bytes(to, value, size); returns the end of `to`."""
