# SPDX-License-Identifier: Apache-2.0
"""Convolutions: windows are copied to a few rows of scratch memory, which are multiplied by packed weights."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.emission.convolution import has_nibbles
from opwest.compiler.emission.expressions import plus
from opwest.compiler.emission.function import Call, Lines, Parameter, c_type, call_for, emits
from opwest.compiler.ir.operations import Convolution, ConvolutionSum, Sums
from opwest.compiler.ir.program import Value
from opwest.compiler.kernels.assembly import NAKED
from opwest.compiler.kernels.mve import pairs
from opwest.compiler.kernels.mve.elements import Loop, loop_of
from opwest.compiler.kernels.mve.epilogue import NUMBERS
from opwest.compiler.kernels.mve.pairs import ITEMS, Taps, is_single, layer_of, sums_layer_of
from opwest.compiler.kernels.mve.strips import Strip
from opwest.compiler.kernels.mve.windows import Windows
from opwest.compiler.semantics.windows import Window

ROWS = 1024
"""The bytes of scratch memory for rows, unless two need more."""
GROUPED = 2 * ROWS
"""The bytes for rows with the channels of all groups."""


@dataclass(frozen=True, eq=False)
class Kernel:
    """A C function void f(rows, numbers, result, count) and its numbers, which are those of each group."""

    name: str
    text: str
    numbers: Any
    """The number of the padding is that of NUMBERS."""
    helpers: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    taps: Taps | None = None
    """The words of a group in rows with the channels of all groups."""


@emits(ConvolutionSum, "mve-rows")
@emits(Convolution, "mve-rows", has_pitch=True)
def render(operation: Convolution) -> Call | None:
    """Return the call; None for a single row, other dtypes, sums with groups, and ends that differ."""
    return _render(operation, is_packed=False)


@emits(ConvolutionSum, "mve-nibbles")
@emits(Convolution, "mve-nibbles", has_pitch=True)
def with_nibbles(operation: Convolution) -> Call | None:
    """Return the call with weights of 4 bits in flash; None for what `render` does not accept, and other weights."""
    is_byte = operation.inputs[0].dtype == "int8"
    return _render(operation, is_packed=True) if is_byte and has_nibbles(operation) else None


def _render(operation: Convolution, *, is_packed: bool) -> Call | None:
    layer = sums_layer_of(operation) if isinstance(operation.finish, Sums) else layer_of(operation)
    is_row = is_single(operation) and not isinstance(operation, ConvolutionSum)
    if layer is None or (is_row and not layer[2].is_sums):
        return None
    if operation.groups > 1 and isinstance(operation, ConvolutionSum):
        return None
    weights, bias, ending = layer
    groups, item, results = operation.groups, ITEMS[operation.inputs[0].dtype], len(weights) // operation.groups
    pitch = operation.results[0].pitch or (len(weights) if groups > 1 else 0)
    taps = taps_of(operation)
    weights = weights.reshape(groups, results, *weights.shape[1:])
    if taps is not None:
        weights = placed(weights, taps, operation.weights.shape[3], item)
    options = {"has_nibbles": is_packed}
    name, text = pairs.function_of(weights.shape[2], results, ending, item, pitch, taps, **options)
    numbers = []
    for group in range(groups):
        part = slice(group * results, (group + 1) * results)
        numbers.append(pairs.packed(weights[group], bias[part], ending.of(part), operation.zero, item, **options))
    total = loop_of(operation.function, len(operation.weights)) if isinstance(operation, ConvolutionSum) else None
    if isinstance(operation, ConvolutionSum) and total is None:
        return None
    return call_of(operation, Kernel(name, text, np.concatenate(numbers), taps=taps), total)


def taps_of(operation: Convolution) -> Taps | None:
    """Return the words of a group in windows with the channels of all groups; None for rows of a group.

    Windows of all groups have less edges to copy; words of a few channels are gathered.
    """
    data, inner, groups = operation.inputs[0], operation.weights.shape[3], operation.groups
    item = ITEMS[data.dtype]
    size, depth = inner * item, inner * item * groups
    lead = max(group * size % 4 for group in range(groups))
    words = -(-(lead + size) // 4)
    row = pairs.padded(operation.window.size[0] * operation.window.size[1] * depth)
    if groups == 1 or depth % 4 or words > 2 or 4 // words * depth > 508 or 2 * row > GROUPED:
        return None
    return Taps(words, depth, row)


def placed(weights: Any, taps: Taps, inner: int, item: int) -> Any:
    """Return weights [group,o,kh * kw * inner] as [group,o,elements of words], zeros for channels of other groups."""
    groups, results, _ = weights.shape
    made = np.zeros((groups, results, weights.shape[2] // inner, taps.words * 4 // item), weights.dtype)
    for group in range(groups):
        first = group * inner % (4 // item)
        made[group, :, :, first : first + inner] = weights[group].reshape(results, -1, inner)
    return made.reshape(groups, results, -1)


def windows_of(data: Value, window: Window, depth: int, rows: int) -> tuple[Windows, bool]:
    """Return windows with `depth` channels, and whether they are the `rows` pixels of the data."""
    item = ITEMS[data.dtype]
    shape = data.shape if len(data.shape) == 4 else (1, 1, 1, data.size)
    is_plain = window.is_pointwise and data.size == rows * shape[3]
    if is_plain:
        shape = (1, 1, rows, shape[3])
        window = Window((1, 1), (1, 1), (1, 1), (0, 0), (1, rows))
    return Windows(window, (*shape[:3], shape[3] * item), depth * item, item), is_plain


def held_rows(row: int, count: int, room: int = ROWS) -> int:
    """Return the number of rows in scratch memory, which is even, for `count` rows."""
    return max(2, min(room // row, count + 1) & ~1)


def call_of(operation: Convolution, kernel: Kernel, total: Loop | None = None) -> Call:
    """Return the call that copies windows and multiplies them by a function. `total`: of a ConvolutionSum."""
    data, result = operation.inputs[0], operation.results[0]
    channels, _, _, depth = operation.weights.shape
    groups, kind, count, taps = operation.groups, c_type(result.dtype), result.size // channels, kernel.taps
    # Groups of words are in rows with all channels; other groups have rows of their own.
    parts = 1 if taps else groups
    windows, is_plain = windows_of(data, operation.window, depth * groups // parts, count)
    row = pairs.padded(windows.length)
    held = held_rows(row, count, GROUPED if taps else ROWS)
    place = operation.place if isinstance(operation, ConvolutionSum) else 0
    pitch, size = result.pitch or channels, kernel.numbers.size // groups
    output: Output = Output(kernel.name, channels, pitch)
    if total is not None:
        output = _Sum(kernel.name, channels, pitch, total=total, place=place)
    elif taps:
        output = _Groups(kernel.name, channels, pitch, groups=groups, size=size, step=depth * windows.item)
    elif groups > 1:
        output = Output(kernel.name, channels, pitch, "own", "first")
    strip = None if is_plain or groups > 1 else windows.strip
    lines = Lines()
    with lines.repeat("g", parts):
        group = f" + g * {windows.channels}" if parts > 1 else ""
        lines.add(f"const int8_t *from = {'' if windows.item == 1 else '(const int8_t *)'}data{group};")
        if parts > 1:
            lines.add(f"const int32_t *own = numbers + g * {size};")
            lines.add(f"{kind} *first = result + g * {channels // groups};")
        if is_plain:
            plain(lines, windows, output, (count, held), kind)
        elif strip is not None:
            _stripped(lines, windows, strip, output, held, kind)
        else:
            general(lines, windows, output, held, kind)
    # The rows of a block are copied before its results are written.
    can_replace = is_plain and channels <= depth and not result.pitch and groups == 1 and data.dtype == result.dtype
    arguments = {"data": data, "numbers": kernel.numbers}
    # Vectors of gathered words end beyond the last row.
    beyond = 16 if taps is None else taps.turn
    scratch = [Parameter("rows", "int32", "scratch", elements=(held * row + beyond) // 4)]
    definitions = windows.definitions() if strip is None else windows.definitions_over(strip)
    scratch += [] if strip is None else [strip.parameter]
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


@dataclass(frozen=True)
class Output:
    """Writes the results of rows."""

    name: str
    """The function of a kernel."""
    channels: int
    pitch: int
    """The elements from one row of the result to the next."""
    numbers: str = "numbers"
    result: str = "result"
    """The pointer to the first result."""
    fill: str = f"numbers[{NUMBERS.index('fill')}]"
    """The value of padding, which can depend on the image n."""
    is_by_image: bool = False
    """Whether the rows of a call are of one image."""
    is_by_row: bool = False
    """Whether the rows of a call are of one row of results; `pitch` is then the elements of an image."""

    def add(self, lines: Lines, result: str, count: int | str) -> None:
        """Append the calls for `count` rows."""
        lines.add(f"{self.name}(held, {self.numbers}, {result}, {count});")


@dataclass(frozen=True)
class _Sum(Output):
    """Writes the sums of results with another tensor."""

    total: Loop | None = None
    place: int = 0
    """The operand of the sum that the results are."""

    def add(self, lines: Lines, result: str, count: int | str) -> None:
        """Append the calls for `count` rows."""
        assert self.total is not None
        other = f"other + ({result} - result)"
        operands = (other, "part") if self.place else ("part", other)
        elements = count * self.channels if isinstance(count, int) else f"{count} * {self.channels}"
        lines.add(
            f"{self.name}(held, numbers, part, {count});",
            f"{self.total.name}({', '.join(operands)}, total, {result}, {elements});",
        )


@dataclass(frozen=True)
class _Groups(Output):
    """Writes the results of each group from rows with the channels of all groups."""

    groups: int = 1
    size: int = 0
    """The numbers of a group."""
    step: int = 0
    """The bytes of a group's channels."""

    def add(self, lines: Lines, result: str, count: int | str) -> None:
        """Append the calls for `count` rows."""
        place = f"g * {self.step}" if self.step % 4 == 0 else f"(g * {self.step} & ~3)"
        with lines.loop("g", self.groups):
            target = f"{result} + g * {self.channels // self.groups}"
            lines.add(f"{self.name}(held + {place}, numbers + g * {self.size}, {target}, {count});")


def plain(lines: Lines, windows: Windows, output: Output, counts: tuple[int, int], kind: str) -> None:
    """Append a loop over blocks of rows of the data: `counts` are all of them, and those of a block."""
    count, held = counts
    lines.add("int8_t *held = (int8_t *)rows;")
    if count <= held:
        lines.add("", f"{windows.inner}(held, from, {count});")
        output.add(lines, output.result, count)
        return
    lines.add("")
    with lines.block(f"for (int row = 0; row < {count}; row += {held})"):
        lines.add(f"const int count = row < {count - held} ? {held} : {count} - row;")
        lines.add(f"{kind} *y = {output.result} + row * {output.pitch};", "")
        lines.add(f"{windows.inner}(held, from + row * {windows.data[3]}, count);")
        output.add(lines, "y", "count")


def _stripped(lines: Lines, windows: Windows, strip: Strip, output: Output, held: int, kind: str) -> None:
    """Append loops that copy the windows of strips, and multiply them when the rows are full."""
    made, columns = windows.over(strip), strip.window.result[1]
    lines.add("int8_t *held = (int8_t *)rows;", f"{kind} *y = {output.result};", "int filled = 0;")
    with strip.rows(lines), lines.block(f"for (int ox = 0; ox < {columns};)"):
        lines.add(f"const int more = {columns} - ox;", f"const int room = {held} - filled;")
        lines.add("const int count = more < room ? more : room;")
        lines.add(f"int8_t *to = held + filled * {pairs.padded(made.length)};", "")
        lines.add(f"{made.inner}(to, padded + ox * {strip.window.stride[1] * strip.data[3]}, count);")
        lines.add("ox += count;", "filled += count;")
        with lines.block(f"if (filled == {held})"):
            output.add(lines, "y", held)
            lines.add(f"y += {held * output.pitch};", "filled = 0;")
    rest = strip.data[0] * strip.window.result[0] * columns % held
    if rest:
        output.add(lines, "y", rest)


def general(lines: Lines, windows: Windows, output: Output, held: int, kind: str) -> None:
    """Append loops that copy windows, and multiply them when the rows are full."""
    window, (images, height, width, depth) = windows.window, windows.data
    (top, left), (sy, sx) = window.before, window.stride
    row = pairs.padded(windows.length)
    (first_row, end_row), (first, end) = windows.inside(0), windows.inside(1)
    is_padded = window.is_padded((height, width))
    fill = [f"const int fill = {output.fill};"] * is_padded
    by_row, by_image = output.is_by_row, output.is_by_image and not output.is_by_row
    # The windows of an image or row, after which the rows are multiplied even if there is room for more.
    over = window.result[1]
    count = over if by_row else window.result[0] * over * (1 if by_image else images)
    rest = count % held
    if not output.is_by_image:
        lines.add(*fill)
    lines.add("int8_t *held = (int8_t *)rows;", f"{kind} *y = {output.result};", "int filled = 0;", "")
    image = "from" if images == 1 else f"from + n * {height * width * depth}"
    with lines.repeat("n", images):
        if output.is_by_image:
            lines.add(*fill)
        with lines.loop("oy", window.result[0]):
            lines.add(f"const int8_t *image = {image};", f"const int y0 = oy * {sy}{plus(-top)};")
            lines.add("int ox = 0;", "")
            with lines.block(f"while (ox < {over})"):
                lines.add(f"const int x0 = ox * {sx}{plus(-left)};", f"int8_t *to = held + filled * {row};", "")
                if windows.has_inside:
                    limits = [f"oy >= {first_row}"] * (first_row > 0)
                    limits += [f"oy < {end_row}"] * (end_row < window.result[0])
                    limits += [f"ox >= {first}"] * (first > 0) + [f"ox < {end}"] * (end < over)
                    with lines.block(f"if ({' && '.join(limits)})") if is_padded else nullcontext():
                        lines.add(f"const int more = {end} - ox;", f"const int room = {held} - filled;")
                        lines.add("const int count = more < room ? more : room;", "")
                        lines.add(f"{windows.inner}(to, image + (y0 * {width} + x0) * {depth}, count);")
                        lines.add("ox += count;", "filled += count;")
                if is_padded:
                    with lines.block("else" if windows.has_inside else ""):
                        lines.add(f"{windows.edge}(to, image, y0, x0, fill);", "ox++;", "filled++;")
                if count >= held:
                    with lines.block(f"if (filled == {held})"):
                        output.add(lines, "y", held)
                        lines.add(*([] if by_row else [f"y += {held * output.pitch};"]), "filled = 0;")
            if by_row and rest:
                output.add(lines, "y", rest)
                lines.add("filled = 0;")
        if by_row and images > 1:
            lines.add(f"y += {output.pitch};")
        if by_image and rest:
            output.add(lines, "y", rest)
            lines.add(f"y += {rest * output.pitch};", "filled = 0;")
    if not (by_row or by_image) and rest:
        output.add(lines, "y", rest)
