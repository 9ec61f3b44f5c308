# SPDX-License-Identifier: Apache-2.0
"""Convolutions and matrix products of int8 values, one multiplication each: two rows by four channels in registers.

For all weights, which need no more memory than they have elements: a byte and its sums at a time.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.emission.function import Call, Lines, Parameter, c_type, emits
from opwest.compiler.emission.matrix import blocks
from opwest.compiler.ir.operations import Convolution, ConvolutionSum
from opwest.compiler.kernels.assembly import NAKED
from opwest.compiler.kernels.mla.assembly import COPY, REGISTERS, Epilogue, load_words, numbers_of, tile_function
from opwest.compiler.kernels.mla.convolution import Layer, add_tile, call_of, layer_of

MAX_OFFSET = 4095
"""The greatest distance of two rows: an offset of a load."""
UNROLLED = 8


@dataclass(frozen=True)
class Tile:
    """A function that multiplies some rows by blocks of channels."""

    rows: int
    channels: int
    length: int
    end: Epilogue

    @property
    def name(self) -> str:
        """The name of the function."""
        return f"mla_bytes_{self.rows}x{self.channels}_{self.length}_{self.end.name}"

    def text(self) -> str:
        """Return the definition. Arguments: those of `pairs.Tile`, with bytes."""
        free = list(REGISTERS[2:])
        sums = [[free.pop(0) for _ in range(self.channels)] for _ in range(self.rows)]
        lines = []
        turns, rest = divmod(self.length, UNROLLED)
        if turns:
            lines.append("2:")
            lines += UNROLLED * self._tap(sums, free)
            # The last taps are not part of the loop.
            lines += [f"ldr {free[0]}, [sp, #8]", f"cmp r0, {free[0]}", "bne 2b"]
        lines += rest * self._tap(sums, free)
        padding = -self.length * self.channels % 4
        lines += [f"add r1, r1, #{padding}"] if padding else []
        return tile_function(self.name, "int8_t", sums, [*lines, *self._ending(sums, free)])

    def _tap(self, sums: list[list[str]], free: list[str]) -> list[str]:
        """Return the products of one element of each row."""
        data, registers = free[: self.rows], free[self.rows :][: self.channels]
        lines = [f"ldrsb {data[row]}, [r0, #{row * self.length}]" for row in range(1, self.rows)]
        lines.append(f"ldrsb {data[0]}, [r0], #1")
        for first in range(0, self.channels, len(registers)):
            chosen = list(zip(range(first, self.channels), registers, strict=False))
            lines += [f"ldrsb {register}, [r1], #1" for _, register in chosen]
            for row, register in enumerate(data):
                lines += [f"mla {sums[row][c]}, {register}, {weight}, {sums[row][c]}" for c, weight in chosen]
        return lines

    def _ending(self, sums: list[list[str]], free: list[str]) -> list[str]:
        """Return the code from the sums of a block to its results: few registers are free."""
        if self.end.is_sum:
            return self._sums(sums, free)
        lines = []
        low, *numbers = free[:4]
        for c in range(self.channels):
            lines += [f"ldr {number}, [r1, #{16 * c + 4 * place}]" for place, number in enumerate(numbers, 1)]
            for row in sums:
                # The register of the bias is that of the low word of the product.
                lines += [f"ldr {low}, [r1, #{16 * c}]", *self.end.lines(row[c], [low, *numbers], low)]
        return lines + self._stores(sums, free) + [f"add r1, r1, #{16 * self.channels}"]

    def _sums(self, sums: list[list[str]], free: list[str]) -> list[str]:
        lines = []
        for c in range(self.channels):
            lines.append(load_words(free[:1], "r1"))
            lines += [line for row in sums for line in self.end.lines(row[c], free[:1], free[1])]
        return lines + self._stores(sums, free)

    def _stores(self, sums: list[list[str]], free: list[str]) -> list[str]:
        result, stride = free[:2]
        lines = [f"ldr {result}, [sp, #4]", f"ldr {stride}, [sp, #48]"]
        for row, values in enumerate(sums):
            for c, value in enumerate(values):
                lines.append(f"{self.end.store} {value}, [{result}, #{c * self.end.size}]")
            if row < self.rows - 1:
                lines.append(f"add {result}, {result}, {stride}")
        lines.append(f"ldr {result}, [sp, #4]")
        return [*lines, f"add {result}, {result}, #{self.channels * self.end.size}", f"str {result}, [sp, #4]"]


@emits(ConvolutionSum, "mla-bytes")
@emits(Convolution, "mla-bytes", has_pitch=True)
def render(operation: Convolution) -> Call | None:
    """Return the call; None: a layer of other dtypes or with groups."""
    layer = layer_of(operation)
    if layer is None:
        return None
    rows = min(2, layer.rows) if layer.length <= MAX_OFFSET else 1
    numbers = numbers_of(layer.scaling, layer.bias)
    parts, words = [], []
    for first, turns, some in blocks(layer.channels, 4):
        chosen = slice(first, first + turns * some)
        words.append(_stream(layer.weights[chosen], numbers[chosen], some).view(np.int32))
        parts.append((first, some, len(words[-1])))
    counts = [some for some in (rows, layer.rows % rows) if some]
    tiles = {some: [Tile(some, wide, layer.length, layer.end) for _, wide, _ in parts] for some in counts}
    lines = Lines()
    lines.add(f"{c_type(layer.result)} *y = result;")
    scratch = []
    # Copies of rows let results replace the data. A copy of all data needs no less memory than separate results.
    is_copied = not layer.is_plain or (layer.channels <= layer.length and rows < layer.rows)
    if is_copied:
        scratch.append(Parameter("rows", "int8", "scratch", elements=rows * layer.length))
    writer = _BytewiseFunction(layer, rows, parts, tiles)
    if layer.is_plain:
        writer.plain(lines, is_copied)
    else:
        writer.windows(lines)
    copies = (COPY,) if is_copied else ()
    definitions = (NAKED, *copies, *dict.fromkeys(tile.text() for some in tiles.values() for tile in some))
    return call_of(operation, layer, np.concatenate(words), str(lines), scratch, rows, definitions, is_copied)


def _stream(weights: Any, numbers: Any, channels: int) -> Any:
    """Return the bytes of blocks of channels: all weights of a block, then its numbers."""
    length = weights.shape[1]
    taps = weights.reshape(-1, channels, length).transpose(0, 2, 1).reshape(len(weights) // channels, -1)
    taps = np.pad(taps, ((0, 0), (0, -taps.shape[1] % 4)))
    numbers = np.ascontiguousarray(numbers.reshape(len(taps), -1)).view(np.int8)
    return np.ascontiguousarray(np.concatenate([taps, numbers], 1)).reshape(-1)


@dataclass(frozen=True, eq=False)
class _BytewiseFunction:
    """The body of a convolution with one multiplication for each product."""

    layer: Layer
    rows: int
    parts: list[tuple[int, int, int]]
    tiles: dict[int, list[Tile]]

    def plain(self, lines: Lines, is_copied: bool) -> None:
        """Append the loop over rows of the data."""
        layer, length = self.layer, self.layer.length
        turns, rest = divmod(layer.rows, self.rows)
        if is_copied:
            lines.add("const int8_t *x = rows;", "const int8_t *from = data;", "")
        else:
            lines.add("const int8_t *x = data;", "")
        source = "from" if is_copied else "x"
        with lines.loop("row", turns):
            if is_copied:
                lines.add(f"mla_copy(rows, from, {self.rows * length});")
            self._tile(lines, self.rows)
            lines.add(f"{source} += {self.rows * length};", f"y += {self.rows * layer.pitch};")
        if rest:
            if is_copied:
                lines.add(f"mla_copy(rows, from, {rest * length});")
            self._tile(lines, rest)

    def windows(self, lines: Lines) -> None:
        """Append the loops over windows: a tile is computed when its rows are complete."""
        layer, windows = self.layer, self.layer.windows
        lines.add("const int8_t *x = rows;", "int filled = 0;", "")
        with windows.loop(lines, self.rows, lambda: windows.add_bytes(lines, f"rows + filled * {layer.length}")):
            self._tile(lines, self.rows)
            lines.add(f"y += {self.rows * layer.pitch};")
        if layer.rows % self.rows:
            self._tile(lines, layer.rows % self.rows)

    def _tile(self, lines: Lines, rows: int) -> None:
        calls, at = [], 0
        for tile, (first, _, size) in zip(self.tiles[rows], self.parts, strict=True):
            calls.append((tile.name, first, f"weights + {at}", f"weights + {at + size}"))
            at += size
        whole = self.layer.length // UNROLLED * UNROLLED
        add_tile(lines, self.layer, rows, calls, ("x", f"x + {whole}"))
