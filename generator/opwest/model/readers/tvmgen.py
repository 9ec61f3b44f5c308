# SPDX-License-Identifier: Apache-2.0
"""The key `compat.tvmgen`: microTVM's C interface for applications (`interface_c.cc` of TVM 0.9 to 0.18)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from opwest.base.diagnostics import Diagnostics, nearest
from opwest.base.frozen_dataclass import dataclass
from opwest.manifest.located import Mapping
from opwest.model.inputs.context import Context, located_items
from opwest.model.types.c_names import CNames, check_name
from opwest.model.types.model import Interface, Model, Operator
from opwest.model.types.sections import Device, Tvmgen


@dataclass(frozen=True, slots=True)
class Row:
    """One function of the table: its name there, and its symbol."""

    name: str
    symbol: str


@dataclass(frozen=True, slots=True)
class Library:
    """The table of an application, and the model that defines it."""

    lead: str
    rows: tuple[Row, ...]


def table_of(manifest: Mapping) -> Literal["tvm-crt", "tvm-crt-all"] | None:
    """Return the operators of the table in microTVM's layout; None if the manifest requests no table."""
    compat = manifest.get("compat")
    table = compat.get("table") if isinstance(compat, Mapping) else compat
    return table if table in ("tvm-crt", "tvm-crt-all") else None


def system_library(models: Sequence[Model]) -> Library | None:
    """Return the table of all models that request it; None if there is none."""
    asking = [model for model in models if model.compat]
    if not asking:
        return None
    return Library(asking[0].name, tuple(row for model in asking for row in rows(model)))


def rows(model: Model) -> list[Row]:
    """Return the functions of one model, under the names in TVM's table."""
    names = CNames(model.name)
    by_name: dict[str, Row] = {}
    for operator in model.operators:
        if operator.convention.is_of_system_library:
            by_name.setdefault(operator.symbol, Row(operator.symbol, names.operator(operator.symbol)))
        elif model.compat == "tvm-crt-all":
            by_name.setdefault(operator.name, Row(operator.name, names.packed_adapter(operator.name)))
    return list(by_name.values())


def adapted(model: Model) -> list[Operator]:
    """Return the operators that need an adapter."""
    if model.compat != "tvm-crt-all":
        return []
    return [operator for operator in model.operators if not operator.convention.is_of_system_library]


def tvmgen(
    context: Context, model: str, inputs: Sequence[Interface], outputs: Sequence[Interface], devices: Sequence[Device]
) -> Tvmgen | None:
    """Return the names of the interface; None if the manifest does not request it."""
    manifest = context.manifest
    compat = manifest.get("compat")
    if compat == "tvmgen":
        return Tvmgen(model, (), (), manifest.value_location("compat"))
    if not isinstance(compat, Mapping) or "tvmgen" not in compat:
        return None
    entry = context.section("tvmgen", compat)
    at = entry.value_location("module")
    module = entry.get("module", model)
    check_name("interface", f"tvmgen_{module}", at, context.faults)
    pools = tuple(context.items("workspace_pools", entry))
    for name, place in located_items(context.items("workspace_pools", entry)):
        check_name("workspace pool", name, place, context.faults)
    groups = {
        "inputs": [tensor.name for tensor in inputs],
        "outputs": [output.name for output in outputs],
        "devices": [device.name for device in devices],
    }
    names = _names(context, entry, groups)
    return Tvmgen(module, names, pools, at)


def _names(context: Context, entry: Mapping, groups: dict[str, list[str]]) -> tuple[tuple[str, str], ...]:
    """Return the other names of members; report unknown tensors and two members of one name."""
    section = context.section("names", entry)
    known = [name for group in groups.values() for name in group]
    for name, member in section.items():
        if name not in known:
            context.faults.error(
                f"unknown input, output or device {name!r}", section.key_location(name), hint=nearest(name, known)
            )
        else:
            check_name("member", member, section.value_location(name), context.faults)
    for what, group in groups.items():
        first: dict[str, str] = {}
        for name in group:
            member = section.get(name, name)
            other = first.setdefault(member, name)
            if other != name:
                context.faults.error(
                    f"{what} {other!r} and {name!r} have the same member name {member!r}",
                    section.value_location(name if name in section else other),
                    expected="unique names",
                )
    return tuple((name, member) for name, member in section.items() if name in known)


def check_interfaces(models: Sequence[Model], faults: Diagnostics) -> None:
    """Report two interfaces of one name, and a model with the name of an interface."""
    first: dict[str, Model] = {}
    names = {model.name.lower(): model for model in models}
    for model in models:
        if model.tvmgen is None:
            continue
        module = model.tvmgen.module
        other = first.setdefault(module.lower(), model)
        if other is not model:
            faults.error(
                f"duplicate interface '{model.tvmgen.prefix}' of models {other.name!r} and {model.name!r}",
                model.tvmgen.location,
                expected="unique modules",
                hint="change 'module' of one of them",
            )
        named = names.get(model.tvmgen.prefix.lower())
        if named is not None:
            faults.error(
                f"model {named.name!r} has the name of the interface of model {model.name!r}",
                named.location,
                expected="another model name",
            )
