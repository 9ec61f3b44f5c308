# SPDX-License-Identifier: Apache-2.0
"""The loops of a product of matrices: columns of the second one are packed as a stream, and multiplied by all rows."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from math import prod
from typing import Any, ClassVar

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.emission.elementwise import joined
from opwest.compiler.emission.function import Call, Lines, Parameter, c_type, call_for
from opwest.compiler.ir.operations import MatrixProduct
from opwest.compiler.ir.program import Value
from opwest.compiler.kernels.assembly import COPY, NAKED
from opwest.compiler.kernels.dsp.tiles import Tile
from opwest.compiler.kernels.dsp.wide_tiles import EndedTile
from opwest.compiler.kernels.scaling import Scaling

COLUMNS = 2
"""Of a tile."""
MAX_STREAM = 1 << 10
"""The words of packed columns, from which on they are packed in several parts."""


@dataclass(frozen=True)
class Shape:
    """The matrices of a product and the loops over their batches."""

    rows: int
    depth: int
    columns: int
    counts: tuple[int, ...]
    """The turns of the loops over batches: only those of several turns."""
    strides: tuple[tuple[int, ...], tuple[int, ...]]
    """The elements from one matrix of an operand to the next one, for each loop."""
    row: int
    """The elements from one row of the first operand to the next one."""
    tap: int
    """The elements from one tap of a row to the next one."""
    column: int
    """The elements from one column of the second operand to the next one."""
    down: int
    """The elements from one tap of a column to the next one."""

    @property
    def outer(self) -> int:
        """The loops in which the matrix of the second operand changes: the first ones."""
        return max((place + 1 for place, stride in enumerate(self.strides[1]) if stride), default=0)

    def start(self, name: str, operand: int) -> str:
        """Return the first element of the matrix of an operand, 2 for the result."""
        size = self.rows * self.columns
        steps = self.strides[operand] if operand < 2 else [prod(self.counts[i + 1 :]) * size for i in range(9)]
        places = [f"n{i} * {step}" for i, (step, _) in enumerate(zip(steps, self.counts, strict=False)) if step]
        return " + ".join([name, *places])


def shape_of(operation: MatrixProduct) -> Shape:
    """Return the matrices and loops of a product."""
    one, other, result = *operation.inputs[:2], operation.results[0]
    rows, depth = one.shape[-2:][::-1] if operation.swaps[0] else one.shape[-2:]
    columns = result.shape[-1]
    outer = np.broadcast_shapes(one.shape[:-2], other.shape[:-2])
    if prod(other.shape[:-2]) == 1 and not operation.swaps[0]:
        rows, outer = rows * prod(one.shape[:-2]), ()
    counts, strides = joined([one.shape[:-2], other.shape[:-2]], outer) if outer else ([1], [[0], [0]])
    kept = [place for place, count in enumerate(counts) if count > 1]
    sizes = rows * depth, depth * columns
    steps = tuple(tuple(each[i] * size for i in kept) for each, size in zip(strides, sizes, strict=True))
    row, tap = (1, rows) if operation.swaps[0] else (depth, 1)
    column, down = (depth, 1) if operation.swaps[1] else (1, columns)
    return Shape(rows, depth, columns, tuple(counts[i] for i in kept), (steps[0], steps[1]), row, tap, column, down)


def greatest(value: Value, zero: int) -> Any:
    """Return the greatest magnitude of the elements of an operand without the zero point."""
    low, high = np.iinfo(value.dtype).min, np.iinfo(value.dtype).max
    return max(abs(int(low) - zero), abs(int(high) - zero))


def bias_of(operation: MatrixProduct) -> Any:
    """Return the bias int64 [n], zeros for none; None if it is no constant."""
    columns = operation.results[0].shape[-1]
    if len(operation.inputs) < 3:
        return np.zeros(columns, np.int64)
    content = operation.inputs[2].content
    return None if operation.inputs[2].role != "constant" else np.asarray(content, np.int64).reshape(-1)


def bounds_of(operation: MatrixProduct, shape: Shape, bias: Any) -> Any:
    """Return the greatest magnitude of the sums of each column, int64 [n]."""
    most = shape.depth * prod(greatest(*pair) for pair in zip(operation.inputs[:2], operation.zeros, strict=True))
    return most + np.abs(bias)


class MatrixLayer(ABC):
    """The body of a product. Columns are packed in parts, and each part is multiplied by the rows.

    Variables of the body: `x` the first element of the next rows, `y` their result; of a part that is not all:
    `first` and `columns`.
    """

    item: ClassVar[int] = 1
    """The bytes of an element of the rows."""
    rows: int = 4
    """The rows of a tile."""
    has_each: bool
    """Whether the stream has the numbers of the end of each column."""
    block: int
    """The words of the block of rows, with the mark at its end."""
    group: int
    """The words of a pair of columns in the stream."""

    def __init__(self, operation: MatrixProduct, shape: Shape, scaling: Scaling, bias: Any) -> None:
        self.operation, self.shape, self.scaling = operation, shape, scaling
        self.ends = scaling.ends
        """The numbers of the end of each column, int32 [n,3]."""
        starts = (2 if scaling.is_doubled else 1) * bias
        self.starts = starts.astype(np.int64 if scaling.is_long else np.int32) if bias.any() else None
        self.lines = Lines()
        self.definitions: dict[str, None] = {NAKED: None}

    @abstractmethod
    def start(self) -> None:
        """Append what is before the loops."""

    @abstractmethod
    def pack(self) -> None:
        """Append the packing of the columns at `column` and `second`, which can be the same, to `group`."""

    @abstractmethod
    def load(self, rows: int) -> None:
        """Append the copy of rows at x to the block."""

    @abstractmethod
    def multiply(self, rows: int) -> None:
        """Append the products of the block and the columns, with results of `rows` rows at y."""

    @property
    @abstractmethod
    def arguments(self) -> dict[str, Any]:
        """The constants by name."""

    @property
    def scratch(self) -> list[Parameter]:
        """The scratch memory."""
        words = self.group * -(-min(self.panel, self.shape.columns) // COLUMNS)
        return [
            Parameter("block", "uint32", "scratch", elements=self.block),
            Parameter("stream", "int32", "scratch", elements=words),
        ]

    @property
    def panel(self) -> int:
        """The columns that are packed at once: an even number, or all. No part has one column only."""
        columns, pairs = self.shape.columns, max(2, MAX_STREAM // self.group)
        if columns <= COLUMNS * pairs:
            return columns
        parts = -(-columns // (COLUMNS * pairs))
        panel = COLUMNS * -(-columns // (COLUMNS * parts))
        while columns % panel == 1:
            panel += COLUMNS
        return panel

    @property
    def is_single(self) -> bool:
        """Whether all columns are packed at once."""
        return self.panel >= self.shape.columns

    @property
    def columns(self) -> str:
        """The number of columns of a part."""
        return str(self.shape.columns) if self.is_single else "columns"

    @property
    def first(self) -> str:
        """The addition of the first column of a part."""
        return "" if self.is_single else " + first"

    @property
    def words(self) -> str:
        """The words of the pairs of columns in the stream."""
        if self.is_single:
            return f"{self.shape.columns // COLUMNS * self.group}"
        return f"columns / {COLUMNS} * {self.group}"

    def call(self) -> Call:
        """Return the call."""
        shape, lines = self.shape, self.lines
        arguments = dict(zip("ab", self.operation.inputs, strict=False)) | self.arguments
        if self.starts is not None:
            arguments["starts"] = self.starts
        if self.has_each:
            arguments["ends"] = self.ends.reshape(-1)
        self.start()
        lines.add("")
        with self._loops(0, shape.outer), self._panels():
            self._columns()
            with self._loops(shape.outer, len(shape.counts)):
                self._rows()
        options: dict[str, Any] = {"scratch": self.scratch, "definitions": tuple(self.definitions)}
        return call_for(self.operation, "matrix_product", lines, arguments, **options)

    @contextlib.contextmanager
    def _loops(self, first: int, end: int) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            for place in range(first, end):
                stack.enter_context(self.lines.loop(f"n{place}", self.shape.counts[place]))
            yield

    @contextlib.contextmanager
    def _panels(self) -> Iterator[None]:
        """Append the loop over the parts of the columns."""
        if self.is_single:
            yield
            return
        columns = self.shape.columns
        with self.lines.block(f"for (int first = 0; first < {columns}; first += {self.panel})"):
            self.lines.add(
                f"const int columns = {columns} - first < {self.panel} ? {columns} - first : {self.panel};",
                "",
            )
            yield

    def _columns(self) -> None:
        """Append the packing of the columns of a part."""
        shape, lines = self.shape, self.lines
        kind = c_type(self.operation.inputs[1].dtype)
        with lines.block(f"for (int j = 0; j < {self.columns}; j += {COLUMNS})"):
            at = "j" if self.is_single else "(first + j)"
            lines.add(f"int32_t *group = stream + j * {self.group // COLUMNS};")
            at = at if shape.column == 1 else f"{at} * {shape.column}"
            lines.add(f"const {kind} *column = {shape.start('b', 1)} + {at};")
            second = f"column + {shape.column}"
            if shape.columns % COLUMNS:
                second = f"column + (j + 1 < {self.columns} ? {shape.column} : 0)"
            lines.add(f"const {kind} *second = {second};", "")
            self.pack()
            if self.starts is None and not self.has_each:
                return
            with lines.block(f"for (int c = 0; c < {COLUMNS} && j + c < {self.columns}; c++)"):
                if self.starts is not None:
                    self.add_start(f"starts[j + c{self.first}]")
                if self.has_each:
                    to = f"group + {self.group - 3 * COLUMNS} + 3 * c"
                    lines.add(f"__builtin_memcpy({to}, ends + 3 * (j + c{self.first}), 12);")

    def add_start(self, bias: str) -> None:
        """Append the addition of the bias to the first sum of column `c` of a pair."""
        self.lines.add(f"group[c] += {bias};")

    def _rows(self) -> None:
        """Append the products of all rows with a part of the columns."""
        shape, lines, kind = self.shape, self.lines, c_type(self.operation.inputs[0].dtype)
        lines.add(f"const {kind} *x = {shape.start('a', 0)};")
        lines.add(f"{kind} *y = {shape.start('result', 2)}{self.first};", "")
        turns, rest = divmod(shape.rows, self.rows)
        if turns:
            with lines.repeat("i", turns):
                self.load(self.rows)
                self.multiply(self.rows)
                if turns > 1 or rest:
                    lines.add(f"x += {self.rows * shape.row};", f"y += {self.rows * shape.columns};")
        if rest:
            self.load(rest)
            self.multiply(rest)

    def add_tiles(self, tiles: Sequence[Tile | EndedTile], result: str, step: str, numbers: str) -> None:
        """Append the calls of the tiles of a pair of columns, and of a last column."""
        columns, lines, words = self.shape.columns, self.lines, self.words
        pairs, odd = tiles
        if columns >= COLUMNS:
            self.definitions[pairs.definition()] = None
            lines.add(f"{pairs.name}(block, stream, {result}, {step}, stream + {words}{numbers});")
        if columns % COLUMNS:
            self.definitions[odd.definition()] = None
            place = str(columns - 1) if self.is_single else "columns - 1"
            places = f"{result} + {place}, {step}, stream + {words} + {self.group}{numbers}"
            last = f"{odd.name}(block, stream + {words}, {places});"
            with contextlib.nullcontext() if self.is_single else lines.block(f"if (columns % {COLUMNS} != 0)"):
                lines.add(last)

    def copy_last(self, rows: int) -> None:
        """Append the copy of the results of the last rows, which are in `last`, to y."""
        columns, lines, item = self.shape.columns, self.lines, self.item
        self.definitions[COPY] = None
        cast = "" if item == 1 else "(int8_t *)"
        if self.is_single:
            lines.add(f"copy_bytes({cast}y, {cast}last, {rows * columns * item});")
            return
        with lines.loop("i", rows):
            size = "columns" if item == 1 else f"{item} * columns"
            lines.add(f"copy_bytes({cast}(y + i * {columns}), {cast}(last + i * columns), {size});")
