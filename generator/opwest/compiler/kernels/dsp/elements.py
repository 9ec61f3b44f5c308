# SPDX-License-Identifier: Apache-2.0
"""int8 sums, differences and products of tensors with equal shapes.

The scaled value of an operand of a sum is a table of 256 words; that of the operand with the larger scale is a shift.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.emission.depthwise import bounds, one_channel, skip
from opwest.compiler.emission.function import Call, Function, Lines, Parameter, emits
from opwest.compiler.ir.elements import AddQuantised, Product
from opwest.compiler.ir.operations import Elementwise, Pool
from opwest.compiler.kernels.assembly import naked
from opwest.compiler.kernels.dsp.intrinsics import GREATER_BYTES, LOAD_WORD, SUMS_OF_BYTES
from opwest.compiler.kernels.dsp.layers import shifts_of
from opwest.compiler.kernels.dsp.tiles import Epilogue, epilogue_of, results
from opwest.compiler.kernels.scaling import Scaling, scaling_of
from opwest.compiler.semantics.fixed_point import Multiplier, Requantisation, Rounding, scaled

HALF = Multiplier(1 << 30, 0)
"""The multiplier of the operand with the larger scale."""
UNROLLED = 4


@emits(Elementwise, "dsp-elements")
def render_elements(operation: Elementwise) -> Call | None:
    """Return the call; None for other functions, dtypes and shapes."""
    result, function = operation.results[0], operation.function
    if len(operation.inputs) != 2 or {one.dtype for one in (*operation.inputs, result)} != {"int8"}:
        return None
    if any(one.shape != result.shape for one in operation.inputs):
        return None
    if isinstance(function, AddQuantised):
        return _sum(operation, function)
    return _product(operation, function) if isinstance(function, Product) else None


def _sum(operation: Elementwise, function: AddQuantised) -> Call | None:
    found = sum_of(function)
    if found is None:
        return None
    return _call(operation, "add", found)


@dataclass(frozen=True, eq=False)
class Loop:
    """A loop over elements: the C function (a, b, constants, result, groups of four elements, other elements)."""

    name: str
    definition: str
    constants: Any


def sum_of(function: AddQuantised) -> Loop | None:
    """Return the loop of an int8 sum; None if its numbers do not fit."""
    given = function.numbers
    signs = (1, -1 if function.subtract else 1)
    codes = np.arange(-128, 128)
    values = [
        sign * scaled((codes - zero) << given.left_shift, by.fixed, by.shift, Rounding.TWICE)
        for sign, zero, by in zip(signs, given.zeros, given.multipliers, strict=True)
    ]
    most = sum(int(np.abs(value).max()) for value in values)
    scaling = scaling_of(Requantisation((given.result,), Rounding.TWICE, given.zero, given.low, given.high), [most])
    if scaling is None or epilogue_of(scaling).is_mixed:
        return None
    shifted = next((i for i, by in enumerate(given.multipliers) if by == HALF and signs[i] == 1), None)
    kinds: list[int | None] = [None, None]
    doubled = [2 * value for value in values]
    if shifted is not None:
        # 2 * ((a - zero) << left_shift) / 2: the part of the zero point is in the other table.
        kinds[shifted] = given.left_shift
        doubled[1 - shifted] = doubled[1 - shifted] - (given.zeros[shifted] << given.left_shift)
    tables = [table.astype(np.int32) for table, kind in zip(doubled, kinds, strict=True) if kind is None]
    loop = _Sums(kinds[0], kinds[1], epilogue_of(scaling))
    return Loop(loop.name, loop.definition(), np.concatenate([*tables, _ends(scaling)]))


def _product(operation: Elementwise, function: Product) -> Call | None:
    given = function.numbers
    most = max(abs(limit - given.zeros[0]) for limit in (-128, 127)) * max(
        abs(limit - given.zeros[1]) for limit in (-128, 127)
    )
    scaling = scaling_of(Requantisation((given.multiplier,), Rounding.TWICE, given.zero, given.low, given.high), [most])
    if scaling is None or epilogue_of(scaling).is_mixed:
        return None
    loop = _Products(epilogue_of(scaling))
    zeros = np.asarray([-2 * given.zeros[0], -given.zeros[1]], np.int32)
    return _call(operation, "multiply", Loop(loop.name, loop.definition(), np.concatenate([zeros, _ends(scaling)])))


def _ends(scaling: Scaling) -> Any:
    """Return multiplier, addend and shift of a scaling of one channel."""
    ends = np.concatenate([scaling.multipliers, scaling.addends, shifts_of(scaling)]).astype(np.int64) & 0xFFFFFFFF
    return ends.astype(np.uint32).view(np.int32)


def _call(operation: Elementwise, base: str, loop: Loop) -> Call:
    size = operation.results[0].size
    lines = Lines()
    lines.add(f"{loop.name}(a, b, constants, result, {size // UNROLLED}, {size % UNROLLED});")
    parameters = (
        Parameter("a", "int8"),
        Parameter("b", "int8"),
        Parameter("constants", "int32"),
        Parameter("result", "int8", "out", ("a", "b")),
    )
    function = Function(base, parameters, str(lines), definitions=(loop.definition,))
    return Call(function, (*operation.inputs, loop.constants, operation.results[0]), operation.label)


_PARAMETERS = ("const int8_t *a", "const int8_t *b", "const int32_t *constants", "int8_t *result")
_COUNTS = ("int32_t turns", "int32_t rest")
_NUMBERS = ("r4", "r5", "r6")
_FRAME = 36


class _Loop(ABC):
    """A loop over elements.

    r0 a, r1 b, r2 constants, r3 result, r4 to r6 multiplier, addend and shift; r7 to r12 and lr are free.
    """

    ending: Epilogue

    @abstractmethod
    def _start(self) -> Iterator[str]:
        """Yield the instructions before the loop."""

    @abstractmethod
    def _values(self, pairs: list[tuple[str, str]]) -> Iterator[str]:
        """Yield the doubled values of pairs of registers with operands, in the first of each."""

    def _lines(self) -> Iterator[str]:
        yield "push {r4-r11, lr}"
        yield from self._start()
        yield f"ldr lr, [sp, #{_FRAME}]"
        yield "cmp lr, #0"
        yield "beq 2f"
        yield "1:"
        for _ in range(UNROLLED // 2):
            yield from self._elements(2)
        yield "subs lr, lr, #1"
        yield "bne 1b"
        yield f"2: ldr lr, [sp, #{_FRAME + 4}]"
        yield "cmp lr, #0"
        yield "beq 4f"
        yield "3:"
        yield from self._elements(1)
        yield "subs lr, lr, #1"
        yield "bne 3b"
        yield "4: pop {r4-r11, pc}"

    def _elements(self, count: int) -> Iterator[str]:
        pairs = [("r7", "r8"), ("r9", "r10")][:count]
        for one, other in pairs:
            yield f"ldrsb {one}, [r0], #1"
            yield f"ldrsb {other}, [r1], #1"
        yield from self._values(pairs)
        sums = [one for one, _ in pairs]
        yield from results(sums, self.ending, _NUMBERS)
        yield from (f"strb {one}, [r3], #1" for one in sums)


class _Sums(_Loop):
    """Sums: an operand is shifted, or an index of a table."""

    def __init__(self, first: int | None, second: int | None, ending: Epilogue) -> None:
        self.shifts, self.ending = (first, second), ending
        kinds = "_".join("table" if shift is None else f"shift{shift}" for shift in self.shifts)
        self.name = f"sum_{kinds}_{ending.name}"

    def definition(self) -> str:
        """Return the C function (a, b, constants, result, groups of four elements, other elements)."""
        return naked("void", self.name, (*_PARAMETERS, *_COUNTS), self._lines())

    def _start(self) -> Iterator[str]:
        size = 1024 * self.shifts.count(None)
        yield f"add r7, r2, #{size}"
        yield "ldm r7, {r4-r6}"
        yield "add r2, r2, #512"
        if size == 2048:
            yield "add r11, r2, #1024"

    def _values(self, pairs: list[tuple[str, str]]) -> Iterator[str]:
        tables = iter(("r2", "r11"))
        for place, shift in enumerate(self.shifts):
            if shift is None:
                table = next(tables)
                for pair in pairs:
                    yield f"ldr {pair[place]}, [{table}, {pair[place]}, lsl #2]"
        for one, other in pairs:
            if self.shifts[0] is not None:
                yield f"add {one}, {other}, {one}, lsl #{self.shifts[0]}"
            elif self.shifts[1] is not None:
                yield f"add {one}, {one}, {other}, lsl #{self.shifts[1]}"
            else:
                yield f"add {one}, {one}, {other}"


class _Products(_Loop):
    """Products: the constants are -2 * the first zero point and - the second one."""

    def __init__(self, ending: Epilogue) -> None:
        self.ending = ending
        self.name = f"product_{ending.name}"

    def definition(self) -> str:
        """Return the C function (a, b, constants, result, groups of four elements, other elements)."""
        return naked("void", self.name, (*_PARAMETERS, *_COUNTS), self._lines())

    def _start(self) -> Iterator[str]:
        yield "ldrd r11, r12, [r2], #8"
        yield "ldm r2, {r4-r6}"

    def _values(self, pairs: list[tuple[str, str]]) -> Iterator[str]:
        for one, other in pairs:
            yield f"add {one}, r11, {one}, lsl #1"
            yield f"add {other}, r12, {other}"
            yield f"mul {one}, {one}, {other}"


MAX_ELEMENTS = 255
"""The elements of a window whose sums fit in 16 bits."""


@emits(Pool, "dsp-pool", has_pitch=True)
def render_pool(operation: Pool) -> Call | None:
    """Return the call; None for other dtypes, few channels, dilations and large windows of averages."""
    data, result, window = operation.inputs[0], operation.results[0], operation.window
    n, height, width, depth = data.shape
    is_average = operation.kind == "average"
    if data.dtype != "int8" or depth < 4 or window.dilation != (1, 1) or operation.kind not in ("average", "maximum"):
        return None
    size = min(window.size[0], height) * min(window.size[1], width)
    if is_average and size > MAX_ELEMENTS:
        return None
    lines = Lines()
    lines.add("int8_t *y = result;", "")
    images = lines.loop("n", n) if n > 1 else nullcontext()
    with images, lines.loop("oy", window.result[0]), lines.loop("ox", window.result[1]):
        bounds(lines, operation)
        if is_average:
            lines.add("const int count = (y1 - y0) * (x1 - x0);")
        image = f"(n * {height} + y0) * {width} + x0" if n > 1 else f"y0 * {width} + x0"
        lines.add(f"const int8_t *from = data + ({image}) * {depth};", "int c = 0;", "")
        with lines.block(f"for (; c < {depth // 4 * 4}; c += 4)"):
            _four(lines, operation, width * depth, depth)
        if depth % 4:
            with lines.block(f"for (; c < {depth}; c++)"):
                one_channel(lines, operation, width, depth)
        skip(lines, operation)
    parameters = (Parameter("data", "int8"), Parameter("result", "int8", "out"))
    definitions = (LOAD_WORD, SUMS_OF_BYTES if is_average else GREATER_BYTES)
    function = Function(f"{operation.kind}_pool", parameters, str(lines), ("clamp",), definitions=definitions)
    return Call(function, (data, result), operation.label)


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
