# SPDX-License-Identifier: Apache-2.0
"""Convolutions, fully connected layers, matrix products, pools, resized images."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opwest.compiler.graph.types import Node, Rules
from opwest.compiler.reference.elementwise import centred
from opwest.compiler.reference.run import FUNCTIONS, Arrays, interprets
from opwest.compiler.semantics import layers, windows
from opwest.compiler.semantics.fixed_point import (
    activation_range,
    limits_of,
    one_quantization,
    round_away,
    rounded_away,
)
from opwest.compiler.semantics.layers import is_hybrid
from opwest.compiler.semantics.windows import Window


def quantised(rows: Any, is_asymmetric: bool) -> tuple[Any, Any, Any]:
    """Return rows [n, length] of float32 as int64 without their zero points, their scales and their zero points."""
    integers, scales = np.zeros(rows.shape, np.int64), np.ones(len(rows), np.float32)
    zeros = np.zeros(len(rows), np.int64)
    for number, row in enumerate(rows):
        low, high = min(0.0, float(row.min())), max(0.0, float(row.max()))
        if low == high:
            continue
        if is_asymmetric:
            # In float64. Source: TFLite's AsymmetricQuantizeFloats.
            scale = (high - low) / 255.0
            from_low, from_high = -128.0 - low / scale, 127.0 - high / scale
            zero = from_low if 128.0 + abs(low / scale) < 127.0 + abs(high / scale) else from_high
            zeros[number] = np.clip(round_away(zero), -128, 127)
            scales[number] = scale
            values = np.float32(zeros[number]) + row * (np.float32(1.0) / scales[number])
            integers[number] = np.clip(rounded_away(values).astype(np.int64), -128, 127) - zeros[number]
        else:
            reach = np.float32(max(-low, high))
            scales[number] = reach / np.float32(127)
            integers[number] = np.clip(rounded_away(row * (np.float32(127) / reach)).astype(np.int64), -127, 127)
    return integers, scales, zeros


def patches(data: Any, window: Window, fill: Any) -> Any:
    """Return the windows of [n,h,w,c] as [n,rows,columns,kh,kw,c]; `fill` is the value of padding."""
    (top, left), (rows, columns) = window.before, window.result
    bottom, right = (max(0, window.span(axis) - window.before[axis] - data.shape[axis + 1]) for axis in range(2))
    padded = np.pad(data, ((0, 0), (top, bottom), (left, right), (0, 0)), constant_values=fill)
    y = np.arange(rows)[:, None] * window.stride[0] + np.arange(window.size[0]) * window.dilation[0]
    x = np.arange(columns)[:, None] * window.stride[1] + np.arange(window.size[1]) * window.dilation[1]
    return padded[:, y[:, None, :, None], x[None, :, None, :], :]


def clamped(values: Any, low: float | None, high: float | None) -> Any:
    """Return values between two limits; None: no limit."""
    return values if (low, high) == (None, None) else np.clip(values, low, high)


def float_results(sums: Any, bias: Any, low: float | None, high: float | None) -> Any:
    """Return the float32 results of a layer for sums without bias."""
    return clamped(sums.astype(np.float32) + (np.float32(0) if bias is None else bias), low, high)


def integer_sums(sums: Any, bias: Any, *, is_wide: bool) -> Any:
    """Return exact sums with the bias, which wrap to 32 bits unless they are wide.

    Sums are float64 numbers, exact below 2**53, or integers.
    """
    total = np.rint(sums).astype(np.int64) + (0 if bias is None else bias.astype(np.int64))
    return total if is_wide else total.astype(np.int32)


def finish(node: Node, sums: Any, bias: Any, rules: Rules) -> Any:
    """Return the results for sums without bias."""
    if node.output.dtype == "float32":
        return float_results(sums, bias, *limits_of(str(node.options.get("fused_activation_function", "NONE"))))
    total = integer_sums(sums, bias, is_wide=layers.data_of(node).dtype == "int16")
    return layers.requantisation(node, rules).apply(total)


def _operands(node: Node, arrays: Arrays) -> tuple[Any, Any, Any]:
    """Return data and weights without their zero points, as float64 or float32, and the scales of hybrid sums.

    The scales are [rows, results] in float32; None for a layer that is not hybrid.
    """
    data, weights = (arrays[2], arrays[1]) if node.kind == "TRANSPOSE_CONV" else arrays[:2]
    if is_hybrid(node):
        count = weights.shape[3] if node.kind == "DEPTHWISE_CONV_2D" else len(weights)
        length = weights.shape[1] if weights.ndim == 2 else data[0].size
        rows, scales, _ = quantised(data.reshape(-1, length), layers.is_asymmetric(node))
        each = np.asarray(layers.scales_of(node, count), np.float32)
        return rows.reshape(data.shape).astype(np.float64), weights.astype(np.float64), scales[:, None] * each
    if node.output.dtype == "float32":
        return data.astype(np.float32), weights.astype(np.float32), None
    offsets = node.input(1).quantization
    assert offsets is not None
    zero = one_quantization(layers.data_of(node)).zero
    return data.astype(np.float64) - zero, weights.astype(np.float64) - offsets.zeros[0], None


_SUMS: dict[str, Callable[[Node, Any, Any], Any]] = {
    "CONV_2D": lambda node, data, weights: grouped_sums(data, weights, layers.window(node)),
    "DEPTHWISE_CONV_2D": lambda node, data, weights: depthwise_sums(data, weights[0], layers.window(node)),
    "FULLY_CONNECTED": lambda node, data, weights: data.reshape(-1, weights.shape[1]) @ weights.T,
    "TRANSPOSE_CONV": lambda node, data, weights: transposed_sums(data, weights, layers.transposed_window(node)),
}


@interprets(*_SUMS)
def layer(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """Sums, then the end of the layer."""
    data, weights, scales = _operands(node, arrays)
    sums = _SUMS[node.kind](node, data, weights)
    if scales is not None:
        sums = sums.astype(np.float32) * scales.reshape(len(scales), *(1,) * (sums.ndim - 2), -1)
    place = 3 if node.kind == "TRANSPOSE_CONV" else 2
    return finish(node, sums, arrays[place] if len(arrays) > place else None, rules)


@interprets("ONNX_CONV_INTEGER", "ONNX_DENSE_INTEGER")
def integer_layer(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """Sums; elements of the padding are the zero point."""
    data, weights = centred(arrays, layers.zeros_of(node))
    return data @ weights.T if node.kind == "ONNX_DENSE_INTEGER" else grouped_sums(data, weights, layers.window(node))


def grouped_sums(data: Any, weights: Any, window: Window) -> Any:
    """Return the sums of windows of [n,h,w,c] with weights [o,kh,kw,c / groups]."""
    taken = patches(data, window, 0)
    inner = weights.shape[3]
    groups = data.shape[3] // inner
    results = len(weights) // groups
    sums = []
    for group in range(groups):
        part = taken[..., group * inner : (group + 1) * inner].reshape(*taken.shape[:3], -1)
        sums.append(part @ weights[group * results : (group + 1) * results].reshape(results, -1).T)
    return np.concatenate(sums, axis=-1)


def depthwise_sums(data: Any, weights: Any, window: Window) -> Any:
    """Return the sums of windows of [n,h,w,c] with weights [kh,kw,o]: result o reads channel o // (o_total / c)."""
    taken = np.repeat(patches(data, window, 0), weights.shape[2] // data.shape[3], axis=-1)
    return np.einsum("nyxhwc,hwc->nyxc", taken, weights)


@interprets("BATCH_MATMUL")
def product(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """Of the last two dimensions."""
    one, other = arrays
    if node.output.dtype != "float32":
        first, second = (0 if node.output.dtype == "int32" else one_quantization(node.input(i)).zero for i in range(2))
        # Sums of products of int16 do not fit in float64.
        one, other = centred(arrays, (first, second))
    one = np.swapaxes(one, -1, -2) if node.options["adj_x"] else one
    other = np.swapaxes(other, -1, -2) if node.options["adj_y"] else other
    if is_hybrid(node):
        # Rows are quantised one by one; the matrices have one scale, or one for each result.
        rows, scales, _ = quantised(one.reshape(-1, one.shape[-1]), layers.is_asymmetric(node))
        sums = rows.reshape(one.shape) @ other.astype(np.int64)
        weights = layers.scales_of(node, 1 if layers.is_batched(node) else other.shape[-1])
        return sums.astype(np.float32) * (scales.reshape(*one.shape[:-1], 1) * np.asarray(weights, np.float32))
    if node.output.dtype == "int32":
        return one @ other
    return finish(node, one @ other, None, rules)


def transposed_sums(data: Any, weights: Any, window: Window) -> Any:
    """Return the sums of a transposed convolution: the window is that from the result to the data."""
    (top, left), (rows, columns), (sy, sx) = window.before, window.result, window.stride
    n, height, width, _ = data.shape
    added = np.einsum("nyxc,ohwc->nyxhwo", data, weights)
    sums = np.zeros((n, rows, columns, len(weights)), data.dtype)
    for y, x, ky, kx in np.ndindex(height, width, *window.size):
        oy, ox = y * sy - top + ky, x * sx - left + kx
        if 0 <= oy < rows and 0 <= ox < columns:
            sums[:, oy, ox] += added[:, y, x, ky, kx]
    return sums


_POOLS = {"AVERAGE_POOL_2D": "average", "MAX_POOL_2D": "maximum", "L2_POOL_2D": "l2"}


@interprets(*_POOLS)
def pool(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """Of the stored values."""
    [data] = arrays
    activation = node.options["fused_activation_function"]
    limits = limits_of(activation) if data.dtype == np.float32 else activation_range(activation, node.output)
    return pooled(_POOLS[node.kind], data, windows.window(node), *limits)


def pooled(kind: str, data: Any, window: Window, low: float | None, high: float | None) -> Any:
    """Return the average, the maximum or the root of the mean of squares (l2) of windows; padding does not count.

    Averages of integers are rounded to nearest with halves away from zero.
    """
    is_float = data.dtype == np.float32
    data = data if is_float else data.astype(np.int64)
    if kind == "maximum":
        least = np.finfo(np.float32).min if is_float else -(1 << 40)
        return clamped(patches(data, window, least).max(axis=(3, 4)), low, high)
    counts = patches(np.ones((1, *data.shape[1:3], 1), np.int64), window, 0).sum(axis=(3, 4))
    taken = patches(data, window, 0)
    sums = (taken**2 if kind == "l2" else taken).sum(axis=(3, 4))
    if is_float:
        means = sums / counts.astype(np.float32)
        return clamped(np.sqrt(means) if kind == "l2" else means, low, high)
    half = counts // 2
    return clamped(np.where(sums > 0, (sums + half) // counts, -((half - sums) // counts)), low, high)


def interpolated(image: Any, rows: windows.Line, columns: windows.Line) -> Any:
    """Return weighted means of four elements of [n,h,w,c]."""
    is_fixed = image.dtype in (np.int8, np.int16)
    data = image.astype(np.int64 if is_fixed else np.float32)
    dtype = data.dtype
    y0, y1, wy, ry = (np.asarray(column) for column in (rows.first, rows.second, rows.weights, rows.rests))
    x0, x1, wx, rx = (np.asarray(column) for column in (columns.first, columns.second, columns.weights, columns.rests))
    wy, ry = (array.astype(dtype)[:, None, None] for array in (wy, ry))
    wx, rx = (column.astype(dtype)[:, None] for column in (wx, rx))
    total = data[:, y0][:, :, x0] * ry * rx + data[:, y1][:, :, x0] * wy * rx
    total = total + data[:, y0][:, :, x1] * ry * wx + data[:, y1][:, :, x1] * wy * wx
    if is_fixed:
        rounded = total + np.where(total > 0, 1 << 19, -(1 << 19))
        return np.where(rounded < 0, -(-rounded >> 20), rounded >> 20)
    return total if image.dtype == np.float32 else np.trunc(total + np.float32(0.5))


FUNCTIONS["RESIZE_NEAREST_NEIGHBOR"] = lambda node, arrays, rules: (
    arrays[0].take(windows.nearest(node, 1), axis=1).take(windows.nearest(node, 2), axis=2)
)
FUNCTIONS["RESIZE_BILINEAR"] = lambda node, arrays, rules: interpolated(
    arrays[0], windows.line(node, 1), windows.line(node, 2)
)
