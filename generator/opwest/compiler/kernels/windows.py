# SPDX-License-Identifier: Apache-2.0
"""The rows under the windows of one row of results: those of the data, or a buffer of them with their padding."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.emission.expressions import times
from opwest.compiler.emission.function import Lines
from opwest.compiler.graph.types import Shape
from opwest.compiler.kernels.assembly import COPY, FILL
from opwest.compiler.semantics.windows import Window, row_of


def used_copies(lines: Lines) -> list[str]:
    """Return the definitions of the copies that a body calls."""
    text = str(lines)
    return [definition for name, definition in (("copy_bytes(", COPY), ("fill_bytes(", FILL)) if name in text]


@dataclass(frozen=True)
class Rows:
    """Rows of data [n,h,w,c] in the order of a window's rows."""

    data: Shape
    window: Window
    item: int = 1
    """The bytes of an element."""
    is_copied: bool = False
    """Whether rows are copied also without padding."""
    source: str = "data"
    """The pointer to the bytes of the data."""
    functions: tuple[str, str] = ("copy_bytes", "fill_bytes")
    """The names of the functions that copy and fill bytes: those of `assembly.py`, or others with their parameters."""

    @property
    def is_padded(self) -> bool:
        """Whether windows reach outside of the data, so that rows are copied."""
        return self.window.is_padded((self.data[1], self.data[2]))

    @property
    def is_kept(self) -> bool:
        """Whether the rows are in the buffer."""
        return self.is_copied or self.is_padded

    @property
    def depth(self) -> int:
        """The bytes of a column."""
        return self.data[3] * self.item

    @property
    def pitch(self) -> int:
        """The bytes from a row to the next one."""
        if not self.is_kept:
            return self.data[2] * self.depth
        return self.window.span(1) * self.depth

    @property
    def size(self) -> int:
        """The bytes of the buffer; 0 without one."""
        return self.window.reach(0) * self.pitch if self.is_kept else 0

    @contextmanager
    def loop(self, lines: Lines, buffer: str, fill: str) -> Iterator[str]:
        """Append the loops over images and rows of results; yield the pointer to the first window of a row."""
        n, height, width, _ = self.data
        (stride, _), (top, _) = self.window.stride, self.window.before
        copy = self.functions[0]
        image = self.source if n == 1 else f"{self.source} + n * {height * width * self.depth}"
        with lines.repeat("n", n):
            if self.is_kept:
                lines.add("int next = 0;", "")
            with lines.loop("oy", self.window.result[0]):
                if not self.is_kept:
                    lines.add(f"const int8_t *row = {image} + oy * {stride * self.pitch};", "")
                    yield "row"
                    return
                reach = self.window.reach(0)
                kept = reach - stride
                if kept > 0:
                    with lines.block("if (oy > 0)"):
                        lines.add(f"{copy}({buffer}, {buffer} + {stride * self.pitch}, {kept * self.pitch});")
                elif kept < 0:
                    lines.add(f"next = oy * {stride};")
                with lines.block(f"for (; next < oy * {stride} + {reach}; next++)"):
                    self._load(lines, f"{buffer} + (next - oy * {stride}) * {self.pitch}", image, top, fill)
                lines.add(f"const int8_t *row = {buffer};", "")
                yield "row"

    @contextmanager
    def ring(self, lines: Lines, buffer: str, fill: str) -> Iterator[None]:
        """Append the loops over images and rows of results, with an array `window` of pointers to the rows of a window.

        No row in the buffer is moved: a row replaces the one that is no longer needed.
        """
        n, height, width, _ = self.data
        (stride, _), (top, _), reach = self.window.stride, self.window.before, self.window.reach(0)
        image = self.source if n == 1 else f"{self.source} + n * {height * width * self.depth}"
        step = self.window.dilation[0]
        with lines.repeat("n", n):
            if self.is_kept:
                lines.add("int next = 0;", "")
            with lines.loop("oy", self.window.result[0]):
                lines.add(f"const int8_t *window[{self.window.size[0]}];", "")
                if self.is_kept:
                    if stride > reach:
                        lines.add(f"next = oy * {stride};")
                    with lines.block(f"for (; next < oy * {stride} + {reach}; next++)"):
                        self._load(lines, f"{buffer} + next % {reach} * {self.pitch}", image, top, fill)
                with lines.loop("ky", self.window.size[0]):
                    row = f"oy * {stride} + {times('ky', step)}"
                    place = f"{buffer} + ({row}) % {reach}" if self.is_kept else f"{image} + ({row})"
                    lines.add(f"window[ky] = {place} * {self.pitch};")
                yield

    def _load(self, lines: Lines, to: str, image: str, top: int, fill: str) -> None:
        """Append the copy of the row `next`, counted from the first row of the padding."""
        _, height, width, _ = self.data
        depth, (copy, fill_bytes) = self.depth, self.functions
        left, inside, right = row_of(self.window.before[1], width, self.pitch // depth)
        lines.add(f"int8_t *to = {to};", "")
        if self.window.pads((height, width))[0]:
            with lines.block(f"if (next < {top} || next >= {top + height})"):
                lines.add(f"{fill_bytes}(to, {fill}, {self.pitch});", "continue;")
        if left:
            lines.add(f"to = {fill_bytes}(to, {fill}, {left * depth});")
        first = f"next - {top}" if top else "next"
        at = f"({first}) * {width * depth}" if top else f"next * {width * depth}"
        assign = "to = " if right else ""
        lines.add(f"{assign}{copy}(to, {image} + {at}, {inside * depth});")
        if right:
            lines.add(f"{fill_bytes}(to, {fill}, {right * depth});")
