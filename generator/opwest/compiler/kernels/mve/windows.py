# SPDX-License-Identifier: Apache-2.0
"""Copies of windows to rows of scratch memory, each of whole vectors."""

from __future__ import annotations

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.emission.function import Lines
from opwest.compiler.graph.types import Shape
from opwest.compiler.kernels.assembly import NAKED
from opwest.compiler.kernels.mve.epilogue import COPY, FILL, Assembly
from opwest.compiler.kernels.mve.pairs import padded
from opwest.compiler.kernels.mve.strips import Strip, add_offsets, gathered
from opwest.compiler.semantics.windows import Window


@dataclass(frozen=True)
class Windows:
    """Windows over data [n,h,w,c] whose channels are counted in bytes."""

    window: Window
    data: Shape
    channels: int
    """The bytes of a column of a window: those of a group of channels."""
    item: int = 1
    """The bytes of an element."""

    @property
    def length(self) -> int:
        """The bytes of a window."""
        return self.window.size[0] * self.window.size[1] * self.channels

    @property
    def is_joined(self) -> bool:
        """Whether the columns of a row of a window follow each other."""
        return self.window.dilation[1] == 1 and self.channels == self.data[3]

    def inside(self, axis: int) -> tuple[int, int]:
        """Return the first window inside of the image along an axis, and the end of these windows."""
        return self.window.inside(axis, self.data[1 + axis])

    @property
    def has_inside(self) -> bool:
        """Whether any window is inside of the image."""
        return all(first < end for first, end in map(self.inside, range(2)))

    @property
    def name(self) -> str:
        """The part of names that stands for the shape of a window."""
        (kh, kw), (dy, dx) = self.window.size, self.window.dilation
        dilated = f"_d{dy}x{dx}" if (dy, dx) != (1, 1) else ""
        group = f"_c{self.channels}" if self.channels != self.data[3] else ""
        return f"{kh}x{kw}x{self.data[3]}_w{self.data[2]}{dilated}{group}"

    @property
    def strip(self) -> Strip | None:
        """The rows under a row of results, where it takes fewer instructions to copy them than windows at the edges."""
        if self.channels != self.data[3]:
            return None
        strip = Strip(self.window, self.data)
        (first_row, end_row), (first, end) = self.inside(0), self.inside(1)
        return strip if strip.is_faster((end_row - first_row) * (end - first)) else None

    def over(self, strip: Strip) -> Windows:
        """Return the windows of a row of results over a strip."""
        return Windows(strip.windows, strip.shape, self.channels, self.item)

    def definitions_over(self, strip: Strip) -> tuple[str, ...]:
        """Return the functions for the windows over a strip, and what they use."""
        return (NAKED, COPY, FILL, self.over(strip)._inner())

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
        places = gathered(self.window, self.data) if self.channels == depth else []
        part = len(places) or (kw if self.is_joined else 1) * self.channels
        columns = 1 if places or self.is_joined else kw
        starts = [
            y * dy * pitch + x * dx * depth for y in range(self.length // (part * columns)) for x in range(columns)
        ]
        code = Assembly()
        code.add("push {r4, lr}")
        if places:
            add_offsets(code, places)
        elif part % 16:
            code.add(f"movs r3, #{part % 16}", "vctp.8 r3")
        code.add("dls lr, r2", "2:")
        if places:
            at = self._gathers(code, starts, part)
        else:
            at = self._small_parts(code, starts, part) if part < 16 else self._parts(code, starts, part)
        code.plus("r1", self.window.stride[1] * depth - at, "r4")
        code.plus("r0", padded(self.length) - self.length, "r4")
        code.add("le lr, 2b", "pop {r4, pc}")
        comment = f"Copies of windows of {kh} x {kw} x {self.channels} bytes."
        return code.function(self.inner, ["int8_t *to", "const int8_t *from", "int count"], comment)

    def _gathers(self, code: Assembly, starts: list[int], part: int) -> int:
        """Append the gathers of parts by the offsets in q1; return the place of r1."""
        at = 0
        for start in starts:
            code.plus("r1", start - at, "r4")
            # The lanes behind a part are overwritten, or multiplied by zeros.
            code.add("vldrb.u8 q0, [r1, q1]", f"vstrb.8 q0, [r0], #{part}")
            at = start
        return at

    def _parts(self, code: Assembly, starts: list[int], part: int) -> int:
        """Append the copies of parts of a window; return the place of r1."""
        at, (vectors, rest) = 0, divmod(part, 16)
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
        return at

    def _small_parts(self, code: Assembly, starts: list[int], part: int) -> int:
        """Append the copies of parts below a vector, up to 4 with one predicate; return the place of r1."""
        at = 0
        while starts:
            if starts[0] - at > 127:
                code.plus("r1", starts[0] - at, "r4")
                at = starts[0]
            some = [start - at for start in starts[:4] if start - at <= 127]
            starts = starts[len(some) :]
            code.add(f"vps{'t' * len(some)}", *(f"vldrbt.u8 q{n}, [r1, #{place}]" for n, place in enumerate(some)))
            code.add(*(f"vstrb.8 q{number}, [r0], #{part}" for number in range(len(some))))
        return at

    def _edge(self) -> str:
        """Return the copy of one window that may reach outside of the image."""
        _, height, width, depth = self.data
        (kh, kw), (dy, dx) = self.window.size, self.window.dilation
        lines = Lines()
        size = self.channels
        part = kw * size
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
                        lines.add(f"mve_fill(to + kx * {size}, fill, {size});")
                    with lines.block("else"):
                        lines.add(f"mve_copy(to + kx * {size}, from + kx * {dx * depth}, {size});")
        head = f"static void {self.edge}(int8_t *to, const int8_t *image, int y, int x, int fill)"
        return f"/* The copy of a window that reaches outside of the image. */\n{head}\n{{\n{lines}}}\n"
