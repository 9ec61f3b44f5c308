# SPDX-License-Identifier: Apache-2.0
"""The loops of a convolution with tiles, over data whose rows are the windows, or over copies of windows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from opwest.compiler.emission.function import Lines
from opwest.compiler.ir.operations import Convolution
from opwest.compiler.kernels.dsp.layers import Numbers, Parts, add_calls
from opwest.compiler.kernels.dsp.tiles import Tile
from opwest.compiler.kernels.windows import Rows


class TiledLayer(ABC):
    """The body of a convolution with tiles: blocks of `pixels` windows, the products of a block and all channels.

    Variables of the body: `x` the data of the next pixel, `y` its result, `filled` the windows of the block.
    """

    item: ClassVar[int] = 1
    """The bytes of an element."""
    unit: ClassVar[int] = 4
    """The elements of a run that a copy reads at once."""
    pixels: int
    parts: Parts
    """The channels of a group."""
    streams: list[Any]
    """Of all parts of all groups."""

    def __init__(self, operation: Convolution, numbers: Numbers) -> None:
        self.operation, self.numbers = operation, numbers
        data, self.window = operation.inputs[0], operation.window
        self.results, self.inner = len(operation.weights), int(operation.weights.shape[3])
        self.data = data.shape if len(data.shape) == 4 else (data.size // self.inner, 1, 1, self.inner)
        self.pitch = operation.results[0].pitch or self.results
        self.count = operation.results[0].size // self.results
        """The pixels of the result."""
        self.groups = operation.groups
        self.each = self.results // self.groups
        """The channels of the result of a group."""
        is_spread = self.window.dilation[1] > 1 or self.groups > 1
        self.is_apart = is_spread and self.window.size[1] > 1
        """Whether the columns of a window are not adjacent."""
        self.run = self.inner * (1 if self.is_apart else self.window.size[1])
        """The elements of a window that are adjacent."""
        self.is_plain = (
            self.window.is_pointwise and data.size // self.inner == self.count and self.inner % self.unit == 0
        )
        """Whether the rows of the data are the windows."""

    @property
    def rows(self) -> Rows:
        """The rows of data under windows."""
        return Rows(self.data, self.window)

    def at(self, name: str, size: int) -> str:
        """Return the pointer to the part of a group, which has `size` elements."""
        return name if self.groups == 1 else f"{name} + g * {size}"

    @abstractmethod
    def load(self, lines: Lines, count: int) -> None:
        """Append the copy of `count` rows of the data at x to the block."""

    @abstractmethod
    def load_window(self, lines: Lines) -> None:
        """Append the copy of the window at x to the place `filled` of the blocks of all groups."""

    @abstractmethod
    def multiply(self, lines: Lines, count: int) -> None:
        """Append the results of `count` pixels of the block, at y. The others are any data."""

    def add_products(self, lines: Lines, tiles: Sequence[Tile], block: int, result: str, step: int) -> None:
        """Append the calls of the tiles of all groups; `block`: the words of the block of a group."""
        streams = self.streams[: len(self.parts)]
        names, size = [tile.name for tile in tiles], sum(map(len, streams))
        with lines.repeat("g", self.groups):
            arguments = self.at("block", block), self.at(result, self.each), str(step)
            add_calls(lines, self.parts, names, streams, arguments, first=self.at("stream", size))

    def add_plain(self, lines: Lines) -> None:
        """Append the loop over data whose rows are the windows."""
        turns, rest = divmod(self.count, self.pixels)
        if turns:
            with lines.repeat("i", turns):
                self.load(lines, self.pixels)
                self.multiply(lines, self.pixels)
                if turns > 1 or rest:
                    step = self.pixels * self.inner * self.item
                    lines.add(f"x += {step};", f"y += {self.pixels * self.pitch};")
        if rest:
            self.load(lines, rest)
            self.multiply(lines, rest)

    def add_windows(self, lines: Lines, fill: str) -> None:
        """Append the loops over windows: a block is multiplied when it is full."""
        rows = self.rows
        with rows.loop(lines, "rows", fill) as first:
            lines.add(f"const int8_t *x = {first};", "")
            with lines.loop("ox", self.window.result[1]):
                self.load_window(lines)
                lines.add(f"x += {self.window.stride[1] * rows.depth};")
                with lines.block(f"if (++filled < {self.pixels})"):
                    lines.add("continue;")
                self.multiply(lines, self.pixels)
                lines.add(f"y += {self.pixels * self.pitch};", "filled = 0;")
        rest = self.count % self.pixels
        if rest:
            self.multiply(lines, rest)
