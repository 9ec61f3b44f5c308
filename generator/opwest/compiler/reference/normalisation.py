# SPDX-License-Identifier: Apache-2.0
"""Softmax and its relatives."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from opwest.compiler.graph.types import Node, Rules
from opwest.compiler.reference.registry import Arrays, interprets
from opwest.compiler.semantics import fixed_point
from opwest.compiler.semantics import rows as reduction


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


def _looked_up(value: Any, table: Any) -> Any:
    """Return interpolated values for 16-bit numbers. Source: TFLite's LUTLookup."""
    table = np.asarray(table, np.int64)
    place = 256 + (value >> 7)
    return table[place] + (((table[place + 1] - table[place]) * (value & 127) + 64) >> 7)


def softmax16(data: Any, numbers: reduction.Softmax16Numbers) -> Any:
    """Return softmax of int16 data."""
    moved = fixed_point.scaled(
        -_differences(data), numbers.multiplier.fixed, numbers.multiplier.shift, fixed_point.Rounding.TWICE
    )
    powers = _looked_up(np.clip(moved + 32767, -32768, 32767), numbers.powers)
    sums = powers.sum(axis=-1, keepdims=True)
    zeros = fixed_point.leading_zeros(sums)
    shifted = ((sums << (zeros - 1)) + (1 << 13)) >> 14
    inverse = _looked_up(np.clip(shifted - (1 << 15) - (1 << 16), -32768, 32767), numbers.inverses)
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
    limit = fixed_point.scaled(
        logarithm - 2**31, numbers.reverse.fixed, numbers.reverse.shift, fixed_point.Rounding.TWICE
    )
    low, high = fixed_point.RANGES[dtype]
    values = fixed_point.round_shift(np.asarray(numbers.scaled)[differences] - logarithm, 22) + high
    return np.where(-differences > np.maximum(limit, -numbers.radius - 1), np.clip(values, low, high), low)


@interprets("L2_NORMALIZATION")
def l2_normalisation(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """Over the last dimension."""
    [data] = arrays
    return unit_length(data, 0 if data.dtype == np.float32 else fixed_point.one_quantization(node.input(0)).zero)


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


@interprets("MEAN", "SUM")
def mean_or_sum(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """Quantised: the sum is requantised."""
    data = arrays[0]
    axes, is_mean = reduction.axes_of(node), node.kind == "MEAN"
    if data.dtype not in (np.int8, np.uint8, np.int16):
        return summed(data, axes, is_mean=is_mean)
    zero = fixed_point.one_quantization(node.input(0)).zero
    return summed(data, axes, is_mean=is_mean, zero=zero, finish=reduction.sum_numbers(node))


def summed(
    data: Any, axes: tuple[int, ...], *, is_mean: bool, zero: int = 0, finish: fixed_point.Requantisation | None = None
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


_EXTREMES: dict[str, Any] = {"REDUCE_MAX": np.max, "REDUCE_MIN": np.min, "REDUCE_ANY": np.any, "REDUCE_ALL": np.all}


@interprets(*_EXTREMES)
def extreme(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """Of the stored values."""
    return _EXTREMES[node.kind](arrays[0], axis=reduction.axes_of(node))


@interprets("REDUCE_PROD")
def product(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """Quantised: rescaled after each multiplication."""
    data, axes = arrays[0], reduction.axes_of(node)
    if node.input(0).quantization is None or data.dtype not in (np.int8, np.int16):
        return np.multiply.reduce(data, axis=axes, dtype=data.dtype)
    return scaled_product(data, axes, fixed_point.one_quantization(node.input(0)).zero, reduction.product_numbers(node))


def scaled_product(data: Any, axes: tuple[int, ...], zero: int, numbers: fixed_point.Requantisation) -> Any:
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
    """Of the stored values."""
    return position_of(arrays[0], reduction.position_axis(node), is_greatest=node.kind == "ARG_MAX")


def position_of(data: Any, axis: int, *, is_greatest: bool) -> Any:
    """Return the position of the first extreme; not a number is behind all numbers."""
    values = data.astype(np.float64) * (1 if is_greatest else -1)
    return np.where(np.isnan(values), -np.inf, values).argmax(axis=axis)


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
    """Quantised: the sums are requantised."""
    data = arrays[0]
    zero, finish = 0, None
    if data.dtype == np.int8:
        zero, finish = fixed_point.one_quantization(node.input(0)).zero, reduction.running_sum_numbers(node)
    options, axis = node.options, reduction.position_axis(node)
    return running_sums(data, axis, bool(options["exclusive"]), bool(options["reverse"]), zero, finish)


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
