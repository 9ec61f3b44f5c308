# SPDX-License-Identifier: Apache-2.0
"""Layers with float32 data and int8 weights."""

from __future__ import annotations

import contextlib

from opwest.compiler.emission.epilogue import ending
from opwest.compiler.emission.expressions import clamped
from opwest.compiler.emission.function import Call, Lines, call_of, emits, number
from opwest.compiler.emission.matrix import batches, taps
from opwest.compiler.ir.operations import HybridConvolution, HybridProduct, QuantiseRows

_INPUTS = ("data", "scales", "zeros")


@emits(QuantiseRows)
def quantise(operation: QuantiseRows) -> Call:
    """Return the call."""
    data, is_asymmetric = operation.inputs[0], len(operation.results) == 3
    rows = data.shape[0]
    length = data.size // rows
    lines = Lines()
    with lines.block(f"for (int n = 0; n < {rows}; n++, data += {length}, result += {length})"):
        lines.add("float low = 0.0f;", "float high = 0.0f;", "")
        with lines.loop("i", length):
            lines.add("low = data[i] < low ? data[i] : low;", "high = data[i] > high ? data[i] : high;")
        if is_asymmetric:
            lines.add("zeros[n] = 0;")
        lines.add("scales[n] = 1.0f;")
        with lines.block("if (low == high)"):
            lines.add(f"memset(result, 0, {length});", "continue;")
        if is_asymmetric:
            _asymmetric(lines, length)
        else:
            lines.add("const float reach = -low > high ? -low : high;")
            lines.add("const float factor = 127.0f / reach;", "", "scales[n] = reach / 127.0f;")
            with lines.loop("i", length):
                value = clamped("(int32_t)roundf(data[i] * factor)", -127, 127, "int8")
                lines.add(f"result[i] = {value};")
    base, headers = "quantise_rows_asymmetric" if is_asymmetric else "quantise_rows", ("math.h", "string.h")
    results = ("result", "scales", "zeros")
    return call_of(operation, base, lines, results=results, helpers=("clamp",), headers=headers)


def _asymmetric(lines: Lines, length: int) -> None:
    """Append the quantisation of a row: scale and zero point are computed as double numbers."""
    lines.add(
        "const double scale = ((double)high - (double)low) / 255.0;",
        "const double below = (double)low / scale;",
        "const double above = (double)high / scale;",
        "const double zero = 128.0 - below < 127.0 + above ? -128.0 - below : 127.0 - above;",
        "",
        "zeros[n] = zero <= -128.0 ? -128 : zero >= 127.0 ? 127 : (int32_t)round(zero);",
        "scales[n] = (float)scale;",
        "",
        "const float factor = 1.0f / scales[n];",
        "",
    )
    with lines.loop("i", length):
        lines.add("const float value = data[i] * factor;", "")
        rounded = clamped("(int32_t)roundf((float)zeros[n] + value)", -128, 127, "int8")
        lines.add(f"result[i] = {rounded};")


@emits(HybridConvolution)
def convolution(operation: HybridConvolution) -> Call:
    """Return the call."""
    data, window = operation.inputs[0], operation.window
    n, height, width, depth = data.shape
    kh, kw = window.size
    results = len(operation.scales)
    inner = 1 if operation.is_depthwise else operation.weights.shape[3]
    has_zeros = len(operation.inputs) == 3
    is_single = (height, width) == window.result == (1, 1) and not operation.is_transposed
    end, lines = ending(operation.finish), Lines()
    lines.add("float *y = result;", "")
    with contextlib.ExitStack() as stack:
        stack.enter_context(lines.loop("n", n))
        for name, count in (("oy", window.result[0]), ("ox", window.result[1])):
            if not is_single:
                stack.enter_context(lines.loop(name, count))
        stack.enter_context(lines.loop("o", results))
        lines.add("int32_t sum = 0;", "")
        x = "(data[{}] - zeros[n])" if has_zeros else "data[{}]"
        if is_single and (kh, kw) == (1, 1) and not (operation.is_depthwise or window.is_padded((1, 1))):
            with lines.loop("k", inner):
                lines.add(f"sum += {x.format(f'n * {depth} + k')} * weights[o * {inner} + k];")
        else:
            if is_single:
                lines.add("const int oy = 0;", "const int ox = 0;", "")
            _taps(lines, operation, x, inner)
        bias = "" if operation.bias is None else " + bias[o]"
        lines.add(f"const float value = (float)sum * (scales[n] * weight_scales[o]){bias};", "")
        lines.add(f"*y++ = {end.result('value')};")
    constants = [("weights", operation.weights), ("weight_scales", operation.scales), ("bias", operation.bias)]
    form = "depthwise" if operation.is_depthwise else "transposed" if operation.is_transposed else "convolution"
    return call_of(operation, f"hybrid_{form}", lines, _INPUTS, constants, helpers=end.helpers, headers=end.headers)


@emits(HybridProduct)
def product(operation: HybridProduct) -> Call:
    """Return the call."""
    result, (rows, depth) = operation.results[0], operation.data[-2:]
    columns, has_zeros = result.shape[-1], len(operation.inputs) == 3
    lines, shapes = Lines(), [operation.data[:-2], operation.weights.shape[:-2]]
    lines.add("float *y = result;", "")
    with batches(lines, shapes, result.shape[:-2], (rows, columns * depth)) as starts, lines.loop("i", rows):
        first, weight = (f"{start} + " if start else "" for start in starts)
        lines.add(f"const int row = {first}i;", f"const int8_t *x = data + row * {depth};", "")
        with lines.loop("o", columns):
            lines.add(f"const int8_t *w = weights + {weight}o * {depth};", "int32_t sum = 0;", "")
            with lines.loop("k", depth):
                lines.add("sum += (x[k] - zeros[row]) * w[k];" if has_zeros else "sum += x[k] * w[k];")
            lines.add(f"*y++ = (float)sum * (scales[row] * {number(operation.scale, 'float32')});")
    return call_of(operation, "hybrid_product", lines, _INPUTS, [("weights", operation.weights)])


def _taps(lines: Lines, operation: HybridConvolution, x: str, inner: int) -> None:
    """Append the loops over the elements of a window."""
    window, (_, height, width, depth) = operation.window, operation.inputs[0].shape
    results = len(operation.scales)
    kh, kw = window.size
    with taps(lines, window, (height, width), operation.is_transposed):
        at = f"((n * {height} + iy) * {width} + ix) * {depth}"
        if operation.is_depthwise:
            channel = f"{at} + o / {results // depth}" if results != depth else f"{at} + o"
            lines.add(f"sum += {x.format(channel)} * weights[(ky * {kw} + kx) * {results} + o];")
            return
        group = f" + o / {results // operation.groups} * {inner}" if operation.groups > 1 else ""
        lines.add(
            f"const int from = {at}{group};", f"const int8_t *q = weights + ((o * {kh} + ky) * {kw} + kx) * {inner};"
        )
        lines.add("")
        with lines.loop("k", inner):
            lines.add(f"sum += {x.format('from + k')} * q[k];")
