# SPDX-License-Identifier: Apache-2.0
"""Functions of elements: sums as linear functions, others with multiplications that round twice."""

from __future__ import annotations

from typing import Any

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.emission.function import Call, emits
from opwest.compiler.ir.elements import (
    AddQuantised,
    AddShifted,
    Clamped,
    Dequantised,
    Plain,
    Prelu,
    Product,
    Quantised,
    Rescaled,
    SquaredDifference,
)
from opwest.compiler.ir.operations import Elementwise
from opwest.compiler.kernels.mve.conversions import conversion_call
from opwest.compiler.kernels.mve.linear import linear_of, linear_turn
from opwest.compiler.kernels.mve.rescaled import rescaled_turn
from opwest.compiler.kernels.mve.rows import Rows, Turn, call_of_turn, rows_of
from opwest.compiler.kernels.mve.saturated import extreme_turn, shifted_turn
from opwest.compiler.kernels.mve.twice import prelu_turn, product_turn, sum_turn


@emits(Elementwise, "mve-words", has_pitch=True)
def render_elements(operation: Elementwise) -> Call | None:
    """Return the call; None for other functions and dtypes."""
    dtypes = {value.dtype for value in operation.inputs}
    if len(dtypes) != 1 or len(operation.inputs) > 2:
        return None
    [dtype] = dtypes
    if isinstance(operation.function, Quantised | Dequantised):
        return None if operation.results[0].pitch else conversion_call(operation, operation.function)
    turn = _turn_of(operation.function, dtype, operation.results[0].dtype, rows_of(operation))
    return None if turn is None else call_of_turn(operation, turn)


def _turn_of(function: Any, dtype: str, result: str, rows: Rows) -> Turn | None:
    """Return the instructions for some elements; None for other functions and dtypes."""
    if isinstance(function, Rescaled):
        return rescaled_turn(function.numbers, dtype, result, rows)
    if dtype != result:
        return None
    if isinstance(function, Plain | Clamped):
        return extreme_turn(function, dtype, rows)
    if isinstance(function, AddShifted):
        return shifted_turn(function, rows)
    if dtype not in ("int8", "int16") or not isinstance(function, AddQuantised | Product | SquaredDifference | Prelu):
        return None
    if dtype == "int16" and any((*function.numbers.zeros, function.numbers.zero)):
        return None
    if isinstance(function, Product):
        return product_turn(function.numbers, dtype, rows)
    if isinstance(function, Prelu):
        return prelu_turn(function.numbers, dtype, rows)
    linear = None
    if isinstance(function, AddQuantised) and dtype == "int8":
        linear = linear_of(function, rows.operands, rows.is_scalar)
    return sum_turn(function, dtype, rows) if linear is None else linear_turn(linear, rows)


@dataclass(frozen=True, eq=False)
class Loop:
    """The C function void f(a, b, numbers, result, count) and its numbers."""

    name: str
    text: str
    numbers: Any


def loop_of(function: AddQuantised, group: int) -> Loop | None:
    """Return the loop over the int8 elements of two arrays, whose number is a multiple of `group`."""
    turn = _turn_of(function, "int8", "int8", Rows(group, 1, group, (0, 1), False, (0, 0), (), ((), ())))
    return None if turn is None else Loop(*turn.function(has_count=True), turn.numbers())
