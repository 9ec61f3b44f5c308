# SPDX-License-Identifier: Apache-2.0
"""Pools: the part of each window inside of the image."""

from __future__ import annotations

import contextlib

from opwest.importers.models.emit.function import Call, Function, Parameter, c_type
from opwest.importers.models.emit.registry import emits
from opwest.importers.models.emit.text import Lines, number
from opwest.importers.models.ir.operations import Pool
from opwest.importers.models.operators.fixed_point import RANGES


@emits(Pool, has_pitch=True)
def render(operation: Pool) -> Call:
    """Return the call."""
    data, result = operation.inputs[0], operation.results[0]
    dtype, window = data.dtype, operation.window
    n, height, width, depth = data.shape
    lines = Lines()
    lines.add(f"{c_type(dtype)} *y = result;", "")
    batches = lines.loop("n", n) if n > 1 else contextlib.nullcontext()
    with batches, lines.loop("oy", window.result[0]), lines.loop("ox", window.result[1]):
        bounds(lines, operation)
        if operation.kind != "maximum":
            lines.add("const int count = (y1 - y0) * (x1 - x0);")
        image = f"(n * {height} + y0) * {width} + x0" if n > 1 else f"y0 * {width} + x0"
        lines.add(f"const {c_type(dtype)} *from = data + ({image}) * {depth};", "")
        with lines.loop("c", depth):
            one_channel(lines, operation, width, depth)
        skip(lines, operation)
    parameters = (Parameter("data", dtype), Parameter("result", dtype, "out"))
    is_float = dtype == "float32"
    helpers = () if (operation.low, operation.high) == (None, None) or not is_float else ("clampf",)
    helpers = helpers if is_float else ("clamp",)
    function = Function(
        f"{operation.kind}_pool", parameters, str(lines), helpers, ("float.h", "math.h") if is_float else ()
    )
    return Call(function, (data, result), operation.label)


def skip(lines: Lines, operation: Pool) -> None:
    """Append the step of y over the elements between two pixels of a result with a pitch."""
    [result] = operation.results
    if result.pitch:
        lines.add(f"y += {result.pitch - result.shape[-1]};")


def bounds(lines: Lines, operation: Pool) -> None:
    """Append the part of the window at oy, ox inside of the image: y0 to y1, x0 to x1."""
    _, height, width, _ = operation.inputs[0].shape
    window = operation.window
    for axis, size in (("y", height), ("x", width)):
        which = 0 if axis == "y" else 1
        start = f"o{axis} * {window.stride[which]} - {window.before[which]}"
        step = window.dilation[which]
        end = f"{start} + {(window.size[which] - 1) * step + 1}"
        # The first position of a window that starts before the image.
        first = "0" if step == 1 else f"({start}) % {step} ? {step} + ({start}) % {step} : 0"
        lines.add(
            f"const int {axis}0 = {start} > 0 ? {start} : {first};",
            f"const int {axis}1 = {end} < {size} ? {end} : {size};",
        )


def one_channel(lines: Lines, operation: Pool, width: int, depth: int) -> None:
    """Append the result of channel c."""
    dtype, (down, over) = operation.inputs[0].dtype, operation.window.dilation
    is_float, is_average = dtype == "float32", operation.kind == "average"
    is_mean = operation.kind != "maximum"
    kind = "float" if is_float else "int32_t"
    start = "0" if is_mean else "-FLT_MAX" if is_float else str(RANGES[dtype][0])
    lines.add(f"const {c_type(dtype)} *row = from + c;", f"{kind} value = {start};", "")
    with lines.block(f"for (int iy = y0; iy < y1; {_stepped('iy', down)}, row += {down * width * depth})"):
        lines.add(f"const {c_type(dtype)} *p = row;", "")
        with lines.block(f"for (int ix = x0; ix < x1; {_stepped('ix', over)}, p += {over * depth})"):
            if is_mean:
                lines.add("value += *p;" if is_average else "value += *p * *p;")
            else:
                lines.add("value = *p > value ? *p : value;")
    if is_average and is_float:
        lines.add("value /= (float)count;")
    elif is_average:
        lines.add("value = (value + (value > 0 ? count / 2 : -(count / 2))) / count;")
    elif is_mean:
        lines.add("value = sqrtf(value / (float)count);")
    low, high = operation.low, operation.high
    if (low, high) == (None, None):
        lines.add("*y++ = value;" if is_float else f"*y++ = ({c_type(dtype)})value;")
    elif is_float:
        limits = [
            number(float("-inf") if low is None else low, dtype),
            number(float("inf") if high is None else high, dtype),
        ]
        lines.add(f"*y++ = clampf(value, {', '.join(limits)});")
    else:
        lines.add(f"*y++ = ({c_type(dtype)})clamp(value, {low}, {high});")


def _stepped(name: str, step: int) -> str:
    return f"{name}++" if step == 1 else f"{name} += {step}"
