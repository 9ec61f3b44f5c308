# SPDX-License-Identifier: Apache-2.0
"""Depthwise convolutions of float32 by tiles: some pixels of a row by blocks of channels.

A tile is void f(rows, stream, y, numbers, channels, at): `rows` are pointers to the rows of a window, `at` the bytes from
each of them to the first pixel. It loads each column of data under its pixels once. The stream has for each block of
channels: the first sums, the weights [row][column][channel], and what is added to the sums.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.emission.depthwise import can_replace
from opwest.compiler.emission.expressions import plus, times
from opwest.compiler.emission.function import Call, Lines, Parameter, call_for
from opwest.compiler.ir.operations import Depthwise
from opwest.compiler.kernels.assembly import NAKED
from opwest.compiler.kernels.float_layers import ITEM, Engine, is_float
from opwest.compiler.kernels.float_tiles import PARAMETERS as TILE_PARAMETERS
from opwest.compiler.kernels.float_tiles import limits_of, read_limits, stream_of
from opwest.compiler.kernels.windows import Rows

NUMBERS = ("rows", "column", "result", "low", "high")
"""The int32 numbers of a tile: the rows of a window; the bytes from a column of the data to the next one, and from pixel
to pixel of the result; the limits, as float32."""
PARAMETERS = ("const int8_t *const *rows", *TILE_PARAMETERS[1:], "int32_t at")


@dataclass(frozen=True)
class Columns(ABC):
    """A function for `pixels` by blocks of `channels`, of windows with `width` columns."""

    pixels: int
    channels: int
    width: int
    stride: int
    dilation: int

    @property
    def shape(self) -> str:
        """The part of names that stands for the numbers."""
        dilated = f"_d{self.dilation}" if self.dilation > 1 else ""
        return f"{self.pixels}x{self.channels}_w{self.width}_s{self.stride}{dilated}"

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of the function."""

    @abstractmethod
    def definition(self) -> str:
        """Return the C text of the function."""

    def products(self) -> Iterator[list[tuple[int, int]]]:
        """Yield for each column under the pixels the products: a pixel and a column of its window."""
        for place in range((self.pixels - 1) * self.stride + (self.width - 1) * self.dilation + 1):
            yield [
                (pixel, column)
                for pixel in range(self.pixels)
                for column in range(self.width)
                if pixel * self.stride + column * self.dilation == place
            ]

    def fallback(self) -> str:
        """Return the C of the function."""
        lines, wide = Lines(), self.channels
        lines.add("const int32_t height = numbers[0];", *read_limits(NUMBERS), "")
        with lines.block("for (int32_t c = 0; c < channels; c++)"):
            lines.add(f"const float *block = stream + c / {wide} * {wide} * (height * {self.width} + 2) + c % {wide};", "")
            with lines.loop("pixel", self.pixels):
                lines.add(f"const int32_t place = at + {times('pixel', self.stride)} * numbers[1];")
                lines.add("float *to = (float *)((int8_t *)y + pixel * numbers[2]);")
                lines.add(f"const float *w = block + {wide};", "float sum = *block;", "")
                step = f"w += {self.width * wide}"
                with lines.block(f"for (int32_t row = 0; row < height; row++, {step})"):
                    lines.add("const int8_t *p = rows[row] + place;", "")
                    for k in range(self.width):
                        place = f" + {times('numbers[1]', k * self.dilation)}" if k else ""
                        lines.add(f"sum += ((const float *)(p{place}))[c] * w[{k * wide}];")
                lines.add("sum += *w;", "to[c] = sum < low ? low : sum > high ? high : sum;")
        return f"static void {self.name}({', '.join(PARAMETERS)})\n{{\n{lines}}}\n"


Parts = Callable[[int, int, tuple[int, int, int]], list[tuple[int, Columns]]]
"""From columns of results, channels, and the width, stride and dilation of windows to the tiles of parts of the
channels, with their numbers of channels; none for other windows."""


def offset_of(number: str) -> int:
    """Return the byte of a number."""
    return 4 * NUMBERS.index(number)


def depthwise_call(operation: Depthwise, engine: Engine, parts: Parts) -> Call | None:
    """Return the call; None for other dtypes, several results of a channel, and windows without a tile."""
    data, result, window = operation.inputs[0], operation.results[0], operation.window
    height, width, channels = operation.weights.shape
    if not is_float(operation) or operation.weights.dtype != np.float32 or channels != data.shape[3]:
        return None
    tiles = parts(window.result[1], channels, (width, window.stride[1], window.dilation[1]))
    if not tiles:
        return None
    rows = Rows(data.shape, window, ITEM, source="(const int8_t *)data", functions=engine.names)
    pitch = result.pitch or channels
    streams, starts, first = [], [], 0
    flat = operation.weights.reshape(-1, channels).T
    for some, tile in tiles:
        starts.append(sum(map(len, streams)))
        bias = None if operation.bias is None else operation.bias[first : first + some]
        streams.append(stream_of(flat[first : first + some], bias, tile.channels))
        first += some
    lines = Lines()
    if rows.size:
        lines.add("int8_t *held = (int8_t *)rows;")
    lines.add("float *y = result;", "")
    with rows.ring(lines, "held", "0"):
        _add_columns(lines, operation, list(zip(tiles, starts, strict=True)), pitch)
        lines.add(f"y += {window.result[1] * pitch};")
    numbers = [height, ITEM * channels, ITEM * pitch, *limits_of(operation.finish)]
    arguments = {"data": data, "stream": np.concatenate(streams), "numbers": np.asarray(numbers, np.int32)}
    is_in_place = rows.is_kept and not result.pitch and can_replace(data.shape, window, channels)
    scratch = [Parameter("rows", "float32", "scratch", elements=rows.size // ITEM)] if rows.size else []
    definitions = (NAKED, *engine.used(lines), *dict.fromkeys(tile.definition() for _, tile in tiles))
    in_place = ("data",) if is_in_place else ()
    return call_for(operation, "depthwise", lines, arguments, in_place, scratch, definitions=definitions)


def _add_columns(
    lines: Lines, operation: Depthwise, tiles: list[tuple[tuple[int, Columns], int]], pitch: int
) -> None:
    """Append the tiles of a row of results; the last tile can compute results of the one before again."""
    window, channels = operation.window, operation.weights.shape[2]
    pixels, columns = tiles[0][0][1].pixels, window.result[1]
    last = columns - pixels
    with lines.block(f"for (int ox = 0; ox < {columns}; ox += {pixels})"):
        at = "ox"
        if last % pixels:
            lines.add(f"const int at = ox < {last} ? ox : {last};", "")
            at = "at"
        first = 0
        for (some, tile), start in tiles:
            y = f"y + {times(at, pitch)}{plus(first)}"
            x = f"{times(at, ITEM * window.stride[1] * channels)}{plus(ITEM * first)}"
            lines.add(f"{tile.name}(window, stream{plus(start)}, {y}, numbers, {some}, {x});")
            first += some
