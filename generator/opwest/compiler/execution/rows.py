# SPDX-License-Identifier: Apache-2.0
"""Operations that normalise rows."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from opwest.compiler.execution.registry import Arrays, executes
from opwest.compiler.ir import operations as ir
from opwest.compiler.ir.operations import Greatest, Position, Reduce, RunningSum
from opwest.compiler.reference import normalisation as rules
from opwest.compiler.semantics.rows import SUM_SHIFT


@executes(ir.SoftmaxFloat)
def softmax_float(operation: ir.SoftmaxFloat, arrays: Arrays) -> Any:
    """Of float32 data."""
    return rules.float_softmax(arrays[0], operation.beta)


@executes(ir.SoftmaxTable)
def softmax_table(operation: ir.SoftmaxTable, arrays: Arrays) -> Any:
    """Of 8-bit data."""
    return rules.softmax_by_table(arrays[0], operation.powers, operation.results[0].dtype)


@executes(ir.Softmax16)
def softmax16(operation: ir.Softmax16, arrays: Arrays) -> Any:
    """Of int16 data."""
    return rules.softmax16(arrays[0], operation.numbers)


@executes(ir.LogSoftmaxTable)
def log_softmax_table(operation: ir.LogSoftmaxTable, arrays: Arrays) -> Any:
    """Of 8-bit data."""
    return rules.log_softmax_by_table(arrays[0], operation.numbers, operation.results[0].dtype)


@executes(ir.LogSoftmaxFloat)
def log_softmax_float(operation: ir.LogSoftmaxFloat, arrays: Arrays) -> Any:
    """Of float32 data."""
    return rules.float_log_softmax(arrays[0])


@executes(ir.UnitLength)
def unit_length(operation: ir.UnitLength, arrays: Arrays) -> Any:
    """Rows divided by their length."""
    return rules.unit_length(arrays[0], operation.zero)


_PLAIN: dict[str, Any] = {"maximum": np.max, "minimum": np.min, "any": np.any, "all": np.all}


@executes(Reduce)
def reduce(operation: Reduce, arrays: Arrays) -> Any:
    """Sums and means of quantised elements are requantised once, products after each multiplication."""
    [data] = arrays
    axes, finish = operation.axes, operation.finish
    if operation.kind in _PLAIN:
        return _PLAIN[operation.kind](data, axis=axes)
    if operation.kind == "product":
        if finish is None:
            return np.multiply.reduce(data, axis=axes, dtype=data.dtype)
        return rules.scaled_product(data, axes, operation.zero, finish)
    count = prod(data.shape[axis] for axis in axes)
    if data.dtype == np.float32:
        total = data.sum(axis=axes)
        return total / np.float32(count) if operation.kind == "mean" else total
    total = data.astype(np.int64).sum(axis=axes)
    if finish is not None:
        return finish.apply(total - operation.zero * count)
    return total if operation.kind == "sum" else np.abs(total) // count * np.sign(total)


@executes(Position)
def position(operation: Position, arrays: Arrays) -> Any:
    """The first extreme; not a number is behind all numbers."""
    values = arrays[0].astype(np.float64) * (1 if operation.is_greatest else -1)
    return np.where(np.isnan(values), -np.inf, values).argmax(axis=operation.axis)


@executes(Greatest)
def greatest(operation: Greatest, arrays: Arrays) -> Any:
    """Values and positions."""
    return rules.greatest_of(arrays[0], operation.count)


@executes(RunningSum)
def running_sum(operation: RunningSum, arrays: Arrays) -> Any:
    """int8 sums are requantised."""
    [data] = arrays
    moved = data if operation.finish is None else data.astype(np.int64) - operation.zero
    moved = np.moveaxis(moved, operation.axis, 0)
    moved = moved[::-1] if operation.is_reverse else moved
    total = np.add.accumulate(moved, axis=0, dtype=moved.dtype)
    if operation.is_exclusive:
        total = np.concatenate([np.zeros_like(total[:1]), total[:-1]])
    total = total[::-1] if operation.is_reverse else total
    if operation.finish is not None:
        total = operation.finish.apply((total - operation.zero) << SUM_SHIFT)
    return np.moveaxis(total, 0, operation.axis)
