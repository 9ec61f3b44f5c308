# SPDX-License-Identifier: Apache-2.0
"""Convolutions: windows are copied to a few rows of scratch memory, which are multiplied by packed weights."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.emission.function import Call, Lines, Parameter, c_type, call_for, emits
from opwest.compiler.graph.types import Shape
from opwest.compiler.ir.operations import Convolution, ConvolutionSum
from opwest.compiler.kernels.assembly import NAKED
from opwest.compiler.kernels.mve import pairs
from opwest.compiler.kernels.mve.elements import Loop, loop_of
from opwest.compiler.kernels.mve.epilogue import COPY, FILL, NUMBERS, Assembly
from opwest.compiler.kernels.mve.pairs import ITEMS, is_single, layer_of, padded
from opwest.compiler.semantics.windows import Window


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
        first = -(-window.before[axis] // window.stride[axis])
        last = (self.data[1 + axis] - window.reach(axis) + window.before[axis]) // window.stride[axis] + 1
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


ROWS = 1024
"""The bytes of scratch memory for rows, unless two need more."""


@dataclass(frozen=True, eq=False)
class Kernel:
    """A C function void f(rows, numbers, result, count) and its numbers."""

    name: str
    text: str
    numbers: Any
    """The number of the padding is that of NUMBERS."""
    helpers: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()


@emits(ConvolutionSum, "mve-rows")
@emits(Convolution, "mve-rows", has_pitch=True)
def render(operation: Convolution) -> Call | None:
    """Return the call; None for a single row, other dtypes, groups, and ends that differ."""
    layer = layer_of(operation)
    if layer is None or is_single(operation):
        return None
    weights, bias, ending = layer
    channels, length = weights.shape
    item = ITEMS[operation.inputs[0].dtype]
    name, text = pairs.function_of(length, channels, ending, item, operation.results[0].pitch)
    total = loop_of(operation.function, channels) if isinstance(operation, ConvolutionSum) else None
    if isinstance(operation, ConvolutionSum) and total is None:
        return None
    return call_of(operation, Kernel(name, text, pairs.packed(weights, bias, ending, operation.zero, item)), total)


def call_of(operation: Convolution, kernel: Kernel, total: Loop | None = None) -> Call:
    """Return the call that copies windows and multiplies them by a function. `total`: of a ConvolutionSum."""
    data, result = operation.inputs[0], operation.results[0]
    channels, _, _, depth = operation.weights.shape
    item, count = ITEMS[data.dtype], result.size // channels
    shape = data.shape if len(data.shape) == 4 else (1, 1, 1, data.size)
    shape, window = (*shape[:3], depth * item), operation.window
    is_plain = window.is_pointwise and count * depth == data.size
    if is_plain:
        shape = (1, 1, count, depth * item)
        window = Window((1, 1), (1, 1), (1, 1), (0, 0), (1, count))
    windows = Windows(window, shape)
    row = pairs.padded(windows.length)
    held = max(2, min(ROWS // row, count + 1) & ~1)
    place = operation.place if isinstance(operation, ConvolutionSum) else 0
    write = _Write(kernel.name, channels, result.pitch or channels, total, place)
    lines = Lines()
    lines.add(f"const int8_t *from = {'' if item == 1 else '(const int8_t *)'}data;")
    if is_plain:
        _plain(lines, windows, write, (count, held), c_type(data.dtype))
    else:
        _general(lines, windows, write, held, c_type(data.dtype))
    # The rows of a block are copied before its results are written.
    can_replace = is_plain and channels <= depth and not result.pitch
    arguments = {"data": data, "numbers": kernel.numbers}
    scratch = [Parameter("rows", "int32", "scratch", elements=(held * row + 16) // 4)]
    definitions = windows.definitions()
    if total is not None:
        arguments |= {"total": total.numbers, "other": operation.inputs[1]}
        scratch.append(Parameter("part", "int8", "scratch", elements=held * channels))
        definitions = (*definitions, NAKED, total.text)
    return call_for(
        operation,
        "convolution",
        lines,
        arguments,
        (*(["data"] * can_replace), *(["other"] * (total is not None))),
        scratch,
        helpers=kernel.helpers,
        headers=kernel.headers,
        definitions=(*definitions, kernel.text),
    )


@dataclass(frozen=True, eq=False)
class _Write:
    """Writes the results of rows, or their sums with another tensor."""

    name: str
    channels: int
    pitch: int
    """The elements from one row of the result to the next."""
    total: Loop | None
    place: int
    """The operand of the sum that the results are."""

    def add(self, lines: Lines, result: str, count: int | str) -> None:
        """Append the calls for `count` rows."""
        if self.total is None:
            lines.add(f"{self.name}(held, numbers, {result}, {count});")
            return
        other = f"other + ({result} - result)"
        operands = (other, "part") if self.place else ("part", other)
        elements = count * self.channels if isinstance(count, int) else f"{count} * {self.channels}"
        lines.add(
            f"{self.name}(held, numbers, part, {count});",
            f"{self.total.name}({', '.join(operands)}, total, {result}, {elements});",
        )


def _plain(lines: Lines, windows: Windows, write: _Write, counts: tuple[int, int], kind: str) -> None:
    """Append a loop over blocks of rows of the data."""
    count, held = counts
    length = windows.length
    lines.add("int8_t *held = (int8_t *)rows;")
    if count <= held:
        lines.add("", f"{windows.inner}(held, from, {count});")
        write.add(lines, "result", count)
        return
    lines.add("")
    with lines.block(f"for (int row = 0; row < {count}; row += {held})"):
        lines.add(f"const int count = row < {count - held} ? {held} : {count} - row;")
        lines.add(f"{kind} *y = result + row * {write.pitch};", "")
        lines.add(f"{windows.inner}(held, from + row * {length}, count);")
        write.add(lines, "y", "count")


def _general(lines: Lines, windows: Windows, write: _Write, held: int, kind: str) -> None:
    """Append loops that copy windows, and multiply them when the rows are full."""
    window, (images, height, width, depth) = windows.window, windows.data
    (top, left), (sy, sx) = window.before, window.stride
    row = pairs.padded(windows.length)
    (first_row, end_row), (first, end) = windows.inside(0), windows.inside(1)
    is_padded = window.is_padded((height, width))
    if is_padded:
        lines.add(f"const int fill = numbers[{NUMBERS.index('fill')}];")
    lines.add("int8_t *held = (int8_t *)rows;", f"{kind} *y = result;", "int filled = 0;", "")
    image = "from" if images == 1 else f"from + n * {height * width * depth}"
    with lines.repeat("n", images), lines.loop("oy", window.result[0]):
        lines.add(f"const int8_t *image = {image};", f"const int y0 = oy * {sy} - {top};")
        lines.add("int ox = 0;", "")
        with lines.block(f"while (ox < {window.result[1]})"):
            lines.add(f"const int x0 = ox * {sx} - {left};", f"int8_t *to = held + filled * {row};", "")
            if windows.has_inside:
                limits = [f"oy >= {first_row}"] * (first_row > 0) + [f"oy < {end_row}"] * (end_row < window.result[0])
                limits += [f"ox >= {first}"] * (first > 0) + [f"ox < {end}"] * (end < window.result[1])
                with lines.block(f"if ({' && '.join(limits)})") if is_padded else nullcontext():
                    lines.add(f"const int more = {end} - ox;", f"const int room = {held} - filled;")
                    lines.add("const int count = more < room ? more : room;", "")
                    lines.add(f"{windows.inner}(to, image + (y0 * {width} + x0) * {depth}, count);")
                    lines.add("ox += count;", "filled += count;")
            if is_padded:
                with lines.block("else" if windows.has_inside else ""):
                    lines.add(f"{windows.edge}(to, image, y0, x0, fill);", "ox++;", "filled++;")
            with lines.block(f"if (filled == {held})"):
                write.add(lines, "y", held)
                lines.add(f"y += {held * write.pitch};", "filled = 0;")
    rest = images * window.result[0] * window.result[1] % held
    if rest:
        write.add(lines, "y", rest)
