# SPDX-License-Identifier: Apache-2.0
"""Softmax: of 8-bit data one load of a power and one multiplication for each element and pass.

The powers are reversed, so that an element is the index from an address that depends on the greatest one. The results
of a row of many elements are a table by the difference from the greatest element, which is made for each row.
"""

from __future__ import annotations

import numpy as np

from opwest.compiler.emission.function import Call, Lines, Parameter, c_type, call_for, emits
from opwest.compiler.ir.operations import SoftmaxTable
from opwest.compiler.kernels.assembly import NAKED, naked
from opwest.compiler.kernels.lookups import UNROLLED, look_up
from opwest.compiler.semantics.fixed_point import RANGES

MAX_LENGTH = 4095
"""The elements of a row whose powers have a sum of 31 bits."""
CODES = 256


@emits(SoftmaxTable, "dsp-softmax")
def render_softmax(operation: SoftmaxTable) -> Call | None:
    """Return the call; None for rows of more elements than MAX_LENGTH."""
    data, result = operation.inputs[0], operation.results[0]
    length = data.shape[-1]
    if length > MAX_LENGTH or data.size == 0:
        return None
    bits = 16 if result.dtype == "int16" else 8
    powers = np.asarray(operation.powers, np.int64)
    # The sum is at least 2**19, the power of the greatest element. The results of powers below half of a step are 0.
    used = int(np.flatnonzero(powers >= 1 << (22 if bits == 8 else 14)).max()) + 1
    has_table = 5 * length > 8 * used + 60
    greatest, row = _greatest(data.dtype), _results(data.dtype, result.dtype, has_table)
    sums = _sums(data.dtype)
    lookup = look_up(data.dtype, result.dtype)
    lines = Lines()
    if has_table:
        with lines.loop("i", CODES - used):
            lines.add(f"table[i] = {RANGES[result.dtype][0]};")
    with lines.block(f"for (int row = 0; row < {data.size // length}; row++, data += {length}, result += {length})"):
        lines.add(f"const int32_t most = 255 - {greatest[0]}(data, {length});")
        lines.add(f"const uint32_t sum = {sums[0]}(data, powers + most, {length});")
        lines.add("const int zeros = __builtin_clz(sum);")
        places = f"{43 - bits} - zeros"
        lines.add(
            f"const int places = {places} < 31 ? {places} : 31;" if length > 511 else f"const int places = {places};"
        )
        lines.add("const int32_t inverse = reciprocal((int32_t)((sum << zeros) - 0x80000000));")
        lines.add("const int32_t factor = (int32_t)(2 * (uint32_t)inverse);", "")
        if has_table:
            first = CODES - used
            lines.add(f"{row[0]}(powers + {first}, table + {first}, {used}, factor, places);")
            groups = f"{length // UNROLLED}, {length % UNROLLED}"
            lines.add(f"{lookup[0]}(data, table + most, result, {groups});")
        else:
            lines.add(f"{row[0]}(data, powers + most, {length}, factor, places, result);")
    scratch = [Parameter("table", result.dtype, "scratch", elements=CODES)] if has_table else []
    arguments = {"data": data, "powers": powers[::-1].astype(np.int32)}
    definitions = [NAKED, greatest[1], sums[1], row[1], *([lookup[1] or ""] if has_table else [])]
    in_place = ("data",) if bits == 8 else ()
    return call_for(
        operation,
        "softmax",
        lines,
        arguments,
        in_place,
        scratch,
        helpers=("reciprocal",),
        definitions=tuple(definitions),
    )


def _greatest(dtype: str) -> tuple[str, str]:
    """Return the function (data, length) of the greatest element: four at a time."""
    is_signed = dtype == "int8"
    sign = "s" if is_signed else "u"

    def greater(other: str) -> list[str]:
        return [f"{sign}sub8 r12, {other}, r2", f"sel r2, {other}, r2"]

    lines = ["push {r4, lr}", f"mov r2, #{0x80808080 if is_signed else 0:#x}", "subs r1, r1, #8", "blt 2f"]
    lines += ["1: ldr r3, [r0], #4", "ldr r4, [r0], #4", *greater("r3"), *greater("r4"), "subs r1, r1, #8", "bge 1b"]
    lines += ["2: ror r3, r2, #16", *greater("r3"), "ror r3, r2, #8", *greater("r3"), f"{sign}xtb r2, r2"]
    lines += ["adds r1, r1, #8", "beq 4f", f"3: ldr{'sb' if is_signed else 'b'} r3, [r0], #1", "cmp r3, r2", "it gt"]
    lines += ["movgt r2, r3", "subs r1, r1, #1", "bne 3b", "4: mov r0, r2", "pop {r4, pc}"]
    name = f"greatest_{dtype}"
    return name, naked(name, (f"const {dtype}_t *data", "int32_t length"), lines, "int32_t ")


def _sums(dtype: str) -> tuple[str, str]:
    """Return the function (data, power of the element 0, length) of the sum of powers, each shifted by 12 places."""
    load = "ldrsb" if dtype == "int8" else "ldrb"

    def turn(count: int) -> list[str]:
        registers = [f"r{4 + number}" for number in range(count)]
        lines = [f"{load} {register}, [r0], #1" for register in registers]
        lines += [f"ldr {register}, [r1, {register}, lsl #2]" for register in registers]
        # SMMLAR by 2**20 is the shift, rounded half up, and the addition.
        return [*lines, *(f"smmlar r3, {register}, r12, r3" for register in registers)]

    lines = ["push {r4-r8, lr}", "mov r3, #0", f"mov r12, #{1 << 20:#x}", "subs r2, r2, #4", "blt 2f", "1:", *turn(4)]
    lines += ["subs r2, r2, #4", "bge 1b", "2: adds r2, r2, #4", "beq 4f", "3:", *turn(1), "subs r2, r2, #1", "bne 3b"]
    name = f"sum_of_powers_{dtype}"
    parameters = (f"const {dtype}_t *data", "const int32_t *powers", "int32_t length")
    return name, naked(name, parameters, [*lines, "4: mov r0, r3", "pop {r4-r8, pc}"], "uint32_t ")


def _results(dtype: str, result: str, has_table: bool) -> tuple[str, str]:
    """Return the function of the probabilities of powers.

    Its parameters are (data, power of the element 0, length, factor, places, results), with a table: (powers, results,
    number, factor, places).
    The factor is twice the inverse minus 2**32: SMMLAR of it, a power and the power is the high part of the doubled
    product. All numbers are positive: the half of the shift can be added in 32 bits without a sign.
    """
    load = "ldrsb" if dtype == "int8" else "ldrb"
    bits, store, step = (16, "strh", 2) if result == "int16" else (8, "strb", 1)
    to = "r1" if has_table else "r0"

    def turn(count: int) -> list[str]:
        values, sums = ("r7", "r8")[:count], ("r9", "r10")[:count]
        if has_table:
            lines = [f"ldr {value}, [r0], #4" for value in values]
        else:
            lines = [f"{load} {value}, [r12], #1" for value in values]
            lines += [f"ldr {value}, [r1, {value}, lsl #2]" for value in values]
        lines += [f"add {total}, {value}, r6" for value, total in zip(values, sums, strict=True)]
        lines += [f"smmlar {value}, {value}, r3, {total}" for value, total in zip(values, sums, strict=True)]
        for value in values:
            lines += [f"lsr {value}, {value}, r5", f"usat {value}, #{bits}, {value}"]
            lines += [f"sub {value}, {value}, #{1 << (bits - 1)}"] if result != "uint8" else []
        return [*lines, *(f"{store} {value}, [{to}], #{step}" for value in values)]

    lines = ["push {r4-r10, lr}", "ldr r5, [sp, #32]", "sub r4, r5, #1", "mov r6, #1", "lsl r6, r6, r4"]
    lines += [] if has_table else ["mov r12, r0", "ldr r0, [sp, #36]"]
    lines += ["subs r2, r2, #2", "blt 2f", "1:", *turn(2), "subs r2, r2, #2", "bge 1b", "2: adds r2, r2, #2", "beq 4f"]
    lines += [*turn(1), "4: pop {r4-r10, pc}"]
    name = f"softmax_{'table' if has_table else dtype}_{result}"
    kind = c_type(result)
    if has_table:
        parameters = ["const int32_t *powers", f"{kind} *result", "int32_t count", "int32_t factor", "int32_t places"]
    else:
        parameters = [f"const {dtype}_t *data", "const int32_t *powers", "int32_t length", "int32_t factor"]
        parameters += ["int32_t places", f"{kind} *result"]
    return name, naked(name, parameters, lines)
