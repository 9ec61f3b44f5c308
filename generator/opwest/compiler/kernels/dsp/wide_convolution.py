# SPDX-License-Identifier: Apache-2.0
"""int16 convolutions as tiles: windows of neighbouring pixels are copied to a block, and multiplied by all channels.

Where all sums fit in 32 bits, tiles are 4 pixels by 2 channels as for int8 data; otherwise they are those of
`wide_tile`. Runs of an odd number of taps are one longer, with a weight of 0.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.emission.function import Call, Function, Lines, Parameter, emits
from opwest.compiler.graph.types import Shape
from opwest.compiler.ir.operations import Convolution
from opwest.compiler.kernels.assembly import COPY, FILL
from opwest.compiler.kernels.dsp.layers import WideNumbers, stream_of, wide_numbers_of
from opwest.compiler.kernels.dsp.tiles import Tile
from opwest.compiler.kernels.dsp.wide_dense import is_dense
from opwest.compiler.kernels.dsp.wide_tiles import WideTile, ends_of_sums, wide_stream
from opwest.compiler.kernels.dsp.widening import interleave, name_of_spread, spread
from opwest.compiler.kernels.windows import Rows

CHANNELS = 2
"""The channels of a tile."""


@emits(Convolution, "dsp-wide")
def render(operation: Convolution) -> Call | None:
    """Return the call; None for groups, and for one row of data."""
    data, result = operation.inputs[0], operation.results[0]
    if operation.groups != 1 or is_dense(operation):
        return None
    numbers = wide_numbers_of(operation, operation.weights)
    if numbers is None:
        return None
    inner = operation.weights.shape[3]
    shape = data.shape if len(data.shape) == 4 else (data.size // inner, 1, 1, inner)
    layer = _Layer(operation, shape, numbers)
    lines = Lines()
    lines.add("const int8_t *bytes = (const int8_t *)data;", "int16_t *y = result;")
    copies = layer.add_plain(lines) if layer.is_plain else layer.add_windows(lines)
    in_place = ("data",) if layer.is_plain and layer.results <= inner else ()
    is_long = numbers.scaling.is_long
    parameters = [
        Parameter("data", "int16"),
        Parameter("stream", "int32"),
        *([Parameter("ends", "int32")] if is_long else []),
        Parameter("result", "int16", "out", in_place),
        Parameter("block", "uint32", "scratch", elements=layer.scratch),
    ]
    definitions = (*copies, *layer.definitions())
    function = Function("convolution", tuple(parameters), str(lines), definitions=tuple(dict.fromkeys(definitions)))
    arrays: list[Any] = [np.concatenate(layer.streams()), *([numbers.ends.reshape(-1)] if is_long else [])]
    return Call(function, (data, *arrays, result), operation.label)


@dataclass(frozen=True, eq=False)
class _Layer:
    operation: Convolution
    data: Shape
    numbers: WideNumbers

    @property
    def rows(self) -> Rows:
        """The rows of data under windows. They are copied if the last run would end behind the data."""
        return Rows(self.data, self.operation.window, 2, self.run % 2 == 1, "bytes")

    @property
    def results(self) -> int:
        """The channels of a result."""
        return len(self.operation.weights)

    @property
    def count(self) -> int:
        """The pixels of the result."""
        return self.operation.results[0].size // self.results

    @property
    def pixels(self) -> int:
        """The pixels of a block."""
        return 2 if self.numbers.scaling.is_long or self.count <= 2 else 4

    @property
    def is_plain(self) -> bool:
        """Whether the rows of the data are the windows."""
        window, inner = self.operation.window, self.data[3]
        is_one = window.size == window.stride == (1, 1) and window.before == (0, 0)
        return is_one and window.result == self.data[1:3] and inner % 2 == 0

    @property
    def is_apart(self) -> bool:
        """Whether the columns of a window are not adjacent."""
        return self.operation.window.dilation[1] > 1 and self.operation.window.size[1] > 1

    @property
    def run(self) -> int:
        """The elements of a window that are adjacent."""
        return self.data[3] if self.is_apart else self.operation.window.size[1] * self.data[3]

    @property
    def words(self) -> int:
        """The words of a run."""
        return -(-self.run // 2)

    @property
    def steps(self) -> int:
        """The words of a window."""
        return int(self.operation.weights[0].size) // self.run * self.words

    @property
    def padded(self) -> int:
        """The channels of all tiles."""
        return -(-self.results // CHANNELS) * CHANNELS

    @property
    def after(self) -> int:
        """The words of the block and of what follows it: 64-bit sums, or the results of the last pixels."""
        block = self.steps * self.pixels
        if self.numbers.scaling.is_long:
            return block + self.padded * self.pixels * 2
        return block + (-(-self.pixels * self.results // 2) if self.count % self.pixels > 1 else 0)

    @property
    def scratch(self) -> int:
        """The words of scratch memory. Windows read up to one element behind the rows."""
        rows = 0 if self.is_plain else self.rows.size
        return self.after + (-(-(rows + 2) // 4) if rows else 0)

    def parts(self) -> list[tuple[slice, int]]:
        """Return the channels of whole tiles, then the last one, with the channels that a tile stores."""
        whole = self.results // CHANNELS * CHANNELS
        found = [(slice(0, whole), CHANNELS)] if whole else []
        return [*found, (slice(whole, self.results), 1)] if self.results % CHANNELS else found

    def streams(self) -> list[Any]:
        """Return the int32 words of each part."""
        numbers = self.numbers
        runs = np.zeros((self.results, self.steps // self.words, 2 * self.words), np.int64)
        runs[..., : self.run] = numbers.weights.reshape(self.results, -1, self.run)
        weights = runs.reshape(self.results, -1)
        if numbers.scaling.is_long:
            return [wide_stream(weights, numbers.sums, CHANNELS)]
        return [
            stream_of(
                weights[some], numbers.sums[some], numbers.scaling.part(some), CHANNELS, is_wide=True, order=(0, 1)
            )
            for some, _ in self.parts()
        ]

    def tiles(self) -> list[Tile]:
        """Return the tiles of sums of 32 bits."""
        return [
            Tile(self.pixels, CHANNELS, stored, self.steps, is_wide=True, ending=self.numbers.ending)
            for _, stored in self.parts()
        ]

    def definitions(self) -> tuple[str, ...]:
        """Return the functions of the tiles."""
        if self.numbers.scaling.is_long:
            return WideTile(self.steps, self.padded).definition(), *ends_of_sums(self.numbers.ending)[1]
        return tuple(tile.definition() for tile in self.tiles())

    def add_plain(self, lines: Lines) -> tuple[str, ...]:
        """Append the body for data whose rows are the windows; return the copies that it uses."""
        pixels, inner = self.pixels, self.data[3]
        turns, rest = divmod(self.count, pixels)
        lines.add("const int8_t *x = bytes;", "")
        if turns:
            with lines.loop("i", turns) if turns > 1 else nullcontext():
                lines.add(f"interleave_{pixels}(block, x, {self.words}, {2 * inner});")
                self._block(lines)
                if turns > 1 or rest:
                    lines.add(f"x += {2 * pixels * inner};", f"y += {pixels * self.results};")
        if not rest:
            return (interleave(pixels),)
        name = name_of_spread(pixels, self.words)
        with lines.loop("i", rest) if rest > 1 else lines.block(""):
            to, from_ = ("block + i", f"x + i * {2 * inner}") if rest > 1 else ("block", "x")
            lines.add(f"{name}({to}, {from_}, 1, 0);")
        used = self._last(lines, rest)
        return (*used, *([interleave(pixels)] if turns else []), spread(pixels, self.words))

    def add_windows(self, lines: Lines) -> tuple[str, ...]:
        """Append the body for windows; return the copies that it uses."""
        window, rows, pixels = self.operation.window, self.rows, self.pixels
        depth, name = rows.depth, name_of_spread(pixels, self.words)
        lines.add("int filled = 0;")
        if rows.size:
            lines.add(f"int8_t *rows = (int8_t *)(block + {self.after});")
        lines.add("")
        with rows.loop(lines, "rows", "0") as first:
            lines.add(f"const int8_t *x = {first};", "")
            with lines.loop("ox", window.result[1]):
                down = rows.pitch * window.dilation[0]
                if self.is_apart:
                    skipped = window.dilation[1] * depth - 4 * self.words
                    size = window.size[1] * self.words * pixels
                    with lines.loop("ky", window.size[0]) if window.size[0] > 1 else nullcontext():
                        from_, to = ("x", "block + filled")
                        if window.size[0] > 1:
                            from_, to = f"x + ky * {down}", f"block + filled + ky * {size}"
                        lines.add(f"{name}({to}, {from_}, {window.size[1]}, {skipped});")
                else:
                    lines.add(f"{name}(block + filled, x, {window.size[0]}, {down - 4 * self.words});")
                lines.add(f"x += {window.stride[1] * depth};")
                with lines.block(f"if (++filled < {pixels})"):
                    lines.add("continue;")
                self._block(lines)
                lines.add(f"y += {pixels * self.results};", "filled = 0;")
        rest = self.count % pixels
        used = self._last(lines, rest) if rest else ()
        if rows.size:
            used = (COPY, FILL) if rows.is_padded else (COPY,)
        return (*used, spread(pixels, self.words))

    def _last(self, lines: Lines, rest: int) -> tuple[str, ...]:
        """Append the products of the last pixels; the others of the block are any data."""
        if self.numbers.scaling.is_long:
            self._block(lines, rest)
            return ()
        if rest == 1:
            # The first pixel is stored after the others, at the same place.
            self._tiles(lines, "y", "0")
            return ()
        lines.add(f"int16_t *last = (int16_t *)(block + {self.steps * self.pixels});", "")
        self._tiles(lines, "last", str(2 * self.results))
        lines.add(f"copy_bytes((int8_t *)y, (const int8_t *)last, {2 * rest * self.results});")
        return (COPY,)

    def _block(self, lines: Lines, pixels: int | None = None) -> None:
        """Append the products of a block and all channels."""
        if not self.numbers.scaling.is_long:
            self._tiles(lines, "y", str(2 * self.results))
            return
        size = self.padded // CHANNELS * (2 * CHANNELS + CHANNELS * self.steps)
        sums = self.steps * self.pixels
        lines.add(f"{WideTile(self.steps, self.padded).name}(block, stream, block + {sums}, stream + {size});")
        name, _ = ends_of_sums(self.numbers.ending)
        for pixel in range(pixels or self.pixels):
            to = "y" if pixel == 0 else f"y + {pixel * self.results}"
            lines.add(f"{name}(block + {sums + pixel * self.padded * 2}, ends, {to}, {self.results});")

    def _tiles(self, lines: Lines, result: str, step: str) -> None:
        """Append the calls of the tiles; `step`: the bytes from pixel to pixel."""
        offset = 0
        for tile, stream, (some, _) in zip(self.tiles(), self.streams(), self.parts(), strict=True):
            start = "stream" if offset == 0 else f"stream + {offset}"
            to = result if some.start == 0 else f"{result} + {some.start}"
            offset += len(stream)
            lines.add(f"{tile.name}(block, {start}, {to}, {step}, stream + {offset});")
