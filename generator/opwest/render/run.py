# SPDX-License-Identifier: Apache-2.0
"""Rows of the ahead-of-time executor and of what the generated sources share."""

from __future__ import annotations

from typing import Any

from opwest.model.c_names import CNames
from opwest.model.model import Argument, Binding, Model, Operator, Step
from opwest.plan.memory import MemoryPlan
from opwest.render.header import pool_rows
from opwest.render.literals import c_comment, c_number
from opwest.render.templates import render
from opwest.render.tensors import interface_rows, manifest_name

METADATA_VERSION = 1
"""OPWEST_METADATA_VERSION of the runtime that generated code is made for."""
WIDTH = 100


def render_run(model: Model, plan: MemoryPlan) -> bytes:
    """Return src/<model>_run.c."""
    names = CNames(model.name)
    tensors = interface_rows(model)
    places = {b.name: f"pool_{b.pool} + {plan.place(b.pool, b.name)}" for b in model.buffers}
    return render(
        "models/model/src/model_run.c",
        model=model.name,
        manifest=manifest_name(model),
        inputs=[t for t in tensors if t["role"] == "input"],
        outputs=[t for t in tensors if t["role"] == "output"],
        pools=pool_rows(model, plan),
        devices=[d.name for d in model.devices],
        steps=[_step_row(names, places, step) for step in model.steps],
        has_status=any(step.operator.returns_status for step in model.steps),
    )


def _step_row(names: CNames, places: dict[str, str], step: Step) -> dict[str, Any]:
    args = [_expression(names, places, a, b) for a, b in zip(step.operator.args, step.bindings, strict=True)]
    if step.operator.takes_device:
        args.append(f"devices->{step.device}")
    shown = ", ".join(b.name if b.role != "scalar" else str(b.value) for b in step.bindings)
    head = ("status = " if step.operator.returns_status else "") + names.operator(step.operator.symbol)
    return {
        "index": step.index,
        "comment": f"Step {step.index}: {step.operator.name}"
        + (f" on {step.device}" if step.device else "")
        + f" ({c_comment(shown)})",
        "call": call_text(head, args).removeprefix("status = "),
        "has_status": step.operator.returns_status,
    }


def _expression(names: CNames, places: dict[str, str], argument: Argument, binding: Binding) -> str:
    """Return the C expression that a step passes for one argument."""
    if binding.role == "input":
        return f"inputs->{binding.name}"
    if binding.role == "output":
        return f"outputs->{binding.name}"
    if binding.role == "constant":
        return names.constant(binding.name)
    if binding.role == "scalar":
        return c_number(binding.value, argument.type.dtype)
    const = "const " if argument.direction == "in" else ""
    return f"({const}{argument.type.dtype.c_type} *)(void *)({places[binding.name]})"


def call_text(head: str, args: list[str]) -> str:
    """Return a call, broken where a line would pass 100 columns (tabs count 8)."""
    lines: list[str] = []
    line = f"{head}("
    for index, arg in enumerate(args):
        piece = arg + (", " if index + 1 < len(args) else ")")
        width = (8 if not lines else 16) + len(line) + len(piece.rstrip())
        if width > WIDTH and not line.endswith("("):
            lines.append(line.rstrip())
            line = ""
        line += piece
    lines.append(line if args else f"{line})")
    return "\n\t\t".join(lines)


def render_internal(model: Model) -> bytes:
    """Return src/<model>_internal.h."""
    names = CNames(model.name)
    by_symbol: dict[str, Operator] = {}
    for operator in model.operators:
        by_symbol.setdefault(operator.symbol, operator)
    return render(
        "models/model/src/model_internal.h",
        model=model.name,
        guard=f"OPWEST_MODEL_{names.macro}_INTERNAL_H_",
        metadata_version=METADATA_VERSION,
        prototypes=[_prototype(names, operator) for operator in by_symbol.values()],
        constants=[
            {"symbol": names.constant(c.name), "c_type": c.type.dtype.c_type, "elements": c.type.elements}
            for c in model.constants
        ],
        operator_count=len(model.operators),
    )


def _prototype(names: CNames, operator: Operator) -> str:
    types = [a.c_type for a in operator.args]
    if operator.takes_device:
        types.append("const struct device *")
    returns = "int32_t" if operator.returns_status else "void"
    return call_text(f"{returns} {names.operator(operator.symbol)}", types).replace("\n\t\t", "\n\t")
