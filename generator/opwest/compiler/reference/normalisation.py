# SPDX-License-Identifier: Apache-2.0
"""Softmax and its relatives, reductions, positions, running sums."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from opwest.compiler.graph.types import Node, Rules
from opwest.compiler.reference.run import FUNCTIONS, Arrays, interprets
from opwest.compiler.semantics import fixed_point
from opwest.compiler.semantics import rows as reduction
from opwest.compiler.semantics.tables import interpolated

FUNCTIONS.update(
    {
        "L2_NORMALIZATION": lambda node, arrays, rules: unit_length(arrays[0], reduction.zero_of_rows(node)),
        "ARG_MAX": lambda node, arrays, rules: position_of(arrays[0], reduction.position_axis(node), is_greatest=True),
        "ARG_MIN": lambda node, arrays, rules: position_of(arrays[0], reduction.position_axis(node), is_greatest=False),
        "TOPK_V2": lambda node, arrays, rules: greatest_of(arrays[0], reduction.greatest_count(node)),
    }
)


@interprets(*reduction.REDUCTIONS)
def reduce(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """Sums, means and products of quantised elements are requantised."""
    kind, axes = reduction.REDUCTIONS[node.kind], reduction.axes_of(node)
    return reduced(kind, arrays[0], axes, *reduction.ending_of(node), bool(node.options.get("wide_sums", False)))


@interprets("CUMSUM")
def running_sum(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """int8 sums are requantised."""
    options = bool(node.options["exclusive"]), bool(node.options["reverse"])
    return running_sums(arrays[0], reduction.position_axis(node), *options, *reduction.ending_of(node))


@interprets("SOFTMAX")
def softmax(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """Over the last dimension."""
    [data] = arrays
    if data.dtype == np.float32:
        return float_softmax(data, node.options["beta"])
    if data.dtype == np.int16:
        return softmax16(data, reduction.softmax16_numbers(node))
    return softmax_by_table(data, reduction.exponentials(node), node.output.dtype)


def float_softmax(data: Any, beta: float) -> Any:
    """Return softmax of float32 data."""
    powers = np.exp((data - data.max(axis=-1, keepdims=True)) * np.float32(beta))
    return powers / powers.sum(axis=-1, keepdims=True)


def _differences(data: Any) -> Any:
    """Return the distances from the greatest element of each row."""
    return data.max(axis=-1, keepdims=True).astype(np.int64) - data


def softmax_by_table(data: Any, table: Sequence[int], dtype: str) -> Any:
    """Return softmax of 8-bit data: `table` has exponentials by the difference from the greatest element."""
    powers = np.asarray(table)[_differences(data)]
    sums = np.minimum(fixed_point.round_shift(powers, 12).sum(axis=-1, keepdims=True), fixed_point.GREATEST)
    zeros = fixed_point.leading_zeros(sums)
    inverse = fixed_point.reciprocal((sums << zeros) - 2**31)
    low, high = fixed_point.RANGES[dtype]
    places = np.minimum(43 - (high - low).bit_length() - zeros, 31)
    values = fixed_point.round_shift(fixed_point.doubled_high(inverse, powers), places)
    return np.clip(values + low, low, high)


def softmax16(data: Any, numbers: reduction.Softmax16Numbers) -> Any:
    """Return softmax of int16 data."""
    moved = numbers.multiplier.times(-_differences(data))
    powers = interpolated(fixed_point.saturated(moved + 32767, 16), numbers.powers)
    sums = powers.sum(axis=-1, keepdims=True)
    zeros = fixed_point.leading_zeros(sums)
    shifted = ((sums << (zeros - 1)) + (1 << 13)) >> 14
    inverse = interpolated(fixed_point.saturated(shifted - (1 << 15) - (1 << 16), 16), numbers.inverses)
    places = 31 - zeros
    return np.clip((powers * inverse + (np.int64(1) << (places - 1))) >> places, 0, 32767)


@interprets("LOG_SOFTMAX")
def log_softmax(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """Over the last dimension."""
    [data] = arrays
    if data.dtype == np.float32:
        return float_log_softmax(data)
    return log_softmax_by_table(data, reduction.log_softmax_numbers(node), node.output.dtype)


def float_log_softmax(data: Any) -> Any:
    """Return the logarithm of softmax of float32 data."""
    moved = data - data.max(axis=-1, keepdims=True)
    return moved - np.log(np.exp(moved).sum(axis=-1, keepdims=True))


def log_softmax_by_table(data: Any, numbers: reduction.LogSoftmaxNumbers, dtype: str) -> Any:
    """Return the logarithm of softmax of 8-bit data."""
    differences = _differences(data)
    sums = np.asarray(numbers.powers)[differences].sum(axis=-1, keepdims=True)
    logarithm = fixed_point.logarithm(np.minimum(sums, fixed_point.GREATEST))
    limit = numbers.reverse.times(logarithm - 2**31)
    low, high = fixed_point.RANGES[dtype]
    values = fixed_point.round_shift(np.asarray(numbers.scaled)[differences] - logarithm, 22) + high
    return np.where(-differences > np.maximum(limit, -numbers.radius - 1), np.clip(values, low, high), low)


def unit_length(data: Any, zero: int) -> Any:
    """Return rows divided by their length; `zero` is the zero point of quantised data."""
    if data.dtype == np.float32:
        norm = np.sqrt((data * data).sum(axis=-1, keepdims=True))
        return data / np.maximum(norm, np.float32(1e-6))
    moved = data.astype(np.int64) - zero
    multiplier, places = fixed_point.inverse_root((moved**2).sum(axis=-1, keepdims=True))
    if data.dtype == np.uint8:
        return np.clip(128 + fixed_point.round_shift(fixed_point.doubled_high(128 * moved, multiplier), places), 0, 255)
    return np.clip(fixed_point.scaled(moved, multiplier, 7 - places, fixed_point.Rounding.TWICE), -128, 127)


_EXTREMES: dict[str, Any] = {"maximum": np.max, "minimum": np.min, "any": np.any, "all": np.all}


def reduced(
    kind: str,
    data: Any,
    axes: tuple[int, ...],
    zero: int,
    finish: fixed_point.Requantisation | None,
    is_wide: bool = False,
) -> Any:
    """Return a reduction: quantised sums and means are requantised once, products after each multiplication."""
    if is_wide:
        count = prod(data.shape[axis] for axis in axes)
        total = data.astype(np.float64).sum(axis=axes).astype(np.float32)
        return total / np.float32(count) if kind == "mean" else total
    if kind in _EXTREMES:
        return _EXTREMES[kind](data, axis=axes)
    if kind != "product":
        return summed(data, axes, is_mean=kind == "mean", zero=zero, finish=finish)
    if finish is None:
        return np.multiply.reduce(data, axis=axes, dtype=data.dtype)
    return scaled_product(data, axes, zero, finish)


def summed(
    data: Any, axes: tuple[int, ...], *, is_mean: bool, zero: int, finish: fixed_point.Requantisation | None
) -> Any:
    """Return sums or means; those of integers have 64 bits, and means are rounded to zero."""
    count = prod(data.shape[axis] for axis in axes)
    if data.dtype == np.float32:
        total = data.sum(axis=axes)
        return total / np.float32(count) if is_mean else total
    total = data.astype(np.int64).sum(axis=axes)
    if finish is not None:
        return finish.apply(total - zero * count)
    return np.abs(total) // count * np.sign(total) if is_mean else total


def scaled_product(data: Any, axes: tuple[int, ...], zero: int, numbers: fixed_point.Requantisation) -> Any:
    """Return products of quantised elements, which are rescaled after each multiplication."""
    moved = data.astype(np.int64) - zero
    rows = np.moveaxis(moved, axes, range(-len(axes), 0)) if axes else moved[..., None]
    rows = rows.reshape(*(n for i, n in enumerate(data.shape) if i not in axes), -1)
    total = rows[..., 0]
    for column in range(1, rows.shape[-1]):
        total = numbers.scaled(total * rows[..., column]).astype(np.int32).astype(np.int64)
    return np.clip(numbers.scaled(total).astype(np.int32).astype(np.int64) + numbers.zero, numbers.low, numbers.high)


def position_of(data: Any, axis: int, *, is_greatest: bool) -> Any:
    """Return the position of the first extreme; not a number is behind all numbers."""
    values = data.astype(np.float64) * (1 if is_greatest else -1)
    return np.where(np.isnan(values), -np.inf, values).argmax(axis=axis)


def greatest_of(data: Any, count: int) -> tuple[Any, Any]:
    """Return the greatest elements of each row, and their positions."""
    rows = data.reshape(-1, data.shape[-1])
    order = np.array([_descending(row)[:count] for row in rows], np.int64)
    return np.take_along_axis(rows, order, axis=1), order


def _descending(row: Any) -> list[int]:
    return sorted(range(len(row)), key=lambda i: (row[i] != row[i], -row[i].item() if row[i] == row[i] else 0, i))


def running_sums(
    data: Any, axis: int, is_exclusive: bool, is_reverse: bool, zero: int, finish: fixed_point.Requantisation | None
) -> Any:
    """Return sums along a dimension; exclusive: without the element itself; reverse: from the end."""
    moved = np.moveaxis(data if finish is None else data.astype(np.int64) - zero, axis, 0)
    moved = moved[::-1] if is_reverse else moved
    total = np.add.accumulate(moved, axis=0, dtype=moved.dtype)
    if is_exclusive:
        total = np.concatenate([np.zeros_like(total[:1]), total[:-1]])
    total = total[::-1] if is_reverse else total
    if finish is not None:
        total = finish.apply((total - zero) << reduction.SUM_SHIFT)
    return np.moveaxis(total, 0, axis)
