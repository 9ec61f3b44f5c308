# SPDX-License-Identifier: Apache-2.0
"""Operators that only readers of ONNX make."""

from __future__ import annotations

from typing import Any

import numpy as np

from opwest.compiler.graph.types import Node, Rules
from opwest.compiler.graph.user import KIND, bind, opaque_results
from opwest.compiler.reference.layers import grouped_sums
from opwest.compiler.reference.registry import Arrays, interprets
from opwest.compiler.semantics.fixed_point import RANGES, one_quantization
from opwest.compiler.semantics.layers import window
from opwest.compiler.semantics.onnx import zeros_of


@interprets("ONNX_QUANTIZE")
def quantize(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """Divided in float32, rounded half to even; NaN becomes the zero point."""
    target = one_quantization(node.output)
    return quantised_even(arrays[0], target.scale, target.zero, *RANGES[node.output.dtype])


def quantised_even(data: Any, scale: float, zero: int, low: int, high: int) -> Any:
    """Return float32 numbers as quantised values: halves are rounded to even."""
    quotients = data / np.float32(scale)
    quotients = np.clip(np.nan_to_num(quotients, nan=0.0, posinf=1e9, neginf=-1e9), low - zero, high - zero)
    return np.rint(quotients).astype(np.int64) + zero


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
    integers = np.clip(np.rint(data / scale) + zero, 0, 255) - zero
    return integers, np.asarray(scale)


@interprets("ONNX_CONV_INTEGER")
def convolution(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """Padding is the zero point."""
    zero, weight_zero = zeros_of(node)
    data, weights = arrays[0].astype(np.int64) - zero, arrays[1].astype(np.int64) - weight_zero
    return grouped_sums(data, weights, window(node))


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
    tensors = [argument for argument, tensor in bound.reads if not argument.is_option]
    states = [array for one, array in zip(tensors, given, strict=True) if one.direction == "inout"]
    kinds = [(str(array.dtype), array.shape) for array in states]
    kinds += [(tensor.dtype, shape) for _, tensor, shape in bound.writes]
    results = opaque_results(node.options["use"].operator.name, given, kinds)
    for state, content in zip(states, results, strict=False):
        state[...] = content
    return results[len(states) :]
