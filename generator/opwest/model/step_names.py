# SPDX-License-Identifier: Apache-2.0
"""The names in steps, collected before resolution: roles, first writers, types of raw constants."""

from __future__ import annotations

from collections.abc import Iterable

from opwest.diagnostics import Location
from opwest.model.context import Context
from opwest.model.devices import Device
from opwest.model.dtypes import TensorType
from opwest.model.model import Constant, Interface, Operator, Pool, State, View
from opwest.model.programs import Programs
from opwest.model.repeats import listed_steps
from opwest.records import dataclass


@dataclass
class Names:
    """The names that a step may use."""

    programs: Programs
    operators: dict[str, Operator]
    devices: dict[str, Device]
    pools: dict[str, Pool]
    inputs: dict[str, Interface]
    outputs: dict[str, Interface]
    constants: dict[str, Constant]
    declared_constants: Iterable[str]
    states: dict[str, State]
    views: dict[str, View]

    def root(self, name: str) -> str:
        """Return the tensor that contains a view; the name itself for any other tensor."""
        return self.views[name].root if name in self.views else name


def constant_types(context: Context, operators: dict[str, Operator]) -> dict[str, TensorType]:
    """Return for each constant the type that its first reader requires, for raw files without a type."""
    required: dict[str, TensorType] = {}
    declared = context.section("constants")
    for entry, _ in listed_steps(context):
        operator = operators.get(entry["call"])
        if operator is not None:
            for argument, given in zip(operator.step_args, entry["args"], strict=False):
                if isinstance(given, str) and given in declared:
                    required.setdefault(given, argument.type)
    return required


def check_roles(context: Context) -> set[str]:
    """Report and return names that are declared in two roles."""
    run = context.section("run")
    twofold: set[str] = set()
    roles: dict[str, tuple[str, Location]] = {}
    for role, section in (
        ("input", context.section("inputs", run)),
        ("output", context.section("outputs", run)),
        ("constant", context.section("constants")),
        ("state", context.section("state", run)),
        ("intermediate tensor", context.section("tensors", run)),
    ):
        for name in section:
            at = section.key_location(name)
            if name in roles:
                other, first = roles[name]
                context.faults.error(
                    f"{name!r} is declared both as {role} and as {other}",
                    at,
                    expected="one declaration per name",
                    hint=f"first defined at line {first.line}",
                )
                twofold.add(name)
            else:
                roles[name] = (role, at)
    return twofold


def first_writers(context: Context, names: Names) -> dict[str, int]:
    """Return for every tensor the index of the first step that writes it or a part of it."""
    writers: dict[str, int] = {}
    for index, (entry, _) in enumerate(listed_steps(context)):
        operator = names.operators.get(entry["call"])
        if operator is not None and len(entry["args"]) == len(operator.step_args):
            for argument, given in zip(operator.step_args, entry["args"], strict=True):
                if argument.is_written and isinstance(given, str):
                    writers.setdefault(names.root(given), index)
    return writers


def named_by_unknown_operators(context: Context, names: Names) -> set[str]:
    """Return the tensors of steps with an undefined operator, whose directions are unknown."""
    return {
        names.root(given)
        for entry, _ in listed_steps(context)
        if entry["call"] not in names.operators
        for given in (*entry["args"], entry.get("device"))
        if isinstance(given, str)
    }
