# SPDX-License-Identifier: Apache-2.0
"""SWAR: one MUL computes two products. Both operands hold two neighbours of a sum in lanes of 16 bits.

    (x0 + (x1 << 16)) * (w1 + (w0 << 16)) = x0 * w1 + ((x0 * w0 + x1 * w1) << 16)     modulo 2**32

The high lane is the sum of two products if it fits 16 bits, which the weights decide. The low lane changes the high
half by a borrow; there are two ways to know it:

- rounded: the low lane is below 2**15, so that the high half rounded half up is exact. ASRS leaves the rounding bit in
  the carry, ADC adds both to the sum.
- known: x0 is stored plus 129, so that it is 1 to 256, and the sign of the low lane is that of w1. The number of
  borrows is a constant of the channel, and so is the sum of 129 * w0. One ADD instead of two instructions, but the high
  lane needs a bit more: a pair with large weights is divided into two pairs, and the second one is a patch, an entry
  of a list that follows the weights of a block.

MUL, ASRS, ADC and ADD need one cycle each on a Cortex-M3, where two MLA need four; every load serves two products.

Data are widened once for each row (`pack`), interleaved with the other rows of a tile. Weights are constants in the
order of their use, followed by the numbers of the channels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.kernels.assembly import code_bytes, naked, steps_of_loop
from opwest.compiler.kernels.mla.assembly import REGISTERS, Epilogue, load_words, tile_function

MAX_STEPS = 16
"""The most steps without a branch, if the code has no limit."""
OFFSET = 129
"""What the known way adds to the first value of a pair."""


@dataclass(frozen=True)
class Tile:
    """A function that multiplies some rows by blocks of channels."""

    rows: int
    channels: int
    steps: int
    """Of a sum: two products each."""
    turn: int
    """The steps that follow each other without a branch. Those that are no whole turn precede the loop."""
    layout: int
    """The words between the steps of a row."""
    end: Epilogue
    way: str = "rounded"
    """rounded, known, patched: known with patches."""

    @property
    def name(self) -> str:
        """The name of the function."""
        layout = "" if self.layout == self.rows else f"_of{self.layout}"
        turns, rest = divmod(self.steps, self.turn)
        loop = f"_by{self.turn}" if turns > 1 else ""
        # Loops without a rest are the same for each number of turns.
        loop = loop if turns > 1 and not rest else f"_{self.steps}{loop}"
        return f"mla_{self.way}_{self.rows}x{self.channels}{layout}{loop}_{self.end.name}"

    def text(self) -> str:
        """Return the definition."""
        free = list(REGISTERS[3:])
        temporary = REGISTERS[2]
        sums = [[free.pop(0) for _ in range(self.channels)] for _ in range(self.rows)]
        data = [free.pop(0) for _ in range(self.rows)]
        weights = [free.pop(0) for _ in range(self.channels)]
        step = [f"ldr {data[row]}, [r0, #{4 * row}]" for row in range(1, self.rows)]
        step.append(f"ldr {data[0]}, [r0], #{4 * self.layout}")
        step += self._step(sums, data, weights, temporary)
        turns, rest = divmod(self.steps, self.turn)
        if turns == 1:
            lines = self.steps * step
        else:
            lines = [*(rest * step), "2:", *(self.turn * step)]
            lines += [f"ldr {temporary}, [sp, #8]", f"cmp r0, {temporary}", "bne 2b"]
        if self.way == "patched":
            # Offsets are negative: the pointer is at the end of the words.
            lines += ["3:", f"ldr {temporary}, [r1], #4", f"cmp {temporary}, #0", "beq 4f"]
            lines.append(f"add {temporary}, {temporary}, r0")
            lines += [f"ldr {register}, [{temporary}, #{4 * row}]" for row, register in enumerate(data)]
            lines += [*self._step(sums, data, weights, temporary), "b 3b", "4:"]
        lines += self._ending(sums, [temporary, *data, *weights, *free])
        return tile_function(self.name, "int32_t", sums, lines)

    def _step(self, sums: list[list[str]], data: list[str], weights: list[str], temporary: str) -> list[str]:
        """Return the loads of weights and the products of a pair of each row."""
        lines = [f"ldr {register}, [r1], #4" for register in weights]
        for c, weight in enumerate(weights):
            for row, register in enumerate(data):
                value = sums[row][c]
                lines.append(f"mul {temporary}, {register}, {weight}")
                if self.way == "rounded":
                    lines += [f"asrs {temporary}, {temporary}, #16", f"adc {value}, {value}, {temporary}"]
                else:
                    lines.append(f"add {value}, {value}, {temporary}, asr #16")
        return lines

    def _ending(self, sums: list[list[str]], free: list[str]) -> list[str]:
        """Return the code from the sums of a block to its results."""
        result, low, *others = free
        numbers = sorted(others, key=REGISTERS.index)[: self.end.numbers]
        stride = sums[0][0]
        lines = [f"ldr {result}, [sp, #4]"]
        places = (f"[{result}]", f"[{result}, {stride}]", f"[{result}, {stride}, lsl #1]")
        for c in range(self.channels):
            lines.append(load_words(numbers, "r1"))
            for row in range(self.rows):
                lines += self.end.lines(sums[row][c], numbers, low)
                lines.append(f"{self.end.store} {sums[row][c]}, {places[row]}")
                if c == row == 0 and self.rows > 1:
                    lines.append(f"ldr {stride}, [sp, #48]")
            lines.append(f"add {result}, {result}, #{self.end.size}")
        return [*lines, f"str {result}, [sp, #4]"]


def pack(layout: int, way: str) -> tuple[str, str]:
    """Return the name and the definition of the function that widens bytes: pairs of them, `layout` words apart.

    Arguments: the first word, the first byte, the bytes. It returns the place of the next word. The last byte of an
    odd number is a pair with 0.
    """
    is_known = way != "rounded"
    name = f"mla_pack_{layout}{'_known' if is_known else ''}"
    step = 4 * layout

    def stored(*registers: int) -> list[str]:
        lines = [f"add r{register}, r{register}, #{OFFSET}" for register in registers] if is_known else []
        return lines + [f"str r{register}, [r0], #{step}" for register in registers]

    lines = ["push {r4-r10, lr}", "subs r2, r2, #8", "blo 2f", "1:"]
    lines += [f"ldrsb r{3 + place}, [r1, #{place}]" for place in range(1, 8)]
    lines.append("ldrsb r3, [r1], #8")
    lines += [f"add r{low}, r{low}, r{low + 1}, lsl #16" for low in (3, 5, 7, 9)]
    lines += stored(3, 5, 7, 9)
    lines += ["subs r2, r2, #8", "bhs 1b", "2:", "adds r2, r2, #6", "bmi 4f", "3:"]
    lines += ["ldrsb r4, [r1, #1]", "ldrsb r3, [r1], #2", "add r3, r3, r4, lsl #16", *stored(3)]
    lines += ["subs r2, r2, #2", "bpl 3b", "4:", "adds r2, r2, #1", "bmi 5f"]
    lines += ["ldrsb r3, [r1]", *stored(3), "5:", "pop {r4-r10, pc}"]
    return name, naked(name, ("int32_t *to", "const int8_t *from", "uint32_t count"), lines, "int32_t *")


def padding(value: int, way: str) -> int:
    """Return the word of two values."""
    word = (value + (value << 16) + (0 if way == "rounded" else OFFSET)) & 0xFFFFFFFF
    return word - (1 << 32) if word >> 31 else word


def way_of(weights: Any, rows: int, parts: list[tuple[int, int, int]]) -> str:
    """Return the way with the fewest cycles for weights int8 [channels, length]; "rounded" may not be exact.

    `parts` are those of the channels: first, count, channels of a block.
    """
    paired = _paired(weights.astype(np.int64), -(-weights.shape[1] // 2))
    patches = np.any(_patches(paired))
    if not patches:
        return "known"
    if not _fits(paired):
        return "patched"
    # The cycles that the known way saves: one for each product; less those of the patches.
    gain = 0
    for first, count, channels in parts:
        some = _patches(paired[first : first + count])
        entries = int(some.reshape(-1, channels, some.shape[1]).any(axis=1).sum())
        gain += (count * paired.shape[1] - 2 * entries * channels) * rows - 6 * count // channels
        gain -= entries * (10 + rows + channels)
    return "patched" if gain > 0 else "rounded"


def _fits(paired: Any) -> bool:
    """Whether the sum of two products fits 16 bits for all data: weights [channels, steps, 2].

    The low lane is x0 * w1, at most 2**14: the rounded way is exact with any weights whose high lane fits.
    """
    greatest = np.maximum(-128 * paired, 127 * paired).sum(axis=2)
    least = np.minimum(-128 * paired, 127 * paired).sum(axis=2)
    return bool(greatest.max() <= 32767 and least.min() >= -32768)


def _patches(paired: Any) -> Any:
    """Return which pairs of weights do not fit the known way: [channels, steps].

    The high lane is (x0 + 129) * w0 + x1 * w1, with x0 + 129 from 1 to 256, less a borrow if w1 is negative: then the
    low lane (x0 + 129) * w1 is negative, too, and its magnitude is at most 2**15.
    """
    first, second = paired[..., 0], paired[..., 1]
    greatest = np.maximum(first, 256 * first) + np.maximum(-128 * second, 127 * second)
    least = np.minimum(first, 256 * first) + np.minimum(-128 * second, 127 * second) - (second < 0)
    return (greatest > 32767) | (least < -32768)


def turn_of(steps: int, rows: int, channels: int, end: Epilogue, loop_bytes: int | None) -> int:
    """Return the steps of a turn of a tile; `loop_bytes`: the bytes of code that it should have, None: no limit."""
    first, second = (code_bytes(Tile(rows, channels, some, some, rows, end).text()) for some in (1, 2))
    size = second - first
    # About one in six instructions has two bytes.
    room = None if loop_bytes is None else loop_bytes * 13 // 12 - (first - size)
    return steps_of_loop(steps, size, room, MAX_STEPS)


def stream(weights: Any, numbers: Callable[[Any], Any], channels: int, steps: int, layout: int, way: str) -> Any:
    """Return the words of blocks of channels: all weights of a block, its patches, its numbers.

    `numbers` returns the words of each channel from what is added to its bias.
    """
    paired = _paired(weights.astype(np.int64), steps)
    is_known = way != "rounded"
    divided = _patches(paired) & is_known
    # Halves of large weights fit: 256 * 64 + 128 * 64 is below 2**15. x * w is x * (w - w // 2) + x * (w // 2).
    rest = np.where(divided[..., None], paired // 2, 0)
    main = paired - rest
    # Each pair with a negative w1 lost 1 to the low lane, and all pairs gained 129 * w0.
    borrows = (main[..., 1] < 0).sum(axis=1) + (rest[..., 1] < 0).sum(axis=1)
    ends = numbers((borrows - OFFSET * paired[..., 0].sum(axis=1)) * is_known)
    first, second = (_blocks(part[..., 1] + (part[..., 0] << 16), channels) for part in (main, rest))
    parts = []
    for block, own in enumerate(ends.reshape(len(first), -1)):
        parts.append(first[block].reshape(-1))
        if way == "patched":
            for step in np.flatnonzero(divided[block * channels : (block + 1) * channels].any(axis=0)):
                parts += [np.asarray([4 * layout * (int(step) - steps)], np.int32), second[block, step]]
            parts.append(np.zeros(1, np.int32))
        parts.append(own)
    return np.concatenate(parts)


def _blocks(words: Any, channels: int) -> Any:
    """Return words [channels, steps] as int32 [blocks, steps, channels of a block]."""
    return words.astype(np.int32).reshape(-1, channels, words.shape[1]).transpose(0, 2, 1)


def _paired(weights: Any, steps: int) -> Any:
    channels, length = weights.shape
    padded = np.pad(weights, ((0, 0), (0, 2 * steps - length)))
    return padded.reshape(channels, steps, 2)
