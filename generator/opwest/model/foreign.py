# SPDX-License-Identifier: Apache-2.0
"""Functions to which their compiler gave another calling convention than the manifest."""

from __future__ import annotations

from opwest.diagnostics import Diagnostics
from opwest.model.files import Linkable
from opwest.model.model import Operator
from opwest.objects.origins import origin_of


def reports_foreign(faults: Diagnostics, operator: Operator, one: Linkable) -> bool:
    """Report a function of Halide or MLIR with another calling convention than its operator; whether it is one."""
    origin = origin_of(operator.symbol, one.item)
    if origin is None or origin.tool not in ("Halide", "MLIR"):
        return False
    if (operator.convention.name, operator.symbol) == (origin.convention, origin.symbol):
        return False
    symbol = f", symbol: {origin.symbol}" if operator.symbol != origin.symbol else ""
    faults.error(
        f"{one.name}: operator {operator.name!r} is {operator.convention.name}, "
        f"but {origin.tool} compiled the function {operator.symbol!r}",
        operator.location,
        expected=f"convention: {origin.convention}{symbol}",
        hint=f"the object {origin.evidence}",
    )
    return True
