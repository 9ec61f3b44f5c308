# SPDX-License-Identifier: Apache-2.0
"""RESIZE_BILINEAR of integers: a row of scratch memory between the rows of the data, then results between its columns.

The weights of an axis are in units of a power of two that divides all of them: sums have 16 bits for factors 2 and 4.
Where both lines of a result are the same one, the first has the whole weight.
"""

from __future__ import annotations

from math import gcd
from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.emission.expressions import times
from opwest.compiler.emission.function import Call, Lines, Parameter, c_type, call_for, emits
from opwest.compiler.ir.movement import Interpolate
from opwest.compiler.kernels.assembly import NAKED
from opwest.compiler.kernels.mve.epilogue import Assembly
from opwest.compiler.kernels.mve.pairs import ITEMS
from opwest.compiler.semantics.windows import Line

UNIT = 1024
"""The sum of the weights of two lines."""
PART = 8
"""The low bits of values between rows that are summed apart where a sum has more than 32 bits."""
LEAST_DEPTH = 8
"""The fewest channels that are a loop for each pixel."""


@dataclass(frozen=True)
class _Axis:
    """The rows or columns of a result."""

    first: tuple[int, ...]
    weights: tuple[int, ...]
    """Of the line after the first one; the first one has the rest of `total`."""
    total: int


def _axis(line: Line) -> _Axis | None:
    """Return a line in the greatest unit; None if the lines of a result do not follow each other."""
    pairs = list(zip(line.first, line.second, strict=True))
    if any(second - first not in (0, 1) for first, second in pairs):
        return None
    weights = [int(w) if first != second else 0 for w, (first, second) in zip(line.weights, pairs, strict=True)]
    # At least two units: the rounding shift is by one place or more.
    unit = gcd(UNIT // 2, *weights)
    return _Axis(tuple(line.first), tuple(w // unit for w in weights), UNIT // unit)


@dataclass(frozen=True)
class _Form:
    """What the instructions depend on."""

    dtype: str
    is_wide: bool
    """Whether sums have 32 bits, otherwise 16."""
    by_pixel: bool
    is_long: bool = False
    """Whether sums between columns have more than 32 bits: by pixel, in two parts."""

    @property
    def bits(self) -> int:
        """The bits of a sum."""
        return 32 if self.is_wide else 16

    @property
    def lanes(self) -> int:
        """The elements of a turn."""
        return 128 // self.bits

    @property
    def name(self) -> str:
        """The name of the function."""
        way = "long" if self.is_long else "pixels" if self.by_pixel else "gather"
        return f"mve_interpolate_{self.dtype}_{self.bits}_{way}"


@emits(Interpolate, "mve-rows")
def render(operation: Interpolate) -> Call | None:
    """Return the call; None for other dtypes and for long rows."""
    data, result = operation.inputs[0], operation.results[0]
    images, height, width, depth = data.shape
    if data.dtype not in ITEMS:
        return None
    rows, columns = _axis(operation.rows), _axis(operation.columns)
    if rows is None or columns is None or (width + 1) * depth >= 1 << 16:
        return None
    places, item = (rows.total * columns.total).bit_length() - 1, ITEMS[data.dtype]
    is_long = places + 8 * item > 31
    form = _Form(data.dtype, places + 8 * item > 16, depth >= LEAST_DEPTH or is_long, is_long)
    text = _function(form)
    lines = Lines()
    size = result.size // images
    with lines.repeat("n", images):
        image, target = "data", "result"
        if images > 1:
            image += f" + {times('n', height * width * depth)}"
            target += f" + {times('n', size)}"
        lines.add(f"{form.name}({image}, {target}, numbers, row);")
    numbers = _numbers(form, rows, columns, (width, depth), places)
    row = Parameter("row", f"int{form.bits}", "scratch", elements=(width + 1) * depth)
    arguments = {"data": data, "numbers": numbers}
    return call_for(operation, "interpolate", lines, arguments, (), [row], definitions=(NAKED, text))


def _numbers(form: _Form, rows: _Axis, columns: _Axis, shape: tuple[int, int], places: int) -> Any:
    """Return the numbers: a head, each row, the elements of a row of the data, each column (or element of a row)."""
    (width, depth), item, lanes = shape, ITEMS[form.dtype], form.lanes
    steps = [first * width * depth * item for first in rows.first]
    seconds = [step + (width * depth * item if weight else 0) for step, weight in zip(steps, rows.weights, strict=True)]
    each = [
        word
        for step, second, weight in zip(steps, seconds, rows.weights, strict=True)
        for word in (step, second, rows.total - weight, weight)
    ]
    first, weights = np.asarray(columns.first) * depth, np.asarray(columns.weights)
    size, count = form.bits // 8, depth if form.by_pixel else len(weights) * depth
    if form.by_pixel:
        table = np.stack([first * size, columns.total - weights, weights], axis=1).astype(np.int32).reshape(-1)
        end = len(table) * 4
    else:
        offsets = (first[:, None] + np.arange(depth)).reshape(-1).astype(np.uint16)
        both = np.stack([offsets.astype(np.int16), np.repeat(weights, depth).astype(np.int16)])
        table = np.pad(both, ((0, 0), (0, -count % 2))).reshape(-1).view(np.int32)
        end = len(table) * 2
    shift = PART - places if form.is_long else -places
    head = [count, (-count % lanes) * -item, len(each) * 4 + 8, end, shift, columns.total.bit_length() - 1]
    return np.asarray([*head, *each, depth * size, width * depth, *table.tolist()], np.int32)


def _function(form: _Form) -> str:
    """Return the definition of void f(data, result, numbers, row)."""
    item, bits, lanes = ITEMS[form.dtype], form.bits, form.lanes
    letter, wide = "b" if item == 1 else "h", "w" if form.is_wide else "h"
    moved = lanes * item
    code = Assembly()
    # r6: elements of a loop, r7: bytes from their end to the next ones, r11: the columns, r10: their end or weights.
    saved = [] if form.by_pixel and not form.is_long else ["{d8-d11}"]
    code.add("push {r4-r11, lr}", *(f"vpush {some}" for some in saved))
    code.add("ldm r2!, {r6, r7, r8, r9, r10, r12}", f"vdup.{bits} q3, r10", "add r11, r2, r8", "add r10, r11, r9")
    code.add(*([f"vmov.i32 q4, #{(1 << PART) - 1}"] if form.is_long else []))
    code.add(*([] if form.by_pixel else [f"vdup.{bits} q4, r12"]))
    code.add("1: ldm r2!, {r4, r5, r8, r9}", "add r4, r0", "add r5, r0", "mov r12, r3", "ldr lr, [r11, #-4]")
    code.add(f"dlstp.{bits} lr, lr", f"2: vldr{letter}.s{bits} q0, [r4], #{moved}")
    code.add(f"vldr{letter}.s{bits} q1, [r5], #{moved}", f"vmul.i{bits} q0, q0, r8", f"vmla.s{bits} q0, q1, r9")
    code.add(f"vstr{wide}.{bits} q0, [r12], #16", "letp lr, 2b")
    rounded = [f"vshr.s{bits} q1, q0, #{bits - 1}", f"vqadd.s{bits} q0, q0, q1", f"vrshl.s{bits} q0, q0, q3"]
    store = f"vstr{letter}.{bits} q0, [r1], #{moved}"
    shift = 2 if form.is_wide else 1
    if form.by_pixel:
        code.add("mov r12, r11", "3: ldm r12!, {r4, r8, r9}", "add r4, r3", f"add r5, r4, r6, lsl #{shift}")
        code.add(f"dlstp.{bits} lr, r6", f"4: vldr{wide}.u{bits} q0, [r4], #16", f"vldr{wide}.u{bits} q1, [r5], #16")
        joined = _long_sums() if form.is_long else [f"vmul.i{bits} q0, q0, r8", f"vmla.s{bits} q0, q1, r9", *rounded]
        code.add(*joined, store, "letp lr, 4b")
        code.add("add r1, r7", "cmp r12, r10", "bne 3b")
    else:
        place = f"q0, uxtw #{shift}]"
        code.add("ldr r8, [r11, #-8]", "add r8, r3", "mov r4, r11", "mov r5, r10", f"dlstp.{bits} lr, r6")
        code.add(f"4: vldrh.u{bits} q0, [r4], #{2 * lanes}", f"vldrh.s{bits} q1, [r5], #{2 * lanes}")
        code.add(f"vldr{wide}.u{bits} q2, [r3, {place}", f"vldr{wide}.u{bits} q5, [r8, {place}")
        code.add(f"vsub.i{bits} q5, q5, q2", f"vmul.i{bits} q5, q5, q1", f"vshl.s{bits} q2, q2, q4")
        code.add(f"vadd.i{bits} q0, q2, q5", *rounded, store, "letp lr, 4b", "add r1, r7")
    code.add("add lr, r2, #8", "cmp lr, r11", "bne 1b", *(f"vpop {some}" for some in saved))
    code.add("pop {r4-r11, pc}")
    parameters = [f"const {c_type(form.dtype)} *data", f"{c_type(form.dtype)} *result", "const int32_t *numbers"]
    parameters.append(f"int{bits}_t *row")
    return code.function(form.name, parameters, "Results between rows, then between columns.")


def _long_sums() -> list[str]:
    """Return the rounded sum of q0 and q1 with the weights r8 and r9: the high parts in q2, the low ones in q0.

    A negative sum is reduced by 1 before the shift that rounds halves up.
    """
    lines = [f"vshr.s32 q2, q0, #{PART}", f"vshr.s32 q5, q1, #{PART}", "vmul.i32 q2, q2, r8", "vmla.s32 q2, q5, r9"]
    lines += ["vand q0, q0, q4", "vand q1, q1, q4", "vmul.i32 q0, q0, r8", "vmla.s32 q0, q1, r9"]
    lines += [f"vshr.s32 q1, q0, #{PART}", "vadd.i32 q1, q1, q2", "vshr.s32 q1, q1, #31", "vadd.i32 q0, q0, q1"]
    return [*lines, f"vshr.s32 q0, q0, #{PART}", "vadd.i32 q0, q0, q2", "vrshl.s32 q0, q0, q3"]
