# SPDX-License-Identifier: Apache-2.0
"""Depthwise convolutions: rows of four channels are taken apart, then each channel is computed for a strip of rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from opwest.compiler.emission.depthwise import can_replace
from opwest.compiler.emission.function import Call, Lines, Parameter, call_for, emits
from opwest.compiler.graph.types import Shape
from opwest.compiler.ir.operations import Depthwise
from opwest.compiler.kernels.assembly import COPY, NAKED
from opwest.compiler.kernels.dsp.column_taps import MAX_COLUMNS, AnyTaps, ColumnTaps
from opwest.compiler.kernels.dsp.layers import Numbers, numbers_of, wide_numbers_of
from opwest.compiler.kernels.dsp.planes import CHANNELS, Planes
from opwest.compiler.kernels.dsp.taps import SmallTaps, Taps
from opwest.compiler.semantics.windows import Window

MAX_WORDS = 127
"""The words of a row that offsets of loads reach."""


@emits(Depthwise, "dsp-planes")
def render(operation: Depthwise, shared: bool = False) -> Call | None:
    """Return the call; None for strides of columns above 2, dilations, and very wide windows or data."""
    numbers = numbers_of(operation)
    return None if numbers is None else _call(operation, shared, numbers)


@emits(Depthwise, "dsp-wide")
def render_wide(operation: Depthwise) -> Call | None:
    """Return the call for int16; None also where sums could exceed 32 bits."""
    numbers = wide_numbers_of(operation)
    if numbers is None or numbers.bounds.max() >= 1 << 31:
        return None
    return _call(operation, False, numbers)


def _call(operation: Depthwise, shared: bool, numbers: Numbers) -> Call | None:
    data, window = operation.inputs[0], operation.window
    item = numbers.bits // 8
    if any(step > 1 and size > 1 for step, size in zip(window.dilation, window.size, strict=True)):
        return None
    planes = turned(data.shape, window, item) or Planes(data.shape, window, item)
    shape, window = planes.data, planes.window
    if window.stride[1] > 2 or planes.words > MAX_WORDS:
        return None
    results, ending = len(numbers.weights), numbers.ending
    columns = ColumnTaps(planes, results, ending)
    taps: Taps = columns
    if ending.is_long or not columns.can_reach:
        if window.size[1] > MAX_COLUMNS:
            return None
        taps = AnyTaps(planes, results, ending)
    elif (window.size, window.stride[1]) == ((3, 3), 1):
        taps = SmallTaps(planes, results, ending)
    lines = Lines()
    fill = "(uint32_t)numbers[0]" if shared else f"UINT32_C({filling(operation.zero):#x})"
    definitions = _body(lines, planes, taps, fill)
    arguments = {"data": data, "constants": _constants(taps, numbers)}
    if shared:
        arguments["numbers"] = np.asarray([filling(operation.zero)], np.uint32).view(np.int32)
    in_place = ("data",) if can_replace(shape, window, results, planes.strip) else ()
    scratch = [Parameter("rows", "uint32", "scratch", elements=planes.size)]
    return call_for(operation, "depthwise", lines, arguments, in_place, scratch, definitions=(NAKED, *definitions))


def turned(data: Shape, window: Window, item: int) -> Planes | None:
    """Return the rows of data [n,h,1,c] as [n,1,h,c]: the same elements in the same order, neighbours in one row."""
    if data[2] != 1 or window.size[1] != 1 or window.result[1] != 1 or window.before[1] != 0 or window.stride[0] > 2:
        return None
    turn = Window(
        (1, window.size[0]), (1, window.stride[0]), window.dilation, (0, window.before[0]), (1, window.result[0])
    )
    planes = Planes((data[0], 1, data[1], data[3]), turn, item)
    return planes if planes.words <= MAX_WORDS else None


def filling(zero: int) -> int:
    """Return a word with the zero point in both halves."""
    return (zero & 0xFFFF) * 0x10001


def _constants(taps: Taps, numbers: Numbers) -> Any:
    """Return the words of each channel: those of the taps, first sum, multiplier, addend, shift."""
    factor = 2 if numbers.ending.is_doubled else 1
    words = taps.constant_words(numbers.weights.reshape(-1, *taps.planes.window.size).astype(np.int64) * factor)
    sums = numbers.sums.reshape(-1, 1) * factor
    return np.concatenate([words, sums, numbers.ends], axis=1).astype(np.int32).reshape(-1)


def _body(lines: Lines, planes: Planes, taps: Taps, fill: str) -> tuple[str, ...]:
    """Append the loops over images, groups of channels and strips; return the definitions."""
    n, height, width, depth = planes.data
    window, results = planes.window, taps.results
    rows, strip, stride = window.result[0], planes.strip, window.stride[0]
    multiplier = results // depth
    groups, rest = divmod(depth, CHANNELS)
    sizes = [(groups, CHANNELS)] * bool(groups) + [(1, rest)] * bool(rest)
    kept = window.size[0] - stride
    strips = -(-rows // strip)
    lines.add(f"const uint32_t filling = {fill};")
    with lines.repeat("n", n):
        start = "data" if planes.item == 1 else "(const int8_t *)data"
        image = start if n == 1 else f"{start} + n * {height * width * depth * planes.item}"
        target = "result" if n == 1 else f"result + n * {rows * window.result[1] * results}"
        lines.add(
            f"const int8_t *x = {image};", f"{taps.ending.kind} *y = {target};", "const int32_t *w = constants;", ""
        )
        for count, channels in sizes:
            done = channels * multiplier
            step = f"x += {channels * planes.item}, y += {done}, w += {done * taps.constants}"
            with lines.block(f"for (int group = 0; group < {count}; group++, {step})" if count > 1 else ""):
                lines.add("int next = 0;", "uint32_t *to = rows;", "")
                with lines.loop("oy", rows, strip) if strips > 1 else lines.block(""):
                    some = f"(oy + {strip} <= {rows} ? {strip} : {rows} - oy)" if rows % strip else str(strip)
                    first = "oy" if strips > 1 else "0"
                    _rows(lines, planes, channels, f"({first} + {some} - 1) * {stride} + {window.size[0]}")
                    results_at = f"y + {first} * {window.result[1] * results}" if strips > 1 else "y"
                    with lines.loop("c", channels * multiplier):
                        plane = "c" if multiplier == 1 else f"c / {multiplier}"
                        constants = f"w + c * {taps.constants}"
                        lines.add(f"{taps.name}(rows + {plane}, {constants}, {results_at} + c, {some});")
                    if strips > 1 and kept > 0:
                        lines.add(
                            f"copy_bytes((int8_t *)rows, (int8_t *)(rows + {strip * stride * planes.pitch // 4}), "
                            f"{kept * planes.pitch});",
                            f"to = rows + {kept * planes.pitch // 4};",
                        )
                    elif strips > 1:
                        lines.add(f"next = (oy + {strip}) * {stride};", "to = rows;")
            if len(sizes) > 1 and count == 1 and channels == CHANNELS:
                lines.add(f"x += {channels * planes.item};", f"y += {done};", f"w += {done * taps.constants};")
    definitions = [planes.widen(channels) for _, channels in sizes]
    return (*([COPY] if strips > 1 and kept > 0 else []), *definitions, *taps.definitions())


def _rows(lines: Lines, planes: Planes, channels: int, end: str) -> None:
    """Append the loads of the rows `next` to `end`, counted from the first row of the padding."""
    _, height, width, depth = planes.data
    top = planes.window.before[0]
    is_behind = planes.window.span(0) - top > height
    lines.add(f"const int end = {end};", "")
    if top:
        with lines.block(f"for (; next < {top}; next++)"):
            _fill(lines, planes)
    if is_behind:
        lines.add(f"const int inside = end < {top + height} ? end : {top + height};", "")
    stop = "inside" if is_behind else "end"
    with lines.block(f"if (next < {stop})"):
        row = width * depth * planes.item
        at = f"(next - {top}) * {row}" if top else f"next * {row}"
        lines.add(f"to = {planes.name(channels)}(to, x + {at}, {stop} - next, filling);", f"next = {stop};")
    if is_behind:
        with lines.block("for (; next < end; next++)"):
            _fill(lines, planes)


def _fill(lines: Lines, planes: Planes) -> None:
    with lines.loop("i", planes.pitch // 4):
        lines.add("*to++ = filling;")
