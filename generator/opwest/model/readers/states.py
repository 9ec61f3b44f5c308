# SPDX-License-Identifier: Apache-2.0
"""Resolve `run.state`: tensors whose content lasts from one run to the next."""

from __future__ import annotations

from opwest.manifest.located import Mapping
from opwest.model.inputs.context import Context, quantization, tensor_type
from opwest.model.readers.constants import read_content
from opwest.model.readers.scalars import element
from opwest.model.types.dtypes import TensorType
from opwest.model.types.identifiers import check_name
from opwest.model.types.model import DEFAULT_ALIGNMENT, Binding, Constant, State, scalar_type

ZEROS = "zeros"


def states(context: Context) -> tuple[dict[str, State], list[Constant]]:
    """Return the states by name, and the constants with their initial contents."""
    section = context.section("state", context.section("run"))
    constants = context.section("constants")
    found: dict[str, State] = {}
    initials: list[Constant] = []
    for name, entry in section.items():
        at = section.key_location(name)
        check_name("state", name, at, context.faults)
        type_ = tensor_type(context, entry)
        initial = _initial(context, name, entry, type_)
        if initial and initial.name in constants:
            context.faults.error(
                f"constant {initial.name!r} has the name of the initial content of state {name!r}",
                constants.key_location(initial.name),
                expected="another name",
            )
        elif initial:
            initials.append(initial)
        found[name] = State(
            name=name,
            type=type_,
            align=max(entry.get("align", 1), type_.dtype.size),
            quantization=quantization(context, entry, type_),
            description=entry.get("description"),
            initial=initial.name if initial else None,
            next=Binding("buffer", entry["next"]) if "next" in entry else None,
            pool=entry.get("pool"),
            location=at,
        )
    return found, initials


def _initial(context: Context, name: str, entry: Mapping, type_: TensorType) -> Constant | None:
    """Return the constant with the initial content, or one element for all; None for zeros."""
    given = entry.get("initial", ZEROS)
    if given == ZEROS:
        return None
    at = entry.value_location("initial")
    what = f"the initial content of state {name!r}"
    if isinstance(given, Mapping):
        read = read_content(context, what, name, given, entry, type_)
        if read is None:
            return None
        content = read.content
    else:
        value = element(context.faults, what, type_.dtype, given, at)
        if value is None or not any(value):
            return None
        type_, content = scalar_type(type_.dtype), value
    align = max(type_.dtype.size, DEFAULT_ALIGNMENT)
    return Constant(f"{name}_initial", type_, content, align, None, None, at)
