# SPDX-License-Identifier: Apache-2.0
"""Products of float32 matrices by the tiles of convolutions: columns of the second one are packed as their stream."""

from __future__ import annotations

from math import prod

import numpy as np

from opwest.compiler.emission.convolution import BYTES
from opwest.compiler.emission.expressions import plus, times
from opwest.compiler.emission.function import Call, Lines, Parameter, call_for
from opwest.compiler.emission.matrix import batches
from opwest.compiler.ir.operations import MatrixProduct
from opwest.compiler.kernels.assembly import NAKED
from opwest.compiler.kernels.floats.layers import PIXELS, Engine, last_place, skipped
from opwest.compiler.kernels.floats.tiles import Runs, finish_of

ITEM = BYTES["float32"]
# Not inlined: the variables of these functions would be on the stack beside those of tiles.
TRANSPOSE = """\
/* Copy rows of floats whose columns are `pitch` apart. */
static __attribute__((noinline)) void transpose_floats(float *to, const float *from, int32_t rows,
						       int32_t columns, int32_t pitch)
{
	for (int32_t row = 0; row < rows; row++, from++) {
		for (int32_t k = 0; k < columns; k++) {
			*to++ = from[k * pitch];
		}
	}
}
"""


PACK = """\
/* Copy columns of a matrix to rows of `wide` floats: 4 at a time, then each of the rest. */
static __attribute__((noinline)) void pack_floats(float *to, const float *from, int32_t depth,
						  int32_t down, int32_t across, int32_t columns,
						  int32_t wide)
{
	for (; columns >= 4; columns -= 4, from += 4 * across, to += 4) {
		const float *p0 = from, *p1 = p0 + across, *p2 = p1 + across, *p3 = p2 + across;
		float *row = to;

		for (int32_t k = 0; k < depth; k++, row += wide) {
			row[0] = *p0;
			p0 += down;
			row[1] = *p1;
			p1 += down;
			row[2] = *p2;
			p2 += down;
			row[3] = *p3;
			p3 += down;
		}
	}
	for (; columns > 0; columns--, from += across, to++) {
		for (int32_t k = 0; k < depth; k++) {
			to[k * wide] = from[k * down];
		}
	}
}
"""


def product_call(operation: MatrixProduct, engine: Engine) -> Call | None:
    """Return the call; None for other dtypes."""
    finish = finish_of(operation)
    if finish is None:
        return None
    one, other, result = *operation.inputs[:2], operation.results[0]
    columns = result.shape[-1]
    rows = one.shape[-1 if operation.swaps[0] else -2]
    depth = one.size // (prod(one.shape[:-2]) * rows)
    tiles = engine.parts(min(rows, PIXELS), columns)
    down, across = (1, depth) if operation.swaps[1] else (columns, 1)
    wide = max(tile.channels for _, tile in tiles)
    has_bias = len(operation.inputs) > 2
    outer = result.shape[:-2] if len(result.shape) == max(len(one.shape), len(other.shape)) else ()
    lines = Lines()
    lines.add("float *y = result;", "")
    with batches(lines, [one.shape[:-2], other.shape[:-2]], outer, (rows * depth, depth * columns)) as starts:
        a, b = (" + ".join(filter(None, (name, start))) for name, start in zip("ab", starts, strict=True))
        source = a
        if operation.swaps[0]:
            source = f"packed + {(depth + 2) * wide}"
            lines.add(f"transpose_floats({source}, {a}, {rows}, {depth}, {rows});")
        lines.add(f"const float *x = {source};", "")
        first = 0
        for some, tile in tiles:
            width, each = tile.channels, min(some, tile.channels)
            with lines.block(f"for (int j = {first}; j < {first + some}; j += {width})"):
                count = str(each)
                if some % width and some > width:
                    lines.add(f"const int left = {first + some} - j;")
                    lines.add(f"const int count = left < {width} ? left : {width};", "")
                    count = "count"
                with lines.block(f"for (int c = 0; c < {count}; c++)"):
                    lines.add(f"packed[c] = {'bias[j + c]' if has_bias else '0.0f'};")
                    lines.add(f"packed[c{plus((depth + 1) * width)}] = -0.0f;")
                place = f"{b} + {times('j', across)}"
                sizes = f"{depth}, {down}, {across}, {count}, {width}"
                lines.add(f"pack_floats(packed + {width}, {place}, {sizes});")
                _add_rows(lines, (rows, tile.rows), (depth, columns), tile.name, count)
            first += some
        lines.add(f"y += {rows * columns};")
    numbers = Runs(1, 1, depth).numbers(ITEM * depth, ITEM * columns, finish)
    arguments = dict(zip(("a", "b", "bias"), operation.inputs, strict=False)) | {"numbers": np.asarray(numbers)}
    elements = (depth + 2) * wide + (rows * depth if operation.swaps[0] else 0)
    scratch = [Parameter("packed", "float32", "scratch", elements=elements)]
    definitions = (NAKED, *([TRANSPOSE] if operation.swaps[0] else []), PACK)
    definitions = (*definitions, *dict.fromkeys(tile.definition() for _, tile in tiles))
    return call_for(operation, "matrix_product", lines, arguments, (), scratch, definitions=definitions)


def _add_rows(lines: Lines, rows: tuple[int, int], shape: tuple[int, int], tile: str, count: str) -> None:
    """Append the tiles of all rows; the last tile can compute results of the one before again."""
    (total, pixels), (depth, columns) = rows, shape
    last = total - pixels
    with lines.block(f"for (int i = 0; i < {total}; i += {pixels})"):
        at = last_place(lines, "i", last, pixels)
        y = f"y + {times(at, columns)} + j"
        lines.add(f"{tile}(x + {times(at, depth)}, packed, {y}, numbers, {count}, {skipped('i', at)});")
