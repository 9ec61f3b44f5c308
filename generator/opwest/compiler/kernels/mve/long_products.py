# SPDX-License-Identifier: Apache-2.0
"""Products of two matrices with int16 rows and sums of 64 bits: 2 rows by 2 columns of int16 elements.

Lines whose elements do not follow each other, and int8 columns, are copied to scratch memory first.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from opwest.compiler.emission.elementwise import joined
from opwest.compiler.emission.expressions import plus
from opwest.compiler.emission.function import Call, Lines, Parameter, call_for, emits
from opwest.compiler.emission.matrix import batches
from opwest.compiler.ir.operations import MatrixProduct
from opwest.compiler.kernels.mve.matrices import STREAM, Matrices, is_known
from opwest.compiler.semantics.fixed_point import Requantisation, Rounding, reduced

LANES = 8
FAR = 0xFFFF // 7
"""The most elements from one to the next in a line."""


def _line(dtype: str) -> tuple[str, str]:
    """Return the name and the definition of the copy of a line, whose elements are `step` elements apart."""
    name, kind = f"mve_wide_line_{dtype}", f"{dtype}_t"
    load = "vldrbq_gather_offset_z_s16" if dtype == "int8" else "vldrhq_gather_shifted_offset_z_s16"
    text = f"""\
/* Copies `count` elements that are `step` apart, less a zero point. */
static void {name}(int16_t *to, const {kind} *from, int step, int count, int zero)
{{
	const uint16x8_t places = vmulq_n_u16(vidupq_n_u16(0, 1), (uint16_t)step);

	for (; count > 0; count -= {LANES}, from += {LANES} * step, to += {LANES}) {{
		const mve_pred16_t some = vctp16q((uint32_t)count);
		const int16x8_t x = {load}(from, places, some);

		vstrhq_p_s16(to, vsubq_n_s16(x, (int16_t)zero), some);
	}}
}}
"""
    return name, text


@emits(MatrixProduct, "mve-long")
def render(operation: MatrixProduct) -> Call | None:
    """Return the call; None for int8 rows, other ends, several multipliers, and elements far apart."""
    given, (value, other) = Matrices(operation), operation.inputs[:2]
    finish = operation.finish
    if value.dtype != "int16" or other.dtype not in ("int8", "int16") or operation.results[0].dtype != "int16":
        return None
    if not isinstance(finish, Requantisation) or finish.rounding is Rounding.FLOAT or len(set(finish.multipliers)) != 1:
        return None
    # An int16 element less a zero point would need 17 bits.
    if operation.zeros[0] or (other.dtype == "int16" and operation.zeros[1]):
        return None
    if any(given.step(operand)[1] > FAR for operand in range(2)):
        return None
    return _call(given, finish)


def _call(given: Matrices, finish: Requantisation) -> Call:
    """Return the call."""
    operation, (rows, depth, columns) = given.operation, given.sizes
    value, other = operation.inputs[:2]
    is_spread = given.step(0)[1] > 1
    is_kept = is_known(other) or (other.dtype == "int16" and given.step(1)[1] == 1)
    lines, scratch = Lines(), []
    definitions: dict[str, str] = {}
    arguments: dict[str, Any] = {"a": value, "b": other}
    if is_known(other):
        arguments["b"] = (given.columns.astype(np.int16) - np.int16(operation.zeros[1])).reshape(-1)
    if given.bias is not None:
        arguments["bias"] = given.bias
    held = min(columns, max(2, STREAM // (2 * depth) & ~1))
    if not is_kept:
        scratch.append(Parameter("columns", "int16", "scratch", elements=held * depth))
        definitions.update([_line(other.dtype)])
    if is_spread:
        scratch.append(Parameter("lines", "int16", "scratch", elements=rows * depth))
        definitions.update([_line("int16")])
    shapes, sizes = [value.shape[:-2], other.shape[:-2]], (rows * depth, depth * columns)
    _, strides = joined(shapes, given.outer)
    # Columns that all batches share are copied once.
    is_shared = not is_kept and held == columns and not any(strides[1])
    lines.add("int16_t *y = result;", "")
    if is_shared:
        _copy(lines, given, "b", 0, columns)
    with batches(lines, shapes, given.outer, sizes) as starts:
        one, two = (" + ".join(filter(None, pair)) for pair in zip("ab", starts, strict=True))
        source = "lines" if is_spread else one
        if is_spread:
            with lines.loop("i", rows):
                lines.add(f"mve_wide_line_int16(lines + i * {depth}, {one} + i, {rows}, {depth}, 0);")
        if is_kept or is_shared:
            _product(lines, given, finish, (source, two if is_kept else "columns"), (0, columns))
        elif held == columns:
            _copy(lines, given, two, 0, columns)
            _product(lines, given, finish, (source, "columns"), (0, columns))
        else:
            with lines.block(f"for (int c = 0; c < {columns}; c += {held})"):
                lines.add(f"const int count = c <= {columns - held} ? {held} : {columns} - c;", "")
                _copy(lines, given, two, "c", "count")
                _product(lines, given, finish, (source, "columns"), ("c", "count"))
        lines.add(f"y += {rows * columns};")
    headers, helpers = ("arm_mve.h",), ("scale_once", "clamp")
    return call_for(
        operation,
        "matrix_product",
        lines,
        arguments,
        (),
        scratch,
        helpers=helpers,
        headers=headers,
        definitions=tuple(definitions.values()),
    )


def _copy(lines: Lines, given: Matrices, source: str, first: int | str, count: int | str) -> None:
    """Append the copy of some columns."""
    depth, (column, step), dtype = given.sizes[1], given.step(1), given.operation.inputs[1].dtype
    at = f"({first} + j)" if first != 0 else "j"
    with lines.block(f"for (int j = 0; j < {count}; j++)"):
        place = f"columns + j * {depth}, {source} + {at} * {column}"
        lines.add(f"mve_wide_line_{dtype}({place}, {step}, {depth}, {given.operation.zeros[1]});")


def _product(
    lines: Lines, given: Matrices, finish: Requantisation, sources: tuple[str, str], part: tuple[int | str, int | str]
) -> None:
    """Append the products of all rows with some columns: `part` is the first one and their number."""
    (rows, depth, columns), (first, count) = given.sizes, part
    multiplier = finish.multipliers[0]
    scale = f"{multiplier.fixed}, {31 - multiplier.shift}"
    if finish.rounding is Rounding.SIXTEEN:
        scale = f"{int(reduced(multiplier.fixed))}, {15 - multiplier.shift}"
    with lines.loop("i", rows, 2):
        lines.add(f"const int16_t *p = {sources[0]} + i * {depth};")
        lines.add(f"const int down = i + 1 < {rows};", "")
        with lines.block(f"for (int j = 0; j < {count}; j += 2)"):
            lines.add(f"const int over = j + 1 < {count};")
            lines.add(f"const int16_t *a0 = p, *a1 = p + down * {depth};")
            lines.add(f"const int16_t *b0 = {sources[1]} + j * {depth}, *b1 = b0 + over * {depth};")
            lines.add(f"int16_t *to = y + i * {columns} + j{'' if first == 0 else f' + {first}'};")
            at = "j" if first == 0 else f"{first} + j"
            starts = ["0", "0"] if given.bias is None else [f"bias[{at}]", f"bias[{at} + over]"]
            lines.add(f"int64_t s0 = {starts[0]}, s1 = {starts[1]}, s2 = s0, s3 = s1;", "")
            with lines.loop("k", depth, LANES):
                load = "vldrhq_s16({})"
                if depth % LANES:
                    lines.add(f"const mve_pred16_t some = vctp16q((uint32_t)({depth} - k));")
                    load = "vldrhq_z_s16({}, some)"
                for name in ("a0", "a1", "b0", "b1"):
                    lines.add(f"const int16x8_t v{name} = {load.format(f'{name} + k')};")
                for number in range(4):
                    lines.add(f"s{number} = vmlaldavaq_s16(s{number}, va{number // 2}, vb{number % 2});")
            # The results of a row or column that is missing are those of the last one.
            for number, place in enumerate(["0", "over", f"down * {columns}", f"down * {columns} + over"]):
                value = f"scale_once(s{number}, {scale}){plus(finish.zero)}"
                lines.add(f"to[{place}] = (int16_t)clamp({value}, {finish.low}, {finish.high});")
