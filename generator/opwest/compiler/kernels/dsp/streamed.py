# SPDX-License-Identifier: Apache-2.0
"""The frame of the assembly functions that read a stream of constants: a group of channels for each turn.

Registers: r0 the data, r1 the stream, r2 to r9 sums (and data), r10 to r12 and lr free. On the stack, at sp: the data
at the start of a group, the result, the fourth argument; after the 12 saved registers, the end of the stream and
further arguments. A turn of the frame reads the first sums of a group, adds the products of all steps, and stores the
results.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from opwest.compiler.kernels.assembly import constant, repeated, steps_of_loop

SAVED = 48
"""The bytes of the saved registers: the distance from sp to the end of the stream."""
ENDS = ("r10", "r11", "r12")
"""The registers for multiplier, addend and shift."""
NEXT_GROUP = ("ldr r0, [sp]", f"ldr r10, [sp, #{SAVED}]", "cmp r1, r10", "bne 1b", "pop {r0, r2-r11, pc}")
"""The data of the next group, the comparison with the end of the stream, the branch, the return."""


MARK = 0x80008000
"""The word that ends loops, after data or weights. Values of int8, also doubled, are never -32768."""
MAX_STEPS = 32
"""The most steps without a branch, if the code has no limit."""


def turn_of(steps: int, length: int, others: int, loop_bytes: int | None) -> int:
    """Return the steps of a turn: a step has `length` instructions, the function `others` beside those of its frame."""
    # Instructions have at most four bytes; the frame has up to eight.
    room = None if loop_bytes is None else loop_bytes - 4 * (others + 8)
    return steps_of_loop(steps, 4 * length, room, MAX_STEPS) if steps else 1


def streamed(
    load: Sequence[str],
    step: Sequence[str],
    steps: int,
    step_bytes: int,
    end: Sequence[str],
    loop_bytes: int | None,
    fetch: tuple[str, str] | None = None,
    first: int | None = None,
    *,
    is_any: bool = False,
) -> Iterator[str]:
    """Yield the function: `load` reads the first sums, `step` adds the products of `step_bytes` of data.

    `end` contains the last steps that differ, the stores, and the next group. The steps that do not fit in `loop_bytes`
    of code, with `end`, are a loop; None: no limit.

    With `fetch`, a load of data or weights with which a step begins and a register that it loads, a turn loads those of
    the next one, and the loop ends where the register is MARK, which follows them. Otherwise the loop ends at an
    address of the data, which is below the saved registers meanwhile. The address is final, and r10 free, after the
    `first` instructions of a step; None: all. With `is_any`, MARK ends any number of turns of `steps` steps.
    """
    whole = list(step) if fetch is None else [fetch[0], *step]
    yield "push {r0, r2-r11, lr}"
    yield "1:"
    yield from load
    turn = steps if is_any else turn_of(steps, len(whole), len(load) + len(end), loop_bytes)
    turns, rest = divmod(steps, turn)
    if turns <= 1 and not is_any:
        yield from repeated(steps, whole)
    elif fetch is not None:
        load_data, data = fetch
        yield from repeated(rest, whole)
        yield load_data
        yield "2:"
        yield from repeated(turn, [*step, load_data])
        yield f"cmp {data}, #{MARK:#x}"
        yield "bne 2b"
    else:
        yield from constant("r10", turns * turn * step_bytes)
        yield "add r10, r10, r0"
        yield "str r10, [sp, #-8]!"
        yield "2:"
        yield from repeated(turn - 1, whole)
        # A load after loads overlaps them, and no instruction of the products changes the flags.
        place = len(whole) if first is None else first
        yield from (*whole[:place], "ldr r10, [sp]", "cmp r0, r10", *whole[place:])
        yield "bne 2b"
        yield "add sp, sp, #8"
        yield from repeated(rest, whole)
    yield from end
