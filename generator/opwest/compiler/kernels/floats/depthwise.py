# SPDX-License-Identifier: Apache-2.0
"""Depthwise convolutions of float32 by tiles: some pixels of a row by blocks of channels.

A tile is void f(rows, stream, y, numbers, channels, skipped, at): `rows` are pointers to the rows of a window, `at` the
bytes from each of them to the first pixel. It loads each column of data under its pixels once. The stream has for each
block of channels: the first sums, the weights [row][column][channel], and what is added to the sums.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.emission.depthwise import MAX_UNROLLED, can_replace
from opwest.compiler.emission.expressions import plus, times
from opwest.compiler.emission.function import Call, Lines, Parameter, call_for
from opwest.compiler.ir.operations import Convolution, Depthwise
from opwest.compiler.kernels.assembly import NAKED
from opwest.compiler.kernels.floats.layers import ITEM, Engine, convolution_call, last_place, skipped
from opwest.compiler.kernels.floats.tiles import PARAMETERS as TILE_PARAMETERS
from opwest.compiler.kernels.floats.tiles import finish_of, limits_of, read_limits, store_limited, streams_of
from opwest.compiler.kernels.windows import Rows

NUMBERS = ("rows", "column", "result", "low", "high")
"""The int32 numbers of a tile: the rows of a window; the bytes from a column of the data to the next one, and between
pixels of the result; the limits, as float32."""
PARAMETERS = ("const int8_t *const *rows", *TILE_PARAMETERS[1:], "int32_t at")


@dataclass(frozen=True)
class Columns(ABC):
    """A function for `pixels` by blocks of `channels`, of windows with `height` rows and `width` columns."""

    pixels: int
    channels: int
    height: int
    width: int
    stride: int
    dilation: int

    @property
    def has_rest(self) -> bool:
        """Whether the channels can be no whole blocks."""
        return False

    @property
    def shape(self) -> str:
        """The part of names that stands for the numbers."""
        dilated = f"_d{self.dilation}" if self.dilation > 1 else ""
        return f"{self.pixels}x{self.channels}_w{self.height}x{self.width}_s{self.stride}{dilated}"

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
        taps, sums = self.height * self.width, [f"s{c}" for c in range(self.channels)]
        if self.width > 1 or self.has_rest:
            lines.add(f"const int32_t column = {times('numbers[1]', self.dilation)};")
        lines.add(*read_limits(NUMBERS), "")
        with lines.block(f"for (int32_t pixel = skipped; pixel < {self.pixels}; pixel++)"):
            lines.add("float *to = (float *)((int8_t *)y + pixel * numbers[2]);", "const float *w = stream;")
            lines.add(f"int32_t place = at + {times('pixel', self.stride)} * numbers[1];", "")
            step = f"to += {wide}, w += {(taps + 2) * wide}, place += {ITEM * wide}"
            with lines.block(f"for (int32_t left = channels; left > 0; left -= {wide}, {step})"):
                if self.has_rest:
                    with lines.block(f"for (int32_t c = 0; left < {wide} && c < left; c++)"):
                        lines.add("const float *q = w + c;", "float sum = *q;", "")
                        with lines.loop("row", self.height):
                            lines.add(f"const int8_t *p = rows[row] + place + {ITEM} * c;", "")
                            with lines.block(f"for (int32_t k = 0; k < {self.width}; k++, p += column)"):
                                lines.add(f"q += {wide};", "sum += *(const float *)p * *q;")
                        lines.add(f"sum += q[{wide}];", *store_limited("to[c]", "sum"))
                    with lines.block(f"if (left < {wide})"):
                        lines.add("break;")
                    lines.add("")
                lines.add(f"const float *q = w + {wide};")
                lines.add(f"float {', '.join(f'{sum} = w[{c}]' for c, sum in enumerate(sums))};", "")
                with lines.loop("row", self.height):
                    lines.add("const int8_t *p = rows[row] + place;", "")
                    for k in range(self.width):
                        with lines.block(""):
                            lines.add("const float *one = (const float *)p;", "")
                            lines.add(*(f"{sum} += one[{c}] * q[{k * wide + c}];" for c, sum in enumerate(sums)))
                            lines.add(*(["p += column;"] if k + 1 < self.width else []))
                    lines.add(f"q += {self.width * wide};")
                for c, sum in enumerate(sums):
                    lines.add(f"{sum} += q[{c}];", *store_limited(f"to[{c}]", sum))
        return f"static void {self.name}({', '.join(PARAMETERS)})\n{{\n{lines}}}\n"


Parts = Callable[[int, int, tuple[int, int, int, int]], list[tuple[int, Columns]]]
"""From columns of results, channels, and the height, width, stride and dilation of windows to the tiles of parts of the
channels, with their numbers of channels; none for other windows."""


def offset_of(number: str) -> int:
    """Return the byte of a number."""
    return 4 * NUMBERS.index(number)


def depthwise_call(operation: Depthwise, engine: Engine, parts: Parts) -> Call | None:
    """Return the call; None for other dtypes, several results of each channel, and windows without a tile."""
    data, result, window = operation.inputs[0], operation.results[0], operation.window
    height, width, channels = operation.weights.shape
    finish = finish_of(operation)
    if finish is None:
        return None
    if channels != data.shape[3]:
        return convolution_call(_of_one_channel(operation), engine) if data.shape[3] == 1 else None
    tiles = parts(window.result[1], channels, (height, width, window.stride[1], window.dilation[1]))
    if not tiles or height * width > MAX_UNROLLED:
        return None
    rows = Rows(data.shape, window, ITEM, source="(const int8_t *)data", functions=engine.names)
    pitch = result.pitch or channels
    flat, sizes = operation.weights.reshape(-1, channels).T, [(some, tile.channels) for some, tile in tiles]
    stream, starts = streams_of(flat, operation.bias, sizes)
    lines = Lines()
    if rows.size:
        lines.add("int8_t *held = (int8_t *)rows;")
    lines.add("float *y = result;", "")
    with rows.ring(lines, "held", "0"):
        _add_columns(lines, operation, list(zip(tiles, starts, strict=True)), pitch)
        lines.add(f"y += {window.result[1] * pitch};")
    numbers = [height, ITEM * channels, ITEM * pitch, *limits_of(finish)]
    arguments = {"data": data, "stream": stream, "numbers": np.asarray(numbers, np.int32)}
    is_in_place = rows.is_kept and not result.pitch and can_replace(data.shape, window, channels)
    scratch = [Parameter("rows", "float32", "scratch", elements=rows.size // ITEM)] if rows.size else []
    definitions = (NAKED, *engine.used(lines), *dict.fromkeys(tile.definition() for _, tile in tiles))
    in_place = ("data",) if is_in_place else ()
    return call_for(operation, "depthwise", lines, arguments, in_place, scratch, definitions=definitions)


def _of_one_channel(operation: Depthwise) -> Convolution:
    """Return the convolution with the results of several filters of one channel."""
    weights = np.ascontiguousarray(np.moveaxis(operation.weights, -1, 0))[..., None]
    numbers = (1, weights, operation.bias, operation.zero, operation.weight_zero, operation.finish)
    return Convolution(operation.label, operation.inputs, operation.results, operation.window, *numbers)


def _add_columns(lines: Lines, operation: Depthwise, tiles: list[tuple[tuple[int, Columns], int]], pitch: int) -> None:
    """Append the tiles of a row of results; the last tile can compute results of the one before again."""
    window, channels = operation.window, operation.weights.shape[2]
    pixels, columns = tiles[0][0][1].pixels, window.result[1]
    last = columns - pixels
    with lines.block(f"for (int ox = 0; ox < {columns}; ox += {pixels})"):
        at = last_place(lines, "ox", last, pixels)
        first = 0
        for (some, tile), start in tiles:
            y = f"y + {times(at, pitch)}{plus(first)}"
            x = f"{times(at, ITEM * window.stride[1] * channels)}{plus(ITEM * first)}"
            lines.add(f"{tile.name}(window, stream{plus(start)}, {y}, numbers, {some}, {skipped('ox', at)}, {x});")
            first += some
