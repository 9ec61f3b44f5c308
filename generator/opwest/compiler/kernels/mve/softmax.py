# SPDX-License-Identifier: Apache-2.0
"""Softmax of rows: exponentials are gathered from tables, 4 at a time. All shapes share the functions."""

from __future__ import annotations

import numpy as np

from opwest.compiler.emission.function import Call, Lines, c_type, call_for, emits
from opwest.compiler.ir.operations import Softmax16, SoftmaxTable
from opwest.compiler.kernels.assembly import NAKED
from opwest.compiler.kernels.mve.epilogue import Assembly
from opwest.compiler.kernels.mve.twice import form_of, scaled
from opwest.compiler.semantics.fixed_point import RANGES, Multiplier

MAX_LENGTH = 4096
"""From this length on the sum of exponentials of 8-bit data can exceed 32 bits."""
START, SLOPE, EIGHTH = 1515870810, -1010580540, 1 << 29
"""The numbers of Newton's method for the reciprocal."""


@emits(SoftmaxTable, "mve-gather")
def softmax_table(operation: SoftmaxTable) -> Call | None:
    """Return the call; None for other dtypes and for long rows."""
    data, result = operation.inputs[0], operation.results[0]
    length = data.shape[-1]
    if data.dtype not in ("int8", "uint8") or result.dtype not in ("int8", "uint8", "int16") or length >= MAX_LENGTH:
        return None
    low, high = RANGES[result.dtype]
    places = 43 - (high - low).bit_length()
    numbers = [-(-length % 4), length, SLOPE, START, low, places, data.size // length]
    name, text = _table_function(data.dtype, result.dtype)
    lines = Lines()
    lines.add(f"{name}(data, result, powers, numbers);")
    constants = {"powers": np.asarray(operation.powers, np.int32), "numbers": np.asarray(numbers, np.int32)}
    in_place = ("data",) if result.dtype != "int16" else ()
    return call_for(operation, "softmax", lines, {"data": data, **constants}, in_place, definitions=(NAKED, text))


def _table_function(source: str, target: str) -> tuple[str, str]:
    """Return the name and the definition of void f(data, result, powers, numbers)."""
    kind = "s" if source == "int8" else "u"
    code = Assembly()
    # r3: the bytes from the end of a row, a multiple of 4, to the next row, r4: its length, r12: rows.
    code.add("push {r4-r11, lr}", "ldm r3, {r3, r4, r7, r8, r9, r10, r12}")
    code.add("1: mov r5, r0", "mvn r11, #127" if source == "int8" else "mov r11, #0", "dlstp.8 lr, r4")
    code.add("2: vldrb.u8 q0, [r5], #16", f"vmaxv.{kind}8 r11, q0", "letp lr, 2b")
    power = [f"vldrb.{kind}32 q0, [{{0}}], #4", "vsub.i32 q0, q3, q0", "vldrw.u32 q1, [r2, q0, uxtw #2]"]
    code.add("vdup.32 q3, r11", "mov r6, #0", "mov r5, r0", "dlstp.32 lr, r4", "2:")
    code.add(*(line.format("r5") for line in power), "vrshr.s32 q1, q1, #12", "vaddva.s32 r6, q1", "letp lr, 2b")
    # The sum with its highest bit in bit 30, and twice its reciprocal.
    code.add("clz r5, r6", "lsl r6, r6, r5", "lsr r6, r6, #1", "vdup.32 q2, r6", "vqrdmulh.s32 q0, q2, r7")
    code.add("vadd.i32 q0, q0, r8", f"mov r6, #{EIGHTH}", "vdup.32 q3, r6")
    for _ in range(3):
        code.add("vqrdmulh.s32 q1, q2, q0", "vsub.i32 q1, q3, q1", "vqrdmulh.s32 q1, q1, q0")
        code.add("vqshl.s32 q1, q1, #2", "vadd.i32 q0, q0, q1")
    code.add("vqshl.s32 q0, q0, #1", "vmov.32 r6, q0[0]")
    # Shifts by more than 31 places do not exist: more than 511 equal elements have probabilities below half of a step.
    code.add("sub r5, r5, r10", "cmn r5, #31", "it lt", "mvnlt r5, #30", "vdup.32 q3, r11")
    is_byte = target != "int16"
    code.add(*(["add lr, r9, #255", "vdup.32 q2, lr"] if is_byte else []), "dlstp.32 lr, r4", "2:")
    code.add(*(line.format("r0") for line in power), "vqrdmulh.s32 q1, q1, r6", "vrshl.s32 q1, r5")
    code.add("vadd.i32 q1, q1, r9", "vmin.s32 q1, q1, q2" if is_byte else "vqmovnb.s32 q1, q1")
    code.add("vstrb.32 q1, [r1], #4" if is_byte else "vstrh.32 q1, [r1], #8", "letp lr, 2b")
    code.add("add r0, r3", "add r1, r3" if is_byte else "add r1, r1, r3, lsl #1", "subs r12, #1", "bne 1b")
    code.add("pop {r4-r11, pc}")
    name = f"mve_softmax_{source}_{target}"
    parameters = [f"const {c_type(source)} *data", f"{c_type(target)} *result"]
    parameters += ["const int32_t *powers", "const int32_t *numbers"]
    return name, code.function(name, parameters, "Softmax of rows, with a table of exponentials.")


@emits(Softmax16, "mve-gather")
def softmax_16(operation: Softmax16) -> Call | None:
    """Return the call; None for tables with negative samples, and for sums with more than 31 bits."""
    data, numbers = operation.inputs[0], operation.numbers
    length, by = data.shape[-1], numbers.multiplier
    if min((*numbers.powers, *numbers.inverses)) < 0 or length > 1 << 16:
        return None
    given = [-2 * (-length % 4), length, by.fixed, by.shift, data.size // length]
    name, text = _samples_function(by)
    lines = Lines()
    lines.add(f"{name}(data, result, tables, numbers);")
    tables = np.asarray([*numbers.powers, *numbers.inverses], np.int16)
    constants = {"tables": tables, "numbers": np.asarray(given, np.int32)}
    return call_for(operation, "softmax", lines, {"data": data, **constants}, ("data",), definitions=(NAKED, text))


def _samples_function(by: Multiplier) -> tuple[str, str]:
    """Return the name and the definition of void f(data, result, tables, numbers)."""
    form = form_of(by)
    multiplied, [q] = scaled([("q0", "q1")], form, "r7", "r8")
    code = Assembly()
    code.add("push {r4-r11, lr}", "vpush {d8-d13}", "ldm r3, {r3, r4, r7, r8, r12}", "add r9, r2, #2")
    code.add("movw r10, #65535", "vmov.i32 q4, #0", "vmov.i32 q5, #127", "vdup.32 q6, r10")
    code.add("1: mov r5, r0", "movw r11, #32768", "sxth r11, r11", "dlstp.16 lr, r4")
    code.add("2: vldrh.u16 q0, [r5], #16", "vmaxv.s16 r11, q0", "letp lr, 2b")
    code.add("mov r5, r1", "mov r6, #0", "dlstp.32 lr, r4")
    code.add("2: vldrh.s32 q0, [r0], #8", "vsub.i32 q0, q0, r11", *multiplied)
    # The places in a table of 512 intervals of 128 values.
    code.add(f"vqadd.s32 q0, {q}, r10", "vmax.s32 q0, q0, q4", *(["vmin.s32 q0, q0, q6"] if form == "left" else []))
    code.add("vshr.u32 q1, q0, #7", "vand q0, q0, q5", "vldrh.s32 q2, [r2, q1, uxtw #1]")
    code.add("vldrh.s32 q3, [r9, q1, uxtw #1]", "vsub.i32 q3, q3, q2", "vmul.i32 q0, q0, q3", "vrshr.s32 q0, q0, #7")
    code.add("vadd.i32 q0, q0, q2", "vstrh.32 q0, [r5], #8", "vaddva.s32 r6, q0", "letp lr, 2b")
    # The inverse is between two samples, too.
    code.add("clz r5, r6", "sub lr, r5, #1", "lsl r6, r6, lr", "add r6, r6, #8192", "lsr r6, r6, #14")
    code.add("sub r6, r6, #65536", "usat r6, #16, r6", "lsr lr, r6, #7", "and r6, r6, #127", "add lr, r2, lr, lsl #1")
    code.add("ldrsh r11, [lr, #1026]", "ldrsh lr, [lr, #1028]", "sub lr, lr, r11", "mul r6, r6, lr", "add r6, r6, #64")
    code.add("add r6, r11, r6, asr #7", "sub r5, r5, #31", "dlstp.32 lr, r4")
    code.add("2: vldrh.s32 q0, [r1]", "vmul.i32 q0, q0, r6", "vrshl.s32 q0, r5", "vqmovnb.s32 q0, q0")
    code.add("vstrh.32 q0, [r1], #8", "letp lr, 2b", "add r0, r3", "add r1, r3", "subs r12, #1", "bne 1b")
    code.add("vpop {d8-d13}", "pop {r4-r11, pc}")
    name = f"mve_softmax_int16_{form}"
    parameters = ["const int16_t *data", "int16_t *result", "const int16_t *tables", "const int32_t *numbers"]
    return name, code.function(name, parameters, "Softmax of rows of int16 values, with tables of samples.")
