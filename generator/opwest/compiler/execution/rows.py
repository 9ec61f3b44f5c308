# SPDX-License-Identifier: Apache-2.0
"""Operations that normalise or reduce rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from opwest.compiler.execution.registry import FUNCTIONS, Arrays, executes
from opwest.compiler.ir import operations as ir
from opwest.compiler.reference import normalisation as rules

FUNCTIONS.update(
    {
        ir.SoftmaxFloat: lambda operation, arrays: rules.float_softmax(arrays[0], operation.beta),
        ir.SoftmaxTable: lambda operation, arrays: rules.softmax_by_table(
            arrays[0], operation.powers, operation.results[0].dtype
        ),
        ir.Softmax16: lambda operation, arrays: rules.softmax16(arrays[0], operation.numbers),
        ir.LogSoftmaxTable: lambda operation, arrays: rules.log_softmax_by_table(
            arrays[0], operation.numbers, operation.results[0].dtype
        ),
        ir.LogSoftmaxFloat: lambda operation, arrays: rules.float_log_softmax(arrays[0]),
        ir.UnitLength: lambda operation, arrays: rules.unit_length(arrays[0], operation.zero),
        ir.Position: lambda operation, arrays: rules.position_of(
            arrays[0], operation.axis, is_greatest=operation.is_greatest
        ),
        ir.Greatest: lambda operation, arrays: rules.greatest_of(arrays[0], operation.count),
        ir.RunningSum: lambda operation, arrays: rules.running_sums(
            arrays[0], operation.axis, operation.is_exclusive, operation.is_reverse, operation.zero, operation.finish
        ),
    }
)

_PLAIN: dict[str, Any] = {"maximum": np.max, "minimum": np.min, "any": np.any, "all": np.all}


@executes(ir.Reduce)
def reduce(operation: ir.Reduce, arrays: Arrays) -> Any:
    """Sums and means of quantised elements are requantised once, products after each multiplication."""
    [data] = arrays
    axes, finish = operation.axes, operation.finish
    if operation.kind in _PLAIN:
        return _PLAIN[operation.kind](data, axis=axes)
    if operation.kind != "product":
        return rules.summed(data, axes, is_mean=operation.kind == "mean", zero=operation.zero, finish=finish)
    if finish is None:
        return np.multiply.reduce(data, axis=axes, dtype=data.dtype)
    return rules.scaled_product(data, axes, operation.zero, finish)
