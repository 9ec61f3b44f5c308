# SPDX-License-Identifier: Apache-2.0
"""Copy a window of an image to contiguous memory, with the zero point in place of the padding."""

from __future__ import annotations

from opwest.importers.models.emit.function import c_type
from opwest.importers.models.emit.text import Lines
from opwest.importers.models.graph.types import Shape
from opwest.importers.models.operators.windows import Window
from opwest.records import dataclass

BYTES = {"int8": 1, "uint8": 1, "int16": 2, "float32": 4}


@dataclass(frozen=True)
class Gather:
    """Windows [kh,kw,channels] of data [n,h,w,c]."""

    window: Window
    data: Shape
    channels: int
    """The channels of a window: those of a group."""
    dtype: str
    fill: str
    """The value of padding. For dtypes of several bytes it is 0."""

    @property
    def length(self) -> int:
        """The elements of a window."""
        return self.window.size[0] * self.window.size[1] * self.channels

    def add(self, lines: Lines, to: str, source: str) -> None:
        """Append the copy of the window at oy, ox to the pointer `to`; `source` is the image's first element."""
        (height, width), (kh, kw) = self.data[1:3], self.window.size
        (sy, sx), (dy, dx), (top, left) = self.window.stride, self.window.dilation, self.window.before
        rows, columns = self.window.result
        item, channels = BYTES[self.dtype], self.channels
        pads_y = top > 0 or (rows - 1) * sy + (kh - 1) * dy - top >= height
        pads_x = left > 0 or (columns - 1) * sx + (kw - 1) * dx - left >= width
        is_joined = dx == 1 and channels == self.data[3]
        row = kw * channels
        fill = f"memset(t, {self.fill}, {{}});"
        lines.add(f"const int x0 = ox{_times(sx)}{_minus(left)};", f"{c_type(self.dtype)} *t = {to};", "")
        with lines.loop("ky", kh):
            lines.add(f"const int iy = oy{_times(sy)} + ky{_times(dy)}{_minus(top)};", "")
            if pads_y:
                with lines.block(f"if (iy < 0 || iy >= {height})"):
                    lines.add(fill.format(row * item), f"t += {row};", "continue;")
            if is_joined and pads_x:
                with lines.block(f"if (x0 >= 0 && x0 <= {width - kw})"):
                    self._copy_row(lines, source, row * item, row)
                    lines.add("continue;")
            elif is_joined:
                self._copy_row(lines, source, row * item, row)
                return
            with lines.loop("kx", kw):
                lines.add(f"const int ix = x0 + kx{_times(dx)};", "")
                copy = f"memcpy(t, {source} + (iy * {width} + ix) * {self.data[3]}, {channels * item});"
                if pads_x:
                    with lines.block(f"if (ix < 0 || ix >= {width})"):
                        lines.add(fill.format(channels * item))
                    with lines.block("else"):
                        lines.add(copy)
                else:
                    lines.add(copy)
                lines.add(f"t += {channels};")

    def _copy_row(self, lines: Lines, source: str, size: int, row: int) -> None:
        width = self.data[2]
        lines.add(f"memcpy(t, {source} + (iy * {width} + x0) * {self.data[3]}, {size});", f"t += {row};")


def _times(factor: int) -> str:
    return "" if factor == 1 else f" * {factor}"


def _minus(less: int) -> str:
    return f" - {less}" if less else ""
