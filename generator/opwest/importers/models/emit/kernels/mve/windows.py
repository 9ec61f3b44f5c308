# SPDX-License-Identifier: Apache-2.0
"""Windows of images as rows of scratch memory: those inside of the image by assembly, those at its edges by C."""

from __future__ import annotations

from opwest.importers.models.emit.kernels.mve.assembly import COPY, FILL, NAKED, Assembly
from opwest.importers.models.emit.kernels.mve.pairs import padded
from opwest.importers.models.emit.text import Lines
from opwest.importers.models.graph.types import Shape
from opwest.importers.models.operators.windows import Window
from opwest.records import dataclass


@dataclass(frozen=True)
class Windows:
    """Windows over data [n,h,w,c] whose channels are counted in bytes."""

    window: Window
    data: Shape

    @property
    def length(self) -> int:
        """The bytes of a window."""
        return self.window.size[0] * self.window.size[1] * self.data[3]

    @property
    def is_joined(self) -> bool:
        """Whether the columns of a row of a window follow each other."""
        return self.window.dilation[1] == 1

    def inside(self, axis: int) -> tuple[int, int]:
        """Return the first window inside of the image along an axis, and the end of these windows."""
        window = self.window
        reach = (window.size[axis] - 1) * window.dilation[axis] + 1
        first = -(-window.before[axis] // window.stride[axis])
        last = (self.data[1 + axis] - reach + window.before[axis]) // window.stride[axis] + 1
        return first, max(first, min(last, window.result[axis]))

    @property
    def has_inside(self) -> bool:
        """Whether any window is inside of the image."""
        return all(first < end for first, end in map(self.inside, range(2)))

    @property
    def name(self) -> str:
        """The part of names that stands for the shape of a window."""
        (kh, kw), (dy, dx) = self.window.size, self.window.dilation
        dilated = f"_d{dy}x{dx}" if (dy, dx) != (1, 1) else ""
        return f"{kh}x{kw}x{self.data[3]}_w{self.data[2]}{dilated}"

    def definitions(self) -> tuple[str, ...]:
        """Return the functions for the windows, and what they use."""
        is_padded = self.window.is_padded((self.data[1], self.data[2]))
        inner = (self._inner(),) if self.has_inside else ()
        return (NAKED, *inner, *((COPY, FILL, self._edge()) if is_padded else ()))

    @property
    def inner(self) -> str:
        """The name of the function for windows inside of the image."""
        return f"mve_windows_{self.name}_s{self.window.stride[1]}"

    @property
    def edge(self) -> str:
        """The name of the function for windows at its edges."""
        return f"mve_edge_{self.name}_h{self.data[1]}"

    def _inner(self) -> str:
        """Return the copy of windows that follow each other in a row of results."""
        (kh, kw), (dy, dx), depth = self.window.size, self.window.dilation, self.data[3]
        pitch = self.data[2] * depth
        part = kw * depth if self.is_joined else depth
        starts = [y * dy * pitch + x * dx * depth for y in range(kh) for x in range(1 if self.is_joined else kw)]
        code = Assembly()
        code.add("push {r4, lr}")
        rest, vectors = part % 16, part // 16
        if rest:
            code.add(f"movs r3, #{rest}", "vctp.8 r3")
        code.add("dls lr, r2", "2:")
        at = 0
        for start in starts:
            code.plus("r1", start - at, "r4")
            # Offsets are at most 127; the last part of a row is loaded from its start.
            if vectors > 7:
                code.add(f"movs r4, #{vectors}" if vectors < 256 else f"movw r4, #{vectors}", "3:")
                code.add("vldrb.8 q0, [r1], #16", "vstrb.8 q0, [r0], #16", "subs r4, #1", "bne 3b")
                at = start + 16 * vectors
            else:
                for number in range(vectors):
                    code.add(f"vldrb.8 q0, [r1, #{16 * number}]", "vstrb.8 q0, [r0], #16")
                at = start
            if rest:
                offset = start + 16 * vectors - at
                # What is stored beyond a part is overwritten by the next one, or multiplied by zeros.
                code.add("vpst", f"vldrbt.u8 q0, [r1, #{offset}]", f"vstrb.8 q0, [r0], #{rest}")
        code.plus("r1", self.window.stride[1] * depth - at, "r4")
        code.plus("r0", padded(self.length) - self.length, "r4")
        code.add("le lr, 2b", "pop {r4, pc}")
        comment = f"Copies of windows of {kh} x {kw} x {depth} bytes."
        return code.function(self.inner, ["int8_t *to", "const int8_t *from", "int count"], comment)

    def _edge(self) -> str:
        """Return the copy of one window that may reach outside of the image."""
        _, height, width, depth = self.data
        (kh, kw), (dy, dx) = self.window.size, self.window.dilation
        lines = Lines()
        part = kw * depth
        with lines.block(f"for (int ky = 0; ky < {kh}; ky++, y += {dy}, to += {part})"):
            with lines.block(f"if (y < 0 || y >= {height})"):
                lines.add(f"mve_fill(to, fill, {part});", "continue;")
            lines.add("", f"const int8_t *from = image + (y * {width} + x) * {depth};", "")
            if self.is_joined:
                lines.add("const int before = x < 0 ? -x : 0;")
                lines.add(f"const int after = x > {width - kw} ? x - {width - kw} : 0;", "")
                with lines.block("if (before || after)"):
                    lines.add(f"mve_fill(to, fill, {part});")
                with lines.block(f"if (before + after < {kw})"):
                    place = "to + before * {0}, from + before * {0}, ({1} - before - after) * {0}"
                    lines.add(f"mve_copy({place.format(depth, kw)});")
            else:
                with lines.loop("kx", kw):
                    lines.add(f"const int column = x + kx * {dx};", "")
                    with lines.block(f"if (column < 0 || column >= {width})"):
                        lines.add(f"mve_fill(to + kx * {depth}, fill, {depth});")
                    with lines.block("else"):
                        lines.add(f"mve_copy(to + kx * {depth}, from + kx * {dx * depth}, {depth});")
        head = f"static void {self.edge}(int8_t *to, const int8_t *image, int y, int x, int fill)"
        return f"/* The copy of a window that reaches outside of the image. */\n{head}\n{{\n{lines}}}\n"
