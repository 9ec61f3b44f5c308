# SPDX-License-Identifier: Apache-2.0
"""The metadata module and the function registry: the tables of the model, and the adapters of operators."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from opwest.model.types.builds import ANY_TARGET
from opwest.model.types.c_names import CNames
from opwest.model.types.model import Model, Operator
from opwest.plan.memory import MemoryPlan
from opwest.render.c.printer import c_definitions, c_layout
from opwest.render.c.run import call_text
from opwest.render.tables import layout
from opwest.render.tables.details import TARGET_OF_C
from opwest.render.tables.model import ModelTables, callable_by_name
from opwest.render.tables.tensors import workspace_struct
from opwest.render.tables.types import Struct
from opwest.render.templates.renderer import Renderer
from opwest.render.tensors import heading


def render_metadata(render: Renderer, model: Model, tables: ModelTables) -> bytes:
    """Return src/<model>_metadata.c."""
    names = CNames(model.name)
    return render(
        "models/model/src/model_metadata.c",
        **heading(model),
        any_target=ANY_TARGET,
        target_symbol=TARGET_OF_C,
        definitions=c_definitions((*tables.metadata, *tables.details)),
        on_devices=any(operator.takes_device for operator in model.operators),
        adapters=[_adapter_row(names, operator) for operator in model.operators if callable_by_name(operator)],
        registry=c_definitions(tables.registry),
    )


def _adapter_row(names: CNames, operator: Operator) -> dict[str, Any]:
    args = []
    for index, argument in enumerate(operator.args):
        value = f"args[{index}].as"
        if argument.scalar:
            member = "real" if argument.type.dtype.is_float else "integer"
            args.append(f"({argument.type.dtype.c_type}){value}.{member}")
        else:
            args.append(f"{value}.in" if argument.direction == "in" else f"{value}.out")
    if operator.takes_device:
        args.append("launch" if operator.takes_launch else "launch->dev")
    return {
        "name": names.adapter(operator.name),
        "call": call_text(names.callee(operator), args),
        "has_status": operator.returns_status,
        "unused_device": not operator.takes_device,
    }


def layout_checks(model: Model, plan: MemoryPlan) -> dict[str, list[str]]:
    """Return the checks of every structure that the model's object defines or accesses, and the runtime's headers.

    The structures of measured points exist only in images that use them.
    """
    always = (s for s in layout.METADATA if s not in (*_OF_DEVICES, *_OF_STATE))
    structs = [layout.VALUE, layout.STATUS, layout.MEASURE, *always]
    if model.devices:
        structs += [*_OF_DEVICES, layout.LAUNCH, layout.SLOT]
    if model.states:
        structs += _OF_STATE
    if any(operator.workspace for operator in model.operators):
        structs.append(layout.TVM_WORKSPACE)
    asserts = [_assert("OPWEST_METADATA_VERSION", str(layout.METADATA_VERSION), _VERSION_FAULT)]
    of_points = [struct for struct in structs if struct.header == layout.PROFILE_HEADER]
    others = [struct for struct in structs if struct not in of_points]
    for struct in others:
        asserts += _checks(struct)
    workspace = workspace_struct(model, plan)
    places = c_layout(workspace)
    asserts += [_offset(workspace, field.name, places) for field in workspace.fields]
    return {
        "headers": sorted({struct.header for struct in others}),
        "asserts": asserts,
        "points": [check for struct in of_points for check in _checks(struct)],
    }


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


def _assert(expression: str, expected: str, fault: str) -> str:
    return f'BUILD_ASSERT({expression} == {expected}, "{fault}");'
