# SPDX-License-Identifier: Apache-2.0
"""Two frames at the same time: src/<model>_stream.c, for both back ends."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from opwest.model.types.c_names import CNames, member_name
from opwest.model.types.model import Binding, Model
from opwest.model.types.sections import STRUCT_LAUNCH
from opwest.plan.memory import MemoryPlan, shared_by_frames
from opwest.render.actions import Cache, Call, Copy, Measured, Wait
from opwest.render.c.header import pool_rows
from opwest.render.c.run import action_row, offset_macros, offset_row
from opwest.render.literals import c_comment
from opwest.render.overlaps import pool_memory, table, tensor_memory
from opwest.render.stream_actions import FrameAction, frame_actions, launch_count
from opwest.render.templates.renderer import Renderer
from opwest.render.tensors import interface_rows, manifest_name

_NO_STEP = "OPWEST_NO_STEP"
_NO_USE = "OPWEST_STREAM_NO_USE"


def render_stream(render: Renderer, model: Model, plan: MemoryPlan) -> dict[str, bytes]:
    """Return the source; nothing if the model does not stream."""
    if not model.streams:
        return {}
    names = CNames(model.name)
    offsets = offset_macros(model)
    shared = shared_by_frames(model)
    places = {
        b.name: f"{'pool' if b.name in shared else 'frame'}_{plan.place(b.name)[0]} + {offsets[b.name]}"
        for b in model.buffers
    }
    listed = frame_actions(model, plan)
    rows = [{**_row(names, places, model, one), "number": number} for number, one in enumerate(listed)]
    used = _used(model, [one.action for one in listed])
    tensors = interface_rows(model)
    pools = [
        {
            **pool,
            "stride": plan.frames[pool["name"]].stride,
            "shared": any(plan.place(name)[0] == pool["name"] for name in used["buffers"] & shared),
            "own": any(plan.place(name)[0] == pool["name"] for name in used["buffers"] - shared),
        }
        for pool in pool_rows(model, plan)
    ]
    return {
        f"src/{model.name}_stream.c": render(
            "models/model/src/model_stream.c",
            model=model.name,
            manifest=manifest_name(model),
            pools=pools,
            offsets=[offset_row(plan, offsets[b.name], b) for b in model.buffers],
            rows=rows,
            uses_inputs=used["inputs"],
            uses_outputs=used["outputs"],
            uses_devices=used["devices"],
            uses_workspace=any(pool["shared"] or pool["own"] for pool in pools) or used["launches"],
            uses_number=any(pool["own"] for pool in pools) or used["inputs"] or used["outputs"],
            launches=launch_count(model),
            placed=[
                {**tensor, "second": f"{_second(model, plan, tensor['name'])} + {offsets[tensor['name']]}"}
                for tensor in tensors
                if tensor["placed"]
            ],
            inputs=[t for t in tensors if t["role"] == "input" and not t["placed"]],
            outputs=[t for t in tensors if t["role"] == "output" and not t["placed"]],
            busy=model.checks.busy,
            **_overlaps(model, plan),
        )
    }


def _overlaps(model: Model, plan: MemoryPlan) -> dict[str, Any]:
    """Return the rows of the checks of buffers and of pools; empty ones if the manifest excludes them."""
    if not model.checks.buffers:
        return {"buffers": [], "buffer_sizes": [], "pool_rows": []}
    pools = [replace(pool, size=plan.frames[pool.name].size) for pool in pool_memory(model, plan)]
    own = [{"place": "stream", "size": "sizeof(*stream)"}, {"place": "state", "size": "sizeof(*state)"}]
    rows = [{"place": f"stream->workspace.{member_name(pool.name)}", "size": f"{pool.size}U"} for pool in pools]
    return {
        "buffers": [
            {
                "place": f"{one.role}s->{member_name(one.name)}",
                "size": f"{one.size}U",
                "role": one.role,
                "index": one.index,
            }
            for one in tensor_memory(model)
        ],
        "buffer_sizes": table(tensor_memory(model), pools),
        "pool_rows": [{**row, "others": [*rows[:index], *own]} for index, row in enumerate(rows)],
    }


def _second(model: Model, plan: MemoryPlan, name: str) -> str:
    """Return the memory of the second frame in the pool of a tensor."""
    pool = plan.place(name)[0]
    return f"stream->workspace.{member_name(pool)} + {plan.frames[pool].stride}U"


def _used(model: Model, listed: list[Measured]) -> dict[str, Any]:
    """Return what the calls use: buffers by name, structures of the caller, devices, launches."""
    bindings: list[Binding] = []
    buffers: set[str] = set()
    devices = launches = False
    for action in listed:
        if isinstance(action, Call):
            bindings += action.step.bindings
            launches |= action.step.operator.takes_launch
            devices |= action.step.operator.takes_device and action.step.operator.handle != STRUCT_LAUNCH
        elif isinstance(action, Copy):
            bindings.append(action.source)
            buffers.add(action.state)
        elif isinstance(action, Cache):
            bindings.append(action.binding)
    roles = {binding.role for binding in bindings}
    return {
        "buffers": buffers | {binding.name for binding in bindings if binding.role == "buffer"},
        "inputs": "input" in roles,
        "outputs": "output" in roles,
        "devices": devices,
        "launches": launches,
    }


def _row(names: CNames, places: dict[str, str], model: Model, one: FrameAction) -> dict[str, Any]:
    action = one.action
    row = action_row(names, places, action)
    device = None if isinstance(action, Copy) else action.index
    return {
        **row,
        "comment": _comment(row, action),
        "gate": one.gate,
        "step": f"{one.step}U" if one.step < len(model.steps) else _NO_STEP,
        "launch": one.launch,
        "use": _NO_USE if one.use is None else f"{one.use}U",
        "device": 0 if device is None else device,
        "kind": f"OPWEST_STREAM_{one.kind.upper()}",
        "kind_name": one.kind,
        "calls": not isinstance(action, Wait),
    }


def _comment(row: dict[str, Any], action: Measured) -> str:
    if isinstance(action, Cache):
        words = action.operation.replace("_", " ").capitalize()
        return c_comment(f"{words} {action.binding.shown} for {action.device}")
    comment: str = row["comment"]
    return comment
