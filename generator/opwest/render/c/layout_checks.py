# SPDX-License-Identifier: Apache-2.0
"""Compile-time checks in <model>_devices.c: structures have the same layout in C and in LLVM's objects."""

from __future__ import annotations

from collections.abc import Iterator

from opwest.model.model import Model
from opwest.plan.memory import MemoryPlan
from opwest.records import dataclass
from opwest.render.c.printer import c_layout
from opwest.render.records import layout
from opwest.render.records.types import Struct
from opwest.render.records.workspace import workspace_struct


@dataclass(frozen=True, slots=True)
class LayoutChecks:
    """The checks, and the headers that they need besides the model's."""

    headers: tuple[str, ...]
    asserts: tuple[str, ...]


def layout_checks(model: Model, plan: MemoryPlan) -> LayoutChecks:
    """Return the checks of every structure that the model's object defines or accesses."""
    always = (s for s in layout.METADATA if s not in (*_OF_DEVICES, *_OF_STATE))
    structs = [layout.VALUE, layout.STATUS, layout.MEASURE, *always]
    if model.devices:
        structs += [*_OF_DEVICES, layout.LAUNCH, layout.SLOT]
    if model.states:
        structs += _OF_STATE
    if any(operator.workspace for operator in model.operators):
        structs.append(layout.TVM_WORKSPACE)
    asserts = [_assert("OPWEST_METADATA_VERSION", str(layout.METADATA_VERSION), _VERSION_FAULT)]
    for struct in structs:
        asserts += _checks(struct)
    workspace = workspace_struct(model, plan)
    places = c_layout(workspace)
    asserts += [_offset(workspace, field.name, places) for field in workspace.fields]
    return LayoutChecks(tuple(sorted({s.header for s in structs})), tuple(asserts))


_OF_DEVICES = (layout.PROGRAM, layout.DEVICE_USE, layout.DEVICE_SET)
_OF_STATE = (layout.STATE_TENSOR, layout.STATE)
_VERSION_FAULT = "generated for another opwest runtime: generate again"


def _checks(struct: Struct) -> Iterator[str]:
    """Yield the checks of the size and of the last field: one of them fails with different layout rules."""
    places = c_layout(struct)
    yield _assert(f"sizeof({struct.c_type})", places[""], struct.c_type)
    yield _offset(struct, struct.fields[-1].name, places)


def _offset(struct: Struct, field: str, places: dict[str, str]) -> str:
    return _assert(f"offsetof({struct.c_type}, {field})", places[field], f"{struct.c_type}: {field}")


def _assert(found: str, expected: str, fault: str) -> str:
    return f'BUILD_ASSERT({found} == {expected}, "{fault}");'
