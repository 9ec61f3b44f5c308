# SPDX-License-Identifier: Apache-2.0
"""Products of int8 matrices: columns of the second one are packed as the stream of a tile of 4 rows by 2 columns.

The packed taps have no zero point; the first sums contain that of the rows, times the sums of the taps, and the bias.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.emission.elementwise import joined
from opwest.compiler.emission.expressions import plus
from opwest.compiler.emission.function import Call, Lines, Parameter, call_for, emits
from opwest.compiler.ir.operations import MatrixProduct
from opwest.compiler.ir.program import Value
from opwest.compiler.kernels.assembly import COPY, NAKED
from opwest.compiler.kernels.dsp.packing import QUAD, PairPacking, gather_rows, pack_rest
from opwest.compiler.kernels.dsp.streamed import MARK
from opwest.compiler.kernels.dsp.tiles import Tile
from opwest.compiler.kernels.dsp.widening import name_of_widen_window, unit_of, widen, widen_window
from opwest.compiler.kernels.scaling import Scaling, scaling_of

ROWS, COLUMNS = 4, 2
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


def scaling_for(operation: MatrixProduct, shape: Shape, bias: Any) -> Scaling | None:
    """Return the numbers of the end of a product with sums of 32 bits; None where they do not fit."""
    most = shape.depth * prod(greatest(*pair) for pair in zip(operation.inputs[:2], operation.zeros, strict=True))
    return scaling_of(operation.finish, most + np.abs(bias))


@emits(MatrixProduct, "dsp-matrix")
def render(operation: MatrixProduct) -> Call | None:
    """Return the call; None for other dtypes, a bias that is computed, and other forms of scales."""
    one, other, result = *operation.inputs[:2], operation.results[0]
    bias = bias_of(operation)
    if {one.dtype, other.dtype, result.dtype} != {"int8"} or bias is None:
        return None
    shape = shape_of(operation)
    scaling = scaling_for(operation, shape, bias)
    return None if scaling is None else _Product(operation, shape, scaling, bias).call()


class _Product:
    """The body of a product of int8 matrices."""

    def __init__(self, operation: MatrixProduct, shape: Shape, scaling: Scaling, bias: Any) -> None:
        self.operation, self.shape, self.scaling = operation, shape, scaling
        factor = 2 if scaling.is_doubled else 1
        self.starts = factor * bias if bias.any() else None
        self.quads, self.rest = divmod(shape.depth, QUAD)
        self.words = 2 * -(-shape.depth // QUAD)
        """The words of a row or a column."""
        ends = scaling.ends
        self.has_each = bool((ends != ends[0]).any())
        self.group = COLUMNS * (1 + self.words + 3 * self.has_each)
        """The words of a pair of columns in the stream."""
        self.panel = _panel(shape.columns, self.group)
        self.is_single = self.panel >= shape.columns
        zero = operation.zeros[1] & 0xFFFF
        self.numbers = [shape.down, self.quads, zero << 16 | zero, -operation.zeros[0]]
        self.packing = PairPacking(shape.down == 1, zero != 0, operation.zeros[0] != 0, scaling.is_doubled)
        turn = next(turn for turn in (8, 10, 6, 14, 12, 4, 2) if self.words % turn == 0)
        self.tiles = [
            Tile(ROWS, COLUMNS, stored, turn, True, scaling.epilogue(8), None, "data", True, self.has_each)
            for stored in (COLUMNS, 1)
        ]
        self.is_gathered = shape.tap != 1 or self.rest > 0
        """Whether rows are copied by C code."""
        self.lines = Lines()
        self.definitions: dict[str, None] = {NAKED: None}

    def call(self) -> Call:
        """Return the call."""
        shape, lines = self.shape, self.lines
        block = ROWS * self.words
        numbers = [*self.numbers, *([] if self.has_each else self.scaling.ends[0])]
        arguments: dict[str, Any] = {"a": self.operation.inputs[0], "b": self.operation.inputs[1]}
        arguments["numbers"] = np.asarray(numbers, np.int64).astype(np.uint32).view(np.int32)
        if self.starts is not None:
            arguments["starts"] = self.starts.astype(np.int32)
        if self.has_each:
            arguments["ends"] = self.scaling.ends.reshape(-1)
        if self.rest and self.packing.has_zero:
            lines.add("const int32_t zero = (int16_t)numbers[2];")
        if self.rest and self.packing.has_factor:
            lines.add("const int32_t factor = numbers[3];")
        lines.add(f"block[{block}] = UINT32_C({MARK:#x});", "")
        with self._loops(0, shape.outer), self._panels():
            self._pack()
            with self._loops(shape.outer, len(shape.counts)):
                self._rows()
        columns = min(self.panel, shape.columns)
        scratch = [
            Parameter("block", "uint32", "scratch", elements=block + 2),
            Parameter("stream", "int32", "scratch", elements=self.group * -(-columns // COLUMNS)),
        ]
        if shape.rows % ROWS:
            scratch.append(Parameter("last", "int8", "scratch", elements=ROWS * columns))
        definitions = tuple(self.definitions)
        return call_for(self.operation, "matrix_product", lines, arguments, scratch=scratch, definitions=definitions)

    @contextlib.contextmanager
    def _loops(self, first: int, end: int) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            for place in range(first, end):
                stack.enter_context(self.lines.loop(f"n{place}", self.shape.counts[place]))
            yield

    @contextlib.contextmanager
    def _panels(self) -> Iterator[None]:
        """Append the loop over the parts of the columns: the first one, and the words of their pairs."""
        if self.is_single:
            yield
            return
        columns = self.shape.columns
        with self.lines.block(f"for (int first = 0; first < {columns}; first += {self.panel})"):
            self.lines.add(
                f"const int columns = {columns} - first < {self.panel} ? {columns} - first : {self.panel};",
                f"const int words = columns / {COLUMNS} * {self.group};",
                "",
            )
            yield

    @property
    def _first(self) -> str:
        return "" if self.is_single else " + first"

    def _pack(self) -> None:
        """Append the packing of the columns of a part."""
        shape, lines = self.shape, self.lines
        columns = str(shape.columns) if self.is_single else "columns"
        with lines.block(f"for (int j = 0; j < {columns}; j += {COLUMNS})"):
            at = "j" if self.is_single else "(first + j)"
            lines.add(f"int32_t *group = stream + j * {self.group // COLUMNS};")
            at = at if shape.column == 1 else f"{at} * {shape.column}"
            lines.add(f"const int8_t *column = {shape.start('b', 1)} + {at};")
            second = f"column + {shape.column}"
            if shape.columns % COLUMNS:
                second = f"column + (j + 1 < {columns} ? {shape.column} : 0)"
            lines.add(f"const int8_t *second = {second};", "")
            if self.quads:
                lines.add(f"{self.packing.name}(group, column, second, numbers);")
                self.definitions[self.packing.definition()] = None
            else:
                lines.add("group[0] = 0;", "group[1] = 0;")
            if self.rest:
                from_ = f"(c ? second : column){plus(self.quads * QUAD * shape.down)}"
                pack_rest(lines, self.rest, f"group + {2 + 4 * self.quads}", from_, shape.down, self.packing)
            self._add_numbers(columns)

    def _add_numbers(self, columns: str) -> None:
        """Append the additions of biases, and the copies of the numbers of a pair of columns."""
        if self.starts is None and not self.has_each:
            return
        with self.lines.block(f"for (int c = 0; c < {COLUMNS} && j + c < {columns}; c++)"):
            if self.starts is not None:
                self.lines.add(f"group[c] += starts[j + c{self._first}];")
            if self.has_each:
                to = f"group + {self.group - 3 * COLUMNS} + 3 * c"
                self.lines.add(f"__builtin_memcpy({to}, ends + 3 * (j + c{self._first}), 12);")

    def _rows(self) -> None:
        """Append the products of all rows with a part of the columns."""
        shape, lines = self.shape, self.lines
        lines.add(f"const int8_t *x = {shape.start('a', 0)};")
        lines.add(f"int8_t *y = {shape.start('result', 2)}{self._first};", "")
        turns, rest = divmod(shape.rows, ROWS)
        if turns:
            with lines.repeat("i", turns):
                self._load(ROWS)
                self._multiply("y", str(shape.columns))
                if turns > 1 or rest:
                    lines.add(f"x += {ROWS * shape.row};", f"y += {ROWS * shape.columns};")
        if rest:
            columns = str(shape.columns) if self.is_single else "columns"
            self._load(rest)
            self._multiply("last", columns)
            self.definitions[COPY] = None
            if self.is_single:
                lines.add(f"copy_bytes(y, last, {rest * shape.columns});")
                return
            with lines.loop("i", rest):
                lines.add(f"copy_bytes(y + i * {shape.columns}, last + i * columns, columns);")

    def _load(self, rows: int) -> None:
        """Append the copy of rows at x to the block."""
        shape, lines = self.shape, self.lines
        if self.is_gathered:
            name, definition = gather_rows(ROWS)
            lines.add(f"{name}(block, x, {rows}, {shape.depth}, {shape.row}, {shape.tap});")
        elif rows == ROWS:
            definition = widen(ROWS)
            lines.add(f"widen_{ROWS}(block, x, {self.quads}, {shape.row});")
        else:
            unit = unit_of(self.quads)
            definition = widen_window(ROWS, unit)
            with lines.loop("i", rows):
                name = name_of_widen_window(ROWS, unit)
                lines.add(f"{name}(block + i, x + i * {shape.row}, {self.quads}, 1, 0);")
        self.definitions[definition] = None

    def _multiply(self, result: str, step: str) -> None:
        """Append the calls of the tiles for the rows of the block."""
        columns, lines = self.shape.columns, self.lines
        numbers = "" if self.has_each else f", numbers + {len(self.numbers)}"
        pairs, odd = self.tiles
        end = f"{columns // COLUMNS * self.group}" if self.is_single else "words"
        if columns >= COLUMNS:
            self.definitions[pairs.definition()] = None
            lines.add(f"{pairs.name}(block, stream, {result}, {step}, stream + {end}{numbers});")
        if columns % COLUMNS == 0:
            return
        self.definitions[odd.definition()] = None
        place = str(columns - 1) if self.is_single else "columns - 1"
        last = f"{odd.name}(block, stream + {end}, {result} + {place}, {step}, stream + {end} + {self.group}{numbers});"
        if self.is_single:
            lines.add(last)
            return
        with lines.block(f"if (columns % {COLUMNS} != 0)"):
            lines.add(last)


def _panel(columns: int, group: int) -> int:
    """Return the columns that are packed at once: an even number, or all. No part has one column only."""
    pairs = max(2, MAX_STREAM // group)
    if columns <= COLUMNS * pairs:
        return columns
    parts = -(-columns // (COLUMNS * pairs))
    panel = COLUMNS * -(-columns // (COLUMNS * parts))
    while columns % panel == 1:
        panel += COLUMNS
    return panel
