# SPDX-License-Identifier: Apache-2.0
"""Sums and products of quantised values of equal shapes: 4 at a time, in a loop whose last turn is predicated.

Every number of the layer has a register, which no compiler would leave to it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.emission.depthwise import pool_windows
from opwest.compiler.emission.function import Call, Lines, c_type, call_for, emits
from opwest.compiler.ir.elements import AddQuantised, Product
from opwest.compiler.ir.operations import Elementwise, Pool
from opwest.compiler.kernels.assembly import NAKED
from opwest.compiler.kernels.mve.epilogue import Assembly
from opwest.compiler.kernels.mve.pairs import ITEMS
from opwest.compiler.semantics.fixed_point import Multiplier

REGISTERS = ("r4", "r5", "r6", "r7", "r8", "r9", "r10", "r11", "r12", "r2")
"""For the numbers; r2 points to them until the last one is loaded."""


@emits(Elementwise, "mve-words")
def render_elements(operation: Elementwise) -> Call | None:
    """Return the call; None for other functions and dtypes, and for operands that are repeated."""
    function, [result] = operation.function, operation.results
    if not isinstance(function, AddQuantised | Product) or result.dtype not in ITEMS:
        return None
    if any(value.size != result.size or value.dtype != result.dtype for value in operation.inputs):
        return None
    loop = loop_of(function, result.dtype)
    lines = Lines()
    lines.add(f"{loop.name}(a, b, numbers, result, {result.size});")
    a, b = operation.inputs
    arguments = {"a": a, "b": b, "numbers": loop.numbers}
    return call_for(operation, loop.base, lines, arguments, ("a", "b"), definitions=(NAKED, loop.text))


@dataclass(frozen=True, eq=False)
class Loop:
    """The C function void f(a, b, numbers, result, count) and its numbers."""

    base: str
    name: str
    text: str
    numbers: Any


def loop_of(function: AddQuantised | Product, dtype: str) -> Loop:
    """Return the loop over the elements of two arrays."""
    given, turn = function.numbers, _Turn(dtype == "int8")
    if isinstance(function, AddQuantised):
        base = "subtract" if function.subtract else "add"
        scalings = [*function.numbers.multipliers, function.numbers.result]
        turn.sum(function)
    else:
        base = "multiply"
        scalings = [function.numbers.multiplier]
        turn.product(function)
    kinds = ("same", "left", "right")
    words = [kinds[(scaling.shift > 0) - (scaling.shift < 0)] for scaling in scalings]
    words += ["positive"] if given.low >= given.zero else []
    name = "_".join([f"mve_{base}{8 * ITEMS[dtype]}", *words])
    numbers = np.asarray([given.low, given.high, *turn.numbers], np.int32)
    return Loop(base, name, turn.function(name, c_type(dtype)), numbers)


class _Turn:
    """The instructions for 4 values in q0 and q1, and the numbers in their order."""

    def __init__(self, is_byte: bool) -> None:
        self.is_byte = is_byte
        self.numbers: list[int] = []
        self.code = Assembly()

    def number(self, value: int) -> str:
        """Return the register of a new number."""
        self.numbers.append(value)
        return REGISTERS[len(self.numbers) - 1]

    def scale(self, q: str, by: Multiplier, is_positive: bool = False) -> None:
        """Append a multiplication that rounds twice; `is_positive`: results of negative values are clamped later."""
        if by.shift > 0:
            self.code.add(f"vshl.s32 {q}, {self.number(by.shift)}")
        self.code.add(f"vqrdmulh.s32 {q}, {q}, {self.number(by.fixed)}")
        if by.shift < 0:
            if not is_positive:
                self.code.add(f"vshr.s32 q2, {q}, #31", f"vadd.i32 {q}, {q}, q2")
            self.code.add(f"vrshl.s32 {q}, {self.number(by.shift)}")

    def sum(self, function: AddQuantised) -> None:
        """Append a sum or a difference."""
        given = function.numbers
        for q, zero, by in zip(("q0", "q1"), given.zeros, given.multipliers, strict=True):
            self.code.add(f"vshl.i32 {q}, {q}, #{given.left_shift}")
            self.code.add(f"vadd.i32 {q}, {q}, {self.number(-zero * (1 << given.left_shift))}")
            self.scale(q, by)
        self.code.add(f"{'vsub' if function.subtract else 'vadd'}.i32 q0, q0, q1")
        self.scale("q0", given.result, given.low >= given.zero)
        self.code.add(f"vadd.i32 q0, q0, {self.number(given.zero)}")

    def product(self, function: Product) -> None:
        """Append a product."""
        given = function.numbers
        for q, zero in zip(("q0", "q1"), given.zeros, strict=True):
            self.code.add(f"vsub.i32 {q}, {q}, {self.number(zero)}")
        self.code.add("vmul.i32 q0, q0, q1")
        self.scale("q0", given.multiplier, given.low >= given.zero)
        self.code.add(f"vadd.i32 q0, q0, {self.number(given.zero)}")

    def function(self, name: str, kind: str) -> str:
        """Return the definition of void f(a, b, numbers, result, count)."""
        letter, moved = ("b", 4) if self.is_byte else ("h", 8)
        code = Assembly()
        code.add("push {r4-r11, lr}", "ldr lr, [sp, #36]", "ldrd r4, r5, [r2]", "vdup.32 q3, r5", "vpush {d8-d9}")
        code.add("vdup.32 q4, r4")
        used = REGISTERS[: len(self.numbers)]
        code.add(*(f"ldr {register}, [r2, #{8 + 4 * place}]" for place, register in enumerate(used)))
        code.add("dlstp.32 lr, lr", "2:")
        code.add(f"vldr{letter}.s32 q0, [r0], #{moved}", f"vldr{letter}.s32 q1, [r1], #{moved}", *self.code.lines)
        code.add("vmax.s32 q0, q0, q4", "vmin.s32 q0, q0, q3", f"vstr{letter}.32 q0, [r3], #{moved}", "letp lr, 2b")
        code.add("vpop {d8-d9}", "pop {r4-r11, pc}")
        parameters = [f"const {kind} *a", f"const {kind} *b", "const int32_t *numbers", f"{kind} *result", "int count"]
        return code.function(name, parameters, "Values of two arrays, 4 at a time.")


MAX_ELEMENTS = 255
"""The elements of a window whose sum, plus half of their number, has 16 bits."""
# With inverse = ceil(2**31 / count) and n = |sum| + count / 2 < 2**15, 2 * n * inverse >> 32 is n // count: the
# error of the inverse is below 1, that of the quotient below n / 2**31, less than the 1 / count to the next integer.
QUOTIENT = """\
/* Half of 8 numbers below 2**15, times `inverse` / 2**32: the quotient by a count of at most 255. */
static inline int16x8_t mve_mean(int16x8_t sums, int16_t half, uint32_t inverse)
{
	const uint16x8_t sizes = vaddq_n_u16(vreinterpretq_u16_s16(vabsq_s16(sums)), (uint16_t)half);
	const uint32x4_t by = vdupq_n_u32(inverse);
	const uint32x4_t even = vmulhq_u32(vshlq_n_u32(vmovlbq_u16(sizes), 1), by);
	const uint32x4_t odd = vmulhq_u32(vshlq_n_u32(vmovltq_u16(sizes), 1), by);
	const uint16x8_t both = vmovntq_u32(vmovnbq_u32(vdupq_n_u16(0), even), odd);
	const int16x8_t means = vreinterpretq_s16_u16(both);

	return vnegq_m_s16(means, means, vcmpltq_n_s16(sums, 0));
}
"""


@emits(Pool, "mve-lanes", has_pitch=True)
def render_pool(operation: Pool) -> Call | None:
    """Return the call; None for other dtypes and kinds, and for large windows."""
    data, window = operation.inputs[0], operation.window
    is_average = operation.kind == "average"
    if data.dtype != "int8" or operation.kind not in ("average", "maximum"):
        return None
    if (is_average and window.size[0] * window.size[1] > MAX_ELEMENTS) or window.dilation != (1, 1):
        return None
    depth = data.shape[3]
    lines, lanes = Lines(), 8 if is_average else 16
    with pool_windows(lines, operation):
        if is_average:
            lines.add("const uint32_t count = (uint32_t)((y1 - y0) * (x1 - x0));")
            lines.add("const uint32_t inverse = (UINT32_C(0x7fffffff) + count) / count;")
        lines.add("")
        with lines.block(f"for (int c = 0; c < {depth}; c += {lanes})"):
            _group(lines, operation, is_average)
    definitions = (QUOTIENT,) if is_average else ()
    base = f"{operation.kind}_pool"
    return call_for(operation, base, lines, {"data": data}, headers=("arm_mve.h",), definitions=definitions)


def _group(lines: Lines, operation: Pool, is_average: bool) -> None:
    """Append some channels of a result."""
    _, _, width, depth = operation.inputs[0].shape
    lanes, kind = (8, "s16") if is_average else (16, "s8")
    vector = "int16x8_t" if is_average else "int8x16_t"
    lines.add(f"const mve_pred16_t some = vctp{128 // lanes}q((uint32_t)({depth} - c));")
    lines.add("const int8_t *row = from + c;", f"{vector} value = vdupq_n_{kind}({0 if is_average else -128});", "")
    with lines.block(f"for (int iy = y0; iy < y1; iy++, row += {width * depth})"):
        lines.add("const int8_t *p = row;", "")
        with lines.block(f"for (int ix = x0; ix < x1; ix++, p += {depth})"):
            update = "vaddq_s16" if is_average else "vmaxq_s8"
            lines.add(f"value = {update}(value, vldrbq_z_{kind}(p, some));")
    if is_average:
        lines.add("value = mve_mean(value, (int16_t)(count / 2), inverse);")
    low, high = operation.low, operation.high
    if (low, high) not in ((None, None), (-128, 127)):
        lines.add(f"value = vminq_{kind}(vmaxq_{kind}(value, vdupq_n_{kind}({low})), vdupq_n_{kind}({high}));")
    lines.add(f"vstrbq_p_{kind}(y, value, some);")
    lines.add(f"y += c + {lanes} < {depth} ? {lanes} : {depth} - c;")
