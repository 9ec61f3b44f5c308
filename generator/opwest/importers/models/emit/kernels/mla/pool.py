# SPDX-License-Identifier: Apache-2.0
"""Pools of int8 values: four channels at a time over the part of a window inside of the image."""

from __future__ import annotations

from contextlib import nullcontext

from opwest.importers.models.emit.function import Call, Function, Parameter
from opwest.importers.models.emit.kernels.mla.assembly import NAKED, naked
from opwest.importers.models.emit.registry import emits
from opwest.importers.models.emit.text import Lines
from opwest.importers.models.ir.operations import Pool

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
def render(operation: Pool) -> Call | None:
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
