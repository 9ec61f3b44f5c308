# SPDX-License-Identifier: Apache-2.0
"""Convolutions and matrix products of several rows: a word has the elements of two rows."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.emission.convolution import Gather
from opwest.compiler.emission.epilogue import LayerEpilogue
from opwest.compiler.emission.expressions import Expression, expression_of, plus, times
from opwest.compiler.emission.function import Call, Lines, Parameter, call_for, emits
from opwest.compiler.ir.operations import Convolution, ConvolutionSum, Depthwise
from opwest.compiler.kernels.lanes.ends import end_of
from opwest.compiler.kernels.lanes.groups import (
    Block,
    add_groups,
    add_starts,
    add_taken,
    groups_of,
    lane_of,
    parts_of,
    plus_of,
)
from opwest.compiler.kernels.scaling import int8_sums, without_channels
from opwest.compiler.semantics.fixed_point import Requantisation

WIDE = 341
"""The greatest length of rows for tiles of 6 rows: more need too much scratch memory."""
MAX_LENGTH = 2047
"""The greatest length of a row."""
UNROLLED = 4


def pack(words: int) -> tuple[str, str]:
    """Return the name and the definition of the function that packs two rows; a tap has some words."""
    name = f"pack_pair_{words}"
    lines = Lines()
    for count, head in ((UNROLLED, f"for (; length >= {UNROLLED}; length -= {UNROLLED})"), (1, "while (length-- > 0)")):
        with lines.block(head):
            for place in range(count):
                lines.add(f"words[{place * words}] = (uint32_t)low[{place}] + ((uint32_t)high[{place}] << 16);")
            lines.add(f"low += {count};", f"high += {count};", f"words += {count * words};")
    head = f"static void {name}(const int8_t *low, const int8_t *high, uint32_t *words, int length)"
    comment = "/* Two rows as words: the elements of the second one in the high halves. */"
    return name, f"{comment}\n{head}\n{{\n{lines}}}\n"


@emits(Convolution, "portable-pairs", has_pitch=True)
def render(operation: Convolution, shared: bool = False) -> Call | None:
    """Return the call; None for other dtypes, groups, a single row, long rows."""
    return _render(operation, shared, None)


@emits(ConvolutionSum, "portable-pairs")
def with_sum(operation: ConvolutionSum, shared: bool = False) -> Call | None:
    """Return the call: each result is added to the other operand before it is stored."""
    return _render(operation, shared, expression_of(operation.function, ("int8", "int8"), "int8"))


@emits(Depthwise, "portable-pairs", has_pitch=True)
def without_depth(operation: Depthwise, shared: bool = False) -> Call | None:
    """Return the call; None for data of several channels."""
    single = without_channels(operation)
    return None if single is None else _render(single, shared, None)


def _render(operation: Convolution, shared: bool, total: Expression | None) -> Call | None:
    data, result, finish = operation.inputs[0], operation.results[0], operation.finish
    given = int8_sums(operation)
    if given is None or not isinstance(finish, Requantisation) or result.dtype != "int8":
        return None
    weights, bias, bounds = given
    channels, length = weights.shape
    count = result.size // channels
    if count < 2 or length > MAX_LENGTH:
        return None
    words = _words(count, channels, length)
    parts = parts_of(channels, 5 - words if words > 1 else 3)
    groups = groups_of(weights, parts, words)
    window, depth = operation.window, operation.weights.shape[3]
    is_plain = window.is_pointwise and count * depth == data.size
    end = end_of(finish, weights, bias, bounds, operation.zero, shared)
    joined = None if total is None else (total, operation.place if isinstance(operation, ConvolutionSum) else 0)
    tile = _Tile((length, count), parts, result.pitch or channels, words, groups.size, end, joined, groups.is_patched)
    lines = Lines()
    is_padded = not is_plain and window.is_padded((data.shape[1], data.shape[2]))
    lines.add(*(line for line in end.prologue if is_padded or " fill " not in line))
    scratch = [Parameter("words", "uint32", "scratch", elements=words * length)]
    if is_plain:
        _plain(lines, tile)
    else:
        _windows(lines, Gather(window, data.shape, depth, "int8", end.fill), tile)
        scratch.append(Parameter("windows", "int8", "scratch", elements=2 * length))
    arguments: dict[str, Any] = {"data": data, "weights": groups.ordered(parts)}
    if groups.is_patched:
        arguments["patches"] = groups.patches(parts)
    arguments |= {"bias": bias, **end.constants}
    if total is not None:
        arguments["other"] = operation.inputs[1]
    # The rows of a tile are packed before its results are written.
    can_replace = is_plain and channels <= length and not result.pitch
    return call_for(
        operation,
        "convolution",
        lines,
        arguments,
        (*(["data"] * can_replace), *(["other"] * (total is not None))),
        scratch,
        helpers=(*end.helpers, *(total.helpers if total else ())),
        headers=(*end.headers, *(() if is_plain else ("string.h",))),
        definitions=(pack(words)[1],),
    )


def _words(count: int, channels: int, length: int) -> int:
    """Return the words of a tap in a tile: those of 3 by 2 channels have as many products as those of 2 by 3."""
    if count <= 2:
        return 1
    wasted = -count % 6 * 16 > count
    return 2 if count <= 4 or wasted or length > WIDE or channels == 1 else 3


@dataclass(frozen=True, eq=False)
class _Tile:
    """The results of a few rows."""

    sizes: tuple[int, int]
    """The products of a sum, the rows of the layer."""
    parts: list[Block]
    pitch: int
    """The elements from one row of the result to the next."""
    words: int
    size: int
    """The taps of a group."""
    end: LayerEpilogue
    joined: tuple[Expression, int] | None
    """The sum with another tensor, and the operand that a result is."""
    is_patched: bool

    @property
    def rows(self) -> int:
        """The rows of a tile."""
        return 2 * self.words

    @property
    def is_even(self) -> bool:
        """Whether all tiles are whole."""
        return self.sizes[1] % self.rows == 0

    def pack(self, lines: Lines, source: str, some: int | str) -> None:
        """Append the words of the rows from `source` on; `some` rows are left for the tile."""
        length = self.sizes[0]
        for word in range(self.words):
            low = f"{source} + {2 * word * length}" if word else source
            high = f"{source} + {(2 * word + 1) * length}"
            if isinstance(some, str):
                high = f"{some} > {2 * word + 1} ? {high} : {low}"
            with lines.block(f"if ({some} > {2 * word})") if word and isinstance(some, str) else nullcontext():
                lines.add(f"{pack(self.words)[0]}({low}, {high}, words{f' + {word}' if word else ''}, {length});")

    def add(self, lines: Lines, some: str) -> None:
        """Append the results of `some` rows, whose words are `words`, from y on."""
        lines.add("const int8_t *q = weights;", *(["const int16_t *patch = patches;"] * self.is_patched), "")
        for first, turns, channels in self.parts:
            if turns > 1:
                with lines.block(f"for (int c = {first}; c < {first + turns * channels}; c += {channels})"):
                    self._block(lines, channels, "c", some)
            else:
                with lines.block(""):
                    self._block(lines, channels, str(first), some)

    def _block(self, lines: Lines, channels: int, channel: str, some: str) -> None:
        words = range(self.words)
        products = {f"{c}{word}": f"x{word} * w{c}" for c in range(channels) for word in words}
        lines.add("const uint32_t *p = words;")
        add_starts(lines, channel, channels, self.words)
        lines.add("")
        loads = [f"const uint32_t x{word} = p[{{tap}} * {self.words} + {word}];" for word in words]
        loads += [f"const uint32_t w{c} = (uint32_t)q[{{tap}} * {channels} + {c}];" for c in range(channels)]
        add_groups(lines, (self.sizes[0], self.size), loads, products, (self.words, channels))
        if self.is_patched:
            with lines.block(f"for (; *patch >= 0; patch += {1 + channels})"):
                lines.add(f"const uint32_t *from = words + *patch * {self.words};")
                lines.add(*(f"const uint32_t w{c} = (uint32_t)patch[{1 + c}];" for c in range(channels)))
                lines.add(*(f"const uint32_t x{word} = from[{word}];" for word in words))
                lines.add(*(f"const uint32_t s{name} = {product};" for name, product in products.items()), "")
                add_taken(lines, list(products))
            lines.add("patch++;")
        for c in range(channels):
            with lines.block(""):
                self._results(lines, plus_of(channel, c), c, some)

    def _results(self, lines: Lines, at: str, channel: int, some: str) -> None:
        """Append the results of a channel."""
        lines.add(*self.end.loads(at), "")
        for row in range(self.rows):
            value = lane_of(f"{channel}{row // 2}", row % 2 == 1)
            # Each tile has at least one row.
            with nullcontext() if self.is_even or row == 0 else lines.block(f"if ({some} > {row})"):
                self._result(lines, self.end.result(value), plus_of(at, row * self.pitch))

    def _result(self, lines: Lines, value: str, at: str) -> None:
        if self.joined is None:
            lines.add(f"y[{at}] = {value};")
            return
        total, place = self.joined
        other = f"other[y - result + {at}]"
        operands = (other, "part") if place else ("part", other)
        with lines.block(""):
            lines.add(f"const int8_t part = {value};", *(line.format(*operands) for line in total.lines))
            lines.add(f"y[{at}] = {total.value.format(*operands)};")


def _plain(lines: Lines, tile: _Tile) -> None:
    length, count = tile.sizes
    lines.add("const int8_t *x = data;", "int8_t *y = result;", "")
    with lines.loop("row", count, tile.rows):
        if not tile.is_even:
            lines.add(f"const int some = {count} - row;", "")
        tile.pack(lines, "x", tile.rows if tile.is_even else "some")
        tile.add(lines, "some")
        lines.add(f"x += {tile.rows * length};", f"y += {tile.rows * tile.pitch};")


def _windows(lines: Lines, gather: Gather, tile: _Tile) -> None:
    """Append loops that pack pairs of windows, and multiply those of a tile.

    Windows at the edges are copied; rows of others are packed from the image.
    """
    n, height, width, depth = gather.data
    window, (length, count) = gather.window, tile.sizes
    (kh, kw), (sy, sx), (top, left) = window.size, window.stride, window.before
    row, is_direct = kw * depth, window.dilation[1] == 1
    source = "data" if n == 1 else f"data + n * {height * width * depth}"
    lines.add("int8_t *y = result;", "const int8_t *low = data;", f"int down = {row};", "int filled = 0;")
    lines.add(*([f"int left = {count};"] * (not tile.is_even)), "")
    with lines.repeat("n", n), lines.loop("oy", window.result[0]), lines.loop("ox", window.result[1]):
        lines.add(f"const int8_t *high = windows + filled % 2 * {length};", f"int under = {row};", "")
        limits = []
        for axis, name, stride, before in ((0, "oy", sy, top), (1, "ox", sx, left)):
            place = f"{times(name, stride)}{plus(-before)}"
            if before:
                limits.append(f"{place} >= 0")
            if window.span(axis) - before > (height, width)[axis]:
                limits.append(f"{place} <= {(height, width)[axis] - window.reach(axis)}")
        with lines.block(f"if ({' && '.join(limits)})" if limits else "") if is_direct else nullcontext():
            if is_direct:
                at = f"(({times('oy', sy)}{plus(-top)}) * {width} + {times('ox', sx)}{plus(-left)}) * {depth}"
                lines.add(f"high = {source} + {at};", f"under = {window.dilation[0] * width * depth};")
        if limits or not is_direct:
            with lines.block("else" if is_direct else ""):
                gather.add(lines, f"windows + filled % 2 * {length}", source)
        last = "" if tile.is_even else " && left > 0"
        lines.add(*(["left--;"] * (not tile.is_even)))
        with lines.block(f"if (filled++ % 2 == 0{last})"):
            lines.add("low = high;", "down = under;", "continue;")
        if not tile.is_even:
            with lines.block("if (filled % 2)"):
                lines.add("low = high;", "down = under;")
        lines.add("uint32_t *to = words + (filled - 1) / 2;", "")
        with lines.loop("ky", kh):
            lines.add(f"{pack(tile.words)[0]}(low + ky * down, high + ky * under, to, {row});")
            lines.add(f"to += {row * tile.words};")
        with lines.block(f"if (filled < {tile.rows}{last})"):
            lines.add("continue;")
        tile.add(lines, "filled")
        lines.add(f"y += {tile.rows * tile.pitch};", "filled = 0;")
