# SPDX-License-Identifier: Apache-2.0
"""The frame of the assembly functions that read a stream of constants: a group of channels for each turn.

Registers: r0 the data, r1 the stream, r2 to r9 sums (and data), r10 to r12 and lr free. On the stack, at sp: the data
at the start of a group, the result, the fourth argument; after the 12 saved registers, the end of the stream and
further arguments. A turn of the frame reads the first sums of a group, adds the products of all steps, and stores the
results.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.kernels.assembly import constant, repeated, steps_of_loop
from opwest.compiler.kernels.pairing import can_pair, paired

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


@dataclass(frozen=True)
class Stream:
    """The instructions of a function: `load` reads the first sums, `step` adds the products of `step_bytes` of data.

    `end` contains the last steps that differ, the stores, and the next group. The steps that do not fit in `loop_bytes`
    of code, with `end`, are a loop; None: no limit.

    With `fetch`, a load of data or weights with which a step begins and a register that it loads, a turn loads those of
    the next one, and the loop ends where the register is MARK, which follows them. Otherwise the loop ends at an
    address of the data, which is below the saved registers meanwhile. The address is final, and r10 free, after the
    `first` instructions of a step; None: all. With `is_any`, MARK ends any number of turns of `steps` steps.
    """

    load: Sequence[str]
    step: Sequence[str]
    steps: int
    step_bytes: int
    end: Sequence[str]
    loop_bytes: int | None
    fetch: tuple[str, str] | None = None
    first: int | None = None
    is_any: bool = False
    marks: Sequence[str] = ()
    """The instruction that passes the marks of the stream after steps without a loop that reads them."""

    @property
    def whole(self) -> Sequence[str]:
        """The instructions of a step, with `fetch`."""
        return self.step if self.fetch is None else [self.fetch[0], *self.step]

    def lines(self) -> Iterator[str]:
        """Yield the instructions for a processor that issues one of them in a cycle."""
        whole, steps = self.whole, self.steps
        yield "push {r0, r2-r11, lr}"
        yield "1:"
        yield from self.load
        others = len(self.load) + len(self.end)
        turn = steps if self.is_any else turn_of(steps, len(whole), others, self.loop_bytes)
        turns, rest = divmod(steps, turn)
        if turns <= 1 and not self.is_any:
            yield from repeated(steps, whole)
            yield from self.marks
        elif self.fetch is not None:
            load_data, data = self.fetch
            yield from repeated(rest, whole)
            yield load_data
            yield "2:"
            yield from repeated(turn, [*self.step, load_data])
            yield f"cmp {data}, #{MARK:#x}"
            yield "bne 2b"
        else:
            yield from self._limit(turns * turn)
            yield "2:"
            yield from repeated(turn - 1, whole)
            # A load after loads overlaps them, and no instruction of the products changes the flags.
            place = len(whole) if self.first is None else self.first
            yield from (*whole[:place], *_REACHED, *whole[place:])
            yield "bne 2b"
            yield "add sp, sp, #8"
            yield from repeated(rest, whole)
            yield from self.marks
        yield from self.end

    def paired(self) -> list[str] | None:
        """Return the instructions in the order for two of them in a cycle; None: they are none that can be ordered.

        Its code need not be small: processors that issue two instructions have a cache, or memory without wait states.
        """
        if not self.steps or not can_pair(self.whole):
            return None
        if self.is_any:
            assert self.fetch is not None
            base = self.fetch[0].partition("[")[2].partition("]")[0]
            peek = [f"ldr {self.fetch[1]}, [{base}]", f"cmp {self.fetch[1]}, #{MARK:#x}", "bne 2b"]
            turn = paired([*self.whole] * self.steps)
            return ["push {r0, r2-r11, lr}", "1:", *self.load, "2:", *turn, *peek, *self.marks, *self.end]
        block = min(range(1, BLOCK_STEPS + 1), key=lambda size: (self.steps % size + 8 / size, size))
        turns, rest = divmod(self.steps, block)
        lines = ["push {r0, r2-r11, lr}", "1:", *self.load]
        whole, last = paired([*self.whole] * block), paired([*self.whole] * rest)
        if turns * block <= MAX_STEPS:
            lines += [*repeated(turns, whole), *last]
        else:
            lines += [*self._limit(turns * block), "2:", *whole, *_REACHED, "bne 2b", "add sp, sp, #8", *last]
        return [*lines, *self.marks, *self.end]

    def _limit(self, steps: int) -> Iterator[str]:
        """Yield the store of the address at which the loop ends."""
        yield from constant("r10", steps * self.step_bytes)
        yield "add r10, r10, r0"
        yield "str r10, [sp, #-8]!"


_REACHED = ("ldr r10, [sp]", "cmp r0, r10")
BLOCK_STEPS = 4
"""The most steps that are ordered together."""
