# SPDX-License-Identifier: Apache-2.0
"""Strips: the rows under a row of results, which are copied with their padding, so that no window is at an edge.

Also the offsets of gathers that load small windows at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.emission.function import Lines, Parameter
from opwest.compiler.graph.types import Shape
from opwest.compiler.kernels.mve.epilogue import NUMBERS, Assembly
from opwest.compiler.semantics.windows import Window, row_of

MOST = 1024
"""The most bytes of a strip."""


@dataclass(frozen=True)
class Strip:
    """The strip of windows over data [n,h,w,c] whose channels are counted in bytes."""

    window: Window
    data: Shape

    @property
    def pitch(self) -> int:
        """The bytes of a row."""
        return self.window.span(1) * self.data[3]

    @property
    def size(self) -> int:
        """The bytes of all rows."""
        return self.window.size[0] * self.pitch

    @property
    def windows(self) -> Window:
        """The windows of a row of results over the strip."""
        window = self.window
        return Window(window.size, (1, window.stride[1]), (1, window.dilation[1]), (0, 0), (1, window.result[1]))

    @property
    def shape(self) -> Shape:
        """The shape of the strip, with channels that are counted in bytes."""
        return (1, self.window.size[0], self.window.span(1), self.data[3])

    @property
    def parameter(self) -> Parameter:
        """The scratch memory; loads of whole vectors read behind the last row."""
        return Parameter("strip", "int32", "scratch", elements=(self.size + 16 + 3) // 4)

    def is_faster(self, inside: int) -> bool:
        """Whether it takes fewer instructions than copies of windows at the edges; `inside`: the other windows."""
        (rows, columns), (kh, kw), (_, height, width, _) = self.window.result, self.window.size, self.data
        if not self.window.is_padded((height, width)) or self.size > MOST:
            return False
        if not row_of(self.window.before[1], width, self.window.span(1))[1]:
            return False
        copies = rows * kh * (self.pitch * 3 // 16 + 15)
        return copies < (rows * columns - inside) * kh * (36 if self.window.dilation[1] == 1 else 20 * kw)

    @contextmanager
    def rows(self, lines: Lines) -> Iterator[None]:
        """Append the loops over images `from` and rows of results, and the copy of the rows under each to `padded`."""
        window, (images, height, width, depth) = self.window, self.data
        first, inside, _ = row_of(window.before[1], width, window.span(1))
        lines.add(f"const int fill = numbers[{NUMBERS.index('fill')}];", "int8_t *padded = (int8_t *)strip;", "")
        lines.add(f"mve_fill(padded, fill, {self.size});")
        image = "from" if images == 1 else f"from + n * {height * width * depth}"
        with lines.repeat("n", images), lines.loop("oy", window.result[0]):
            with lines.loop("ky", window.size[0]):
                place = f"oy * {window.stride[0]} - {window.before[0]} + ky * {window.dilation[0]}"
                lines.add(f"const int iy = {place};", f"int8_t *to = padded + ky * {self.pitch};", "")
                with lines.block(f"if (iy < 0 || iy >= {height})"):
                    lines.add(f"mve_fill(to, fill, {self.pitch});")
                with lines.block("else"):
                    lines.add(f"mve_copy(to + {first * depth}, {image} + iy * {width * depth}, {inside * depth});")
            yield


def gathered(window: Window, data: Shape) -> list[int]:
    """Return the places of the bytes of a window, or of a row of one that is dilated, if one gather loads them.

    Empty: not one gather, or a load without one.
    """
    (kh, kw), (dy, dx), depth = window.size, window.dilation, data[3]
    is_joined, pitch = dx == 1 or kw == 1, dy * data[2] * depth
    if kh == 1 and is_joined:
        return []
    for rows in (kh,) if is_joined else (kh, 1):
        places = [y * pitch + x * dx * depth + c for y in range(rows) for x in range(kw) for c in range(depth)]
        if len(places) <= 16 and max(places) < 256:
            return places
    return []


def add_offsets(code: Assembly, places: list[int]) -> None:
    """Append the offsets of a gather in q1; those of the lanes without one are 0. r3 and r4 are changed."""
    words = np.asarray(places + [0] * (16 - len(places)), np.uint8).view("<u4")
    for first in range(2):
        for register, word in zip(("r3", "r4"), words[first::2], strict=True):
            code.constant(register, int(word))
        code.add(f"vmov q1[{first + 2}], q1[{first}], r3, r4")
