# SPDX-License-Identifier: Apache-2.0
"""Functions to which their compiler gave another calling convention than the manifest."""

from __future__ import annotations

from opwest.diagnostics import Diagnostics
from opwest.model.conventions import MEMREF
from opwest.model.files import Linkable
from opwest.model.model import Operator
from opwest.objects.facts import CSource
from opwest.objects.origins import HEAP, origin_of


def reports_foreign(faults: Diagnostics, operator: Operator, one: Linkable, with_heap: set[str]) -> bool:
    """Report a function of Halide or MLIR with another calling convention than its operator; return whether it is one.

    `with_heap` contains the files whose use of a heap was reported.
    """
    origin = origin_of(operator.symbol, one.item)
    if origin is None or origin.tool not in ("Halide", "MLIR"):
        return False
    _check_heap(faults, operator, one, with_heap)
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


def _check_heap(faults: Diagnostics, operator: Operator, one: Linkable, with_heap: set[str]) -> None:
    """Report a function of MLIR in an object that allocates memory: it would be a heap's."""
    used = {*one.item.calls} if isinstance(one.item, CSource) else {*one.item.undefined_strong}
    allocated = sorted(used & HEAP)
    if operator.convention is MEMREF and allocated and one.name not in with_heap:
        with_heap.add(one.name)
        faults.error(
            f"{one.name} calls {allocated[0]!r}: the memory of memref operators would come from a heap",
            one.location,
            expected="functions without memref.alloc",
            hint="pass the memory as an argument with direction: scratch, or use -promote-buffers-to-stack and "
            "-buffer-results-to-out-params",
        )
