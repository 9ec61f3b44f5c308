# SPDX-License-Identifier: Apache-2.0
"""Products of int16 matrices, also with an int8 matrix.

Where all sums fit in 32 bits, tiles are 4 rows by 2 columns; otherwise 2 rows by 2 columns with sums of 64 bits.
"""

from __future__ import annotations

from typing import Any

from opwest.compiler.emission.function import Call, Lines, Parameter, c_type, emits
from opwest.compiler.ir.operations import MatrixProduct
from opwest.compiler.kernels.dsp.matrix import TURNS
from opwest.compiler.kernels.dsp.matrix_layer import COLUMNS, MatrixLayer, Shape, bias_of, bounds_of, shape_of
from opwest.compiler.kernels.dsp.streamed import MARK
from opwest.compiler.kernels.dsp.tiles import Tile
from opwest.compiler.kernels.dsp.wide_tiles import PIXELS, EndedTile, high_numbers
from opwest.compiler.kernels.dsp.widening import interleave, name_of_interleave
from opwest.compiler.kernels.scaling import Scaling, long_scaling_of, scaling_of


@emits(MatrixProduct, "dsp-matrix-wide")
def render(operation: MatrixProduct, loop_bytes: int | None = None) -> Call | None:
    """Return the call; None for other dtypes, a bias that is computed, and other forms of scales."""
    one, other, result = *operation.inputs[:2], operation.results[0]
    bias = bias_of(operation)
    if {one.dtype, result.dtype} != {"int16"} or other.dtype not in ("int8", "int16") or operation.zeros[0]:
        return None
    if bias is None or (other.dtype == "int16" and operation.zeros[1]):
        return None
    shape = shape_of(operation)
    bounds = bounds_of(operation, shape, bias)
    scaling = scaling_of(operation.finish, bounds) if other.dtype == "int8" else None
    if scaling is not None:
        return _Halves(operation, shape, scaling, bias).call()
    scaling = long_scaling_of(operation.finish, bounds)
    ends = None if scaling is None else high_numbers(scaling, bounds)
    if scaling is None or ends is None:
        return None
    return _Sums(operation, shape, scaling, bias, ends, loop_bytes).call()


class _Shorts(MatrixLayer):
    """The copies of int16 rows and of columns: words of two neighbouring taps."""

    item = 2

    def __init__(self, operation: MatrixProduct, shape: Shape, scaling: Scaling, bias: Any) -> None:
        super().__init__(operation, shape, scaling, bias)
        self.steps = -(-shape.depth // 2)

    def add_pack(self, to: str) -> None:
        """Append the packing of a pair of columns."""
        shape = self.shape
        kind = c_type(self.operation.inputs[1].dtype)
        name, definition = _pack_halves(kind)
        self.definitions[definition] = None
        zero = f", {self.operation.zeros[1]}"
        self.lines.add(f"{name}({to}, column, second, {shape.depth}, {shape.down}{zero});")

    def load(self, rows: int) -> None:
        """Append the copy of rows at x to the block."""
        shape = self.shape
        if shape.tap == 1 and shape.depth % 2 == 0 and rows == self.rows:
            name, definition = name_of_interleave(rows, self.steps), interleave(rows, self.steps)
            self.lines.add(f"{name}(block, (const int8_t *)x, {self.steps}, {2 * shape.row});")
        else:
            name, definition = _gather_halves(self.rows)
            self.lines.add(f"{name}(block, x, {rows}, {shape.depth}, {shape.row}, {shape.tap});")
        self.definitions[definition] = None


class _Halves(_Shorts):
    """A product with sums of 32 bits. MARK follows the columns: those of int8 are never -32768."""

    def __init__(self, operation: MatrixProduct, shape: Shape, scaling: Scaling, bias: Any) -> None:
        super().__init__(operation, shape, scaling, bias)
        ends = scaling.ends
        self.has_each = bool((ends != ends[0]).any())
        self.block = self.rows * self.steps
        self.group = COLUMNS * (1 + self.steps + 1 + 3 * self.has_each)
        turn = next((turn for turn in TURNS if self.steps % turn == 0), 1)
        self.tiles = [
            Tile(self.rows, COLUMNS, stored, turn, True, scaling.epilogue(16), None, "weights", True, self.has_each)
            for stored in (COLUMNS, 1)
        ]

    @property
    def arguments(self) -> dict[str, Any]:
        """The constants by name."""
        return {} if self.has_each else {"numbers": self.scaling.ends[0]}

    @property
    def scratch(self) -> list[Parameter]:
        """The scratch memory, with that of results of the last rows."""
        size = self.rows * min(self.panel, self.shape.columns) if self.shape.rows % self.rows else 0
        return [*super().scratch, *([Parameter("last", "int16", "scratch", elements=size)] if size else [])]

    def start(self) -> None:
        """Append what is before the loops: nothing."""

    def pack(self) -> None:
        """Append the packing of a pair of columns, and the mark."""
        self.lines.add("group[0] = 0;", "group[1] = 0;")
        self.add_pack(f"group + {COLUMNS}")
        self.lines.add(f"group[{COLUMNS * (1 + self.steps)}] = (int32_t)UINT32_C({MARK:#x});")

    def multiply(self, rows: int) -> None:
        """Append the calls of the tiles for the rows of the block."""
        result, step = ("y", f"{2 * self.shape.columns}") if rows == self.rows else ("last", f"2 * {self.columns}")
        self.add_tiles(self.tiles, result, step, "" if self.has_each else ", numbers")
        if rows < self.rows:
            self.copy_last(rows)


class _Sums(_Shorts):
    """A product with sums of 64 bits."""

    rows = PIXELS

    def __init__(
        self,
        operation: MatrixProduct,
        shape: Shape,
        scaling: Scaling,
        bias: Any,
        ends: Any,
        loop_bytes: int | None,
    ) -> None:
        super().__init__(operation, shape, scaling, bias)
        self.ends = ends
        self.has_each = bool((ends != ends[0]).any())
        self.block = self.rows * self.steps
        self.group = COLUMNS * (2 + self.steps + 3 * self.has_each)
        self.tiles = [
            EndedTile(self.steps, stored, self.has_each, scaling.epilogue(16), loop_bytes) for stored in (COLUMNS, 1)
        ]

    @property
    def arguments(self) -> dict[str, Any]:
        """The constants by name."""
        return {} if self.has_each else {"numbers": self.ends[0]}

    def multiply(self, rows: int) -> None:
        """Append the calls of the tiles; the second row of a last single one is stored first, at the same place."""
        step = 2 * self.shape.columns if rows == self.rows else 0
        self.add_tiles(self.tiles, "y", str(step), "" if self.has_each else ", numbers")

    def start(self) -> None:
        """Append what is before the loops: nothing."""

    def pack(self) -> None:
        """Append the packing of a pair of columns."""
        self.lines.add(f"__builtin_memset(group, 0, {8 * COLUMNS});")
        self.add_pack(f"group + {2 * COLUMNS}")

    def add_start(self, bias: str) -> None:
        """Append the copy of a bias of 64 bits."""
        self.lines.add(f"__builtin_memcpy(group + 2 * c, &{bias}, 8);")


def _pack_halves(kind: str) -> tuple[str, str]:
    """Return the name and the definition of the C function (to, first, second, taps, distance, zero)."""
    name = f"pack_pair_of_{kind}"
    lines = Lines()
    with lines.block("for (; taps > 1; taps -= 2, to += 2)"):
        for place, source in enumerate(("first", "second")):
            lines.add(
                f"to[{place}] = (int32_t)((uint16_t)({source}[0] - zero) |"
                f" (uint32_t)({source}[distance] - zero) << 16);",
                f"{source} += 2 * distance;",
            )
    with lines.block("if (taps > 0)"):
        lines.add("to[0] = (uint16_t)(first[0] - zero);", "to[1] = (uint16_t)(second[0] - zero);")
    parameters = f"int32_t *to, const {kind} *first, const {kind} *second, int taps, int distance, int zero"
    return name, f"static __attribute__((noinline)) void {name}({parameters})\n{{\n{lines}}}\n"


def _gather_halves(pixels: int) -> tuple[str, str]:
    """Return the name and the definition of the C function (to, from, rows, taps, row, distance).

    It copies `rows` rows to a block of `pixels`: rows are `row` elements apart, the taps of one `distance`. An odd tap
    is followed by zero; further rows are left.
    """
    name = f"gather_halves_{pixels}"
    lines = Lines()
    with lines.block("for (int pixel = 0; pixel < rows; pixel++)"):
        lines.add("const int16_t *tap = from + pixel * row;", "uint32_t *word = to + pixel;", "int left = taps;", "")
        with lines.block(f"for (; left > 1; left -= 2, tap += 2 * distance, word += {pixels})"):
            lines.add("*word = (uint16_t)tap[0] | (uint32_t)tap[distance] << 16;")
        with lines.block("if (left > 0)"):
            lines.add("*word = (uint16_t)tap[0];")
    parameters = "uint32_t *to, const int16_t *from, int rows, int taps, int row, int distance"
    return name, f"static __attribute__((noinline)) void {name}({parameters})\n{{\n{lines}}}\n"
