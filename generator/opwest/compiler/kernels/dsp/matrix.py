# SPDX-License-Identifier: Apache-2.0
"""Products of int8 matrices: tiles of 4 rows by 2 columns.

The packed taps have no zero point; the first sums contain that of the rows, times the sums of the taps, and the bias.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from opwest.compiler.emission.function import Call, Parameter, emits
from opwest.compiler.ir.operations import MatrixProduct
from opwest.compiler.kernels.dsp.matrix_layer import COLUMNS, MatrixLayer, Shape, bias_of, bounds_of, shape_of
from opwest.compiler.kernels.dsp.packing import QUAD, PairPacking, gather_rows, widen_columns
from opwest.compiler.kernels.dsp.streamed import MARK
from opwest.compiler.kernels.dsp.tiles import Tile
from opwest.compiler.kernels.dsp.widening import name_of_widen_window, unit_of, widen, widen_window
from opwest.compiler.kernels.scaling import Scaling, scaling_of
from opwest.compiler.semantics.fixed_point import Requantisation

TURNS = (8, 10, 6, 14, 12, 4, 2)
"""The steps of a turn of the loop of a tile: the first one that divides all steps."""


@emits(MatrixProduct, "dsp-matrix")
def render(operation: MatrixProduct) -> Call | None:
    """Return the call; None for other dtypes, a bias that is computed, and other forms of scales."""
    one, other, result = *operation.inputs[:2], operation.results[0]
    if {one.dtype, other.dtype, result.dtype} != {"int8"}:
        return None
    shape = shape_of(operation)
    if shape.rows == 1 and len(operation.inputs) == 2:
        operation = _exchanged(operation)
        shape = shape_of(operation)
    bias = bias_of(operation, shape)
    if bias is None:
        return None
    scaling = scaling_of(operation.finish, bounds_of(operation, shape, bias))
    return None if scaling is None else _Bytes(operation, shape, scaling, bias).call()


def _exchanged(operation: MatrixProduct) -> MatrixProduct:
    """Return a product of one row as that of the second matrix and one column: only the row is packed."""
    if not isinstance(operation.finish, Requantisation) or len(operation.finish.multipliers) > 1:
        return operation
    (one, other), (first, second) = operation.inputs, operation.swaps
    return dataclasses.replace(
        operation, inputs=(other, one), swaps=(not second, not first), zeros=operation.zeros[::-1]
    )


class _Bytes(MatrixLayer):
    """A product of int8 matrices."""

    def __init__(self, operation: MatrixProduct, shape: Shape, scaling: Scaling, bias: Any) -> None:
        super().__init__(operation, shape, scaling, bias)
        self.quads, self.rest = divmod(shape.depth, QUAD)
        steps = 2 * -(-shape.depth // QUAD)
        ends = scaling.ends
        self.has_each = bool((ends != ends[0]).any())
        self.block = self.rows * steps + 2
        self.group = COLUMNS * (1 + steps + 3 * self.has_each)
        zero = operation.zeros[1] & 0xFFFF
        self.numbers = [shape.down, self.quads, zero << 16 | zero, -operation.zeros[0]]
        flags = shape.down == 1, zero != 0, operation.zeros[0] != 0, scaling.is_doubled
        self.packing = PairPacking(*flags, self.quads > 0, self.rest)
        turn = next(turn for turn in TURNS if steps % turn == 0)
        self.tiles = [
            Tile(self.rows, COLUMNS, stored, turn, True, scaling.epilogue(8), None, "data", True, self.has_each)
            for stored in (COLUMNS, 1)
        ]

    @property
    def arguments(self) -> dict[str, Any]:
        """The constants by name."""
        numbers = [*self.numbers, *([] if self.has_each else self.scaling.ends[0])]
        return {"numbers": np.asarray(numbers, np.int64).astype(np.uint32).view(np.int32)}

    @property
    def scratch(self) -> list[Parameter]:
        """The scratch memory, with that of results of the last rows."""
        size = self.rows * min(self.panel, self.shape.columns) if self.shape.rows % self.rows else 0
        return [*super().scratch, *([Parameter("last", "int8", "scratch", elements=size)] if size else [])]

    def start(self) -> None:
        """Append what is before the loops."""
        self.lines.add(f"block[{self.block - 2}] = UINT32_C({MARK:#x});")

    def pack(self) -> None:
        """Append the packing of a pair of columns."""
        self.lines.add(f"{self.packing.name}(group, column, second, numbers);")
        self.definitions[self.packing.definition()] = None

    def load(self, rows: int, more: str) -> None:
        """Append the copy of rows at x to the block. The last bytes that are widened can be those of the next row."""
        shape, lines = self.shape, self.lines
        if shape.row == 1 and shape.tap != 1 and rows == self.rows:
            self._widen_columns()
        elif shape.tap != 1 or (self.rest and (rows < self.rows or more == "0")):
            self._gather(rows)
        elif rows == self.rows and self.rest and more != "1":
            with lines.block(f"if ({more})"):
                self._widen()
            with lines.block("else"):
                self._gather(rows)
        elif rows == self.rows:
            self._widen()
        else:
            unit = unit_of(self.quads)
            self.definitions[widen_window(self.rows, unit)] = None
            with lines.loop("i", rows):
                name = name_of_widen_window(self.rows, unit)
                lines.add(f"{name}(block + i, x + i * {shape.row}, {self.quads}, 1, 0);")

    def _widen_columns(self) -> None:
        shape = self.shape
        if self.quads:
            self.definitions[widen_columns()] = None
            self.lines.add(f"widen_columns_{self.rows}(block, x, {self.quads}, {shape.tap});")
        if self.rest:
            name, definition = gather_rows(self.rows)
            self.definitions[definition] = None
            to, taps = 2 * self.rows * self.quads, QUAD * self.quads * shape.tap
            self.lines.add(f"{name}(block + {to}, x + {taps}, {self.rows}, {self.rest}, 1, {shape.tap});")

    def _gather(self, rows: int) -> None:
        name, definition = gather_rows(self.rows)
        self.definitions[definition] = None
        shape = self.shape
        self.lines.add(f"{name}(block, x, {rows}, {shape.depth}, {shape.row}, {shape.tap});")

    def _widen(self) -> None:
        self.definitions[widen(self.rows)] = None
        self.lines.add(f"widen_{self.rows}(block, x, {-(-self.shape.depth // QUAD)}, {self.shape.row});")

    def multiply(self, rows: int) -> None:
        """Append the calls of the tiles for the rows of the block."""
        result, step = ("y", str(self.shape.columns)) if rows == self.rows else ("last", self.columns)
        self.add_tiles(self.tiles, result, step, "" if self.has_each else f", numbers + {len(self.numbers)}")
        if rows < self.rows:
            self.copy_last(rows)
