# SPDX-License-Identifier: Apache-2.0
"""Pools of int8 values, four channels at a time over the part of a window inside of the image; sums and products."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.emission.function import Call, Lines, call_for, emits, is_int8_pair
from opwest.compiler.ir.elements import AddQuantised, Product
from opwest.compiler.ir.operations import Elementwise, Pool
from opwest.compiler.kernels.assembly import NAKED, limited, naked
from opwest.compiler.kernels.mla.assembly import Epilogue, epilogue_of
from opwest.compiler.kernels.repeated import Makers, render_lines
from opwest.compiler.kernels.scaling import product_scaling, sum_tables
from opwest.compiler.kernels.slopes import sum_line

_COUNTS = ("rows", "columns", "row_step", "column_step", "channels")
PARAMETERS = ("const int8_t *x", "int8_t *y", *(f"int {name}" for name in _COUNTS))


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
    low, high = (None if limit is None else int(limit) for limit in (operation.low, operation.high))
    name, text = _function(is_average, low, high)
    lines = Lines()
    lines.add("int8_t *y = result;", "")
    with lines.repeat("n", n):
        image = f"data + n * {height * width * depth}" if n > 1 else "data"
        with lines.loop("oy", window.result[0]):
            axes[0].add(lines)
            with lines.loop("ox", window.result[1]):
                axes[1].add(lines)
                steps = f"{window.dilation[0] * width * depth}, {window.dilation[1] * depth}, {depth}"
                lines.add(
                    f"{name}({image} + (y0 * {width} + x0) * {depth}, y, y1, x1, {steps});", f"y += {result.row};"
                )
    return call_for(operation, f"{operation.kind}_pool", lines, {"data": data}, definitions=(NAKED, text))


class _Axis:
    """The parts of the windows inside of the image, by rows or columns."""

    def __init__(self, operation: Pool, axis: int) -> None:
        data, window = operation.inputs[0], operation.window
        self.name = "yx"[axis]
        self.size, self.step = window.size[axis], window.dilation[axis]
        self.stride, self.before = window.stride[axis], window.before[axis]
        self.count, self.length = window.result[axis], data.shape[1 + axis]
        self.is_padded = window.pads((data.shape[1], data.shape[2]))[axis]

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
        if not self.is_padded:
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
    limits = "".join(f"_{limit}".replace("-", "m") for limit in (low, high) if limit is not None)
    name = f"mla_{'average' if is_average else 'maximum'}{limits}"
    lines = ["push {r4-r11, lr}", "push {r0, r1, r2, r3}", "ldr r3, [sp, #56]", "ldr lr, [sp, #52]"]
    for some, label in ((4, 1), (1, 5)):
        sums, values = [f"r{4 + k}" for k in range(some)], [f"r{8 + k}" for k in range(some)]
        # The channels that are left are in memory, less those of a block.
        lines += ["ldr r8, [sp, #60]", f"subs r8, r8, #{some}", f"blt {label + 3}f", f"{label}:", "str r8, [sp, #60]"]
        lines += ["ldr r12, [sp]", "ldr r2, [sp, #8]"]
        lines += [f"mov {register}, #0" if is_average else f"mvn {register}, #127" for register in sums]
        lines += [f"{label + 1}:", "mov r0, r12", "ldr r1, [sp, #12]", f"{label + 2}:"]
        lines += [f"ldrsb {register}, [r0, #{place}]" for place, register in enumerate(values)]
        lines.append("add r0, r0, r3")
        for register, value in zip(sums, values, strict=True):
            lines += [f"add {register}, {register}, {value}"] if is_average else limited(register, "lt", value)
        lines += ["subs r1, r1, #1", f"bne {label + 2}b", "add r12, r12, lr", "subs r2, r2, #1", f"bne {label + 1}b"]
        lines += _average(sums) if is_average else []
        for register in sums:
            for limit, condition in ((low, "lt"), (high, "gt")):
                if limit is not None:
                    lines += limited(register, condition, f"#{limit}")
        lines += ["ldr r8, [sp, #4]", *(f"strb {register}, [r8], #1" for register in sums), "str r8, [sp, #4]"]
        lines += ["ldr r8, [sp]", f"add r8, r8, #{some}", "str r8, [sp]"]
        lines += ["ldr r8, [sp, #60]", f"subs r8, r8, #{some}", f"bge {label}b", f"{label + 3}:"]
        # The last subtraction was too much.
        lines += [f"add r8, r8, #{some}", "str r8, [sp, #60]"]
    return name, naked(name, PARAMETERS, [*lines, "add sp, sp, #16", "pop {r4-r11, pc}"])


def _average(sums: list[str]) -> list[str]:
    """Return the division by the number of values, rounded half away from zero."""
    lines = ["ldr r8, [sp, #8]", "ldr r9, [sp, #12]", "mul r8, r8, r9", "lsr r9, r8, #1"]
    for register in sums:
        lines += [
            f"cmp {register}, #0",
            "ite gt",
            f"addgt {register}, {register}, r9",
            f"suble {register}, {register}, r9",
        ]
        lines.append(f"sdiv {register}, {register}, r8")
    return lines


UNROLLED = 4
MIN_ELEMENTS = 16
"""Fewer elements are not worth a function and tables."""


@emits(Elementwise, "mla-slopes")
def render_slopes(operation: Elementwise) -> Call | None:
    """Return the call of an int8 sum or difference; None for other functions and dtypes, and without a slope."""
    return render_lines(operation, _LINES)


_LINES: Makers = {(AddQuantised, "int8"): functools.partial(sum_line, has_dsp=False)}


@emits(Elementwise, "mla-tables")
def render_elements(operation: Elementwise) -> Call | None:
    """Return the call; None: other functions, dtypes or shapes."""
    function = operation.function
    if not is_int8_pair(operation) or operation.results[0].size < MIN_ELEMENTS:
        return None
    if isinstance(function, AddQuantised):
        return _sum(operation, function)
    return _product(operation, function) if isinstance(function, Product) else None


@dataclass(frozen=True, eq=False)
class SumLoop:
    """The function for the sums of two arrays, and its constants."""

    name: str
    text: str
    tables: list[Any]
    numbers: Any
    """Those of the end."""

    @property
    def constants(self) -> dict[str, Any]:
        """The constants by the names of their parameters."""
        return {"table_a": self.tables[0], "table_b": self.tables[1], "total": self.numbers}

    def call(self, operands: tuple[str, str], result: str, count: int) -> str:
        """Return the call for arrays of `count` elements."""
        given = "(uintptr_t)table_a, (uintptr_t)table_b, total"
        return f"{self.name}({operands[0]}, {operands[1]}, {result}, {count}, {given});"


def _sum(operation: Elementwise, function: AddQuantised) -> Call | None:
    loop = sum_loop(function)
    if loop is None:
        return None
    constants = {"table_a": loop.tables[0], "table_b": loop.tables[1], "numbers": loop.numbers}
    given = "(uintptr_t)table_a, (uintptr_t)table_b, numbers"
    return _call(operation, "add", loop.name, loop.text, constants, given)


def sum_loop(function: AddQuantised) -> SumLoop | None:
    """Return the loop of a sum: two tables, by the bits of a value. None: numbers that do not fit."""
    parts = sum_tables(function)
    if parts is None:
        return None
    tables, scaling = parts
    # The product with the multiplier is that of twice the sum. By the bits of a value: 0 to 127, then -128 to -1.
    wide = [np.roll(2 * table, 128).astype(np.int32) for table in tables]
    end = epilogue_of(scaling)
    name = f"mla_sum_{end.name}"
    loads = ["ldrb {x}, [r0], #1", "ldrb {z}, [r1], #1", "ldr {x}, [r4, {x}, lsl #2]", "ldr {z}, [r5, {z}, lsl #2]"]
    text = _loop(name, [*loads, "add {x}, {x}, {z}"], end)
    return SumLoop(name, text, wide, scaling.ends[0])


def _product(operation: Elementwise, function: Product) -> Call | None:
    """Return the call of a product."""
    scaling = product_scaling(function)
    if scaling is None:
        return None
    end = epilogue_of(scaling)
    name = f"mla_product_{end.name}"
    loads = ["ldrsb {x}, [r0], #1", "ldrsb {z}, [r1], #1", "sub {x}, {x}, r4", "add {x}, {x}, {x}", "sub {z}, {z}, r5"]
    text = _loop(name, [*loads, "mul {x}, {x}, {z}"], end)
    zeros = np.asarray(function.numbers.zeros, np.int32)
    constants = {"numbers": np.concatenate([zeros, scaling.ends[0]])}
    given = "(uintptr_t)numbers[0], (uintptr_t)numbers[1], numbers + 2"
    return _call(operation, "multiply", name, text, constants, given)


def _loop(name: str, value: list[str], end: Epilogue) -> str:
    """Return a function of two operands, the result, a number of elements; then r4 and r5, and the numbers of the end.

    `value` is the code that computes twice an element in {x}.
    """
    parameters = ["const int8_t *a", "const int8_t *b", "int8_t *y", "uint32_t count"]
    parameters += ["uintptr_t r4", "uintptr_t r5", "const int32_t *numbers"]
    lines = ["push {r4-r9, lr}", "ldr r4, [sp, #28]", "ldr r5, [sp, #32]", "ldr r12, [sp, #36]"]
    lines += ["ldmia r12, {r6, r7, r8}"]

    def step() -> list[str]:
        operation = [line.format(x="r9", z="r12") for line in value]
        # The sum is complete: the first line of an end adds the bias.
        return [*operation, *end.lines("r9", ["", "r6", "r7", "r8"], "r12")[1:], "strb r9, [r2], #1"]

    lines += [f"subs r3, r3, #{UNROLLED}", "blo 2f", "1:", *(UNROLLED * step())]
    lines += [f"subs r3, r3, #{UNROLLED}", "bhs 1b", "2:", f"adds r3, r3, #{UNROLLED}", "beq 4f", "3:", *step()]
    return naked(name, parameters, [*lines, "subs r3, r3, #1", "bne 3b", "4:", "pop {r4-r9, pc}"])


def _call(operation: Elementwise, base: str, name: str, text: str, constants: dict[str, Any], given: str) -> Call:
    """Return the call of a loop; `given` are the last arguments of the loop."""
    a, b = operation.inputs
    body = f"\t{name}(a, b, result, {operation.results[0].size}, {given});\n"
    return call_for(operation, base, body, {"a": a, "b": b, **constants}, ("a", "b"), definitions=(NAKED, text))
