# SPDX-License-Identifier: Apache-2.0
"""Reductions, positions of extremes, the greatest elements, running sums."""

from __future__ import annotations

from typing import Any

import numpy as np

from opwest.importers.models.graph.types import Node, Rules
from opwest.importers.models.interpret.registry import Arrays, interprets
from opwest.importers.models.operators import reduction
from opwest.importers.models.operators.fixed_point import Requantisation, one_quantization


@interprets("MEAN", "SUM")
def mean_or_sum(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """Integers: sums of 32 or 64 bits, the mean rounded to zero."""
    data, axes, count = arrays[0], reduction.axes_of(node), reduction.count_of(node)
    if data.dtype == np.float32:
        total = data.sum(axis=axes)
        return total / np.float32(count) if node.kind == "MEAN" else total
    total = data.astype(np.int64).sum(axis=axes)
    if data.dtype in (np.int32, np.int64):
        if node.kind == "SUM":
            return total
        magnitude = np.abs(total) // count
        return np.where(total < 0, -magnitude, magnitude)
    return reduction.sum_numbers(node).apply(total - one_quantization(node.input(0)).zero * count)


_PLAIN: dict[str, Any] = {
    "REDUCE_MAX": np.max,
    "REDUCE_MIN": np.min,
    "REDUCE_ANY": np.any,
    "REDUCE_ALL": np.all,
}


@interprets(*_PLAIN)
def extreme(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """Of the stored values."""
    return _PLAIN[node.kind](arrays[0], axis=reduction.axes_of(node))


@interprets("REDUCE_PROD")
def product(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """Quantised: rescaled after each multiplication."""
    data, axes = arrays[0], reduction.axes_of(node)
    if node.input(0).quantization is None or data.dtype not in (np.int8, np.int16):
        return np.multiply.reduce(data, axis=axes, dtype=data.dtype)
    return scaled_product(data, axes, one_quantization(node.input(0)).zero, reduction.product_numbers(node))


def scaled_product(data: Any, axes: tuple[int, ...], zero: int, numbers: Requantisation) -> Any:
    """Return products of quantised elements, which are rescaled after each multiplication."""
    moved = data.astype(np.int64) - zero
    rows = np.moveaxis(moved, axes, range(-len(axes), 0)) if axes else moved[..., None]
    rows = rows.reshape(*(n for i, n in enumerate(data.shape) if i not in axes), -1)
    total = rows[..., 0]
    for column in range(1, rows.shape[-1]):
        total = numbers.scaled(total * rows[..., column]).astype(np.int32).astype(np.int64)
    return np.clip(numbers.scaled(total).astype(np.int32).astype(np.int64) + numbers.zero, numbers.low, numbers.high)


@interprets("ARG_MAX", "ARG_MIN")
def position(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """The first one; not a number is behind all numbers."""
    data = arrays[0]
    sign = 1 if node.kind == "ARG_MAX" else -1
    values = data.astype(np.float64) * sign
    values = np.where(np.isnan(values), -np.inf, values)

    return values.argmax(axis=reduction.position_axis(node))


@interprets("TOPK_V2")
def greatest(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """In descending order, equal ones in the order of their positions, not a number at the end."""
    return greatest_of(arrays[0], reduction.greatest_count(node))


def greatest_of(data: Any, count: int) -> tuple[Any, Any]:
    """Return the greatest elements of each row, and their positions."""
    rows = data.reshape(-1, data.shape[-1])
    order = np.array([_descending(row)[:count] for row in rows], np.int64)
    return np.take_along_axis(rows, order, axis=1), order


def _descending(row: Any) -> list[int]:
    return sorted(range(len(row)), key=lambda i: (row[i] != row[i], -row[i].item() if row[i] == row[i] else 0, i))


@interprets("CUMSUM")
def running_sum(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """Exclusive: without the element itself; reverse: from the end."""
    data, axis = arrays[0], reduction.position_axis(node)
    moved = np.moveaxis(data, axis, 0)
    moved = moved[::-1] if node.options["reverse"] else moved
    zero = 0
    if data.dtype == np.int8:
        zero = one_quantization(node.input(0)).zero
        moved = moved.astype(np.int64) - zero
    total = np.add.accumulate(moved, axis=0, dtype=moved.dtype)
    if node.options["exclusive"]:
        total = np.concatenate([np.zeros_like(moved[:1]), total[:-1]])
    total = total[::-1] if node.options["reverse"] else total
    if data.dtype == np.int8:
        total = reduction.running_sum_numbers(node).apply((total - zero) << reduction.SUM_SHIFT)
    return np.moveaxis(total, 0, axis)
