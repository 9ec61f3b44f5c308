# SPDX-License-Identifier: Apache-2.0
"""Arguments that a manifest declares as inputs and whose operator writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opwest.base.diagnostics import Diagnostics
from opwest.model.types.model import Argument, Operator
from opwest.objects.dwarf_types import DwarfType
from opwest.objects.facts import CFunction, CSource
from opwest.objects.nim_source import NIM_TYPES
from opwest.objects.tvm_symbols import GENERATED

if TYPE_CHECKING:
    from opwest.objects.c_writes import Written

_EITHER = "direction: out, or inout if the operator also reads it"


def points_to_const(parameter: DwarfType) -> bool | None:
    """Return whether the type that a pointer refers to is const; None if unknown, and in Nim, which has no const."""
    target = parameter.target if parameter.kind == "pointer" else None
    return None if target is None or target.kind == "unknown" or target.names & NIM_TYPES else target.const


def takes_plain_pointers(operator: Operator) -> bool:
    """Whether `const` shows what an operator writes: neither for descriptors of tensors nor in generated code."""
    return operator.convention.is_plain and not operator.symbol.startswith(GENERATED)


def written_by_source(source: CSource, operator: Operator, function: CFunction) -> dict[str, Written]:
    """Return the arguments that the text of a function writes, by their names in the manifest."""
    if not takes_plain_pointers(operator):
        return {}
    from opwest.objects.c_writes import written_parameters  # models of objects do not need it

    found = written_parameters(source, function)
    pairs = zip(operator.passing, function.parameter_types, strict=False)  # the device follows
    return {one.name: found[seen.name] for one, seen in pairs if one.argument is not None and seen.name in found}


def report_written(
    faults: Diagnostics, place: str, operator: Operator, argument: Argument, direction: Written | None
) -> None:
    """Report an input that a function writes; `direction` is what its code shows, None for out or inout."""
    faults.warning(
        f"{place}: function {operator.symbol!r} writes the input {argument.name!r}",
        argument.location,
        expected=f"direction: {direction}" if direction else _EITHER,
    )
