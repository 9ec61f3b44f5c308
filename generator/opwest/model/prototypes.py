# SPDX-License-Identifier: Apache-2.0
"""The declared signature of an operator beside what its C source, or its object's debug information, shows."""

from __future__ import annotations

from opwest.diagnostics import Diagnostics
from opwest.model.dtypes import DTYPES
from opwest.model.model import Argument, Operator
from opwest.objects.dwarf import DwarfSignature, WantedParameter, compare
from opwest.objects.facts import CParameter, CSource


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
    else:
        for argument, seen in zip(operator.args, function.parameter_types, strict=False):
            if not _fits(argument, seen):
                faults.error(
                    f"{file}:{function.line}: function {function.name!r} has the parameter `{seen.text}`, "
                    f"operator {operator.name!r} passes `{argument.c_type.rstrip()}` for {argument.name!r}",
                    at,
                    expected=operator.prototype,
                    hint="compare the order and the dtypes of the arguments",
                )
    if (function.returns == "void") == operator.returns_status:
        says = "status (the default)" if operator.returns_status else "void"
        faults.error(
            f"{file}:{function.line}: function {function.name!r} returns {function.returns}, "
            f"operator {operator.name!r} returns {says}",
            at,
            expected="returns: void" if operator.returns_status else "returns: status",
        )


# What a C type name means, where it is plain: sizes in bytes, of types whose size no target changes.
PLAIN_TYPES = {
    **{name: (name, dtype.size) for name, dtype in ((d.c_type, d) for d in DTYPES.values())},
    "signed char": ("int8_t", 1),
    "unsigned char": ("uint8_t", 1),
    "char": ("int8_t", 1),
    "bool": ("uint8_t", 1),
    "_Bool": ("uint8_t", 1),
    "short": ("int16_t", 2),
    "unsigned short": ("uint16_t", 2),
    "int": ("int32_t", 4),
    "unsigned int": ("uint32_t", 4),
    "unsigned": ("uint32_t", 4),
    "_Float16": ("uint16_t", 2),
    "__fp16": ("uint16_t", 2),
}


def _fits(argument: Argument, seen: CParameter) -> bool:
    """Return whether a parameter can be what the manifest says; typedefs and macros get the benefit of the doubt."""
    known = PLAIN_TYPES.get(seen.base)
    if known is None:
        return True
    if (seen.pointers > 0) == argument.scalar:
        return False
    name, size = known
    dtype = argument.type.dtype
    floats = ("float", "double")
    return seen.pointers > 1 or (size == dtype.size and (name in floats) == (dtype.c_type in floats))


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
