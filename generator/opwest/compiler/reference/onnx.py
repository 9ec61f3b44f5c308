# SPDX-License-Identifier: Apache-2.0
"""Operators that only readers of ONNX make."""

from __future__ import annotations

from typing import Any

import numpy as np

from opwest.compiler.graph.types import Node, Rules
from opwest.compiler.graph.user import KIND, bind, opaque_results
from opwest.compiler.reference.layers import patches
from opwest.compiler.reference.registry import Arrays, interprets
from opwest.compiler.semantics.fixed_point import RANGES, one_quantization
from opwest.compiler.semantics.onnx import integer_window, zeros_of


@interprets("ONNX_QUANTIZE")
def quantize(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """Divided in float32, rounded half to even; NaN becomes the zero point."""
    target = one_quantization(node.output)
    return quantised_even(arrays[0], target.scale, target.zero, *RANGES[node.output.dtype])


def quantised_even(data: Any, scale: float, zero: int, low: int, high: int) -> Any:
    """Return float32 numbers as quantised values: halves are rounded to even."""
    found = data / np.float32(scale)
    found = np.clip(np.nan_to_num(found, nan=0.0, posinf=1e9, neginf=-1e9), low - zero, high - zero)
    return np.rint(found).astype(np.int64) + zero


@interprets("ONNX_LOOKUP")
def lookup(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """The table starts with the least value of the data."""
    data, table = arrays
    return table[data.astype(np.int64) - RANGES[str(data.dtype)][0]]


@interprets("ONNX_DYNAMIC_QUANTIZE")
def dynamic(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """The range of the data and zero becomes 0 to 255; the zero point is subtracted from the integers."""
    return dynamically_quantised(arrays[0])


def dynamically_quantised(data: Any) -> tuple[Any, Any]:
    """Return integers without their zero point, and their scale."""
    low, high = np.float32(min(data.min(), 0)), np.float32(max(data.max(), 0))
    scale = np.float32(1) if low == high else np.float32(high - low) / np.float32(255)
    zero = np.rint(np.clip(-low / scale, 0, 255))
    found = np.clip(np.rint(data / scale) + zero, 0, 255) - zero
    return found, np.asarray(scale)


@interprets("ONNX_CONV_INTEGER")
def convolution(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """Padding is the zero point."""
    zero, weight_zero = zeros_of(node)
    data, weights = arrays[0].astype(np.int64) - zero, arrays[1].astype(np.int64) - weight_zero
    taken = patches(data, integer_window(node), 0)
    results, inner = len(weights), weights.shape[3]
    groups = data.shape[3] // inner
    sums = []
    for group in range(groups):
        part = taken[..., group * inner : (group + 1) * inner].reshape(*taken.shape[:3], -1)
        some = weights[group * results // groups : (group + 1) * results // groups]
        sums.append(part @ some.reshape(len(some), -1).T)
    return np.concatenate(sums, axis=-1)


@interprets("ONNX_DENSE_INTEGER")
def dense(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """Weights [results, length]."""
    zero, weight_zero = zeros_of(node)
    return (arrays[0].astype(np.int64) - zero) @ (arrays[1].astype(np.int64) - weight_zero).T


@interprets(KIND)
def user_operator(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """States that the operator changes get results, too."""
    bound = bind(node)
    given = [array for array in arrays if array is not None]
    tensors = [one for one, tensor in bound.reads if not one.is_option]
    states = [array for one, array in zip(tensors, given, strict=True) if one.direction == "inout"]
    kinds = [(str(array.dtype), array.shape) for array in states]
    kinds += [(tensor.dtype, shape) for _, tensor, shape in bound.writes]
    found = opaque_results(node.options["use"].operator.name, given, kinds)
    for state, content in zip(states, found, strict=False):
        state[...] = content
    return found[len(states) :]
