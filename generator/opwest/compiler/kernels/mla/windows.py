# SPDX-License-Identifier: Apache-2.0
"""Windows of an image as widened rows for `pairs`: row by row of the window, or byte by byte where rows are odd."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.emission.expressions import plus, times
from opwest.compiler.emission.function import Lines, number
from opwest.compiler.graph.types import Shape
from opwest.compiler.kernels.assembly import naked
from opwest.compiler.kernels.mla.assembly import REGISTERS
from opwest.compiler.kernels.mla.pairs import OFFSET
from opwest.compiler.semantics.windows import Window

MAX_OFFSET = 4095
"""The greatest offset of a load."""
MAX_SMALL = 64
"""Elements of a window that is widened without loops."""
MAX_INLINE = 48
"""Bytes that are copied word by word instead of by memcpy()."""


@dataclass(frozen=True)
class Windows:
    """Windows [kh,kw,c] of data [n,h,w,c]."""

    window: Window
    data: Shape
    zero: int
    """The value of padding."""

    @property
    def row(self) -> int:
        """The elements of a row of a window."""
        return self.window.size[1] * self.data[3]

    @property
    def length(self) -> int:
        """The elements of a window."""
        return self.window.size[0] * self.row

    @property
    def is_direct(self) -> bool:
        """Whether rows of windows can be widened one after the other."""
        if self.window.dilation[1] > 1:
            return False
        return not self._pads[0] if self.window.size[0] == 1 else self.row % 2 == 0

    @property
    def scratch(self) -> int:
        """The bytes that `add` needs: a row that reaches outside of the image, or a whole window."""
        if self.is_small:
            return self.length if any(self._pads) else 0
        if not self.is_direct:
            return self.length
        return self.row if self._pads[1] else 0

    @property
    def is_small(self) -> bool:
        """Whether a function without loops widens windows inside of the image."""
        return self.length <= MAX_SMALL and self.offsets[-1] <= MAX_OFFSET

    @property
    def offsets(self) -> list[int]:
        """The places of the elements of a window, from that of the first one."""
        (dy, dx), (kh, kw), depth = self.window.dilation, self.window.size, self.data[3]
        return [
            (ky * dy * self.data[2] + kx * dx) * depth + c for ky in range(kh) for kx in range(kw) for c in range(depth)
        ]

    @property
    def _pads(self) -> tuple[bool, bool]:
        """Whether a window reaches outside of the image, by rows and by columns."""
        return self.window.pads((self.data[1], self.data[2]))

    @contextmanager
    def loop(self, lines: Lines, rows: int, load: Callable[[], None]) -> Iterator[None]:
        """Append the loops over windows of an `image`; the context appends the use of `rows` windows.

        `load` appends the copy of a window to the place `filled`.
        """
        batches, height, width, depth = self.data
        with lines.loop("n", batches):
            lines.add(f"const int8_t *image = data + n * {height * width * depth};", "")
            with lines.loop("oy", self.window.result[0]), lines.loop("ox", self.window.result[1]):
                with lines.block(""):
                    load()
                with lines.block(f"if (++filled < {rows})"):
                    lines.add("continue;")
                lines.add("filled = 0;")
                yield

    def add_small(self, lines: Lines, to: str, pack: str, small: str) -> None:
        """Append the widening of the window at oy, ox of `image` to the pointer `to` by the function `small`."""
        (_, _, width, depth), (sy, sx), (top, left) = self.data, self.window.stride, self.window.before
        inside = [
            f"{name} >= 0 && {name} <= {self.data[1 + axis] - self.window.reach(axis)}"
            for axis, name in enumerate(("y0", "x0"))
            if self._pads[axis]
        ]
        lines.add(f"const int y0 = {times('oy', sy)}{plus(-top)}, x0 = {times('ox', sx)}{plus(-left)};", "")
        with lines.block(f"if ({' && '.join(inside)})") if inside else nullcontext():
            lines.add(f"{small}({to}, image + (y0 * {width} + x0) * {depth});")
        if inside:
            with lines.block("else"):
                self.add_bytes(lines, "edge", False)
                lines.add(f"{pack}({to}, edge, {self.length});")

    def small(self, layout: int, way: str) -> tuple[str, str]:
        """Return the name and the definition of the function for `add_small`: the first word, the first element."""
        offsets = self.offsets
        (kh, kw), (dy, dx) = self.window.size, self.window.dilation
        name = f"mla_window_{kh}x{kw}x{self.data[3]}_dilation{dy}x{dx}_{self.data[2]}_to{layout}"
        lines = ["push {r4-r11, lr}"]
        registers = REGISTERS[2:]
        for first in range(0, len(offsets), len(registers)):
            some = list(zip(offsets[first:], registers, strict=False))
            lines += [f"ldrsb {register}, [r1, #{offset}]" for offset, register in some]
            for place in range(0, len(some), 2):
                low = some[place][1]
                if place + 1 < len(some):
                    lines.append(f"add {low}, {low}, {some[place + 1][1]}, lsl #16")
                if way != "rounded":
                    lines.append(f"add {low}, {low}, #{OFFSET}")
                lines.append(f"str {low}, [r0], #{4 * layout}")
        known = "" if way == "rounded" else "_known"
        return name + known, naked(name + known, ("int32_t *to", "const int8_t *from"), [*lines, "pop {r4-r11, pc}"])

    def add_direct(self, lines: Lines, to: str, pack: str, layout: int, fill: int) -> None:
        """Append the widening of the window at oy, ox of `image` to the pointer `to`; `fill` is a word of padding."""
        (_, height, width, depth), (kh, kw) = self.data, self.window.size
        pads_y, pads_x = self._pads
        lines.add(f"const int x0 = {times('ox', self.window.stride[1])}{plus(-self.window.before[1])};")
        lines.add(f"int32_t *to = {to};", "")
        with lines.repeat("ky", kh):
            ky = f" + {times('ky', self.window.dilation[0])}" if kh > 1 else ""
            lines.add(f"const int iy = {times('oy', self.window.stride[0])}{ky}{plus(-self.window.before[0])};", "")
            if pads_y:
                with lines.block(f"if (iy < 0 || iy >= {height})"):
                    with lines.block(f"for (int k = 0; k < {-(-self.row // 2)}; k++, to += {layout})"):
                        lines.add(f"*to = {number(fill, 'int32')};")
                    lines.add("continue;")
            assign = "to = " if kh > 1 else ""
            whole = f"{assign}{pack}(to, image + (iy * {width} + x0) * {depth}, {self.row});"
            if not pads_x:
                lines.add(whole)
                return
            with lines.block(f"if (x0 >= 0 && x0 <= {width - kw})"):
                lines.add(whole)
            with lines.block("else"):
                lines.add("int8_t *t = edge;", "")
                self._columns(lines)
                lines.add(f"{assign}{pack}(to, edge, {self.row});")

    def _columns(self, lines: Lines) -> None:
        """Append the copy of a row to `t`, column by column."""
        (_, _, width, depth), dilation = self.data, self.window.dilation[1]
        with lines.block(f"for (int kx = 0; kx < {self.window.size[1]}; kx++, t += {depth})"):
            lines.add(f"const int ix = x0 + {times('kx', dilation)};", "")
            if self._pads[1]:
                with lines.block(f"if (ix < 0 || ix >= {width})"):
                    lines.add(f"memset(t, {self.zero}, {_size(depth)});")
            with lines.block("else") if self._pads[1] else nullcontext():
                lines.add(f"const int8_t *from = image + {times(f'(iy * {width} + ix)', depth)};")
                lines.add(*copied("t", "from", depth))

    def add_bytes(self, lines: Lines, to: str, declares: bool = True) -> None:
        """Append the copy of the window at oy, ox of `image` to the bytes `to`; `declares`: also x0."""
        (_, height, width, depth), (kh, kw) = self.data, self.window.size
        pads_y, pads_x = self._pads
        if declares:
            lines.add(f"const int x0 = {times('ox', self.window.stride[1])}{plus(-self.window.before[1])};")
        lines.add(f"int8_t *t = {to};", "")
        with lines.loop("ky", kh):
            step = times("ky", self.window.dilation[0])
            lines.add(
                f"const int iy = {times('oy', self.window.stride[0])} + {step}{plus(-self.window.before[0])};", ""
            )
            if pads_y:
                with lines.block(f"if (iy < 0 || iy >= {height})"):
                    lines.add(f"memset(t, {self.zero}, {_size(self.row)});", f"t += {self.row};", "continue;")
            if self.window.dilation[1] > 1:
                self._columns(lines)
                return
            with lines.block(f"if (x0 >= 0 && x0 <= {width - kw})") if pads_x else nullcontext():
                lines.add(f"const int8_t *from = image + {times(f'(iy * {width} + x0)', depth)};", "")
                lines.add(*copied("t", "from", self.row), f"t += {self.row};")
            if pads_x:
                with lines.block("else"):
                    self._columns(lines)


def _size(count: int) -> str:
    """Return the size argument of memset(); for a size of 1, checkpatch expects that arguments are swapped."""
    return str(count) if count > 1 else "sizeof(*t)"


def copied(to: str, source: str, count: int) -> list[str]:
    """Return statements that copy bytes."""
    if count > MAX_INLINE:
        return [f"memcpy({to}, {source}, {count});"]
    copies, place = [], 0
    for size in (4, 2, 1):
        while count - place >= size:
            at = f" + {place}" if place else ""
            copies.append(f"__builtin_memcpy({to}{at}, {source}{at}, {size});")
            place += size
    return copies
