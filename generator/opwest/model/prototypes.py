# SPDX-License-Identifier: Apache-2.0
"""The declared signature of an operator beside what its C source, or its object's debug information, shows."""

from __future__ import annotations

from opwest.diagnostics import Diagnostics
from opwest.model.model import Operator
from opwest.objects.dwarf import DwarfSignature, WantedParameter, compare
from opwest.objects.facts import CSource


def check_prototype(faults: Diagnostics, operator: Operator, file: str, source: CSource) -> None:
    """Compare what a C source shows of a function with the manifest: count of parameters, void or not."""
    function = next((f for f in source.functions if f.name == operator.symbol and not f.is_static), None)
    if function is None:
        return  # made by a macro: declared in entry_points
    expected = len(operator.args) + operator.takes_device
    at = operator.location
    if function.parameters is not None and function.parameters != expected:
        device = " and its device" if operator.takes_device else ""
        faults.error(
            f"{file}:{function.line}: function {function.name!r} has {function.parameters} parameters, "
            f"operator {operator.name!r} has {len(operator.args)} arguments{device}",
            at,
            expected=f"{expected} parameters",
        )
    if (function.returns == "void") == operator.returns_status:
        says = "status (the default)" if operator.returns_status else "void"
        faults.error(
            f"{file}:{function.line}: function {function.name!r} returns {function.returns}, "
            f"operator {operator.name!r} returns {says}",
            at,
            expected="returns: void" if operator.returns_status else "returns: status",
        )


def check_debug_information(faults: Diagnostics, operator: Operator, file: str, signature: DwarfSignature) -> None:
    """Compare what DWARF says of a function with the manifest: every type."""
    wanted = [WantedParameter(a.name, a.c_type) for a in operator.args]
    if operator.takes_device:
        wanted.append(WantedParameter("device", "const struct device *"))
    for difference in compare(signature, operator.returns_status, wanted):
        faults.error(
            f"{file}: function {operator.symbol!r} does not fit operator {operator.name!r}: {difference}",
            operator.location,
            expected=operator.prototype,
        )
