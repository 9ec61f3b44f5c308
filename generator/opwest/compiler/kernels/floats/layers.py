# SPDX-License-Identifier: Apache-2.0
"""Convolutions and dense layers of float32 by tiles: windows are read from the data, or from a few padded rows.

No window is copied: a tile reads the rows of its windows. Only rows with padding are copied.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.emission.expressions import plus, times
from opwest.compiler.emission.function import Call, Lines, Parameter, call_for
from opwest.compiler.ir.operations import Clamp, Convolution
from opwest.compiler.kernels.assembly import COPY, FILL, NAKED
from opwest.compiler.kernels.floats.tiles import NUMBERS, Runs, Tile, finish_of, streams_of
from opwest.compiler.kernels.windows import Rows

ITEM = 4
PIXELS = 4
"""The pixels of a tile, unless a row of results has fewer."""


@dataclass(frozen=True)
class Engine:
    """The tiles of a class of processors, and its functions that copy and fill bytes."""

    parts: Callable[[int, int], list[tuple[int, Tile]]]
    """From the pixels of a tile and the channels to the tiles of parts of the channels, with their channels."""
    names: tuple[str, str] = ("copy_bytes", "fill_bytes")
    definitions: tuple[str, str] = (COPY, FILL)

    def used(self, lines: Lines) -> tuple[str, ...]:
        """Return the definitions of the functions that lines call."""
        text = str(lines)
        pairs = zip(self.names, self.definitions, strict=True)
        return tuple(definition for name, definition in pairs if f"{name}(" in text)


def convolution_call(operation: Convolution, engine: Engine) -> Call | None:
    """Return the call; None for other dtypes."""
    finish = finish_of(operation)
    return None if finish is None else _Layer(operation, finish, engine).call()


class _Layer:
    """A layer: its geometry, its tiles, its constants."""

    def __init__(self, operation: Convolution, finish: Clamp, engine: Engine) -> None:
        self.operation, self.finish, self.engine = operation, finish, engine
        data, result, window = operation.inputs[0], operation.results[0], operation.window
        self.channels, kh, kw, self.inner = operation.weights.shape
        self.groups = operation.groups
        self.pitch = ITEM * (result.pitch or self.channels)
        self.count = result.size // self.channels
        self.is_plain = window.is_pointwise and self.groups == 1 and data.size == self.count * self.inner
        self.shape = data.shape if len(data.shape) == 4 else (1, 1, 1, data.size)
        # Rows that are copied before they are multiplied can be replaced by their results.
        self.is_replaced = self.is_plain and self.count >= 8 and self.channels <= self.inner and not result.pitch
        self.rows = Rows(self.shape, window, ITEM, source="(const int8_t *)data", functions=engine.names)
        columns = self.count if self.is_plain else window.result[1]
        self.columns = columns
        self.pixels = min(PIXELS, columns)
        depth = self.inner if self.is_plain else self.shape[3]
        self.step = ITEM * depth * (1 if self.is_plain else window.stride[1])
        if self.is_plain:
            self.runs = Runs(1, 1, self.inner)
        else:
            (dy, dx), pitch = window.dilation, self.rows.pitch
            is_joined = self.groups == 1 and dx == 1
            runs, length = (1, kw * self.inner) if is_joined else (kw, self.inner)
            step = length if is_joined else dx * depth
            self.runs = Runs(kh, runs, length, ITEM * (step - length), dy * pitch - ITEM * runs * step)
        each = self.channels // self.groups
        self.tiles = engine.parts(self.pixels, each)
        weights = operation.weights.reshape(self.channels, -1)
        parts = [(some, tile.channels) for some, tile in self.tiles] * self.groups
        self.stream, self.starts = streams_of(weights, operation.bias, parts)

    def call(self) -> Call:
        """Return the call."""
        operation, lines = self.operation, Lines()
        numbers = [self.runs.numbers(self.step, self.pitch, self.finish)]
        scratch = []
        if self.is_plain:
            if self.is_replaced:
                numbers.append(self.runs.numbers(0, 0, self.finish))
                scratch = [Parameter("block", "float32", "scratch", elements=PIXELS * self.inner)]
            self._add_plain(lines)
        else:
            if self.rows.size:
                scratch = [Parameter("rows", "float32", "scratch", elements=self.rows.size // ITEM)]
                lines.add("int8_t *held = (int8_t *)rows;")
            self._add_windows(lines)
        arguments = {"data": operation.inputs[0], "stream": self.stream, "numbers": np.concatenate(numbers)}
        tiles = dict.fromkeys(tile.definition() for _, tile in self.tiles)
        in_place = ("data",) if self.is_replaced else ()
        base = "dense" if self.is_plain and self.count == 1 else "convolution"
        definitions = (NAKED, *self.engine.used(lines), *tiles)
        return call_for(operation, base, lines, arguments, in_place, scratch, definitions=definitions)

    def _add_plain(self, lines: Lines) -> None:
        """Append the products of all rows of the data."""
        if self.is_replaced:
            whole, rest = divmod(self.count, PIXELS)
            copy = f"{self.engine.names[0]}((int8_t *)block, (const int8_t *)x, {{}});"
            lines.add("const float *x = data;", "float *y = result;", "")
            with lines.block(f"for (int i = 0; i < {whole}; i++, x += {PIXELS * self.inner})"):
                lines.add(copy.format(PIXELS * self.step))
                self._multiply(lines, "block", "y", "numbers", "0")
                lines.add(f"y += {PIXELS * self.channels};")
            if rest:
                # One pixel takes the places of all.
                with lines.block(f"for (int i = 0; i < {rest}; i++, x += {self.inner}, y += {self.channels})"):
                    lines.add(copy.format(self.step))
                    self._multiply(lines, "block", "y", f"numbers + {len(NUMBERS)}", str(PIXELS - 1))
            return
        self._add_columns(lines, "data", "result")

    def _add_windows(self, lines: Lines) -> None:
        """Append the products of all windows."""
        lines.add("float *y = result;", "")
        with self.rows.loop(lines, "held", "0") as row:
            source = f"(const float *){row}"
            for_groups = lines.repeat("g", self.groups)
            with for_groups:
                x, y = source, "y"
                if self.groups > 1:
                    lines.add(f"const float *from = {source} + g * {self.inner};")
                    lines.add(f"const float *w = stream + g * {len(self.stream) // self.groups};")
                    lines.add(f"float *to = y + g * {self.channels // self.groups};", "")
                    x, y = "from", "to"
                self._add_columns(lines, x, y)
            lines.add(f"y += {self.columns * self.pitch // ITEM};")

    def _add_columns(self, lines: Lines, x: str, y: str) -> None:
        """Append the tiles of a row of results; the last tile can compute results of the one before again."""
        if self.columns <= self.pixels:
            self._multiply(lines, x, y, "numbers", "0")
            return
        last = self.columns - self.pixels
        with lines.block(f"for (int ox = 0; ox < {self.columns}; ox += {self.pixels})"):
            at = last_place(lines, "ox", last, self.pixels)
            source = f"{x} + {times(at, self.step // ITEM)}"
            self._multiply(lines, source, f"{y} + {times(at, self.pitch // ITEM)}", "numbers", skipped("ox", at))

    def _multiply(self, lines: Lines, x: str, y: str, numbers: str, skipped: str) -> None:
        """Append the calls of the tiles of some pixels."""
        stream, first = "w" if self.groups > 1 else "stream", 0
        for (some, tile), start in zip(self.tiles, self.starts, strict=False):
            lines.add(f"{tile.name}({x}, {stream}{plus(start)}, {y}{plus(first)}, {numbers}, {some}, {skipped});")
            first += some


def last_place(lines: Lines, variable: str, last: int, pixels: int) -> str:
    """Append the first pixel of a tile, at most `last`; return its name: the variable of the loop if it is that one."""
    if last % pixels == 0:
        return variable
    lines.add(f"const int at = {variable} < {last} ? {variable} : {last};", "")
    return "at"


def skipped(variable: str, at: str) -> str:
    """Return the number of pixels of a tile that the one before has computed."""
    return "0" if at == variable else f"{variable} - {at}"
