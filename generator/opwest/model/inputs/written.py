# SPDX-License-Identifier: Apache-2.0
"""Arguments that a manifest declares as inputs and whose operator writes them."""

from __future__ import annotations

from itertools import chain

from opwest.base.diagnostics import Diagnostics
from opwest.model.inputs.files import Files, Linkable
from opwest.model.types.model import Argument, Operator
from opwest.objects.c_writes import Written, written_parameters
from opwest.objects.dwarf_signatures import signatures
from opwest.objects.dwarf_types import DwarfType
from opwest.objects.facts import CFunction, CSource, Member
from opwest.objects.tvm_symbols import GENERATED

_EITHER = "direction: out, or inout if the operator also reads it"


def points_to_const(parameter: DwarfType) -> bool | None:
    """Return whether the type that a pointer refers to is const; None if unknown."""
    target = parameter.target if parameter.kind == "pointer" else None
    return None if target is None or target.kind == "unknown" else target.const


def takes_plain_pointers(operator: Operator) -> bool:
    """Whether `const` shows what an operator writes: neither for descriptors of tensors nor in generated code."""
    convention = operator.convention
    return convention.arrays is None and convention.descriptors is None and not operator.symbol.startswith(GENERATED)


def written_by_source(source: CSource, operator: Operator, function: CFunction) -> dict[str, Written]:
    """Return the arguments that the text of a function writes, by their names in the manifest."""
    if not takes_plain_pointers(operator):
        return {}
    found = written_parameters(source, function)
    pairs = zip(operator.passed, function.parameter_types, strict=False)  # the device follows
    return {argument.name: found[seen.name] for argument, seen in pairs if seen.name in found}


def report_written(
    faults: Diagnostics, place: str, operator: Operator, argument: Argument, direction: Written | None
) -> None:
    """Report an input that a function writes; `direction` is what its code shows, None for out or inout."""
    faults.warning(
        f"{place}: function {operator.symbol!r} writes the input {argument.name!r}",
        argument.location,
        expected=f"direction: {direction}" if direction else _EITHER,
    )


def direction_hint(files: Files, operator: Operator, argument: Argument, other: str | None) -> str | None:
    """Return the hint for an input of an operator whose tensor has no content: it may be an output.

    `other` is another hint, which is better than a guess.
    """
    if argument.scalar or argument not in operator.passed:
        return other
    index = operator.passed.index(argument)
    what = f"{operator.name!r} {{}} {argument.name!r}: direction: {{}}?"
    for _, module in files.modules:
        for function in module.functions:
            uses = function.uses[index : index + 1] if function.name == operator.symbol else ()
            if any(use.access in ("writes", "stores") for use in uses):
                return what.format("writes", "out")
    constant = None if takes_plain_pointers(operator) else True
    for linkable in chain(files.sources, *files.targets.values()) if constant is None else ():
        constant = _is_const(linkable, operator, index)
        if constant is False:
            item = linkable.item
            known = {} if isinstance(item, Member) else linkable.c_functions
            shown = written_by_source(item, operator, known[operator.symbol]) if isinstance(item, CSource) else {}
            if argument.name in shown:
                return what.format("writes", shown[argument.name])
            return what.format("has no const at", "out")
    if constant or (other or "").startswith("did you mean"):
        return other
    guess = f"if {operator.name!r} writes {argument.name!r}, declare direction: out"
    return f"{other}; {guess}" if other else guess


def _is_const(linkable: Linkable, operator: Operator, index: int) -> bool | None:
    """Return whether a parameter of the operator's function points to a const type; None if unknown."""
    item = linkable.item
    if isinstance(item, CSource):
        function = linkable.c_functions.get(operator.symbol)
        types = function.parameter_types if function else ()
        return types[index].const if index < len(types) else None
    known = signatures(item) if item.has_debug_information and operator.symbol in linkable.defined_functions else None
    if not isinstance(known, dict) or operator.symbol not in known:
        return None
    parameters = known[operator.symbol].parameters
    return points_to_const(parameters[index]) if index < len(parameters) else None
