# SPDX-License-Identifier: Apache-2.0
"""Assembly for products of two matrices: tiles of 4 rows by 2 columns, which are lanes of two vectors of sums.

Rows are read where they are, with K bytes each. Columns are a stream: for each two of them vectors [step][column][lane]
and, with a bias, two int32 numbers. Rows of up to 16 bytes stay in q0 to q3 for all columns.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.ir.operations import Finish, Sums
from opwest.compiler.kernels.mve.epilogue import Assembly, add_steps
from opwest.compiler.semantics.fixed_point import RANGES, Requantisation, Rounding

ROWS, COLUMNS = 4, 2
UNROLLED = 8
"""Rows of more vectors are loops: loads have offsets up to 127."""
NUMBERS = {
    "places": 0,
    "fixed": 4,
    "zero": 5,
    "low": 6,
    "high": 7,
    "shift": 8,
    "weight": 9,
    "tiles": 10,
    "rows": 11,
    "step": 14,
    "last": 16,
}
"""The int32 numbers of a product: the places of a tile's results, the end, the weight of a sum of a row, the number of
tiles, the rows of a tile, the bytes to the next tile of the data and of the result, and to the last one."""
WORDS = 18
"""The int32 numbers of a product."""
SAVED = 48
"""Bytes of the stack: row, result, start of the columns, number of pairs, numbers, tiles left, 8 bytes, sums of
rows or the numbers of the end."""
QUAD = 32
"""The further bytes of a function for 4 columns: the sums of rows again, places."""
PUSHED = 36 + 64


@dataclass(frozen=True)
class End:
    """The end of sums with one multiplier: what the instructions depend on, and its numbers."""

    is_doubled: bool
    is_fixed: bool
    """Whether halves of negative values are rounded away from zero."""
    left: int
    right: int
    """Places of a shift to the right, at least 0."""
    fixed: int
    zero: int
    low: int
    high: int

    @property
    def is_immediate(self) -> bool:
        """Whether the shift to the right is in an instruction that narrows."""
        return 1 <= self.right <= 16

    @property
    def has_clamp(self) -> bool:
        """Whether limits are not those of int8."""
        return (self.low, self.high) != RANGES["int8"]

    @property
    def name(self) -> str:
        """The part of a function's name that stands for the instructions."""
        parts = ["twice" if self.is_doubled else "once", "sign" * self.is_fixed, "left" * (self.left > 0)]
        parts.append(f"r{self.right}" if self.is_immediate or not self.right else "right")
        parts += ["zero" * (self.zero != 0), "clamp" * self.has_clamp]
        return "_".join(part for part in parts if part)


def end_of(finish: Finish, bound: int | None) -> End | None:
    """Return the end of int8 sums of a magnitude up to `bound` (None: any); None: several multipliers, float scales."""
    if not isinstance(finish, Requantisation) or finish.rounding not in (Rounding.TWICE, Rounding.ONCE):
        return None
    if len(set(finish.multipliers)) != 1:
        return None
    given, is_doubled = finish.multipliers[0], finish.rounding is Rounding.TWICE
    shift = given.shift if given.fixed else -1
    # One rounding: VQDMULH gives sum * fixed >> 31, of which at least one place to the right is rounded.
    left = max(shift, 0) if is_doubled else max(shift + 1, 0)
    if left and not is_doubled and (bound is None or bound << left >= 1 << 31):
        return None
    right = left - shift
    is_fixed = is_doubled and right > 0 and finish.low < finish.zero
    return End(is_doubled, is_fixed, left, right, given.fixed, finish.zero, finish.low, finish.high)


@dataclass(frozen=True)
class Product:
    """A product of rows [m,k] and columns [n,k] of int8."""

    rows: int
    length: int
    columns: int
    end: End | None
    """None: int32 results."""
    has_bias: bool
    """Whether a number of each column is added to its sums."""
    weight: int
    """The weight of the sum of a row, which is added to its sums."""
    pitch: int
    """The bytes from one row of the data to the next."""

    @property
    def steps(self) -> int:
        """The vectors of a row."""
        return -(-self.length // 16)

    @property
    def is_quad(self) -> bool:
        """Whether 4 columns are written together: with places of a byte."""
        return self.steps == 1 and self.end is not None and self.columns % 4 == 0 and 3 * self.columns + 3 <= 0xFF

    @property
    def pair(self) -> int:
        """The bytes of two columns in the stream."""
        return COLUMNS * (16 * self.steps + 4 * self.has_bias)

    @property
    def numbers(self) -> Any:
        """The array of NUMBERS."""
        item = 4 if self.end is None else 1
        at = [min(row, self.rows - 1) * self.columns for row in range(ROWS)]
        places: Any
        if self.end is None:
            places = np.asarray(at, np.int32) * item
        elif self.is_quad:
            # The results of the first two columns are the even bytes.
            places = np.asarray([[first + column for column in (0, 2, 1, 3)] for first in at], np.uint8).reshape(-1)
        else:
            # A single column is both columns of a tile.
            places = [[first, first + min(1, self.columns - 1)] for first in at]
            places = np.asarray(places, np.uint16).reshape(-1)
        tiles = -(-self.rows // ROWS)
        last = self.rows - ROWS * (tiles - 1) if tiles > 1 else 0
        end = self.end or End(False, False, 0, 0, 0, 0, 0, 0)
        shift = end.left or -end.right
        words = [end.fixed, end.zero, end.low, end.high, shift, self.weight, tiles]
        words += [min(row, self.rows - 1) * self.pitch for row in range(1, ROWS)]
        for some in (ROWS, last):
            words += [some * self.pitch, some * self.columns * item]
        return np.concatenate([places.view(np.int32), np.asarray(words, np.int32)])

    def function(self) -> tuple[str, str]:
        """Return the name and the definition of void f(rows, columns, numbers, result, pairs)."""
        end = "sums" if self.end is None else self.end.name
        single = self.end is None and self.columns == 1
        words = ["bias" * self.has_bias, "weight" * (self.weight != 0), "single" * single, "quad" * self.is_quad]
        name = "_".join(["mve_product", str(self.length), end, *(word for word in words if word)])
        saved = SAVED + QUAD * self.is_quad
        code = Assembly()
        code.add("push {r4-r11, lr}", "vpush {d8-d15}", f"sub sp, #{saved}", "strd r0, r3, [sp]", "str r1, [sp, #8]")
        code.add(f"ldr r4, [sp, #{saved + PUSHED}]", "strd r4, r2, [sp, #12]")
        code.add(f"ldr r4, [r2, #{4 * NUMBERS['tiles']}]", "str r4, [sp, #20]", "vldrw.32 q7, [r2]")
        rest = self.length % 16
        if rest:
            code.add(f"movs r0, #{rest}", "vctp.8 r0")
        if self.steps == 1:
            self._short(code)
        else:
            self._long(code)
        self._next_tile(code)
        code.add("4:", f"add sp, #{saved}", "vpop {d8-d15}", "pop {r4-r11, pc}")
        kind = "int32_t" if self.end is None else "int8_t"
        parameters = ["const int8_t *rows", "const int32_t *columns", "const int32_t *numbers", f"{kind} *result"]
        return name, code.function(name, [*parameters, "int pairs"], f"Rows of {self.length} bytes times columns.")

    def _next_tile(self, code: Assembly) -> None:
        """Append the way to the next tile; the last one has 4 rows as well."""
        step, last = (4 * NUMBERS[name] for name in ("step", "last"))
        code.add("ldrd r5, r0, [sp, #16]", "subs r0, #1", "beq 4f", "str r0, [sp, #20]", f"ldrd r2, r4, [r5, #{step}]")
        code.add("cmp r0, #1", "it eq", f"ldrdeq r2, r4, [r5, #{last}]", "ldrd r6, r8, [sp]", "add r6, r2")
        code.add("add r8, r4", "strd r6, r8, [sp]", "b 2b")

    def _row_addresses(self, code: Assembly, registers: tuple[str, str, str, str]) -> None:
        """Append the addresses of 4 rows; r5 is the numbers, `registers` are those of the rows."""
        first, *others = registers
        code.add(f"ldr {first}, [sp]", "ldr r5, [sp, #16]")
        for number, register in enumerate(others):
            code.add(f"ldr {register}, [r5, #{4 * (NUMBERS['rows'] + number)}]", f"add {register}, {first}")

    def _weighted(self, code: Assembly, vector: str) -> None:
        """Append the product of the sums of 4 rows in r0, r2, r4, r6 with their weight."""
        code.add(f"vmov {vector}[2], {vector}[0], r0, r4", f"vmov {vector}[3], {vector}[1], r2, r6")
        code.add(f"ldr r0, [r5, #{4 * NUMBERS['weight']}]", f"vmul.i32 {vector}, {vector}, r0")

    def _end_of_columns(self, code: Assembly, register: str) -> None:
        """Append the address after the last pair of columns; r1 is that of the first one, r5 is overwritten."""
        code.constant("r5", self.pair)
        code.add(f"ldr {register}, [sp, #12]", f"mla {register}, {register}, r5, r1")

    def _short(self, code: Assembly) -> None:
        """Append a tile of rows in one vector each."""
        end = self.end
        if self.is_quad:
            # The limits are on the stack.
            self._end_of_columns(code, "r9")
            code.add("vstrw.32 q7, [sp, #64]")
        if end is not None:
            code.add(f"ldrd r1, r3, [r2, #{4 * NUMBERS['fixed']}]")
            if end.has_clamp:
                code.add(f"ldrd r10, r8, [r2, #{4 * NUMBERS['low']}]")
                code.add("strd r10, r8, [sp, #24]" if self.is_quad else "mov r9, r8")
        if self.weight:
            code.add("add r7, sp, #32")
        code.add("2:")
        rows = ("r0", "r4", "r6", "r8")
        self._row_addresses(code, rows)
        rest = self.length % 16
        kind = "vldrbt.u8" if rest else "vldrb.8"
        code.add(*(["vpstttt"] if rest else []), *(f"{kind} q{n}, [{row}]" for n, row in enumerate(rows)))
        if self.weight:
            code.add(*(f"vaddv.s8 r{2 * number}, q{number}" for number in range(ROWS)))
            self._weighted(code, "q4")
            code.add("vstrw.32 q4, [r7]", *(["vstrw.32 q4, [r7, #16]"] if self.is_quad else []))
        code.add("ldr r5, [sp, #8]", "ldr r11, [sp, #4]")
        if self.is_quad:
            code.add("3:")
            self._four_columns(code)
            code.add("cmp r5, r9", "bne 3b")
            return
        code.add("ldr r0, [sp, #12]", "dls lr, r0", "3:")
        # The sums of the products start with those of rows.
        starts, multiply = (["ldm r7, {r0, r2, r4, r6}"], "vmladava.s8") if self.weight else ([], "vmladav.s8")
        for vector in ("q5", "q6"):
            code.add(*starts, "vldrw.32 q4, [r5], #16")
            code.add(*(f"{multiply} r{2 * row}, q{row}, q4" for row in range(ROWS)))
            code.add(f"vmov {vector}[2], {vector}[0], r0, r4", f"vmov {vector}[3], {vector}[1], r2, r6")
        self._start(code, ("q5", "q6"), "")
        if end is None:
            self._sums(code, ("q5", "q6"))
        else:
            self._scale(code, end, ("q5", "q6"), "q4", "r1")
            if end.zero:
                code.add("vqadd.s16 q5, q5, r3")
            self._limit(code, end, "q5", "q4", ("r10", "r9"))
            code.add("vstrb.16 q5, [r11, q7]", "adds r11, #2")
        code.add("le lr, 3b")

    def _four_columns(self, code: Assembly) -> None:
        """Append the results of 4 columns: the first two are the even bytes of a vector, the others the odd ones."""
        assert self.end is not None
        sums = ("r0", "r2", "r4", "r6", "r8", "r10", "r12", "lr")
        # The sums of the products start with those of rows.
        starts = [f"ldm r7, {{{', '.join(sums)}}}"] if self.weight else []
        for vectors, free in ((("q5", "q6"), "q4"), (("q6", "q4"), "q7")):
            code.add(*starts)
            for column in range(COLUMNS):
                code.add("vldrw.32 q4, [r5], #16")
                for row in range(ROWS):
                    code.add(f"vmladav{'a' if starts else ''}.s8 {sums[ROWS * column + row]}, q{row}, q4")
            for column, vector in enumerate(vectors):
                one, two, three, four = sums[ROWS * column : ROWS * (column + 1)]
                code.add(
                    f"vmov {vector}[2], {vector}[0], {one}, {three}", f"vmov {vector}[3], {vector}[1], {two}, {four}"
                )
            self._start(code, vectors, "")
            self._scale(code, self.end, vectors, free, "r1")
            if self.end.zero:
                code.add(f"vqadd.s16 {vectors[0]}, {vectors[0]}, r3")
        code.add("vqmovnb.s16 q5, q5", "vqmovnt.s16 q5, q6")
        if self.end.has_clamp:
            code.add(
                "ldrd r0, r2, [sp, #24]", "vdup.8 q6, r0", "vmax.s8 q5, q5, q6", "vdup.8 q6, r2", "vmin.s8 q5, q5, q6"
            )
        if self.end.is_fixed:
            # The places had the register of the fourth free vector.
            code.add("vldrw.32 q7, [sp, #64]")
        code.add("vstrb.8 q5, [r11, q7]", "adds r11, #4")

    def _long(self, code: Assembly) -> None:
        """Append a tile of rows of several vectors: r1, r3, r7 and r9 point to them, r11 to the result."""
        rows, end = ("r1", "r3", "r7", "r9"), self.end
        whole, rest = divmod(self.length, 16)
        is_loop = self.steps > UNROLLED
        self._end_of_columns(code, "r0")
        code.add("str r0, [sp, #24]")
        if end is not None:
            # The numbers of the end, which are read for each pair.
            code.add(f"vldrw.32 q0, [r2, #{4 * NUMBERS['fixed']}]", "vstrw.32 q0, [sp, #32]")
        code.add("2:")
        self._row_addresses(code, rows)
        if self.weight:
            self._row_sums(code, rows)
        code.add("ldrd r11, r5, [sp, #4]", "3:")
        if is_loop:
            code.add("str r11, [sp, #28]")
            add_steps(code, whole, range(2, 7), 14, partial(self._step, code, [f"[{row}], #16" for row in rows]))
        else:
            for step in range(whole):
                self._step(code, [f"[{row}, #{16 * step}]" for row in rows], step == 0)
        if rest:
            at = "" if is_loop else f", #{16 * whole}"
            self._step(code, [f"[{row}{at}]" for row in rows], False, is_last=True)
        code.add("vmov q4[2], q4[0], r0, r4", "vmov q4[3], q4[1], r2, r6")
        code.add("vmov q5[2], q5[0], r8, r12", "vmov q5[3], q5[1], r10, lr")
        if is_loop:
            code.add("ldr r11, [sp, #28]")
            for row in rows:
                code.plus(row, -16 * whole)
        self._start(code, ("q4", "q5"), "q6" if self.weight else "")
        if end is None:
            self._sums(code, ("q4", "q5"))
        else:
            code.add("ldrd r2, r4, [sp, #32]", *(["ldrd r6, r8, [sp, #40]"] if end.has_clamp else []))
            self._scale(code, end, ("q4", "q5"), "q0", "r2")
            if end.zero:
                code.add("vqadd.s16 q4, q4, r4")
            self._limit(code, end, "q4", "q0", ("r6", "r8"))
            code.add("vstrb.16 q4, [r11, q7]", "adds r11, #2")
        code.add("ldr r0, [sp, #24]", "cmp r5, r0", "bne 3b")

    def _row_sums(self, code: Assembly, rows: tuple[str, ...]) -> None:
        """Append the sums of 4 rows times their weight, as q6."""
        whole, rest = divmod(self.length, 16)
        is_loop = self.steps > UNROLLED
        if is_loop:
            code.add(*(f"movs r{2 * number}, #0" for number in range(ROWS)))
            code.constant("r8", whole)
            code.add("dls lr, r8", "5:", *(f"vldrb.8 q{number}, [{row}], #16" for number, row in enumerate(rows)))
            code.add(*(f"vaddva.s8 r{2 * number}, q{number}" for number in range(ROWS)), "le lr, 5b")
        else:
            for step in range(whole):
                code.add(*(f"vldrb.8 q{number}, [{row}, #{16 * step}]" for number, row in enumerate(rows)))
                add = "vaddva" if step else "vaddv"
                code.add(*(f"{add}.s8 r{2 * number}, q{number}" for number in range(ROWS)))
        if rest:
            at = 0 if is_loop else 16 * whole
            code.add("vpstttt", *(f"vldrbt.u8 q{number}, [{row}, #{at}]" for number, row in enumerate(rows)))
            code.add(*(f"vaddva.s8 r{2 * number}, q{number}" for number in range(ROWS)))
        for row in rows if is_loop else ():
            code.plus(row, -16 * whole, "r8")
        self._weighted(code, "q6")

    def _step(self, code: Assembly, loads: list[str], is_first: bool, *, is_last: bool = False) -> None:
        """Append 16 products of each sum; `is_last`: vectors of the rest of a row."""
        name = f"vmladav{'' if is_first else 'a'}.s8"
        code.add("vldrw.32 q2, [r5], #16", "vldrw.32 q3, [r5], #16")
        kind = "vldrbt.u8" if is_last else "vldrb.8"
        for row, load in enumerate(loads):
            vector = f"q{row % 2}"
            code.add(*(["vpst"] if is_last else []), f"{kind} {vector}, {load}", f"{name} r{2 * row}, {vector}, q2")
            code.add(f"{name} {'lr' if row == 3 else f'r{8 + 2 * row}'}, {vector}, q3")

    def _start(self, code: Assembly, vectors: tuple[str, str], weighted: str) -> None:
        """Append the numbers of columns and rows to sums."""
        if self.has_bias:
            code.add("ldrd r0, r2, [r5], #8", f"vadd.i32 {vectors[0]}, {vectors[0]}, r0")
            code.add(f"vadd.i32 {vectors[1]}, {vectors[1]}, r2")
        if weighted:
            code.add(*(f"vadd.i32 {vector}, {vector}, {weighted}" for vector in vectors))

    def _sums(self, code: Assembly, vectors: tuple[str, str]) -> None:
        """Append the stores of int32 results."""
        code.add(f"vstrw.32 {vectors[0]}, [r11, q7]", "adds r11, #4")
        if self.columns > 1:
            code.add(f"vstrw.32 {vectors[1]}, [r11, q7]", "adds r11, #4")

    def _scale(self, code: Assembly, end: End, vectors: tuple[str, str], free: str, fixed: str) -> None:
        """Append instructions from sums to rounded int16 values, those of both columns in the first vector.

        r0 is overwritten.
        """
        if end.left or (end.right and not end.is_immediate):
            code.add("ldr r0, [sp, #16]", f"ldr r0, [r0, #{4 * NUMBERS['shift']}]")
        for place, vector in enumerate(vectors):
            if end.left:
                code.add(f"vshl.s32 {vector}, r0")
            source = free if end.is_fixed else vector
            if end.is_fixed:
                # A negative sum less 1 after the multiplication: halves are rounded down.
                code.add(f"vshr.s32 {free}, {vector}, #31", f"vqrdmlah.s32 {free}, {vector}, {fixed}")
            else:
                multiply = "vqrdmulh" if end.is_doubled else "vqdmulh"
                code.add(f"{multiply}.s32 {vector}, {vector}, {fixed}")
            half = "bt"[place]
            if end.is_immediate:
                code.add(f"vqrshrn{half}.s32 {vectors[0]}, {source}, #{end.right}")
                continue
            if end.right:
                code.add(f"vrshl.s32 {source}, r0")
            code.add(f"vqmovn{half}.s32 {vectors[0]}, {source}")

    def _limit(self, code: Assembly, end: End, vector: str, free: str, limits: tuple[str, str]) -> None:
        """Append the limits of int16 values."""
        if not end.has_clamp:
            code.add(f"vqmovnb.s16 {vector}, {vector}")
            return
        code.add(f"vdup.16 {free}, {limits[0]}", f"vmax.s16 {vector}, {vector}, {free}")
        code.add(f"vdup.16 {free}, {limits[1]}", f"vmin.s16 {vector}, {vector}, {free}")


def product_of(
    sizes: tuple[int, int, int], zeros: tuple[int, int], finish: Finish, bias: bool, bound: int | None, pitch: int
) -> Product | None:
    """Return the product of `sizes` m, k, n with rows of `pitch` bytes; None: an end of another form, a large result.

    `bias`: whether columns have one; `bound`: the greatest magnitude of sums, None for any.
    """
    rows, length, columns = sizes
    end = None
    if not isinstance(finish, Sums):
        end = end_of(finish, bound)
        if end is None or 3 * columns + 1 > 0xFFFF:
            return None
    # (a - za) (b - zb): the sums of columns are weighted by -za, which their numbers contain, those of rows by -zb.
    return Product(rows, length, columns, end, bias or zeros[0] != 0, -zeros[1], pitch)
