# SPDX-License-Identifier: Apache-2.0
"""Convolutions and fully connected layers."""

from __future__ import annotations

from typing import Any

import numpy as np

from opwest.importers.models.graph.types import Node, Rules, Tensor
from opwest.importers.models.interpret.hybrid import integers
from opwest.importers.models.interpret.registry import Arrays, interprets
from opwest.importers.models.operators import layers
from opwest.importers.models.operators.fixed_point import limits_of, one_quantization
from opwest.importers.models.operators.hybrid import is_hybrid
from opwest.importers.models.operators.windows import Window


def patches(data: Any, window: Window, fill: Any) -> Any:
    """Return the windows of [n,h,w,c] as [n,rows,columns,kh,kw,c]; `fill` is the value of padding."""
    (top, left), (rows, columns) = window.before, window.result
    needed = [
        (count - 1) * stride + (size - 1) * dilation + 1
        for count, stride, size, dilation in zip(
            window.result, window.stride, window.size, window.dilation, strict=True
        )
    ]
    bottom, right = (max(0, n - b - s) for n, b, s in zip(needed, window.before, data.shape[1:3], strict=True))
    padded = np.pad(data, ((0, 0), (top, bottom), (left, right), (0, 0)), constant_values=fill)
    y = np.arange(rows)[:, None] * window.stride[0] + np.arange(window.size[0]) * window.dilation[0]
    x = np.arange(columns)[:, None] * window.stride[1] + np.arange(window.size[1]) * window.dilation[1]
    return padded[:, y[:, None, :, None], x[None, :, None, :], :]


def finish(node: Node, data: Tensor, weights: Tensor, sums: Any, bias: Any, rules: Rules) -> Any:
    """Return the results for sums without bias: float64 sums of integers are exact below 2**53."""
    if node.output.dtype == "float32":
        low, high = limits_of(str(node.options.get("fused_activation_function", "NONE")))
        total = sums.astype(np.float32) + (np.float32(0) if bias is None else bias)
        return np.clip(total, low, high) if (low, high) != (None, None) else total
    total = np.rint(sums).astype(np.int64) + (0 if bias is None else bias.astype(np.int64))
    if data.dtype != "int16":
        total = total.astype(np.int32)
    return layers.requantisation_of(node, data, weights, rules).apply(total)


def _finish(node: Node, arrays: Arrays, sums: Any, bias: Any, rules: Rules) -> Any:
    if is_hybrid(node):
        scales = integers(node, arrays)[2]
        sums = sums.astype(np.float32) * scales.reshape(len(scales), *(1,) * (sums.ndim - 2), -1)
    return finish(node, node.input(0), node.input(1), sums, bias, rules)


def _operands(node: Node, arrays: Arrays) -> tuple[Any, Any, Any]:
    """Return data and weights without their zero points, as float64 or float32, and the bias."""
    data, weights, *rest = arrays
    bias = rest[0] if rest else None
    if is_hybrid(node):
        return *integers(node, arrays)[:2], bias
    if node.output.dtype == "float32":
        return data.astype(np.float32), weights.astype(np.float32), bias
    zero = one_quantization(node.input(0)).zero
    offsets = node.input(1).quantization
    assert offsets is not None
    weight_zero = offsets.zeros[0]
    return data.astype(np.float64) - zero, weights.astype(np.float64) - weight_zero, bias


@interprets("CONV_2D")
def convolution(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """Groups: the data's channels divided by those of the weights."""
    data, weights, bias = _operands(node, arrays)
    results, height, width, inner = weights.shape
    taken = patches(data, layers.window(node), 0)
    groups = data.shape[3] // inner
    sums = []
    for group in range(groups):
        part = taken[..., group * inner : (group + 1) * inner].reshape(*taken.shape[:3], -1)
        some = weights[group * results // groups : (group + 1) * results // groups]
        sums.append(part @ some.reshape(len(some), height * width * inner).T)
    return _finish(node, arrays, np.concatenate(sums, axis=-1), bias, rules)


@interprets("DEPTHWISE_CONV_2D")
def depthwise(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """Result c of multiplier m reads channel c // m."""
    data, weights, bias = _operands(node, arrays)
    multiplier = weights.shape[3] // data.shape[3]
    taken = np.repeat(patches(data, layers.window(node), 0), multiplier, axis=-1)
    return _finish(node, arrays, np.einsum("nyxhwc,hwc->nyxc", taken, weights[0]), bias, rules)


@interprets("FULLY_CONNECTED")
def dense(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """Weights [results, length]."""
    data, weights, bias = _operands(node, arrays)
    return _finish(node, arrays, data.reshape(-1, weights.shape[1]) @ weights.T, bias, rules)
