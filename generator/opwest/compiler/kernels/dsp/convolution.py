# SPDX-License-Identifier: Apache-2.0
"""Convolutions as tiles: windows of neighbouring pixels are copied to a block, and multiplied by all channels."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from opwest.compiler.emission.expressions import plus
from opwest.compiler.emission.function import Call, Lines, Parameter, c_type, call_for, emits
from opwest.compiler.ir.operations import Convolution, ConvolutionSum
from opwest.compiler.kernels.assembly import NAKED, code_bytes
from opwest.compiler.kernels.dsp.dense import is_dense
from opwest.compiler.kernels.dsp.elements import UNROLLED, Loop, sum_of
from opwest.compiler.kernels.dsp.layers import (
    Numbers,
    can_pack_groups,
    numbers_of,
    parts_of,
    stream_of,
    wide_numbers_of,
)
from opwest.compiler.kernels.dsp.streamed import MARK
from opwest.compiler.kernels.dsp.tiled_layer import TiledLayer
from opwest.compiler.kernels.dsp.tiles import Tile
from opwest.compiler.kernels.dsp.wide_tiles import WideTile, ends_of_sums, wide_stream
from opwest.compiler.kernels.dsp.widening import (
    interleave,
    name_of_interleave,
    name_of_spread,
    name_of_widen_groups,
    name_of_widen_window,
    spread,
    unit_of,
    widen,
    widen_groups,
    widen_window,
)
from opwest.compiler.kernels.windows import Rows, used_copies


@emits(ConvolutionSum, "dsp-bytes")
@emits(Convolution, "dsp-bytes", has_pitch=True)
def with_bytes(operation: Convolution, shared: bool = False, loop_bytes: int | None = None) -> Call | None:
    """Return the call with int8 weights in flash: 2 pixels by 4 channels; None if a sum could be too large."""
    return _render(operation, shared, loop_bytes, is_wide=False)


@emits(ConvolutionSum, "dsp-halves")
@emits(Convolution, "dsp-halves", has_pitch=True)
def with_halves(operation: Convolution, shared: bool = False, loop_bytes: int | None = None) -> Call | None:
    """Return the call with int16 weights in flash: 4 pixels by 2 channels."""
    return _render(operation, shared, loop_bytes, is_wide=True)


MOST_WORDS = 4
"""The words of a group in a column of a window that are widened without a loop."""


def _render(operation: Convolution, shared: bool, loop_bytes: int | None, *, is_wide: bool) -> Call | None:
    numbers = numbers_of(operation, accepts_groups=True)
    if numbers is None or operation.results[0].size < 2 * len(operation.weights):
        return None
    if not is_wide and not can_pack_groups(numbers.weights, numbers.bounds, operation.groups):
        return None
    total = sum_of_layer(operation)
    if isinstance(operation, ConvolutionSum) and total is None:
        return None
    return call_of_layer(ByteLayer(operation, numbers, is_wide, total, loop_bytes), shared)


def sum_of_layer(operation: Convolution) -> Loop | None:
    """Return the loop of a convolution with a sum; None without a sum, and for sums of another form."""
    return sum_of(operation.function) if isinstance(operation, ConvolutionSum) else None


def call_of_layer(layer: ByteLayer, shared: bool, definitions: Sequence[str] = ()) -> Call:
    """Return the call of a layer; `definitions`: those that its tiles need besides their own."""
    operation, total = layer.operation, layer.total
    data, result = operation.inputs[0], operation.results[0]
    results, inner = len(operation.weights), operation.weights.shape[3]
    has_fill = shared and layer.rows.is_padded
    lines = Lines()
    layer.add(lines, "numbers[0]" if has_fill else str(operation.zero))
    arguments: dict[str, Any] = {"data": data, "stream": np.concatenate(layer.streams)}
    if has_fill:
        arguments["numbers"] = np.asarray([operation.zero], np.int32)
    if layer.shape is not None:
        arguments["shape"] = layer.shape
    used = [NAKED, *used_copies(lines), layer.copied, *definitions]
    if total is not None:
        arguments |= {"constants": total.constants, "other": operation.inputs[1]}
        used.append(total.definition)
    used += [tile.definition() for tile in layer.tiles]
    can_replace = layer.is_plain and results <= inner and layer.pixels == 2 and not result.pitch
    in_place = (*(["data"] * can_replace), *(["other"] * (total is not None)))
    scratch = [Parameter("block", "uint32", "scratch", elements=layer.scratch)]
    unique = tuple(dict.fromkeys(used))
    return call_for(operation, "convolution", lines, arguments, in_place, scratch, definitions=unique)


class ByteLayer(TiledLayer):
    """A convolution of int8 data, whose blocks are widened."""

    form: ClassVar[tuple[int, int] | None] = None
    """The pixels and channels of a tile; None: 2 by 4, with int16 weights 4 by 2."""

    def __init__(
        self, operation: Convolution, numbers: Numbers, is_wide: bool, total: Loop | None, loop_bytes: int | None
    ) -> None:
        super().__init__(operation, numbers)
        self.is_wide = is_wide
        pixels, channels = self.form or ((4, 2) if is_wide else (2, 4))
        if loop_bytes is not None and total is not None:
            loop_bytes -= code_bytes(total.definition)
        self.pixels, self.total = pixels, total
        self.length = int(numbers.weights.shape[1])
        self.padded = -(-self.length // self.unit) * self.unit
        """The bytes of a window, a multiple of those of a step."""
        self.parts = parts_of(self.each, channels)
        # One or two channels that remain are a smaller group.
        sizes = [2 if stored <= 2 else channels for _, stored in self.parts]
        self.tiles = [self.tile(size, stored, loop_bytes) for size, (_, stored) in zip(sizes, self.parts, strict=True)]
        self.streams = [
            self.stream(slice(group + some.start, group + some.stop), size)
            for group in range(0, self.results, self.each)
            for size, (some, _) in zip(sizes, self.parts, strict=True)
        ]
        self.is_gathered = self.run % 4 != 0 or (self.is_apart and self.groups == 1)
        """Whether the bytes of a window are copied before they are widened."""
        self.unit_of_rows = unit_of((self.padded if self.is_gathered else self.run) // 4)
        """The words of a window that are widened in a turn."""
        self.block = self.padded // 2 * pixels + 2
        """The words of a block of widened pixels, with the mark at its end."""
        is_partial = pixels > 2 and self.count % pixels > 0
        has_results = is_partial or total is not None
        self.buffers = {
            "last": pixels * self.padded if self.is_plain and is_partial else 0,
            "rows": 0 if self.is_plain else self.rows.size,
            "window": self.padded if self.is_gathered and not self.is_plain else 0,
            "results": pixels * self.results if has_results else 0,
        }
        """The bytes of buffers after the block: the last pixels, rows, a window, results that tiles do not store."""

    @property
    def copied(self) -> str:
        """The definition of the function that widens data."""
        if self.is_plain:
            return widen(self.pixels)
        if self.shape is not None:
            return widen_groups(self.pixels, self.inner // 4)
        return widen_window(self.pixels, self.unit_of_rows)

    @property
    def shape(self) -> Any:
        """The numbers of `widen_groups`; None: other functions widen the windows."""
        words = self.inner // 4
        if self.groups == 1 or self.is_gathered or words > MOST_WORDS:
            return None
        (kh, kw), (dy, dx), depth = self.window.size, self.window.dilation, self.rows.depth
        column, group = 8 * words * self.pixels, 4 * self.block
        places = (
            group - column,
            column - self.groups * group,
            dx * depth - depth,
            dy * self.rows.pitch - kw * dx * depth,
        )
        return np.asarray([kh, kw, self.groups, *places], np.int32)

    def tile(self, size: int, stored: int, loop_bytes: int | None) -> Tile:
        """Return the function for a part of the channels."""
        steps, ending = self.padded // 2, self.numbers.ending
        return Tile(self.pixels, size, stored, steps, self.is_wide, ending, loop_bytes, "data")

    def stream(self, part: slice, size: int) -> Any:
        """Return the constants of a part of the channels."""
        return stream_of(self.numbers, part, size, self.is_wide)

    @property
    def scratch(self) -> int:
        """The words of scratch memory: the block and the buffers."""
        return self.groups * self.block + sum(-(-size // 4) for size in self.buffers.values())

    def add(self, lines: Lines, fill: str) -> None:
        """Append the body."""
        kind = c_type(self.operation.results[0].dtype)
        lines.add(*(["const int8_t *x = data;"] if self.is_plain else []), f"{kind} *y = result;")
        lines.add(*([] if self.is_plain else ["int filled = 0;"]))
        after = self.groups * self.block
        for name, size in self.buffers.items():
            if size:
                lines.add(f"int8_t *{name} = (int8_t *)(block + {after});")
                after += -(-size // 4)
        lines.add("")
        with lines.repeat("g", self.groups):
            place = f"{self.block - 2}" if self.groups == 1 else f"g * {self.block} + {self.block - 2}"
            lines.add(f"block[{place}] = UINT32_C({MARK:#x});")
        if self.is_plain:
            self.add_plain(lines)
        else:
            self.add_windows(lines, fill)

    def load(self, lines: Lines, count: int) -> None:
        """Append the copy of `count` rows of the data at x to the block."""
        source, step = "x", self.length
        if count < self.pixels == 2:
            step = 0  # One pixel takes the places of both, and is stored twice.
        elif count < self.pixels:
            source = "last"
            lines.add(f"copy_bytes(last, x, {count * self.length});")
        lines.add(f"widen_{self.pixels}(block, {source}, {self.length // 4}, {step});")

    def load_window(self, lines: Lines) -> None:
        """Append the copy of the window at x to the place `filled` of the blocks of all groups."""
        if self.shape is not None:
            lines.add(f"{name_of_widen_groups(self.pixels, self.inner // 4)}(block + filled, x, shape);")
            return
        with lines.repeat("g", self.groups):
            self._load_group(lines)

    def _load_group(self, lines: Lines) -> None:
        name, to = name_of_widen_window(self.pixels, self.unit_of_rows), self.at("block + filled", self.block)
        (kh, kw), down, x = self.window.size, self.rows.pitch * self.window.dilation[0], self.at("x", self.inner)
        if self.is_gathered:
            self._gather(lines)
            lines.add(f"{name}({to}, window, {self.padded // 4}, 1, 0);")
        elif not self.is_apart:
            lines.add(f"{name}({to}, {x}, {self.run // 4}, {kh}, {down - self.run});")
        else:
            skipped = self.window.dilation[1] * self.rows.depth - self.run
            with lines.loop("ky", kh):
                size = kw * self.run // 2 * self.pixels
                lines.add(f"{name}({to} + ky * {size}, {x} + ky * {down}, {self.run // 4}, {kw}, {skipped});")

    def _gather(self, lines: Lines) -> None:
        """Append the copy of the window at x to `window`."""
        (kh, kw), (dy, dx) = self.window.size, self.window.dilation
        columns = kw if self.is_apart else 1
        for ky in range(kh):
            for kx in range(columns):
                source = ky * dy * self.rows.pitch + kx * dx * self.rows.depth
                to = (ky * columns + kx) * self.run
                lines.add(f"__builtin_memcpy(window + {to}, {self.at('x', self.inner)} + {source}, {self.run});")

    def multiply(self, lines: Lines, count: int) -> None:
        """Append the results of `count` pixels of the block, at y."""
        is_direct = self.total is None and (count == self.pixels or self.pixels == 2)
        result, pitch = ("y", self.pitch) if is_direct else ("results", self.results)
        self.add_products(lines, self.tiles, self.block, result, pitch if count > 1 else 0)
        if is_direct:
            return
        size = count * self.results
        if self.total is not None:
            operands = ["results", "other + (y - result)"]
            if isinstance(self.operation, ConvolutionSum) and self.operation.place:
                operands.reverse()
            counts = f"{size // UNROLLED}, {size % UNROLLED}"
            lines.add(f"{self.total.name}({', '.join(operands)}, constants, y, {counts});")
        elif self.pitch == self.results:
            lines.add(f"copy_bytes(y, results, {size});")
        else:
            with lines.loop("pixel", count):
                lines.add(f"copy_bytes(y + pixel * {self.pitch}, results + pixel * {self.results}, {self.results});")


CHANNELS = 2
"""The channels of a tile of int16 data."""
MARKED_STEPS = 12
"""The steps up to which the code of a tile of int16 data fits in small caches without a loop."""


@emits(Convolution, "dsp-wide")
def render_wide(operation: Convolution, loop_bytes: int | None = None) -> Call | None:
    """Return the call; None for one row of data."""
    if is_dense(operation):
        return None
    numbers = wide_numbers_of(operation)
    if numbers is None:
        return None
    layer = _WideLayer(operation, numbers, loop_bytes)
    lines = Lines()
    layer.add(lines)
    in_place = ("data",) if layer.is_plain and layer.results <= layer.inner else ()
    arguments: dict[str, Any] = {"data": operation.inputs[0], "stream": np.concatenate(layer.streams)}
    if layer.is_long:
        arguments["ends"] = numbers.ends.reshape(-1)
    scratch = [Parameter("block", "uint32", "scratch", elements=layer.scratch)]
    copies = [*used_copies(lines), *([interleave(layer.pixels, layer.words)] if "interleave_" in str(lines) else [])]
    copies += [spread(layer.pixels, layer.words)] if "spread_" in str(lines) else []
    definitions = (NAKED, *copies, *dict.fromkeys(layer.definitions()))
    return call_for(operation, "convolution", lines, arguments, in_place, scratch, definitions=definitions)


class _WideLayer(TiledLayer):
    """A convolution of int16 data.

    Where all sums fit in 32 bits, tiles are 4 pixels by 2 channels as for int8 data; otherwise they are those of
    `wide_tiles`. Runs of an odd number of taps are one longer, with a weight of 0.
    """

    item = 2
    unit = 2

    def __init__(self, operation: Convolution, numbers: Numbers, loop_bytes: int | None) -> None:
        super().__init__(operation, numbers)
        self.loop_bytes = loop_bytes
        self.is_long = numbers.ending.is_long
        self.pixels = 2 if self.is_long or self.count <= 2 else 4
        self.words = -(-self.run // 2)
        """The words of a run."""
        runs = numbers.weights.reshape(self.results, -1, self.run)
        padded = np.pad(runs, ((0, 0), (0, 0), (0, 2 * self.words - self.run))).reshape(self.results, -1)
        self.steps = int(padded.shape[1]) // 2
        """The words of a window."""
        self.padded = -(-self.each // CHANNELS) * CHANNELS
        """The channels of all tiles of a group."""
        self.parts = parts_of(self.each, CHANNELS)
        # Halves of the data can be -32768, those of int8 weights cannot. Constants do not depend on the code of loops.
        marked = "weights" if numbers.weights.dtype == np.int8 and self.steps > MARKED_STEPS else ""
        self.tiles = [
            Tile(self.pixels, CHANNELS, stored, self.steps, True, numbers.ending, loop_bytes, marked)
            for _, stored in self.parts
        ]
        filled = dataclasses.replace(numbers, weights=padded)
        channels = [slice(first, first + self.each) for first in range(0, self.results, self.each)]
        self.streams = (
            [wide_stream(padded[group], numbers.sums[group], CHANNELS) for group in channels]
            if self.is_long
            else [
                stream_of(
                    filled,
                    slice(group.start + some.start, group.start + some.stop),
                    CHANNELS,
                    True,
                    order=(0, 1),
                    marks=2 * bool(tile.marked),
                )
                for group in channels
                for (some, _), tile in zip(self.parts, self.tiles, strict=True)
            ]
        )

    @property
    def rows(self) -> Rows:
        """The rows of data under windows. They are copied if the last run would end behind the data."""
        return Rows(self.data, self.window, 2, self.run % 2 == 1, "bytes")

    @property
    def after(self) -> int:
        """The words of the block and of what follows it: 64-bit sums, or the results of the last pixels."""
        block = self.groups * self.steps * self.pixels
        if self.is_long:
            return block + self.padded * self.pixels * 2
        return block + (-(-self.pixels * self.results // 2) if self.count % self.pixels > 1 else 0)

    @property
    def scratch(self) -> int:
        """The words of scratch memory. Windows read up to one element behind the rows."""
        rows = 0 if self.is_plain else self.rows.size
        return self.after + (-(-(rows + 2) // 4) if rows else 0)

    def definitions(self) -> tuple[str, ...]:
        """Return the functions of the tiles."""
        if self.is_long:
            return WideTile(self.steps, self.padded, self.loop_bytes).definition(), *ends_of_sums(self.numbers.ending)[
                1
            ]
        return tuple(tile.definition() for tile in self.tiles)

    def add(self, lines: Lines) -> None:
        """Append the body."""
        lines.add("const int8_t *bytes = (const int8_t *)data;", "int16_t *y = result;")
        if self.is_plain:
            lines.add("const int8_t *x = bytes;", "")
            self.add_plain(lines)
            return
        lines.add("int filled = 0;")
        if self.rows.size:
            lines.add(f"int8_t *rows = (int8_t *)(block + {self.after});")
        lines.add("")
        self.add_windows(lines, "0")

    def load(self, lines: Lines, count: int) -> None:
        """Append the copy of `count` rows of the data at x to the block."""
        if count == self.pixels:
            name = name_of_interleave(count, self.words)
            lines.add(f"{name}(block, x, {self.words}, {2 * self.inner});")
            return
        with lines.loop("i", count) if count > 1 else lines.block(""):
            to, source = ("block + i", f"x + i * {2 * self.inner}") if count > 1 else ("block", "x")
            lines.add(f"{name_of_spread(self.pixels, self.words)}({to}, {source}, 1, 0);")

    def load_window(self, lines: Lines) -> None:
        """Append the copy of the window at x to the place `filled` of the blocks of all groups."""
        with lines.repeat("g", self.groups):
            self._load_group(lines)

    def _load_group(self, lines: Lines) -> None:
        (kh, kw), (dy, dx), rows = self.window.size, self.window.dilation, self.rows
        name, down = name_of_spread(self.pixels, self.words), rows.pitch * dy
        x, block = self.at("x", 2 * self.inner), self.at("block + filled", self.steps * self.pixels)
        if not self.is_apart:
            lines.add(f"{name}({block}, {x}, {kh}, {down - 4 * self.words});")
            return
        # Each column is a run: a loop over the rows of the window.
        skipped = dx * rows.depth - 4 * self.words
        with lines.repeat("ky", kh):
            source, to = x, block
            if kh > 1:
                source, to = f"{x} + ky * {down}", f"{to} + ky * {kw * self.words * self.pixels}"
            lines.add(f"{name}({to}, {source}, {kw}, {skipped});")

    def multiply(self, lines: Lines, count: int) -> None:
        """Append the results of `count` pixels of the block, at y."""
        if self.is_long:
            self._multiply_long(lines, count)
        elif count == self.pixels:
            self._tiles(lines, "y", 2 * self.results)
        elif count == 1:
            # The first pixel is stored after the others, at the same place.
            self._tiles(lines, "y", 0)
        else:
            lines.add(f"int16_t *last = (int16_t *)(block + {self.groups * self.steps * self.pixels});", "")
            self._tiles(lines, "last", 2 * self.results)
            lines.add(f"copy_bytes((int8_t *)y, (const int8_t *)last, {2 * count * self.results});")

    def _multiply_long(self, lines: Lines, count: int) -> None:
        """Append the 64-bit sums of a block, and their ends for `count` pixels."""
        block, end = self.steps * self.pixels, len(self.streams[0])
        tile, sums = WideTile(self.steps, self.padded, self.loop_bytes), f"block + {self.groups * block}"
        name, _ = ends_of_sums(self.numbers.ending)
        with lines.repeat("g", self.groups):
            stream = self.at("stream", end)
            lines.add(f"{tile.name}({self.at('block', block)}, {stream}, {sums}, {stream} + {end});")
            for pixel in range(count):
                to, ends = f"{self.at('y', self.each)}{plus(pixel * self.results)}", self.at("ends", 3 * self.each)
                place = self.groups * block + pixel * self.padded * 2
                lines.add(f"{name}(block + {place}, {ends}, {to}, {self.each});")

    def _tiles(self, lines: Lines, result: str, step: int) -> None:
        """Append the calls of the tiles; `step`: the bytes from pixel to pixel."""
        self.add_products(lines, self.tiles, self.steps * self.pixels, result, step)
