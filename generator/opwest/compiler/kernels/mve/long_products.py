# SPDX-License-Identifier: Apache-2.0
"""Products of two matrices with int16 rows and sums of 64 bits: 2 rows by 2 columns of int16 elements.

Lines whose elements do not follow each other, and int8 columns, are copied to scratch memory first.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from opwest.compiler.emission.elementwise import joined
from opwest.compiler.emission.function import Call, Lines, Parameter, call_for, emits
from opwest.compiler.emission.matrix import batches
from opwest.compiler.ir.operations import MatrixProduct
from opwest.compiler.kernels.assembly import NAKED, limited
from opwest.compiler.kernels.mve.epilogue import Assembly
from opwest.compiler.kernels.mve.matrices import STREAM, Matrices, is_known
from opwest.compiler.semantics.fixed_point import RANGES, Requantisation, Rounding, reduced

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
    if finish.zero or _numbers(given, finish)[2] < 1:
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
    has_clamp = (finish.low, finish.high) != RANGES["int16"]
    name, text = _function(given.bias is not None, has_clamp)
    lines = Lines()
    scratch: list[Parameter] = []
    copies: dict[str, str] = {}
    arguments: dict[str, Any] = {"a": value, "b": other}
    if is_known(other):
        arguments["b"] = (given.columns.astype(np.int16) - np.int16(operation.zeros[1])).reshape(-1)
    arguments["numbers"] = _numbers(given, finish)
    lines.add("int16_t *y = result;", "")
    starts = _starts(lines, given, arguments, scratch)
    held = min(columns, max(2, STREAM // (2 * depth) & ~1))
    if not is_kept:
        scratch.append(Parameter("columns", "int16", "scratch", elements=held * depth))
        copies.update([_line(other.dtype)])
    if is_spread:
        scratch.append(Parameter("lines", "int16", "scratch", elements=rows * depth))
        copies.update([_line("int16")])
    shapes, sizes = [value.shape[:-2], other.shape[:-2]], (rows * depth, depth * columns)
    _, strides = joined(shapes, given.outer)
    # Columns that all batches share are copied once.
    is_shared = not is_kept and held == columns and not any(strides[1])
    if is_shared:
        _copy(lines, given, "b", 0, columns)
    with batches(lines, shapes, given.outer, sizes) as places:
        one, two = (" + ".join(filter(None, pair)) for pair in zip("ab", places, strict=True))
        source = "lines" if is_spread else one
        if is_spread:
            with lines.loop("i", rows):
                lines.add(f"mve_wide_line_int16(lines + i * {depth}, {one} + i, {rows}, {depth}, 0);")
        if is_kept or held == columns:
            if not (is_kept or is_shared):
                _copy(lines, given, two, 0, columns)
            lines.add(f"{name}({source}, {two if is_kept else 'columns'}, numbers, y, {columns}, {starts or 'NULL'});")
        else:
            with lines.block(f"for (int c = 0; c < {columns}; c += {held})"):
                lines.add(f"const int count = c <= {columns - held} ? {held} : {columns} - c;", "")
                _copy(lines, given, two, "c", "count")
                first = f"{starts} + c" if starts else "NULL"
                lines.add(f"{name}({source}, columns, numbers, y + c, count, {first});")
        lines.add(f"y += {rows * columns};")
    headers = (*(["arm_mve.h"] if copies else []), *([] if starts else ["stddef.h"]))
    definitions = (NAKED, *copies.values(), text)
    return call_for(
        operation, "matrix_product", lines, arguments, (), scratch, headers=headers, definitions=definitions
    )


def _numbers(given: Matrices, finish: Requantisation) -> Any:
    """Return the array of NUMBERS."""
    (rows, depth, columns), multiplier = given.sizes, finish.multipliers[0]
    fixed, places = multiplier.fixed, 31 - multiplier.shift
    if finish.rounding is Rounding.SIXTEEN:
        fixed, places = int(reduced(fixed)), 15 - multiplier.shift
    return np.asarray([depth, fixed, places, finish.low, finish.high, 2 * depth, 2 * columns, rows], np.int32)


def _starts(lines: Lines, given: Matrices, arguments: dict[str, Any], scratch: list[Parameter]) -> str:
    """Add the argument of the biases, and their copy as 64 bits; return the pointer to them, empty without biases."""
    bias = given.bias
    if bias is None:
        return ""
    arguments["bias"] = bias.content.reshape(-1).astype(np.int64) if is_known(bias) else bias
    if is_known(bias) or bias.dtype == "int64":
        return "bias"
    scratch.append(Parameter("starts", "int64", "scratch", elements=bias.size))
    with lines.loop("i", bias.size):
        lines.add("starts[i] = bias[i];")
    return "starts"


def _copy(lines: Lines, given: Matrices, source: str, first: int | str, count: int | str) -> None:
    """Append the copy of some columns."""
    depth, (column, step), dtype = given.sizes[1], given.step(1), given.operation.inputs[1].dtype
    at = f"({first} + j)" if first != 0 else "j"
    with lines.block(f"for (int j = 0; j < {count}; j++)"):
        place = f"columns + j * {depth}, {source} + {at} * {column}"
        lines.add(f"mve_wide_line_{dtype}({place}, {step}, {depth}, {given.operation.zeros[1]});")


NUMBERS = ("length", "fixed", "places", "low", "high", "row", "pitch", "rows")
"""The int32 numbers of a product: elements of a sum, the end, bytes of a row, bytes between results, number of rows."""
SAVED = 48
"""Bytes of the stack, in words: rows, their results, columns, numbers, rows left, starts of sums, number of columns;
then those of the next columns: columns, number left, starts, results."""


def _function(has_bias: bool, has_clamp: bool) -> tuple[str, str]:
    """Return the name and the definition of void f(rows, columns, numbers, result, count, starts).

    `count` is the number of columns, `starts` are their biases of 64 bits.
    """
    at = {name: 4 * place for place, name in enumerate(NUMBERS)}
    code = Assembly()
    code.add("push {r4-r11, lr}", f"sub sp, #{SAVED}", "strd r0, r3, [sp]", "strd r1, r2, [sp, #8]")
    code.add(f"ldrd r6, r5, [sp, #{SAVED + 36}]", f"ldr r4, [r2, #{at['rows']}]", "strd r4, r5, [sp, #16]")
    code.add("str r6, [sp, #24]", "1:", "ldrd r12, r10, [sp, #4]", "ldrd r6, r7, [sp, #20]", "2:")
    code.add("strd r10, r7, [sp, #28]", "strd r6, r12, [sp, #36]", "ldr r5, [sp, #12]", f"ldr r4, [r5, #{at['row']}]")
    code.add(f"ldr lr, [r5, #{at['length']}]", "ldr r8, [sp]", "ldr r3, [sp, #16]", "mov r9, r8", "cmp r3, #1")
    code.add("it ne", "addne r9, r4", "mov r11, r10", "cmp r7, #1", "it ne", "addne r11, r4")
    if has_bias:
        code.add("ldrd r0, r1, [r6]", "it ne", "addne r6, #8", "ldrd r2, r3, [r6]")
        code.add("mov r4, r0", "mov r5, r1", "mov r6, r2", "mov r7, r3")
    else:
        code.add(*(f"movs r{number}, #0" for number in range(8)))
    code.add("dlstp.16 lr, lr", "3:", *(f"vldrh.16 q{number}, [r{8 + number}], #16" for number in range(4)))
    code.add(*(f"vmlaldava.s16 r{2 * n}, r{2 * n + 1}, q{n // 2}, q{2 + n % 2}" for n in range(4)), "letp lr, 3b")
    code.add("ldr r12, [sp, #12]", f"ldrd r8, r9, [r12, #{at['fixed']}]", f"ldrd r10, r11, [r12, #{at['low']}]")
    for low in range(0, 8, 2):
        code.add(f"mul r{low + 1}, r{low + 1}, r8", f"umull r{low}, lr, r{low}, r8", f"add r{low + 1}, lr")
        code.add(f"sqrshrl r{low}, r{low + 1}, #64, r9")
        if has_clamp:
            code.add(*limited(f"r{low}", "lt", "r10"), *limited(f"r{low}", "gt", "r11"))
        else:
            code.add(f"ssat r{low}, #16, r{low}")
    # The results of a second row that is missing are those of the first one.
    code.add("ldrd r7, r5, [sp, #32]", "ldr r11, [sp, #40]", f"ldrd r9, r3, [r12, #{at['row']}]", "ldr r1, [sp, #16]")
    code.add("cmp r1, #1", "it eq", "moveq r3, #0", "add r3, r11", "strh r0, [r11]", "strh r4, [r3]")
    code.add("subs r7, #1", "beq 4f", "strh r2, [r11, #2]", "strh r6, [r3, #2]", "subs r7, #1", "beq 4f")
    code.add("ldr r10, [sp, #28]", "add r10, r10, r9, lsl #1", "add r6, r5, #16", "add r12, r11, #4", "b 2b")
    code.add("4:", "subs r1, #2", "ble 5f", "str r1, [sp, #16]", "ldrd r0, r2, [sp]", "add r0, r0, r9, lsl #1")
    code.add(f"ldr r3, [r12, #{at['pitch']}]", "add r2, r2, r3, lsl #1", "strd r0, r2, [sp]", "b 1b")
    code.add("5:", f"add sp, #{SAVED}", "pop {r4-r11, pc}")
    name = f"mve_wide_product{'_bias' if has_bias else ''}{'_clamp' if has_clamp else ''}"
    parameters = ["const int16_t *rows", "const int16_t *columns", "const int32_t *numbers", "int16_t *result"]
    parameters += ["int count", "const int64_t *starts"]
    return name, code.function(name, parameters, "Rows times columns of int16 elements, with sums of 64 bits.")
