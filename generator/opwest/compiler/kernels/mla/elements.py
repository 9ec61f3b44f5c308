# SPDX-License-Identifier: Apache-2.0
"""Pools of int8 values: four channels at a time over the part of a window inside of the image."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.emission.function import Call, Function, Lines, Parameter, emits
from opwest.compiler.ir.elements import AddQuantised, Product
from opwest.compiler.ir.operations import Elementwise, Pool
from opwest.compiler.kernels.mla.assembly import NAKED, Epilogue, epilogue_of, naked, numbers_of
from opwest.compiler.kernels.scaling import Scaling, scaling_of
from opwest.compiler.semantics.fixed_point import Multiplier, Requantisation, Rounding, scaled

PARAMETERS = (
    "const int8_t *x",
    "int8_t *y",
    "int rows",
    "int columns",
    "int row_step",
    "int column_step",
    "int channels",
)


@emits(Pool, "mla-channels", has_pitch=True)
def render_pool(operation: Pool) -> Call | None:
    """Return the call; None: other dtypes and kinds, windows outside of the image."""
    data, result, window = operation.inputs[0], operation.results[0], operation.window
    is_average = operation.kind == "average"
    if data.dtype != "int8" or operation.kind not in ("average", "maximum"):
        return None
    if is_average and window.dilation != (1, 1):
        return None
    n, height, width, depth = data.shape
    axes = [_Axis(operation, axis) for axis in range(2)]
    if not all(axis.is_inside for axis in axes):
        return None
    low, high = (None if one is None else int(one) for one in (operation.low, operation.high))
    name, text = _function(is_average, low, high)
    lines = Lines()
    lines.add("int8_t *y = result;", "")
    with lines.loop("n", n) if n > 1 else nullcontext():
        image = f"data + n * {height * width * depth}" if n > 1 else "data"
        with lines.loop("oy", window.result[0]):
            axes[0].add(lines)
            with lines.loop("ox", window.result[1]):
                axes[1].add(lines)
                steps = f"{window.dilation[0] * width * depth}, {window.dilation[1] * depth}, {depth}"
                lines.add(
                    f"{name}({image} + (y0 * {width} + x0) * {depth}, y, y1, x1, {steps});", f"y += {result.row};"
                )
    parameters = (Parameter("data", "int8"), Parameter("result", "int8", "out"))
    function = Function(f"{operation.kind}_pool", parameters, str(lines), definitions=(NAKED, text))
    return Call(function, (data, result), operation.label)


class _Axis:
    """The parts of the windows inside of the image, by rows or columns."""

    def __init__(self, operation: Pool, axis: int) -> None:
        window = operation.window
        self.name = "yx"[axis]
        self.size, self.step = window.size[axis], window.dilation[axis]
        self.stride, self.before = window.stride[axis], window.before[axis]
        self.count, self.length = window.result[axis], operation.inputs[0].shape[1 + axis]

    @property
    def is_inside(self) -> bool:
        """Whether each window has a part inside."""
        return all(
            any(0 <= place * self.stride - self.before + k * self.step < self.length for k in range(self.size))
            for place in range(self.count)
        )

    def add(self, lines: Lines) -> None:
        """Append the first place of a window, y0 or x0, and the number of places, y1 or x1."""
        name = self.name
        start = f"o{name}{f' * {self.stride}' if self.stride > 1 else ''}{f' - {self.before}' if self.before else ''}"
        last = (self.count - 1) * self.stride - self.before + (self.size - 1) * self.step
        if not self.before and last < self.length:
            lines.add(f"const int {name}0 = {start}, {name}1 = {self.size};")
            return
        step = self.step
        # The places before the image, and those of the first ones that are inside.
        skipped = f"({step - 1} - ({start})) / {step}" if step > 1 else f"-({start})"
        lines.add(
            f"const int {name}s = {start} < 0 ? {skipped} : 0;",
            f"const int {name}0 = {start} + {name}s{f' * {step}' if step > 1 else ''};",
            f"const int {name}f = ({self.length - 1} - {name}0) / {step} + 1;"
            if step > 1
            else f"const int {name}f = {self.length} - {name}0;",
            f"const int {name}1 = {name}f < {self.size} - {name}s ? {name}f : {self.size} - {name}s;",
        )


def _function(is_average: bool, low: int | None, high: int | None) -> tuple[str, str]:
    """Return the name and the definition of the function for a window."""
    limits = "".join(f"_{one}".replace("-", "m") for one in (low, high) if one is not None)
    name = f"mla_{'average' if is_average else 'maximum'}{limits}"
    lines = ["push {r4-r11, lr}", "push {r0, r1, r2, r3}", "ldr r3, [sp, #56]", "ldr lr, [sp, #52]"]
    for some, label in ((4, 1), (1, 5)):
        sums, values = [f"r{4 + k}" for k in range(some)], [f"r{8 + k}" for k in range(some)]
        # The channels that are left are in memory, less those of a block.
        lines += ["ldr r8, [sp, #60]", f"subs r8, r8, #{some}", f"blt {label + 3}f", f"{label}:", "str r8, [sp, #60]"]
        lines += ["ldr r12, [sp]", "ldr r2, [sp, #8]"]
        lines += [f"mov {one}, #0" if is_average else f"mvn {one}, #127" for one in sums]
        lines += [f"{label + 1}:", "mov r0, r12", "ldr r1, [sp, #12]", f"{label + 2}:"]
        lines += [f"ldrsb {one}, [r0, #{place}]" for place, one in enumerate(values)]
        lines.append("add r0, r0, r3")
        for one, value in zip(sums, values, strict=True):
            lines += [f"add {one}, {one}, {value}"] if is_average else _greater(one, value)
        lines += ["subs r1, r1, #1", f"bne {label + 2}b", "add r12, r12, lr", "subs r2, r2, #1", f"bne {label + 1}b"]
        lines += _average(sums) if is_average else []
        for one in sums:
            for limit, condition in ((low, "lt"), (high, "gt")):
                if limit is not None:
                    lines += [f"cmp {one}, #{limit}", f"it {condition}", f"mov{condition} {one}, #{limit}"]
        lines += ["ldr r8, [sp, #4]", *(f"strb {one}, [r8], #1" for one in sums), "str r8, [sp, #4]"]
        lines += ["ldr r8, [sp]", f"add r8, r8, #{some}", "str r8, [sp]"]
        lines += ["ldr r8, [sp, #60]", f"subs r8, r8, #{some}", f"bge {label}b", f"{label + 3}:"]
        # The last subtraction was too much.
        lines += [f"add r8, r8, #{some}", "str r8, [sp, #60]"]
    return name, naked(name, PARAMETERS, [*lines, "add sp, sp, #16", "pop {r4-r11, pc}"])


def _greater(one: str, value: str) -> list[str]:
    return [f"cmp {one}, {value}", "it lt", f"movlt {one}, {value}"]


def _average(sums: list[str]) -> list[str]:
    """Return the division by the number of values, rounded half away from zero."""
    lines = ["ldr r8, [sp, #8]", "ldr r9, [sp, #12]", "mul r8, r8, r9", "lsr r9, r8, #1"]
    for one in sums:
        lines += [f"cmp {one}, #0", "ite gt", f"addgt {one}, {one}, r9", f"suble {one}, {one}, r9"]
        lines.append(f"sdiv {one}, {one}, r8")
    return lines


UNROLLED = 4
MIN_ELEMENTS = 16
"""Fewer elements are not worth a function and tables."""


@emits(Elementwise, "mla-tables")
def render_elements(operation: Elementwise) -> Call | None:
    """Return the call; None: other functions, dtypes or shapes."""
    values = [*operation.inputs, *operation.results]
    function = operation.function
    if (
        any(value.dtype != "int8" or value.shape != values[-1].shape for value in values)
        or values[-1].size < MIN_ELEMENTS
    ):
        return None
    if isinstance(function, AddQuantised):
        return _sum(operation, function)
    return _product(operation, function) if isinstance(function, Product) else None


@dataclass(frozen=True, eq=False)
class SumLoop:
    """The function for the sums of two arrays, and its constants."""

    name: str
    text: str
    arrays: list[Any]
    """Two tables, and the numbers of the end."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the parameters for the constants."""
        return ("table_a", "table_b", "total")

    def call(self, operands: tuple[str, str], result: str, count: int) -> str:
        """Return the call for arrays of `count` elements."""
        given = "(uintptr_t)table_a, (uintptr_t)table_b, total"
        return f"{self.name}({operands[0]}, {operands[1]}, {result}, {count}, {given});"


def _sum(operation: Elementwise, function: AddQuantised) -> Call | None:
    found = sum_loop(function)
    return None if found is None else _call(operation, "add", found.name, found.text, found.arrays)


def sum_loop(function: AddQuantised) -> SumLoop | None:
    """Return the loop of a sum: two tables, by the bits of a value. None: numbers that do not fit."""
    numbers = function.numbers
    tables = [
        _table(zero, multiplier, numbers.left_shift)
        for zero, multiplier in zip(numbers.zeros, numbers.multipliers, strict=True)
    ]
    if function.subtract:
        tables[1] = -tables[1]
    bound = sum(int(np.abs(table).max()) for table in tables)
    scaling = _scaling(numbers.result, numbers.zero, numbers.low, numbers.high, bound)
    if scaling is None:
        return None
    # The product with the multiplier is that of twice the sum.
    wide = [(2 * table).astype(np.int32) for table in tables]
    end = epilogue_of(scaling)
    name = f"mla_sum_{end.name}"
    loads = ["ldrb {x}, [r0], #1", "ldrb {z}, [r1], #1", "ldr {x}, [r4, {x}, lsl #2]", "ldr {z}, [r5, {z}, lsl #2]"]
    text = _loop(name, [*loads, "add {x}, {x}, {z}"], end)
    return SumLoop(name, text, [*wide, _numbers(scaling)])


def _product(operation: Elementwise, function: Product) -> Call | None:
    """Return the call of a product."""
    numbers = function.numbers
    most = [max(127 - zero, 128 + zero) for zero in numbers.zeros]
    scaling = _scaling(numbers.multiplier, numbers.zero, numbers.low, numbers.high, most[0] * most[1])
    if scaling is None:
        return None
    end = epilogue_of(scaling)
    name = f"mla_product_{end.name}"
    loads = ["ldrsb {x}, [r0], #1", "ldrsb {z}, [r1], #1", "sub {x}, {x}, r4", "add {x}, {x}, {x}", "sub {z}, {z}, r5"]
    text = _loop(name, [*loads, "mul {x}, {x}, {z}"], end)
    zeros = np.asarray(numbers.zeros, np.int32)
    return _call(operation, "multiply", name, text, [np.concatenate([zeros, _numbers(scaling)])])


def _table(zero: int, multiplier: Multiplier, left_shift: int) -> Any:
    """Return the rescaled values in the order of their bits, 0 to 127 first."""
    values = (np.arange(256) ^ 128) - 128
    return scaled((values - zero) << left_shift, multiplier.fixed, multiplier.shift, Rounding.TWICE)


def _scaling(multiplier: Multiplier, zero: int, low: int, high: int, bound: int) -> Scaling | None:
    return scaling_of(Requantisation((multiplier,), Rounding.TWICE, zero, low, high), [bound])


def _numbers(scaling: Scaling) -> Any:
    return numbers_of(scaling, None, 1)[0, 1:]


def _loop(name: str, value: list[str], end: Epilogue) -> str:
    """Return a function of two operands, the result, a number of elements; then r4 and r5, and the numbers of the end.

    `value` is the code that computes twice an element in {x}.
    """
    parameters = ["const int8_t *a", "const int8_t *b", "int8_t *y", "uint32_t count"]
    parameters += ["uintptr_t r4", "uintptr_t r5", "const int32_t *numbers"]
    lines = ["push {r4-r9, lr}", "ldr r4, [sp, #28]", "ldr r5, [sp, #32]", "ldr r12, [sp, #36]"]
    lines += ["ldmia r12, {r6, r7, r8}"]

    def one() -> list[str]:
        found = [line.format(x="r9", z="r12") for line in value]
        # The sum is complete: the first line of an end adds the bias.
        return [*found, *end.lines("r9", ["", "r6", "r7", "r8"], "r12")[1:], "strb r9, [r2], #1"]

    lines += [f"subs r3, r3, #{UNROLLED}", "blo 2f", "1:", *(UNROLLED * one())]
    lines += [f"subs r3, r3, #{UNROLLED}", "bhs 1b", "2:", f"adds r3, r3, #{UNROLLED}", "beq 4f", "3:", *one()]
    return naked(name, parameters, [*lines, "subs r3, r3, #1", "bne 3b", "4:", "pop {r4-r9, pc}"])


def _call(operation: Elementwise, base: str, name: str, text: str, arrays: list[Any]) -> Call:
    a, b = operation.inputs
    [result] = operation.results
    names = ("table_a", "table_b", "numbers") if len(arrays) == 3 else ("numbers",)
    given = "(uintptr_t)table_a, (uintptr_t)table_b, numbers"
    if len(arrays) == 1:
        given = "(uintptr_t)numbers[0], (uintptr_t)numbers[1], numbers + 2"
    parameters = (
        Parameter("a", "int8"),
        Parameter("b", "int8"),
        *(Parameter(one, "int32") for one in names),
        Parameter("result", "int8", "out", ("a", "b")),
    )
    function = Function(
        base, parameters, f"\t{name}(a, b, result, {result.size}, {given});\n", definitions=(NAKED, text)
    )
    return Call(function, (a, b, *arrays, result), operation.label)
