# SPDX-License-Identifier: Apache-2.0
"""The metadata module and the function registry: the tables of the model, and the adapters of operators."""

from __future__ import annotations

from typing import Any

from opwest.model.builds import ANY_TARGET
from opwest.model.c_names import CNames
from opwest.model.model import Model, Operator
from opwest.render.c.printer import c_definitions
from opwest.render.c.run import call_text
from opwest.render.records.details import TARGET_OF_C
from opwest.render.records.model_records import ModelRecords, callable_by_name
from opwest.render.templates.renderer import Renderer
from opwest.render.tensors import manifest_name


def render_metadata(render: Renderer, model: Model, records: ModelRecords) -> bytes:
    """Return src/<model>_metadata.c."""
    return render(
        "models/model/src/model_metadata.c",
        model=model.name,
        manifest=manifest_name(model),
        any_target=ANY_TARGET,
        target_symbol=TARGET_OF_C,
        definitions=c_definitions((*records.metadata, *records.details)),
    )


def render_registry(render: Renderer, model: Model, records: ModelRecords) -> bytes:
    """Return src/<model>_registry.c."""
    names = CNames(model.name)
    return render(
        "models/model/src/model_registry.c",
        model=model.name,
        manifest=manifest_name(model),
        on_devices=any(operator.takes_device for operator in model.operators),
        adapters=[_adapter_row(names, operator) for operator in model.operators if callable_by_name(operator)],
        definitions=c_definitions(records.registry),
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
