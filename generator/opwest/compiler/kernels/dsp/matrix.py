# SPDX-License-Identifier: Apache-2.0
"""Products of int8 matrices: tiles of 4 rows by 2 columns.

The packed taps have no zero point; the first sums contain that of the rows, times the sums of the taps, and the bias.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from opwest.compiler.emission.expressions import plus
from opwest.compiler.emission.function import Call, Parameter, emits
from opwest.compiler.ir.operations import MatrixProduct
from opwest.compiler.kernels.dsp.matrix_layer import COLUMNS, MatrixLayer, Shape, bias_of, bounds_of, shape_of
from opwest.compiler.kernels.dsp.packing import QUAD, PairPacking, gather_rows, pack_rest
from opwest.compiler.kernels.dsp.streamed import MARK
from opwest.compiler.kernels.dsp.tiles import Tile
from opwest.compiler.kernels.dsp.widening import name_of_widen_window, unit_of, widen, widen_window
from opwest.compiler.kernels.scaling import Scaling, scaling_of

TURNS = (8, 10, 6, 14, 12, 4, 2)
"""The steps of a turn of the loop of a tile: the first one that divides all steps."""


@emits(MatrixProduct, "dsp-matrix")
def render(operation: MatrixProduct) -> Call | None:
    """Return the call; None for other dtypes, a bias that is computed, and other forms of scales."""
    one, other, result = *operation.inputs[:2], operation.results[0]
    bias = bias_of(operation)
    if {one.dtype, other.dtype, result.dtype} != {"int8"} or bias is None:
        return None
    shape = shape_of(operation)
    scaling = scaling_of(operation.finish, bounds_of(operation, shape, bias))
    return None if scaling is None else _Bytes(operation, shape, scaling, bias).call()


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
        self.packing = PairPacking(shape.down == 1, zero != 0, operation.zeros[0] != 0, scaling.is_doubled)
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
        if self.rest and self.packing.has_zero:
            self.lines.add("const int32_t zero = (int16_t)numbers[2];")
        if self.rest and self.packing.has_factor:
            self.lines.add("const int32_t factor = numbers[3];")
        self.lines.add(f"block[{self.block - 2}] = UINT32_C({MARK:#x});")

    def pack(self) -> None:
        """Append the packing of a pair of columns."""
        lines, down = self.lines, self.shape.down
        if self.quads:
            lines.add(f"{self.packing.name}(group, column, second, numbers);")
            self.definitions[self.packing.definition()] = None
        else:
            lines.add("group[0] = 0;", "group[1] = 0;")
        if self.rest:
            source = f"(c ? second : column){plus(self.quads * QUAD * down)}"
            pack_rest(lines, self.rest, f"group + {COLUMNS + 2 * COLUMNS * self.quads}", source, down, self.packing)

    def load(self, rows: int) -> None:
        """Append the copy of rows at x to the block."""
        shape, lines = self.shape, self.lines
        if shape.tap != 1 or self.rest:
            name, definition = gather_rows(self.rows)
            lines.add(f"{name}(block, x, {rows}, {shape.depth}, {shape.row}, {shape.tap});")
        elif rows == self.rows:
            definition = widen(rows)
            lines.add(f"widen_{rows}(block, x, {self.quads}, {shape.row});")
        else:
            unit = unit_of(self.quads)
            definition = widen_window(self.rows, unit)
            with lines.loop("i", rows):
                name = name_of_widen_window(self.rows, unit)
                lines.add(f"{name}(block + i, x + i * {shape.row}, {self.quads}, 1, 0);")
        self.definitions[definition] = None

    def multiply(self, rows: int) -> None:
        """Append the calls of the tiles for the rows of the block."""
        result, step = ("y", str(self.shape.columns)) if rows == self.rows else ("last", self.columns)
        self.add_tiles(self.tiles, result, step, "" if self.has_each else f", numbers + {len(self.numbers)}")
        if rows < self.rows:
            self.copy_last(rows)
