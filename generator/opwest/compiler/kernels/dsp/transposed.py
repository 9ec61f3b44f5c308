# SPDX-License-Identifier: Apache-2.0
"""Transposed convolutions of int8 data with constant weights.

The results at equal places modulo the stride, a phase, are a convolution of stride 1 with every stride-th weight: a
window of up to ceil(size / stride) rows and columns of the data. All phases have the same tiles, whose loop any number
of taps ends, and a table of numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd
from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.emission.convolution import plain_weights
from opwest.compiler.emission.expressions import plus
from opwest.compiler.emission.function import Call, Lines, Parameter, call_for, emits
from opwest.compiler.ir.operations import DirectConvolution
from opwest.compiler.kernels.assembly import COPY, NAKED
from opwest.compiler.kernels.dsp.layers import Numbers, can_pack, parts_of, stream_of
from opwest.compiler.kernels.dsp.matrix import TURNS
from opwest.compiler.kernels.dsp.streamed import MARK
from opwest.compiler.kernels.dsp.tiles import Tile
from opwest.compiler.kernels.dsp.widening import name_of_widen_window, unit_of, widen_window
from opwest.compiler.kernels.scaling import scaling_of
from opwest.compiler.kernels.windows import Rows, used_copies
from opwest.compiler.semantics.windows import Window


@emits(DirectConvolution, "dsp-bytes")
def with_bytes(operation: DirectConvolution) -> Call | None:
    """Return the call with int8 weights in flash: 2 pixels by 4 channels; None if a sum could be too large."""
    return _render(operation, is_wide=False)


@emits(DirectConvolution, "dsp-halves")
def with_halves(operation: DirectConvolution) -> Call | None:
    """Return the call with int16 weights in flash: 4 pixels by 2 channels."""
    return _render(operation, is_wide=True)


def _render(operation: DirectConvolution, *, is_wide: bool) -> Call | None:
    numbers = numbers_of(operation)
    if numbers is None:
        return None
    is_narrow = numbers.weights.dtype == np.int8 and can_pack(numbers.weights, numbers.bounds)
    if not (is_wide or is_narrow):
        return None
    return _Transposed(operation, numbers, is_wide).call()


def numbers_of(operation: DirectConvolution) -> Numbers | None:
    """Return the constants of a transposed layer: as first sums, the biases; as bounds, the greatest of all phases.

    None: other dtypes, weights or a bias that are computed, other forms of scales, and a padding of whole windows.
    """
    data, weights, *rest = operation.inputs
    window = operation.window
    if window.dilation != (1, 1) or any(n >= size for n, size in zip(window.before, window.size, strict=True)):
        return None
    if not operation.is_transposed or {data.dtype, weights.dtype, operation.results[0].dtype} != {"int8"}:
        return None
    if any(value.role != "constant" for value in (weights, *rest)):
        return None
    plain = plain_weights(weights.content, operation.zeros[1])
    flat = plain.reshape(len(plain), -1)
    bias = np.asarray(rest[0].content, np.int64).reshape(-1) if rest else np.zeros(len(flat), np.int64)
    most = max(127 - operation.zeros[0], 128 + operation.zeros[0])
    sizes, (sy, sx) = np.abs(plain.astype(np.int64)), operation.window.stride
    phases = [sizes[:, down::sy, over::sx].sum(axis=(1, 2, 3)) for down in range(sy) for over in range(sx)]
    bounds = np.max(phases, axis=0) * most + np.abs(bias)
    scaling = scaling_of(operation.finish, bounds)
    return None if scaling is None else Numbers(flat, bias, bounds, scaling, 8)


@dataclass(frozen=True)
class Line:
    """The rows or the columns of a phase."""

    taps: tuple[int, ...]
    """The rows or columns of the weights, in the order of the data."""
    first: int
    """Of the result."""
    skipped: int
    """The rows or columns of the windows of all phases before those of this one."""
    place: int
    """The window of the first result."""
    count: int
    """Of the result."""


@dataclass(frozen=True)
class Axis:
    """The rows or columns of a transposed convolution."""

    size: int
    stride: int
    before: int
    result: int

    @property
    def window(self) -> int:
        """The most rows or columns of the data for a result."""
        return -(-self.size // self.stride)

    @property
    def least(self) -> int:
        """The last row or column of the data that the first result reads."""
        return self.before // self.stride

    @property
    def count(self) -> int:
        """The windows over the data."""
        return (self.result - 1 + self.before) // self.stride - self.least + 1

    def phases(self) -> Iterator[Line]:
        """Yield the phases."""
        for phase in range(self.stride):
            taps = tuple(range(phase, self.size, self.stride))[::-1]
            first = (phase - self.before) % self.stride
            place = (first + self.before) // self.stride - self.least
            yield Line(taps, first, self.window - len(taps), place, max(0, -(-(self.result - first) // self.stride)))


class _Transposed:
    """The body of a transposed convolution: for each row of windows, the phases of its rows of the result."""

    def __init__(self, operation: DirectConvolution, numbers: Numbers, is_wide: bool) -> None:
        self.operation, self.numbers, self.is_wide = operation, numbers, is_wide
        data, window = operation.inputs[0], operation.window
        self.results, *_, self.inner = operation.inputs[1].shape
        self.pixels, self.channels = (4, 2) if is_wide else (2, 4)
        self.down, self.over = (
            Axis(window.size[axis], window.stride[axis], window.before[axis], window.result[axis]) for axis in (0, 1)
        )
        axes = self.down, self.over
        sizes, before = [axis.window for axis in axes], [axis.window - 1 - axis.least for axis in axes]
        counts = [axis.count for axis in axes]
        windows = Window((sizes[0], sizes[1]), (1, 1), (1, 1), (before[0], before[1]), (counts[0], counts[1]))
        self.phases = [(line, column) for line in self.down.phases() for column in self.over.phases()]
        words = [self._words(column) for _, column in self.phases if column.taps]
        self.unit = unit_of(gcd(*words))
        """The words of a run that are widened in a turn."""
        steps = gcd(*(2 * len(line.taps) * self._words(column) for line, column in self.phases))
        self.turn = next(turn for turn in TURNS if steps % turn == 0)
        # A run is widened in words of four bytes, so that up to three bytes behind it are read.
        self.is_longer = any(len(column.taps) * self.inner % 4 for _, column in self.phases)
        self.rows = Rows(data.shape, windows, is_copied=self.is_longer)
        self.parts = parts_of(self.results, self.channels)
        sizes_of_parts = [2 if stored <= 2 else self.channels for _, stored in self.parts]
        ending = numbers.ending
        self.tiles = [
            Tile(self.pixels, size, stored, self.turn, is_wide, ending, None, "data", True)
            for size, (_, stored) in zip(sizes_of_parts, self.parts, strict=True)
        ]

    def _words(self, column: Line) -> int:
        """Return the groups of four bytes of a run of a phase."""
        return -(-len(column.taps) * self.inner // 4)

    def _steps(self, line: Line, column: Line) -> int:
        return max(self.turn, 2 * len(line.taps) * self._words(column))

    def _weights(self, line: Line, column: Line) -> Any:
        """Return the weights [o,k] of a phase, with zeros up to the ends of runs."""
        plain = self.numbers.weights.reshape(self.operation.inputs[1].shape)
        taken = plain[:, line.taps][:, :, column.taps]
        taken = taken.reshape(self.results, len(line.taps), len(column.taps) * self.inner)
        flat = np.pad(taken, ((0, 0), (0, 0), (0, -taken.shape[2] % 4))).reshape(self.results, -1)
        return np.pad(flat, ((0, 0), (0, 2 * self._steps(line, column) - flat.shape[1])))

    def _constants(self) -> tuple[Any, Any]:
        """Return the stream of all phases, and the table: COLUMNS numbers of each phase."""
        streams: list[Any] = []
        table, start = [], 0
        for line, column in self.phases:
            weights = self._weights(line, column)
            first = self.numbers.sums - self.operation.zeros[0] * weights.sum(axis=1, dtype=np.int64)
            numbers = Numbers(weights, first, self.numbers.bounds, self.numbers.scaling, 8)
            ends = [start]
            for tile, (some, _) in zip(self.tiles, self.parts, strict=True):
                streams.append(stream_of(numbers, some, tile.channels, self.is_wide))
                ends.append(ends[-1] + len(streams[-1]))
            start = ends[-1]
            place = line.skipped * self.rows.pitch + (column.skipped + column.place) * self.inner
            runs = len(line.taps) if column.taps else 0
            words = self._words(column)
            table.append([runs, words, self._steps(line, column) * self.pixels, place, column.count])
            table[-1] += [column.first * self.results, *ends]
        return np.concatenate(streams), np.asarray(table, np.int32)

    def call(self) -> Call:
        """Return the call."""
        stream, table = self._constants()
        lines = Lines()
        block = int(table[:, 2].max()) + 2
        size = self.rows.size + 4 * self.is_longer if self.rows.size else 0
        with self.rows.loop(lines, "rows", str(self.operation.zeros[0])) as row:
            self._add(lines, row, table.shape[1])
        scratch = [
            Parameter("block", "uint32", "scratch", elements=block),
            Parameter("last", "int8", "scratch", elements=self.pixels * self.results),
        ]
        scratch += [Parameter("rows", "int8", "scratch", elements=size)] if size else []
        copies = [COPY, *(copy for copy in used_copies(lines) if copy is not COPY)]
        definitions = [NAKED, *copies, widen_window(self.pixels, self.unit)]
        definitions += [tile.definition() for tile in self.tiles]
        arguments = {"data": self.operation.inputs[0], "stream": stream, "phases": table.reshape(-1)}
        options: dict[str, Any] = {"scratch": scratch, "definitions": tuple(dict.fromkeys(definitions))}
        return call_for(self.operation, "transposed_convolution", lines, arguments, **options)

    def _add(self, lines: Lines, row: str, width: int) -> None:
        """Append the phases of a row of windows."""
        _, height, columns, results = self.operation.results[0].shape
        (sy, sx), down = self.operation.window.stride, self.down
        image = f"n * {height} + " if self.operation.results[0].shape[0] > 1 else ""
        step = sx * results
        with lines.loop("p", sy * sx):
            first = down.least * sy - down.before
            lines.add(f"const int32_t *phase = phases + p * {width};")
            lines.add(f"const int line = oy * {sy} + p / {sx}{plus(first)};", "")
            with lines.block(f"if (line < 0 || line >= {height})"):
                lines.add("continue;")
            lines.add(
                f"const int8_t *x = {row} + phase[3];",
                f"int8_t *y = result + ({image}line) * {columns * results} + phase[5];",
                "",
                f"block[phase[2]] = UINT32_C({MARK:#x});",
            )
            with lines.block(f"for (int left = phase[4]; left > 0; left -= {self.pixels})"):
                lines.add(
                    f"const int some = left < {self.pixels} ? left : {self.pixels};",
                    f"int8_t *to = left < {self.pixels} ? last : y;",
                    f"const int step = left < {self.pixels} ? {results} : {step};",
                    "",
                )
                with lines.block("for (int i = 0; phase[0] > 0 && i < some; i++)"):
                    name = name_of_widen_window(self.pixels, self.unit)
                    shape = f"phase[1], phase[0], {self.rows.pitch} - 4 * phase[1]"
                    lines.add(f"{name}(block + i, x, {shape});", f"x += {self.inner};")
                for place, (tile, (part, _)) in enumerate(zip(self.tiles, self.parts, strict=True)):
                    start, end = (f"stream + phase[{number + place}]" for number in (6, 7))
                    lines.add(f"{tile.name}(block, {start}, to{plus(part.start)}, step, {end});")
                with lines.block(f"for (int i = 0; left < {self.pixels} && i < some; i++)"):
                    lines.add(f"copy_bytes(y + i * {step}, last + i * {results}, {results});")
                lines.add(f"y += {self.pixels * step};")
