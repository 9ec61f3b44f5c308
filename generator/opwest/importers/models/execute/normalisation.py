# SPDX-License-Identifier: Apache-2.0
"""Operations that normalise rows."""

from __future__ import annotations

from typing import Any

from opwest.importers.models.execute.registry import Arrays, executes
from opwest.importers.models.interpret import normalisation as rules
from opwest.importers.models.ir import normalisation as ir


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
