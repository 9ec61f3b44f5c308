# SPDX-License-Identifier: Apache-2.0
"""The names of values in the manifest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from opwest.importers.models.emit.emit import Emitted
from opwest.importers.models.ir.program import Program, Value
from opwest.importers.text import free_name, identifier


def name_values(program: Program, emitted: Emitted, own: Sequence[Value] = ()) -> Mapping[Value, str]:
    """Return names: those of the model where they are usable, numbered names for intermediate tensors.

    Values in `own` keep their names.
    """
    names: dict[Value, str] = {value: value.name for value in own}
    taken: set[str] = set(names.values())
    for role, values in (("input", program.inputs), ("output", program.outputs), ("state", program.states)):
        for value in values:
            names[value] = free_name(identifier(value.name, role), taken)
    count = 0
    for number, step in enumerate(emitted.steps):
        for value in step.arguments:
            for one in with_roots(value):
                if one in names:
                    continue
                if one.role == "constant":
                    names[one] = free_name(f"{step.function.base}_{number}_{one.name}", taken)
                else:
                    names[one] = free_name(f"t{count}", taken)
                    count += 1
    return names


def with_roots(value: Value) -> list[Value]:
    """Return a view after the values that contain it, the one with the memory first."""
    return [value] if value.root is None else [*with_roots(value.root), value]


def declared(value: Value) -> Value:
    """Return the value that steps name: a view of all elements is its root."""
    while (
        value.root is not None
        and value.root.role != "arena"
        and value.root.size == value.size
        and value.root.dtype == value.dtype
        and value.root.pitch == value.pitch
    ):
        value = value.root
    return value
