# SPDX-License-Identifier: Apache-2.0
"""Convolutions: windows are copied to a few rows of scratch memory, which are multiplied by packed weights."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from opwest.importers.models.emit.function import Call, Function, Parameter, c_type
from opwest.importers.models.emit.kernels.mve import pairs
from opwest.importers.models.emit.kernels.mve.assembly import NAKED
from opwest.importers.models.emit.kernels.mve.elements import Loop, loop_of
from opwest.importers.models.emit.kernels.mve.ending import NUMBERS
from opwest.importers.models.emit.kernels.mve.layers import ITEMS, is_single, layer_of
from opwest.importers.models.emit.kernels.mve.windows import Windows
from opwest.importers.models.emit.registry import emits
from opwest.importers.models.emit.text import Lines
from opwest.importers.models.ir.operations import Convolution, ConvolutionSum
from opwest.importers.models.operators.windows import Window
from opwest.records import dataclass

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
    channels, item = len(weights), ITEMS[operation.inputs[0].dtype]
    flat = weights.reshape(channels, -1)
    name, text = pairs.function_of(flat.shape[1], channels, ending, item, operation.results[0].pitch)
    return call_of(operation, Kernel(name, text, pairs.packed(flat, bias, ending, operation.zero, item)))


def call_of(operation: Convolution, kernel: Kernel) -> Call:
    """Return the call that copies windows and multiplies them by a function."""
    data, result = operation.inputs[0], operation.results[0]
    channels, kh, kw, depth = operation.weights.shape
    item, count = ITEMS[data.dtype], result.size // channels
    shape = data.shape if len(data.shape) == 4 else (1, 1, 1, data.size)
    shape, window = (*shape[:3], depth * item), operation.window
    is_plain = (kh, kw) == window.stride == (1, 1) and window.before == (0, 0) and count * depth == data.size
    if is_plain:
        shape = (1, 1, count, depth * item)
        window = Window((1, 1), (1, 1), (1, 1), (0, 0), (1, count))
    windows = Windows(window, shape)
    row = pairs.padded(windows.length)
    held = max(2, min(ROWS // row, count + 1) & ~1)
    total = loop_of(operation.function, "int8") if isinstance(operation, ConvolutionSum) else None
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
    parameters = (
        Parameter("data", data.dtype),
        Parameter("numbers", "int32"),
        *([Parameter("total", "int32"), Parameter("other", "int8")] if total is not None else []),
        Parameter("result", data.dtype, "out", (*(["data"] * can_replace), *(["other"] * (total is not None)))),
        Parameter("rows", "int32", "scratch", elements=(held * row + 16) // 4),
        *([Parameter("part", "int8", "scratch", elements=held * channels)] if total is not None else []),
    )
    added = () if total is None else (NAKED, total.text)
    definitions = (*windows.definitions(), *added, kernel.text)
    function = Function("convolution", parameters, str(lines), kernel.helpers, kernel.headers, definitions=definitions)
    arrays = () if total is None else (total.numbers, operation.inputs[1])
    return Call(function, (data, kernel.numbers, *arrays, result), operation.label)


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
    with lines.loop("n", images) if images > 1 else nullcontext(), lines.loop("oy", window.result[0]):
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
