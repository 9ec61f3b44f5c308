# SPDX-License-Identifier: Apache-2.0
"""Conversions between dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np

from opwest.importers.models.graph.types import Node, Rules
from opwest.importers.models.interpret.registry import Arrays, interprets
from opwest.importers.models.interpret.unary import by_table
from opwest.importers.models.operators.conversion import each_of, is_quantised_each, quantize_numbers
from opwest.importers.models.operators.fixed_point import RANGES, one_quantization
from opwest.importers.models.operators.rescale import rescale_of


@interprets("QUANTIZE")
def quantize(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """Halves are rounded away from zero."""
    [data] = arrays
    if data.dtype in (np.int8, np.uint8):
        return by_table(node, data)
    if data.dtype != np.float32:
        return rescale_of(node).apply(data)
    low, high = RANGES[node.output.dtype]
    if is_quantised_each(node):
        scale, zero = each_of(node.output, data.shape)
    else:
        numbers = quantize_numbers(node)
        scale, zero = np.float32(numbers.scale), numbers.zero
    return quantised(data, scale, zero, low, high)


def quantised(data: Any, scale: Any, zero: Any, low: int, high: int) -> Any:
    """Return float32 numbers as quantised values: halves are rounded away from zero."""
    wide = (data / scale).astype(np.float64)
    rounded = np.copysign(np.floor(np.abs(wide) + 0.5), wide) + zero
    return np.clip(np.nan_to_num(rounded, nan=low), low, high)


@interprets("DEQUANTIZE")
def dequantize(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """With one scale, or one for each slice."""
    [data] = arrays
    if data.dtype == np.float32:
        return data
    found = node.input(0).quantization
    if found is None or found.axis is None:
        one = one_quantization(node.input(0))
        return np.float32(one.scale) * (data.astype(np.int32) - one.zero).astype(np.float32)
    scales, zeros = each_of(node.input(0), data.shape)
    return scales * (data.astype(np.int64) - zeros).astype(np.float32)


@interprets("CAST")
def cast(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """Integers wrap; float numbers are truncated and clamped, NaN becomes the greatest integer."""
    [data] = arrays
    return converted(data, np.dtype(node.output.dtype))


def converted(data: Any, target: Any) -> Any:
    """Return numbers in another dtype."""
    if data.dtype.kind != "f" or target.kind not in "iu":
        return data.astype(target)
    limits = np.iinfo(target)
    # The greatest integers of 32 and 64 bits are not float numbers; the next one above is.
    is_above = ~(data < float(limits.max) + 1.0) if target.itemsize < 8 else ~(data < 2.0**63)
    is_below = data < float(limits.min)
    inside = np.where(is_above | is_below, 0, data).astype(target)
    return np.where(is_above, limits.max, np.where(is_below, limits.min, inside))
