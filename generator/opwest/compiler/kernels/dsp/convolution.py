# SPDX-License-Identifier: Apache-2.0
"""int8 convolutions as tiles: windows of neighbouring pixels are widened to a block, and multiplied by all channels."""

from __future__ import annotations

from contextlib import nullcontext
from math import prod
from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.emission.function import Call, Function, Lines, Parameter, emits
from opwest.compiler.ir.operations import Convolution, ConvolutionSum
from opwest.compiler.kernels.assembly import COPY, FILL
from opwest.compiler.kernels.dsp.elements import UNROLLED, Loop, sum_of
from opwest.compiler.kernels.dsp.layers import can_pack, numbers_of, stream_of
from opwest.compiler.kernels.dsp.tiles import Tile, epilogue_of
from opwest.compiler.kernels.dsp.widening import widen, widen_window
from opwest.compiler.kernels.windows import Rows


@emits(Convolution, "dsp-bytes", has_pitch=True)
def with_bytes(operation: Convolution, shared: bool = False) -> Call | None:
    """Return the call with int8 weights in flash: 2 pixels by 4 channels; None if a sum could be too large."""
    return _render(operation, shared, 2, 4, is_wide=False)


@emits(Convolution, "dsp-halves", has_pitch=True)
def with_halves(operation: Convolution, shared: bool = False) -> Call | None:
    """Return the call with int16 weights in flash: 4 pixels by 2 channels."""
    return _render(operation, shared, 4, 2, is_wide=True)


@emits(ConvolutionSum, "dsp-bytes")
def sum_with_bytes(operation: ConvolutionSum, shared: bool = False) -> Call | None:
    """Return the call of `with_bytes` that adds each block of results to the other operand."""
    return _render(operation, shared, 2, 4, is_wide=False)


@emits(ConvolutionSum, "dsp-halves")
def sum_with_halves(operation: ConvolutionSum, shared: bool = False) -> Call | None:
    """Return the call of `with_halves` that adds each block of results to the other operand."""
    return _render(operation, shared, 4, 2, is_wide=True)


def _render(operation: Convolution, shared: bool, pixels: int, channels: int, *, is_wide: bool) -> Call | None:
    data, result = operation.inputs[0], operation.results[0]
    numbers = numbers_of(operation)
    results, kh, kw, inner = operation.weights.shape
    rows = result.size // results
    if numbers is None or rows < 2 or not (is_wide or can_pack(numbers.weights, numbers.bounds)):
        return None
    length = kh * kw * inner
    steps = -(-length // 4) * 2
    tiles = [
        Tile(pixels, size, stored, steps, is_wide, epilogue_of(numbers.scaling))
        for size, stored in _groups(results, channels)
    ]
    streams, first = [], 0
    for tile, count in zip(tiles, _counts(results, channels), strict=True):
        some = slice(first, first + count)
        streams.append(
            stream_of(numbers.weights[some], numbers.sums[some], numbers.scaling.part(some), tile.channels, is_wide)
        )
        first += count
    shape = data.shape if len(data.shape) == 4 else (1, 1, 1, data.size)
    total = sum_of(operation.function) if isinstance(operation, ConvolutionSum) else None
    if isinstance(operation, ConvolutionSum) and total is None:
        return None
    layer = _Layer(operation, shape, pixels, length, tuple(tiles), tuple(map(len, streams)), total)
    fill = "numbers[0]" if shared and layer.rows.is_padded else str(operation.zero)
    lines = Lines()
    used = layer.add(lines, fill)
    can_replace = layer.is_plain and results <= inner and pixels == 2 and not result.pitch
    in_place = (*(["data"] * can_replace), *(["other"] * (total is not None)))
    parameters = [
        Parameter("data", "int8"),
        Parameter("stream", "int32"),
        *([Parameter("numbers", "int32")] if fill == "numbers[0]" else []),
        *([Parameter("constants", "int32"), Parameter("other", "int8")] if total is not None else []),
        Parameter("result", "int8", "out", in_place),
        Parameter("block", "uint32", "scratch", elements=layer.scratch),
    ]
    added = () if total is None else (total.definition,)
    definitions = (*used, *added, *(tile.definition() for tile in tiles))
    function = Function("convolution", tuple(parameters), str(lines), definitions=tuple(dict.fromkeys(definitions)))
    arrays: list[Any] = [np.concatenate(streams)]
    if fill == "numbers[0]":
        arrays.append(np.asarray([operation.zero], np.int32))
    if total is not None:
        arrays += [total.constants, operation.inputs[1]]
    return Call(function, (data, *arrays, result), operation.label)


def _groups(results: int, channels: int) -> list[tuple[int, int]]:
    """Return the sizes of groups and the channels that they store: whole groups, then a smaller one."""
    found = [(channels, channels)] if results >= channels else []
    rest = results % channels
    if rest:
        found.append((2 if rest <= 2 else channels, rest))
    return found


def _counts(results: int, channels: int) -> list[int]:
    whole = results // channels * channels
    return [one for one in (whole, results - whole) if one]


@dataclass(frozen=True, eq=False)
class _Layer:
    operation: Convolution
    data: tuple[int, ...]
    pixels: int
    length: int
    tiles: tuple[Tile, ...]
    sizes: tuple[int, ...]
    """Words of the stream of each tile."""
    total: Loop | None
    """The sum that the results are an operand of."""

    @property
    def rows(self) -> Rows:
        """The rows of data under windows."""
        return Rows(self.data, self.operation.window)

    @property
    def results(self) -> int:
        """The channels of a result."""
        return len(self.operation.weights)

    @property
    def pitch(self) -> int:
        """The elements from one pixel of the result to the next."""
        return self.operation.results[0].pitch or self.results

    @property
    def count(self) -> int:
        """The pixels of the result."""
        return self.operation.results[0].size // self.results

    @property
    def is_plain(self) -> bool:
        """Whether the rows of the data are the windows."""
        window, inner = self.operation.window, self.data[3]
        is_one = window.size == window.stride == (1, 1) and window.before == (0, 0)
        return is_one and prod(self.data) // inner == self.count and inner % 4 == 0

    @property
    def padded(self) -> int:
        """The bytes of a window, a multiple of 4."""
        return -(-self.length // 4) * 4

    @property
    def is_gathered(self) -> bool:
        """Whether the bytes of a window are copied before they are widened."""
        run = self.operation.window.size[1] * self.data[3]
        return run % 4 != 0 or (self.operation.window.dilation[1] > 1 and self.operation.window.size[1] > 1)

    @property
    def block(self) -> int:
        """The words of a block of widened pixels."""
        return self.padded // 2 * self.pixels

    @property
    def tail(self) -> int:
        """The bytes for results that are not stored by the tiles: those of sums, and of a last block of 4 pixels."""
        is_partial = self.pixels > 2 and self.count % self.pixels
        return self.pixels * self.results if is_partial or self.total is not None else 0

    @property
    def scratch(self) -> int:
        """The words of scratch memory: the block, the rows, a window, the last results."""
        rows = 0 if self.is_plain else self.rows.size
        window = self.padded if self.is_gathered and not self.is_plain else 0
        copied = self.pixels * self.padded if self.is_plain and self.pixels > 2 and self.count % self.pixels else 0
        return self.block + -(-rows // 4) + -(-max(window, copied) // 4) + -(-self.tail // 4)

    def add(self, lines: Lines, fill: str) -> tuple[str, ...]:
        """Append the body; return the definitions that it uses."""
        return self._add_plain(lines) if self.is_plain else self._add_windows(lines, fill)

    def _add_plain(self, lines: Lines) -> tuple[str, ...]:
        widened = f"widen_{self.pixels}"
        words, step = self.length // 4, self.pixels * self.length
        turns, rest = divmod(self.count, self.pixels)
        lines.add("const int8_t *x = data;", "int8_t *y = result;")
        after = self.block
        if rest and self.pixels > 2:
            lines.add(f"int8_t *last = (int8_t *)(block + {after});")
            after += self.pixels * self.padded // 4
        self._declare_results(lines, after)
        if turns:
            with lines.loop("i", turns) if turns > 1 else nullcontext():
                lines.add(f"{widened}(block, x, {words}, {self.length});")
                self._results(lines, self.pixels)
                if turns > 1 or rest:
                    lines.add(f"x += {step};", f"y += {self.pixels * self.pitch};")
        if rest and self.pixels == 2:
            # One pixel takes the places of both, and is stored twice.
            lines.add(f"{widened}(block, x, {words}, 0);")
        elif rest:
            lines.add(
                f"copy_bytes(last, x, {rest * self.length});",
                f"{widened}(block, last, {words}, {self.length});",
            )
        if rest:
            self._results(lines, rest)
        return *([COPY] if rest and self.pixels > 2 else []), widen(self.pixels)

    def _results(self, lines: Lines, count: int) -> None:
        """Append the results of `count` pixels of the block, at y."""
        if self.total is None and (count == self.pixels or self.pixels == 2):
            self._tiles(lines, "y", str(self.pitch if count > 1 else 0))
            return
        self._tiles(lines, "results", str(self.results if count > 1 else 0))
        size = count * self.results
        if self.total is None and self.pitch != self.results:
            with lines.loop("pixel", count):
                lines.add(f"copy_bytes(y + pixel * {self.pitch}, results + pixel * {self.results}, {self.results});")
            return
        if self.total is None:
            lines.add(f"copy_bytes(y, results, {size});")
            return
        place = self.operation.place if isinstance(self.operation, ConvolutionSum) else 0
        operands = ["results", "other + (y - result)"]
        if place:
            operands.reverse()
        counts = f"{size // UNROLLED}, {size % UNROLLED}"
        lines.add(f"{self.total.name}({', '.join(operands)}, constants, y, {counts});")

    def _add_windows(self, lines: Lines, fill: str) -> tuple[str, ...]:
        window, depth, rows = self.operation.window, self.data[3], self.rows
        lines.add("int8_t *y = result;", "int filled = 0;")
        after = self.block
        if rows.size:
            lines.add(f"int8_t *rows = (int8_t *)(block + {after});")
            after += -(-rows.size // 4)
        if self.is_gathered:
            lines.add(f"int8_t *window = (int8_t *)(block + {after});")
            after += self.padded // 4
        self._declare_results(lines, after)
        widened = f"widen_window_{self.pixels}"
        with rows.loop(lines, "rows", fill) as first:
            lines.add(f"const int8_t *x = {first};", "")
            with lines.loop("ox", window.result[1]):
                if self.is_gathered:
                    self._gather(lines)
                    lines.add(f"{widened}(block + filled, window, {self.padded // 4}, 1, 0);")
                else:
                    run = window.size[1] * depth
                    skipped = rows.pitch * window.dilation[0] - run
                    lines.add(f"{widened}(block + filled, x, {run // 4}, {window.size[0]}, {skipped});")
                lines.add(f"x += {window.stride[1] * depth};")
                with lines.block(f"if (++filled < {self.pixels})"):
                    lines.add("continue;")
                self._results(lines, self.pixels)
                lines.add(f"y += {self.pixels * self.pitch};", "filled = 0;")
        rest = self.count % self.pixels
        if rest:
            # The other pixels are any data; their results are not kept.
            self._results(lines, rest)
        copies = rows.size > 0 or (rest > 0 and self.pixels > 2 and self.total is None)
        used = (*([COPY] * copies), *([FILL] * (rows.size > 0)))
        return *used, widen_window(self.pixels)

    def _declare_results(self, lines: Lines, after: int) -> None:
        if self.tail:
            lines.add(f"int8_t *results = (int8_t *)(block + {after});")
        lines.add("")

    def _gather(self, lines: Lines) -> None:
        """Append the copy of the window at x."""
        window, depth, pitch = self.operation.window, self.data[3], self.rows.pitch
        if window.dilation[1] > 1 and window.size[1] > 1:
            parts = [
                ((ky * window.size[1] + kx) * depth, ky * window.dilation[0] * pitch + kx * window.dilation[1] * depth)
                for ky in range(window.size[0])
                for kx in range(window.size[1])
            ]
            size = depth
        else:
            size = window.size[1] * depth
            parts = [(ky * size, ky * window.dilation[0] * pitch) for ky in range(window.size[0])]
        for to, from_ in parts:
            lines.add(f"__builtin_memcpy(window + {to}, x + {from_}, {size});")

    def _tiles(self, lines: Lines, result: str, step: str) -> None:
        """Append the calls for all channels of a block."""
        offset, channel = 0, 0
        for tile, size in zip(self.tiles, self.sizes, strict=True):
            start = "stream" if offset == 0 else f"stream + {offset}"
            to = result if channel == 0 else f"{result} + {channel}"
            lines.add(f"{tile.name}(block, {start}, {to}, {step}, stream + {offset + size});")
            offset += size
            channel = self.results - self.results % tile.channels
