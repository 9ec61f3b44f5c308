# SPDX-License-Identifier: Apache-2.0
"""Layers with float32 data and int8 weights."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from opwest.compiler.emission.elementwise import joined
from opwest.compiler.emission.epilogue import ending
from opwest.compiler.emission.expressions import clamped
from opwest.compiler.emission.function import Call, Function, Lines, Parameter, emits, number
from opwest.compiler.ir.operations import HybridConvolution, HybridProduct, QuantiseRows


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
    names = ("result", "scales", "zeros")
    parameters = (
        Parameter("data", "float32"),
        *(Parameter(name, value.dtype, "out") for name, value in zip(names, operation.results, strict=False)),
    )
    base = "quantise_rows_asymmetric" if is_asymmetric else "quantise_rows"
    function = Function(base, parameters, str(lines), ("clamp",), ("math.h", "string.h"))
    return Call(function, (data, *operation.results), operation.label)


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
    data, result, window = operation.inputs[0], operation.results[0], operation.window
    n, height, width, depth = data.shape
    kh, kw = window.size
    results = len(operation.scales)
    inner = 1 if operation.is_depthwise else operation.weights.shape[3]
    has_zeros = len(operation.inputs) == 3
    is_single = (height, width) == window.result == (1, 1) and not operation.is_transposed
    end, lines = ending(operation.finish, results), Lines()
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
        lines.add(f"const float value = (float)sum * (scales[n] * weight_scales[o]){_bias(operation)};", "")
        lines.add(f"*y++ = {end.result('value')};")
    bias = [] if operation.bias is None else [operation.bias]
    names = ["data", "scales", *(["zeros"] if has_zeros else [])]
    parameters = [
        *(Parameter(name, value.dtype) for name, value in zip(names, operation.inputs, strict=True)),
        Parameter("weights", "int8"),
        Parameter("weight_scales", "float32"),
        *([Parameter("bias", "float32")] if bias else []),
        Parameter("result", "float32", "out"),
    ]
    form = "depthwise" if operation.is_depthwise else "transposed" if operation.is_transposed else "convolution"
    function = Function(f"hybrid_{form}", tuple(parameters), str(lines), end.helpers, end.headers)
    arguments = (*operation.inputs, operation.weights, operation.scales, *bias, result)
    return Call(function, arguments, operation.label)


@emits(HybridProduct)
def product(operation: HybridProduct) -> Call:
    """Return the call."""
    result, (rows, depth) = operation.results[0], operation.data[-2:]
    columns, has_zeros = result.shape[-1], len(operation.inputs) == 3
    batches, lines = result.shape[:-2], Lines()
    counts, strides = joined([operation.data[:-2], operation.weights.shape[:-2]], batches)
    starts = [_place(counts, each, size) for each, size in zip(strides, (rows, columns * depth), strict=True)]
    lines.add("float *y = result;", "")
    with contextlib.ExitStack() as stack:
        for level, count in enumerate(counts):
            if count > 1:
                stack.enter_context(lines.loop(f"n{level}", count))
        stack.enter_context(lines.loop("i", rows))
        lines.add(f"const int row = {starts[0]}i;", f"const int8_t *x = data + row * {depth};", "")
        stack.enter_context(lines.loop("o", columns))
        lines.add(f"const int8_t *w = weights + {starts[1]}o * {depth};", "int32_t sum = 0;", "")
        with lines.loop("k", depth):
            lines.add("sum += (x[k] - zeros[row]) * w[k];" if has_zeros else "sum += x[k] * w[k];")
        lines.add(f"*y++ = (float)sum * (scales[row] * {number(operation.scale, 'float32')});")
    names = ("data", "scales", "zeros")
    parameters = (
        *(Parameter(name, value.dtype) for name, value in zip(names, operation.inputs, strict=False)),
        Parameter("weights", "int8"),
        Parameter("result", "float32", "out"),
    )
    function = Function("hybrid_product", parameters, str(lines))
    return Call(function, (*operation.inputs, operation.weights, result), operation.label)


def _place(counts: Sequence[int], strides: Sequence[int], size: int) -> str:
    """Return the first row or weight of a matrix, with a plus behind it."""
    return "".join(f"n{i} * {s * size} + " for i, (s, n) in enumerate(zip(strides, counts, strict=True)) if s and n > 1)


def _bias(operation: HybridConvolution) -> str:
    return "" if operation.bias is None else " + bias[o]"


def _taps(lines: Lines, operation: HybridConvolution, x: str, inner: int) -> None:
    """Append the loops over the elements of a window."""
    window, (_, height, width, depth) = operation.window, operation.inputs[0].shape
    results = len(operation.scales)
    kh, kw = window.size
    with contextlib.ExitStack() as taps:
        for axis, size, limit in (("y", kh, height), ("x", kw, width)):
            which = 0 if axis == "y" else 1
            stride, dilation, before = window.stride[which], window.dilation[which], window.before[which]
            if operation.is_transposed:
                place = f"(o{axis} + {before})"
                start = f"int k{axis} = {place} % {stride}, i{axis} = {place} / {stride}"
                taps.enter_context(lines.block(f"for ({start}; k{axis} < {size}; k{axis} += {stride}, i{axis}--)"))
            else:
                taps.enter_context(lines.loop(f"k{axis}", size))
                lines.add(f"const int i{axis} = o{axis} * {stride} + k{axis} * {dilation} - {before};", "")
            with lines.block(f"if (i{axis} < 0 || i{axis} >= {limit})"):
                lines.add("continue;")
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
