# SPDX-License-Identifier: Apache-2.0
"""Sums, differences, products and squares of differences of int8 and int16 tensors; pools."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.emission.depthwise import one_channel, pool_windows
from opwest.compiler.emission.function import Call, Lines, call_for, emits, is_int8_pair
from opwest.compiler.ir.elements import AddQuantised, Plain, Prelu, Product, SquaredDifference
from opwest.compiler.ir.operations import Elementwise, Pool
from opwest.compiler.kernels.assembly import NAKED, naked
from opwest.compiler.kernels.dsp.byte_lines import product_line, square_line
from opwest.compiler.kernels.dsp.intrinsics import GREATER_BYTES, LOAD_WORD, SUMS_OF_BYTES
from opwest.compiler.kernels.dsp.selected_lines import extreme_line, slope_line
from opwest.compiler.kernels.dsp.tiles import results
from opwest.compiler.kernels.dsp.wide_lines import wide_product_line, wide_sum_line
from opwest.compiler.kernels.lines import GROUP, Form
from opwest.compiler.kernels.repeated import Makers, render_lines
from opwest.compiler.kernels.scaling import Epilogue, sum_tables
from opwest.compiler.kernels.slopes import sum_line
from opwest.compiler.semantics.arithmetic import HALF

UNROLLED = GROUP


@emits(Elementwise, "dsp-elements")
def render_elements(operation: Elementwise) -> Call | None:
    """Return the call: lines, or for an int8 sum of equal shapes a loop with tables.

    None for other functions, dtypes and numbers.
    """
    call = render_lines(operation, _LINES)
    if call is None and isinstance(operation.function, AddQuantised) and is_int8_pair(operation):
        return _with_tables(operation, operation.function)
    return call


_LINES: Makers = {
    (AddQuantised, "int8"): sum_line,
    (Product, "int8"): product_line,
    (SquaredDifference, "int8"): square_line,
    (AddQuantised, "int16"): wide_sum_line,
    (Product, "int16"): wide_product_line,
    (Prelu, "int8"): slope_line,
    **{(Plain, dtype): functools.partial(extreme_line, dtype) for dtype in ("int8", "uint8", "int16")},
}


def _with_tables(operation: Elementwise, function: AddQuantised) -> Call | None:
    """Return the call of an int8 sum without a slope."""
    loop = sum_of(function)
    if loop is None:
        return None
    size = operation.results[0].size
    a, b = operation.inputs
    body = f"\t{loop.name}(a, b, constants, result, {size // UNROLLED}, {size % UNROLLED});\n"
    arguments = {"a": a, "b": b, "constants": loop.constants}
    return call_for(operation, "add", body, arguments, ("a", "b"), definitions=(NAKED, loop.definition))


@dataclass(frozen=True, eq=False)
class Loop:
    """A loop over elements: the C function (a, b, constants, result, groups of four elements, other elements)."""

    name: str
    definition: str
    constants: Any


def sum_of(function: AddQuantised) -> Loop | None:
    """Return the loop of an int8 sum: its line, else one with tables. None if its numbers do not fit.

    The scaled value of an operand is a table of 256 words; that of the operand with the larger scale is a shift.
    """
    line = sum_line(function, False, Form.PAIR)
    if line is not None:
        return Loop(line.name, line.definition, line.constants)
    parts = sum_tables(function)
    if parts is None:
        return None
    values, scaling = parts
    given = function.numbers
    is_added = (True, not function.subtract)
    shifted = next((i for i, by in enumerate(given.multipliers) if by == HALF and is_added[i]), None)
    kinds: list[int | None] = [None, None]
    doubled = [2 * value for value in values]
    if shifted is not None:
        # 2 * ((a - zero) << left_shift) / 2 is a << left_shift, less the part of the zero point: in the other table.
        kinds[shifted] = given.left_shift
        doubled[1 - shifted] = doubled[1 - shifted] - (given.zeros[shifted] << given.left_shift)
    tables = [table.astype(np.int32) for table, kind in zip(doubled, kinds, strict=True) if kind is None]
    name, text = _sums_function(tuple(kinds), scaling.epilogue())
    return Loop(name, text, np.concatenate([*tables, scaling.ends[0]]))


_PARAMETERS = ("const int8_t *a", "const int8_t *b", "const int32_t *constants", "int8_t *result")
_COUNTS = ("int32_t turns", "int32_t rest")
_SAVED = 36
"""The bytes of the saved registers: the distance from sp to the counts."""


def _sums_function(shifts: tuple[int | None, ...], ending: Epilogue) -> tuple[str, str]:
    """Return the name and the definition for sums: an operand is shifted, or (None) an index of a table."""
    size = 1024 * shifts.count(None)
    # Indices are -128 to 127: the pointers are at the middle of the tables.
    start = [f"add r7, r2, #{size}", "ldm r7, {r4-r6}", "add r2, r2, #512"]
    start += ["add r11, r2, #1024"] if size == 2048 else []
    tables = iter(("r2", "r11"))
    values = [
        [f"ldr {{{operand}}}, [{next(tables)}, {{{operand}}}, lsl #2]"]
        for operand, shift in zip("xz", shifts, strict=True)
        if shift is None
    ]
    first, second = shifts
    if first is not None:
        values.append([f"add {{x}}, {{z}}, {{x}}, lsl #{first}"])
    else:
        values.append(["add {x}, {x}, {z}" + ("" if second is None else f", lsl #{second}")])
    kinds = "_".join("table" if shift is None else f"shift{shift}" for shift in shifts)
    name = f"sum_{kinds}_{ending.name}"
    return name, naked(name, (*_PARAMETERS, *_COUNTS), _loop(start, values, ending))


def _loop(start: list[str], values: list[list[str]], ending: Epilogue) -> Iterator[str]:
    """Yield a loop over groups of four elements, then over other elements.

    r0 a, r1 b, r2 constants, r3 result, r4 to r6 multiplier, addend and shift; r7 to r12 and lr are free. `start`:
    before the loop. `values`: from the operands {x} and {z} to twice the value in {x}; each list for all elements of a
    turn before the next one.
    """

    def elements(count: int) -> Iterator[str]:
        pairs = [("r7", "r8"), ("r9", "r10")][:count]
        for x, z in pairs:
            yield f"ldrsb {x}, [r0], #1"
            yield f"ldrsb {z}, [r1], #1"
        for some in values:
            yield from (line.format(x=x, z=z) for x, z in pairs for line in some)
        sums = [x for x, _ in pairs]
        yield from results(sums, ending, ("r4", "r5", "r6"))
        yield from (f"strb {register}, [r3], #1" for register in sums)

    yield "push {r4-r11, lr}"
    yield from start
    yield from (f"ldr lr, [sp, #{_SAVED}]", "cmp lr, #0", "beq 2f", "1:")
    for _ in range(UNROLLED // 2):
        yield from elements(2)
    yield from ("subs lr, lr, #1", "bne 1b", f"2: ldr lr, [sp, #{_SAVED + 4}]", "cmp lr, #0", "beq 4f", "3:")
    yield from elements(1)
    yield from ("subs lr, lr, #1", "bne 3b", "4: pop {r4-r11, pc}")


MAX_ELEMENTS = 255
"""The elements of a window whose sums fit in 16 bits."""
MAX_WIDE_ELEMENTS = 65535
"""The int16 elements of a window whose sums fit in 32 bits."""


@emits(Pool, "dsp-pool", has_pitch=True)
def render_pool(operation: Pool) -> Call | None:
    """Return the call; None for other dtypes, few channels, dilations and large windows of averages."""
    data, window = operation.inputs[0], operation.window
    _, height, width, depth = data.shape
    is_average = operation.kind == "average"
    is_wide = data.dtype == "int16" and is_average and operation.low is not None
    if not (data.dtype == "int8" or is_wide) or depth < 4 or window.dilation != (1, 1):
        return None
    if operation.kind not in ("average", "maximum"):
        return None
    size = min(window.size[0], height) * min(window.size[1], width)
    if is_average and size > (MAX_WIDE_ELEMENTS if is_wide else MAX_ELEMENTS):
        return None
    lines = Lines()
    with pool_windows(lines, operation, ["const int count = (y1 - y0) * (x1 - x0);"] * is_average):
        lines.add("int c = 0;", "")
        with lines.block(f"for (; c < {depth // 4 * 4}; c += 4)"):
            (_four_wide if is_wide else _four)(lines, operation, width * depth, depth)
        if depth % 4:
            with lines.block(f"for (; c < {depth}; c++)"):
                one_channel(lines, operation, width, depth)
    definitions = (LOAD_WORD, *([] if is_wide else [SUMS_OF_BYTES if is_average else GREATER_BYTES]))
    base = f"{operation.kind}_pool"
    return call_for(operation, base, lines, {"data": data}, helpers=("clamp",), definitions=definitions)


def _four(lines: Lines, operation: Pool, row: int, depth: int) -> None:
    """Append the results of the channels c to c + 3."""
    is_average = operation.kind == "average"
    lines.add("const int8_t *line = from + c;")
    lines.add(*(["uint32_t even = 0, odd = 0;"] if is_average else ["uint32_t value = UINT32_C(0x80808080);"]), "")
    with lines.block(f"for (int iy = y0; iy < y1; iy++, line += {row})"):
        lines.add("const int8_t *p = line;", "")
        with lines.block(f"for (int ix = x0; ix < x1; ix++, p += {depth})"):
            if is_average:
                lines.add("const uint32_t word = load_word(p);", "")
                lines.add("even = sum_even_bytes(even, word);", "odd = sum_odd_bytes(odd, word);")
            else:
                lines.add("value = greater_bytes(value, load_word(p));")
    low, high = operation.low, operation.high
    if is_average:
        lines.add(
            "const int16_t sums[4] = {(int16_t)even, (int16_t)odd, (int16_t)(even >> 16), (int16_t)(odd >> 16)};", ""
        )
        with lines.loop("i", 4):
            lines.add("const int32_t half = sums[i] > 0 ? count / 2 : -(count / 2);", "")
            lines.add(f"*y++ = (int8_t)clamp((sums[i] + half) / count, {low}, {high});")
        return
    if (low, high) == (-128, 127):
        lines.add("__builtin_memcpy(y, &value, 4);", "y += 4;")
        return
    with lines.loop("i", 4):
        lines.add(f"*y++ = (int8_t)clamp((int8_t)(value >> 8 * i), {low}, {high});")


def _four_wide(lines: Lines, operation: Pool, row: int, depth: int) -> None:
    """Append the averages of the int16 channels c to c + 3: two channels for each load."""
    lines.add("const int16_t *line = from + c;", "int32_t first = 0, second = 0, third = 0, fourth = 0;", "")
    with lines.block(f"for (int iy = y0; iy < y1; iy++, line += {row})"):
        lines.add("const int8_t *p = (const int8_t *)line;", "")
        with lines.block(f"for (int ix = x0; ix < x1; ix++, p += {2 * depth})"):
            lines.add("const uint32_t low = load_word(p), high = load_word(p + 4);", "")
            lines.add("first += (int16_t)low;", "second += (int32_t)low >> 16;")
            lines.add("third += (int16_t)high;", "fourth += (int32_t)high >> 16;")
    lines.add("const int32_t sums[4] = {first, second, third, fourth};", "")
    with lines.loop("i", 4):
        lines.add("const int32_t half = sums[i] > 0 ? count / 2 : -(count / 2);", "")
        lines.add(f"*y++ = (int16_t)clamp((sums[i] + half) / count, {operation.low}, {operation.high});")
