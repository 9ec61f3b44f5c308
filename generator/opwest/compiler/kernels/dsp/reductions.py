# SPDX-License-Identifier: Apache-2.0
"""Sums and means of quantised data: runs of elements, or four neighbouring sums at a time."""

from __future__ import annotations

import contextlib
from math import prod

from opwest.compiler.emission.expressions import plus, times
from opwest.compiler.emission.function import Call, Lines, c_type, call_for, emits
from opwest.compiler.emission.rows import Loops, loops_of
from opwest.compiler.ir.operations import Reduce
from opwest.compiler.kernels.assembly import NAKED, naked
from opwest.compiler.kernels.dsp.intrinsics import ended
from opwest.compiler.kernels.scaling import scaling_of
from opwest.compiler.semantics.fixed_point import RANGES

COLUMNS = 4
MAX_ROWS = 252
"""The most rows whose sums of bytes have 16 bits, in whole turns of a loop."""


@emits(Reduce, "dsp-sums")
def render_sums(operation: Reduce) -> Call | None:
    """Return the call; None for other kinds and dtypes, and for numbers that do not fit."""
    data, result, finish = operation.inputs[0], operation.results[0], operation.finish
    if operation.kind not in ("sum", "mean") or finish is None or data.dtype not in _LOADS or data.size == 0:
        return None
    kept, joined = loops_of(data.shape, operation.axes)
    count = prod(n for n, _ in joined)
    low, high = RANGES[data.dtype]
    bound = count * max(high - operation.zero, operation.zero - low)
    scaling = scaling_of(finish, [bound])
    if scaling is None:
        return None
    name, definition = ended(scaling.epilogue(8 if result.dtype == "int8" else 16))
    numbers = ", ".join(str(int(number)) for number in scaling.ends[0])
    factor = "2 * " if scaling.is_doubled else ""
    end = f"{name}({factor}({{}}{plus(-operation.zero * count)}), {numbers})"
    is_run = not kept or kept[-1][1] != 1
    function, body = (_run if is_run else _columns)(data.dtype)
    lines = Lines()
    lines.add(f"{c_type(result.dtype)} *y = result;", "")
    with contextlib.ExitStack() as stack:
        for level, (turns, _) in enumerate(kept if is_run else kept[:-1]):
            stack.enter_context(lines.loop(f"i{level}", turns))
        terms = [times(f"i{level}", stride) for level, (_, stride) in enumerate(kept if is_run else kept[:-1])]
        lines.add(f"const {c_type(data.dtype)} *p = {' + '.join(['data', *terms])};")
        if is_run:
            _add_run(lines, joined, function, end)
        else:
            _add_columns(lines, joined, kept[-1][0], function, end)
    return call_for(operation, "sums", lines, {"data": data}, definitions=(NAKED, body, definition))


def _add_run(lines: Lines, joined: Loops, function: str, end: str) -> None:
    """Append the sum of runs, and its end."""
    lines.add("int32_t sum = 0;", "")
    outer, length = (joined[:-1], joined[-1][0]) if joined and joined[-1][1] == 1 else (joined, 1)
    with contextlib.ExitStack() as stack:
        place = _inside(lines, stack, outer)
        lines.add(f"sum += {function}({place}, {length});")
    lines.add(f"*y++ = {end.format('sum')};")


def _add_columns(lines: Lines, joined: Loops, columns: int, function: str, end: str) -> None:
    """Append the sums of neighbouring columns, and their ends."""
    rows, stride = joined[-1] if joined else (1, 0)
    lines.add("")
    with lines.block(f"for (int c = 0; c < {columns}; c += {COLUMNS}, p += {COLUMNS})"):
        last = columns % COLUMNS
        some = f"c + {COLUMNS} <= {columns} ? {COLUMNS} : {last}" if last else str(COLUMNS)
        lines.add(f"const int some = {some};", f"int32_t sums[{COLUMNS}] = {{0}};", "")
        with contextlib.ExitStack() as stack:
            place = _inside(lines, stack, joined[:-1])
            parts, rest = divmod(rows, MAX_ROWS)
            if parts:
                with lines.repeat("k", parts):
                    start = f"{place} + k * {MAX_ROWS * stride}" if parts > 1 else place
                    lines.add(f"{function}({start}, sums, {MAX_ROWS}, {stride}, some);")
            if rest:
                start = f"{place} + {parts * MAX_ROWS * stride}" if parts else place
                lines.add(f"{function}({start}, sums, {rest}, {stride}, some);")
        with lines.block("for (int i = 0; i < some; i++)"):
            lines.add(f"*y++ = {end.format('sums[i]')};")


def _inside(lines: Lines, stack: contextlib.ExitStack, loops: Loops) -> str:
    """Append loops over joined dimensions; return the place of an element."""
    for level, (turns, _) in enumerate(loops):
        stack.enter_context(lines.loop(f"j{level}", turns))
    return " + ".join(["p", *(times(f"j{level}", stride) for level, (_, stride) in enumerate(loops))])


_LOADS = {"int8": "ldrsb", "int16": "ldrsh"}
"""The load of an element of each dtype."""


def _run(dtype: str) -> tuple[str, str]:
    """Return the function (data, length) of the sum of a run of elements."""
    item = 2 if dtype == "int16" else 1
    words = 4 // item
    registers = ("r3", "r4", "r5", "r6")
    # USADA8 adds the four differences of unsigned bytes from 0: 128 is added to int8 ones.
    group = [f"ldr {register}, [r0], #4" for register in registers]
    group += [f"eor {register}, {register}, #{0x80808080:#x}" for register in registers] if item == 1 else []
    sums = "smlad r12, {0}, r7, r12" if item == 2 else "usada8 r12, {0}, r7, r12"
    group += [sums.format(register) for register in registers]
    size = len(registers) * words
    one = [f"{_LOADS[dtype]} r3, [r0], #{item}", "add r12, r12, r3"]
    lines = ["push {r4-r7, lr}", "mov r12, #0", f"mov r7, #{0x00010001 if item == 2 else 0:#x}"]
    if item == 1:
        lines += [f"bic r12, r1, #{size - 1}", "lsl r12, r12, #7", "rsb r12, r12, #0"]
    lines += [f"subs r1, r1, #{size}", "blt 2f", "1:", *group, f"subs r1, r1, #{size}", "bge 1b"]
    lines += [f"2: adds r1, r1, #{size}", "beq 4f", "3:", *one, "subs r1, r1, #1", "bne 3b"]
    name = f"sum_of_{dtype}"
    parameters = (f"const {dtype}_t *data", "int32_t length")
    return name, naked(name, parameters, [*lines, "4: mov r0, r12", "pop {r4-r7, pc}"], "int32_t ")


def _columns(dtype: str) -> tuple[str, str]:
    """Return the function (data, sums, rows, elements from row to row, columns), which adds to up to four sums.

    Sums of int8 elements are halfwords: at most MAX_ROWS rows.
    """
    item = 2 if dtype == "int16" else 1
    if item == 2:
        before, after = ["ldm r1, {r4-r7}"], ["stm r1, {r4-r7}"]
        row = ["ldr r8, [r0]", "ldr r9, [r0, #4]", "add r0, r0, r3"]
        row += ["sxtah r4, r4, r8", "sxtah r5, r5, r8, ror #16", "sxtah r6, r6, r9", "sxtah r7, r7, r9, ror #16"]
    else:
        before = ["mov r8, #0", "mov r9, #0"]
        row = ["ldr r12, [r0]", "add r0, r0, r3", "sxtab16 r8, r8, r12", "sxtab16 r9, r9, r12, ror #8"]
        after = ["ldm r1, {r4-r7}", "sxtah r4, r4, r8", "sxtah r6, r6, r8, ror #16"]
        after += ["sxtah r5, r5, r9", "sxtah r7, r7, r9, ror #16", "stm r1, {r4-r7}"]
    load = _LOADS[dtype]
    single = [f"{load} r8, [r0, r9]", "add r4, r4, r8", "add r9, r9, r3", "subs r12, r12, #1", "bne 6b"]
    lines = ["push {r4-r9, lr}", "ldr lr, [sp, #28]", *([f"lsl r3, r3, #{item - 1}"] if item > 1 else [])]
    lines += ["cmp lr, #4", "blt 5f", *before, "subs r2, r2, #4", "blt 2f", "1:", *row * 4, "subs r2, r2, #4", "bge 1b"]
    lines += ["2: adds r2, r2, #4", "beq 4f", "3:", *row, "subs r2, r2, #1", "bne 3b", "4:", *after, "pop {r4-r9, pc}"]
    # Fewer than four: one column after the other.
    lines += ["5: ldr r4, [r1]", "mov r9, #0", "mov r12, r2", "6:", *single, "str r4, [r1], #4"]
    lines += [f"add r0, r0, #{item}", "subs lr, lr, #1", "bne 5b", "pop {r4-r9, pc}"]
    name = f"column_sums_of_{dtype}"
    parameters = (f"const {dtype}_t *data", "int32_t *sums", "int32_t rows", "int32_t stride", "int32_t columns")
    return name, naked(name, parameters, lines)
