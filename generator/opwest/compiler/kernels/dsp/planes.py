# SPDX-License-Identifier: Apache-2.0
"""Depthwise data as rows of words with two columns of one channel, for four channels at a time.

The words of the four channels follow each other: [row][word][channel]. Padding is part of the rows.
"""

from __future__ import annotations

from collections.abc import Iterator

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.graph.types import Shape
from opwest.compiler.kernels.assembly import added, naked
from opwest.compiler.semantics.windows import Window, row_of

CHANNELS = 4
MAX_SCRATCH = 4096
"""Bytes of rows, unless one row of results needs more."""


@dataclass(frozen=True)
class Planes:
    """The rows for a window over data [n,h,w,c]."""

    data: Shape
    window: Window
    item: int = 1
    """The bytes of an element."""

    @property
    def words(self) -> int:
        """The words of a row of one channel. Kernels for pairs of results read one column more."""
        columns, stride = self.window.result[1], self.window.stride[1]
        last = (columns - 1 + (columns % 2 if stride == 1 else 0)) * stride
        return (last + self.window.size[1] + 1) // 2

    @property
    def pitch(self) -> int:
        """The bytes of a row of four channels."""
        return 4 * CHANNELS * self.words

    @property
    def strip(self) -> int:
        """The rows of results that are computed together."""
        rows, stride, size = self.window.result[0], self.window.stride[0], self.window.size[0]
        most = (MAX_SCRATCH // self.pitch - size) // stride + 1
        strips = -(-rows // max(1, most))
        return -(-rows // strips)

    @property
    def height(self) -> int:
        """The rows for a strip."""
        return (self.strip - 1) * self.window.stride[0] + self.window.size[0]

    @property
    def size(self) -> int:
        """The words of scratch memory."""
        return self.height * self.pitch // 4

    def name(self, channels: int) -> str:
        """Return the name of the function for groups of `channels`."""
        _, _, width, depth = self.data
        kind = "widen" if self.item == 1 else "split"
        return f"{kind}_planes_{width}_{depth}_{self.window.before[1]}_{self.words}_{channels}"

    def widen(self, channels: int) -> str:
        """Return the function (to, from, rows, filling) for the last 1 to 4 channels of a group.

        `filling`: a word with the zero point in both halves. It returns the end of the written rows.
        """
        parameters = ("uint32_t *to", "const int8_t *from", "int32_t rows", "uint32_t filling")
        return naked(self.name(channels), parameters, self._widen(channels), "uint32_t *")

    def _widen(self, channels: int) -> Iterator[str]:
        """Yield the instructions: r0 to, r1 from, r2 rows, r3 filling, r4 to r7 two columns, r8 count."""
        _, _, width, depth = self.data
        depth *= self.item
        left, inside, after = row_of(self.window.before[1], width, 2 * self.words)
        skipped = width - inside
        if not inside:
            left, after = 2 * self.words, 0
        yield "push {r4-r10, lr}"
        yield "1:"
        if left // 2:
            yield from self._filling(left // 2)
        if left % 2:
            yield from ("mov r4, r3", "mov r5, r3")
            yield from self._column("r6", "r7", channels)
            yield from self._store()
            inside -= 1
        pairs = inside // 2
        if pairs > 1:
            yield f"mov{'w' if pairs > 255 else ''} r8, #{pairs}"
            yield "2:"
        if pairs:
            yield from self._column("r4", "r5", channels)
            yield from self._column("r6", "r7", channels)
            yield from self._store()
        if pairs > 1:
            yield "subs r8, r8, #1"
            yield "bne 2b"
        if inside % 2:
            yield from self._column("r4", "r5", channels)
            yield from ("mov r6, r3", "mov r7, r3")
            yield from self._store()
            after -= 1
        if after // 2:
            yield from self._filling(after // 2)
        if skipped:
            yield from added("r1", skipped * depth, "r4")
        yield from ("subs r2, r2, #1", "bne 1b", "pop {r4-r10, pc}")

    def _column(self, low: str, high: str, channels: int) -> Iterator[str]:
        """Yield the load of a column: channels 0 and 2 in `low`, 1 and 3 in `high`; of int16: 0 and 1, 2 and 3."""
        depth = self.data[3]
        if self.item == 2:
            if channels > 2:
                yield f"{'ldr' if channels == 4 else 'ldrh'} {high}, [r1, #4]"
            yield from self._loaded("ldrh" if channels == 1 else "ldr", low, 2 * depth)
            return
        if channels == 4:
            yield from self._loaded("ldr", low, depth)
        elif depth >= 4:
            # The word ends with the last channel: nothing behind the data is read.
            yield f"ldr {low}, [r1, #-{4 - channels}]"
            yield from added("r1", depth, high)
            yield f"lsr {low}, {low}, #{8 * (4 - channels)}"
        elif channels == 1:
            yield from self._loaded("ldrb", low, depth)
        elif channels == 2:
            yield from self._loaded("ldrh", low, depth)
        else:
            yield f"ldrb {high}, [r1, #2]"
            yield from self._loaded("ldrh", low, depth)
            yield f"orr {low}, {low}, {high}, lsl #16"
        yield f"sxtb16 {high}, {low}, ror #8"
        yield f"sxtb16 {low}, {low}"

    def _loaded(self, operation: str, register: str, depth: int) -> Iterator[str]:
        if depth <= 255:
            yield f"{operation} {register}, [r1], #{depth}"
            return
        yield f"{operation} {register}, [r1]"
        yield from added("r1", depth, "r9")

    def _store(self) -> Iterator[str]:
        """Yield the stores of two columns of four channels: a word has the first column in its low half.

        r4 and r5 have the first column, r6 and r7 the second one: of int8 channels 0 and 2, 1 and 3; of int16 channels
        0 and 1, 2 and 3.
        """
        if self.item == 1:
            yield "pkhtb r9, r6, r4, asr #16"
            yield "pkhtb r10, r7, r5, asr #16"
            yield "pkhbt r5, r5, r7, lsl #16"
        else:
            yield "pkhbt r9, r5, r7, lsl #16"
            yield "pkhtb r10, r7, r5, asr #16"
            yield "pkhtb r5, r6, r4, asr #16"
        yield "pkhbt r4, r4, r6, lsl #16"
        yield "stm r0!, {r4, r5, r9, r10}"

    def _filling(self, words: int) -> Iterator[str]:
        for _ in range(words * CHANNELS // 2):
            yield "strd r3, r3, [r0], #8"
