# SPDX-License-Identifier: Apache-2.0
"""RESIZE_BILINEAR of int8 and int16 data: the four weights of a pixel in registers, a loop over its channels.

Weights have as few bits as their common factors allow. If those of a pixel have the sum 256, four int8 channels are
computed at a time: two halfwords of a word plus 128 times weights, in one multiplication. No sum of a halfword exceeds
16 bits, and its upper byte is the result plus 128.

Halves are rounded away from zero: sum + half, less 1 for a negative sum, is shifted. In halfwords 1 less than the half
is added, then the sign of the sum, which is its bit 15; the half moves this bit only where both numbers have the same
result.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.emission.function import Call, Lines, call_for, emits
from opwest.compiler.ir.movement import Interpolate
from opwest.compiler.kernels.assembly import NAKED, naked
from opwest.compiler.semantics.windows import Line

UNIT = 1 << 10
"""The sum of the weights of a row or column."""


@emits(Interpolate, "dsp-interpolate")
def render_interpolation(operation: Interpolate) -> Call | None:
    """Return the call; None for other dtypes, and weights below 0 or above UNIT."""
    data, result = operation.inputs[0], operation.results[0]
    if data.dtype not in ("int8", "int16") or result.size == 0:
        return None
    axes = [_Axis.of(line) for line in (operation.rows, operation.columns)]
    if any(axis is None for axis in axes):
        return None
    rows, columns = (axis for axis in axes if axis is not None)
    form = _form(data.dtype, rows.bits + columns.bits)
    n, height, width, depth = data.shape
    item = 1 if data.dtype == "int8" else 2
    # The bits of the columns are as few as possible, the rows have the others.
    of_columns = min(columns.bits if form.places < 20 else 10, form.places)
    down = item * width * depth * rows.second
    lines_of_rows = [
        rows.first * width * depth,
        down - item * width * depth * rows.first,
        *rows.weights(form.places - of_columns),
    ]
    lines_of_columns = [item * depth * columns.first, item * depth * columns.second, *columns.weights(of_columns)]
    tables = {
        name: np.stack(some, axis=1).astype(np.int32)
        for name, some in (("rows", lines_of_rows), ("columns", lines_of_columns))
    }
    lines = Lines()
    result_rows, result_columns = result.shape[1:3]
    if n * result_rows > 1:
        lines.add(f"{'int8_t' if item == 1 else 'int16_t'} *y = result;", "")
    with lines.repeat("n", n), lines.repeat("r", result_rows):
        row = "rows + 4 * r" if result_rows > 1 else "rows"
        top = "data + rows[4 * r]" if result_rows > 1 else "data + rows[0]"
        top += f" + n * {height * width * depth}" if n > 1 else ""
        to = "y" if n * result_rows > 1 else "result"
        lines.add(f"{form.name}({top}, {row} + 1, columns, {to}, {result_columns}, {depth});")
        if n * result_rows > 1:
            lines.add(f"y += {result_columns * depth};")
    definitions = (NAKED, form.definition)
    return call_for(operation, "interpolate", lines, {"data": data, **tables}, definitions=definitions)


@dataclass(frozen=True, eq=False)
class _Axis:
    """The rows or columns: two source elements and the weight of the second one, in units of 1/UNIT."""

    first: Any
    second: Any
    of_second: Any

    @classmethod
    def of(cls, line: Line) -> _Axis | None:
        """Return the axis; None for weights that are not between 0 and UNIT."""
        first, second = np.asarray(line.first, np.int64), np.asarray(line.second, np.int64)
        # The sum of two weights of one element is UNIT, whatever they are.
        weights = np.where(first == second, 0, np.asarray(line.weights, np.int64))
        is_valid = np.all((weights >= 0) & (weights <= UNIT))
        return cls(first, second, weights) if is_valid else None

    @property
    def bits(self) -> int:
        """The least bits of the sum of two weights."""
        return UNIT.bit_length() - 1 - (int(np.gcd.reduce([UNIT, *self.of_second])).bit_length() - 1)

    def weights(self, bits: int) -> Sequence[Any]:
        """Return the weights of the first and the second elements, with the sum 2**`bits`."""
        of_second = (self.of_second << bits) // UNIT
        return (1 << bits) - of_second, of_second


@dataclass(frozen=True)
class _Form:
    """The function for a row of the result: (data at the upper row, numbers of the row, columns, result, counts)."""

    name: str
    definition: str
    places: int
    """The shift of the sums."""


_STATE = 12
"""The bytes of the upper row, the numbers of the row and the columns on the stack."""
_COUNTS = _STATE + 36


def _form(dtype: str, bits: int) -> _Form:
    """Return the form for weights whose products have at least some bits."""
    is_byte = dtype == "int8"
    is_packed = is_byte and bits <= 8
    is_long = not is_byte and bits > 15
    places = 8 if is_packed else 20 if is_byte or is_long else 15
    kind = "packed" if is_packed else "long" if is_long else "channels"
    lines = ["push {r4-r11, lr}", "push {r0-r2}", *([f"mov r8, #{0x00800080:#x}"] if is_packed else []), "1:"]
    # r0 and r1 at the upper row, r2 the bytes to the lower one, r4 to r7: lower left, upper left, lower, upper right.
    lines += ["ldr r9, [sp, #8]", "ldm r9!, {r0, r1, r5, r7}", "str r9, [sp, #8]", "ldrd r9, r10, [sp]"]
    lines += ["add r0, r0, r9", "add r1, r1, r9", "ldm r10, {r2, r10, r11}", f"ldr lr, [sp, #{_COUNTS + 4}]"]
    lines += ["mul r4, r5, r11", "mul r5, r5, r10", "mul r6, r7, r11", "mul r7, r7, r10"]
    lines += [] if is_packed else ["add r8, r1, r2", "add r2, r2, r0"]
    some = 1 if is_long else 4 if is_packed else 2
    corners = _OFFSETS if is_packed else _POINTERS
    if some > 1:
        group = _four() if is_packed else _channels(corners, is_byte, places, 2)
        lines += [f"subs lr, lr, #{some}", "blt 3f", "2:", *group, f"subs lr, lr, #{some}", "bge 2b"]
        lines += [f"3: adds lr, lr, #{some}", "beq 5f"]
    lines += ["4:", *(_one_long() if is_long else _channels(corners, is_byte, places, 1)), "subs lr, lr, #1", "bne 4b"]
    lines += [f"5: ldr r9, [sp, #{_COUNTS}]", "subs r9, r9, #1", f"str r9, [sp, #{_COUNTS}]", "bne 1b"]
    lines += [f"add sp, sp, #{_STATE}", "pop {r4-r11, pc}"]
    name = f"interpolate_{dtype}_{kind}"
    parameters = (f"const {dtype}_t *top", "const int32_t *row", "const int32_t *columns", f"{dtype}_t *result")
    definition = naked(name, (*parameters, "int32_t count", "int32_t depth"), lines)
    return _Form(name, definition, places)


_Corners = tuple[tuple[str, str], ...]
_OFFSETS: _Corners = (("[r0, r2]", "r4"), ("[r0], #{}", "r5"), ("[r1, r2]", "r6"), ("[r1], #{}", "r7"))
"""The addresses and the weights."""
_POINTERS: _Corners = (("[r2], #{}", "r4"), ("[r0], #{}", "r5"), ("[r8], #{}", "r6"), ("[r1], #{}", "r7"))
"""The same with an address for each corner."""


def _four() -> list[str]:
    """Return the code of four int8 channels."""
    lines = []
    for number, (address, weight) in enumerate(_OFFSETS):
        lines.append(f"ldr r11, {address.format(4)}")
        for total, turned in (("r9", ""), ("r10", ", ror #8")):
            lines.append(f"sxtab16 r12, r8, r11{turned}")
            lines.append(f"mla {total}, r12, {weight}, {total}" if number else f"mul {total}, r12, {weight}")
    for total in ("r9", "r10"):
        lines += [f"add {total}, {total}, #{0x007F007F:#x}", f"and r12, {total}, #{0x80008000:#x}"]
        lines.append(f"add {total}, {total}, r12, lsr #15")
    lines += ["uxtb16 r9, r9, ror #8", f"and r10, r10, #{0xFF00FF00:#x}", "orr r9, r9, r10"]
    return [*lines, f"eor r9, r9, #{0x80808080:#x}", "str r9, [r3], #4"]


def _channels(corners: _Corners, is_byte: bool, places: int, count: int) -> list[str]:
    """Return the code of one or two channels."""
    load, store, step = ("ldrsb", "strb", 1) if is_byte else ("ldrsh", "strh", 2)
    sums, values, lines = ("r9", "r10")[:count], ("r11", "r12")[:count], []
    for number, (address, weight) in enumerate(corners):
        lines += [f"{load} {value}, {address.format(step)}" for value in values]
        for total, value in zip(sums, values, strict=True):
            lines.append(f"mla {total}, {value}, {weight}, {total}" if number else f"mul {total}, {value}, {weight}")
    lines += [f"add {value}, {total}, #{1 << (places - 1)}" for total, value in zip(sums, values, strict=True)]
    lines += [f"add {total}, {value}, {total}, asr #31" for total, value in zip(sums, values, strict=True)]
    lines += [f"asr {total}, {total}, #{places}" for total in sums]
    return [*lines, *(f"{store} {total}, [r3], #{step}" for total in sums)]


def _one_long() -> list[str]:
    """Return the code of one int16 channel whose sum has 64 bits; 20 places."""
    lines = []
    for number, (address, weight) in enumerate(_POINTERS):
        lines += [f"ldrsh r11, {address.format(2)}", f"sm{'lal' if number else 'ull'} r9, r10, r11, {weight}"]
    # Plus the half, less 1 if the sum is negative.
    lines += [f"mov r11, #{1 << 19}", "add r11, r11, r10, asr #31", "adds r9, r9, r11", "adc r10, r10, #0"]
    return [*lines, "lsr r9, r9, #20", "orr r9, r9, r10, lsl #12", "strh r9, [r3], #2"]
