# SPDX-License-Identifier: Apache-2.0
"""Hints for an argument without `direction: out` that its operator writes."""

from __future__ import annotations

from itertools import chain

from opwest.model.inputs.files import Files, Linkable
from opwest.model.inputs.written import points_to_const, takes_plain_pointers, written_by_source
from opwest.model.types.model import Argument, Operator
from opwest.objects.dwarf_signatures import signatures
from opwest.objects.facts import CSource, Member


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
