# SPDX-License-Identifier: Apache-2.0
"""int8 pools, four channels at a time."""

from __future__ import annotations

from contextlib import nullcontext

from opwest.importers.models.emit.function import Call, Function, Parameter
from opwest.importers.models.emit.kernels.dsp.intrinsics import GREATER_BYTES, LOAD_WORD, SUMS_OF_BYTES
from opwest.importers.models.emit.pool import bounds, one_channel, skip
from opwest.importers.models.emit.registry import emits
from opwest.importers.models.emit.text import Lines
from opwest.importers.models.ir.operations import Pool

MOST_ELEMENTS = 255
"""The elements of a window whose sums fit in 16 bits."""


@emits(Pool, "dsp-pool", has_pitch=True)
def render(operation: Pool) -> Call | None:
    """Return the call; None for other dtypes, few channels, dilations and large windows of averages."""
    data, result, window = operation.inputs[0], operation.results[0], operation.window
    n, height, width, depth = data.shape
    is_average = operation.kind == "average"
    if data.dtype != "int8" or depth < 4 or window.dilation != (1, 1) or operation.kind not in ("average", "maximum"):
        return None
    size = min(window.size[0], height) * min(window.size[1], width)
    if is_average and size > MOST_ELEMENTS:
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
