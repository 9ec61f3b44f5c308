# SPDX-License-Identifier: Apache-2.0
"""The frame of the assembly functions that read a stream of constants: a group of channels for each turn.

Registers: r0 the data, r1 the stream, r2 to r9 sums (and data), r10 to r12 and lr free. On the stack, at sp: the data
at the start of a group, the result, the fourth argument; after the 12 saved registers, the end of the stream and
further arguments. A turn of the frame reads the first sums of a group, adds the products of all steps, and stores the
results.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from opwest.compiler.kernels.assembly import constant, repeated

SAVED = 48
"""The bytes of the saved registers: the distance from sp to the end of the stream."""
ENDS = ("r10", "r11", "r12")
"""The registers for multiplier, addend and shift."""
NEXT_GROUP = ("ldr r0, [sp]", f"ldr r10, [sp, #{SAVED}]", "cmp r1, r10", "bne 1b", "pop {r0, r2-r11, pc}")
"""The data of the next group, the comparison with the end of the stream, the branch, the return."""


def streamed(
    load: Iterable[str], step: Sequence[str], steps: int, unrolled: int, step_bytes: int, end: Iterable[str]
) -> Iterator[str]:
    """Yield the function: `load` reads the first sums, `step` adds the products of `step_bytes` of data.

    At most `unrolled` steps run without a branch; the further ones are a loop until an address of the data, which is
    below the saved registers meanwhile. `end` contains the last steps that differ, the stores, and the next group.
    """
    yield "push {r0, r2-r11, lr}"
    yield "1:"
    yield from load
    turns, rest = divmod(steps, unrolled)
    if turns > 1:
        yield from constant("r10", turns * unrolled * step_bytes)
        yield "add r10, r10, r0"
        yield "str r10, [sp, #-8]!"
        yield "2:"
        yield from repeated(unrolled, step)
        yield "ldr r10, [sp]"
        yield "cmp r0, r10"
        yield "bne 2b"
        yield "add sp, sp, #8"
    else:
        yield from repeated(turns * unrolled, step)
    yield from repeated(rest, step)
    yield from end
