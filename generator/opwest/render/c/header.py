# SPDX-License-Identifier: Apache-2.0
"""Rows of the public header and of the devicetree header."""

from __future__ import annotations

import textwrap
from typing import Any

from opwest.model.types.c_names import CNames
from opwest.model.types.model import Model, Pool
from opwest.model.types.sections import STRUCT_DEVICE, STRUCT_LAUNCH
from opwest.plan.memory import MemoryPlan
from opwest.plan.schedule import EXCLUDED
from opwest.render.actions import launch_count
from opwest.render.boards import board_kconfig
from opwest.render.devices import device_rows
from opwest.render.literals import c_comment
from opwest.render.tables.details import optional_parts
from opwest.render.tables.model import points
from opwest.render.tables.tensors import resets_after_failure, saved_size, used_pools
from opwest.render.templates.renderer import Renderer
from opwest.render.tensors import devicetree_node, external_rows, heading, interface_rows, where_fault


def pool_rows(model: Model, plan: MemoryPlan) -> list[dict[str, Any]]:
    """Return a row for every pool with tensors."""
    names = CNames(model.name)
    declared = {pool.name: pool for pool in model.pools}
    return [
        {
            "name": pool.name,
            "member": pool.member,
            "macro": names.pool_macro(pool.name),
            "size": pool.size,
            "align": pool.align,
            "both": plan.frames[pool.name].size if model.streams else None,
            "bindings": _bindings(model, declared[pool.name], plan),
            "title": c_comment(
                f"Pool {pool.name}: reachable by {', '.join(sorted(declared[pool.name].reachable_by or ())) or 'all'}"
            ),
        }
        for pool in used_pools(model, plan)
    ]


def _bindings(model: Model, pool: Pool, plan: MemoryPlan) -> list[dict[str, str]]:
    size = (plan.frames if model.streams else plan.pools)[pool.name].size
    rows = []
    for board, tree in pool.boards:
        faults = {
            "fault": f"board {board} has no enabled node {tree}",
            "size_fault": f"the region {tree} of board {board} is smaller than its plan: {size} bytes",
            "kind_fault": f"{tree} of board {board} is not a zephyr,memory-region",
            "flash_fault": f"{tree} of board {board} is its flash: read only",
        }
        rows.append(
            {
                "kconfig": board_kconfig(board),
                "node": devicetree_node(tree),
                **{key: where_fault(model, tree, f"pool {pool.name}: {text}") for key, text in faults.items()},
            }
        )
    return rows


def render_headers(render: Renderer, model: Model, plan: MemoryPlan, *, runner: bool) -> dict[str, bytes]:
    """Return include/<model>.h, include/<model>_devicetree.h, and with `runner` include/<model>_runner.h."""
    names = CNames(model.name)
    pools = pool_rows(model, plan)
    tensors = interface_rows(model)
    devices = device_rows(model)
    bound = any(pool["bindings"] for pool in pools)
    placed = [t for t in tensors if t["placed"]]
    handles = {d.handle.type for d in model.devices if d.handle}
    handles |= {o.handle for o in model.operators if o.takes_device and o.handle not in (STRUCT_DEVICE, STRUCT_LAUNCH)}
    common = {**heading(model), "macro": names.macro, "devices": devices}
    has_hooks = any(device.has_hooks for device in model.devices)
    interface = {
        "tensors": tensors,
        "inputs": external_rows(tensors, "input"),
        "outputs": external_rows(tensors, "output"),
        "placed": {role: [t for t in placed if t["role"] == role] for role in ("input", "output")},
    }
    header = render(
        "models/model/include/model.h",
        **common,
        guard=names.guard,
        brief=c_comment(model.description or f"Model {model.name}"),
        supervised=_supervised(model),
        stateful=model.stateful,
        stateful_operators=", ".join(o.name for o in model.operators if "state" in o.permits),
        **interface,
        structures=sorted({handle.removeprefix("const ").removesuffix(" *") for handle in handles}),
        workspace_tail=workspace_tail(model),
        reached=any(not t["placed"] and t["reached"] for t in tensors),
        has_hooks=has_hooks,
        busy=model.checks.busy,
        buffers=model.checks.buffers,
        pools=pools,
        bound_pools=bound,
        state_size=saved_size(model) if model.states else 0,
        states=c_comment(", ".join(state.name for state in model.states)),
        failure_words=_failure_words(model),
        step_count=len(model.steps),
        streams=model.streams,
        launch_count=launch_count(model),
        latency=plan.schedule.latency.cycles,
        latency_excludes=textwrap.wrap(f"not contained: {EXCLUDED}.", 90),
        point_count=len(points(model, plan)),
        optional_parts=optional_parts(model, plan),
        host_devices=_host_words(devices),
        host_init=["NULL" if d["foreign"] else f"&{d['host_symbol']}" for d in devices],
        hosted=[d for d in devices if not d["foreign"]],
        emulated=any(d["host_latency_us"] is not None for d in devices),
    )
    devicetree = render(
        "models/model/include/model_devicetree.h",
        **common,
        guard=f"OPWEST_MODEL_{names.macro}_DEVICETREE_H_",
        headers=sorted({d.handle.header for d in model.devices if d.handle}),
        pools=pools if bound else [],
        streams=model.streams,
        workspace_tail=workspace_tail(model),
    )
    files = {f"include/{model.name}.h": header, f"include/{model.name}_devicetree.h": devicetree}
    if runner:
        guard = f"OPWEST_MODEL_{names.macro}_RUNNER_H_"
        template = "models/model/include/model_runner.h"
        files[f"include/{model.name}_runner.h"] = render(
            template, **common, **interface, guard=guard, has_hooks=has_hooks
        )
    return files


def _failure_words(model: Model) -> str:
    """Return the effect of a failed step on the state."""
    if not model.states:
        return ""
    effect = "has its initial content again" if resets_after_failure(model) else "is unchanged"
    return f".\n * After a failed step the state {effect}; after an error before the first step it is unchanged."


def _supervised(model: Model) -> str:
    """Return the reason that user threads cannot call the functions; empty if they can."""
    if model.devices:
        return "the workspace contains handles of devices"
    if model.stateful:
        return "operators write to memory of the image"
    if model.needs_tvm or any(operator.uses_tvm for operator in model.operators):
        return "operators use CONFIG_OPWEST_TVM, which keeps a list of the threads that run them"
    if model.needs_halide:
        return "operators use CONFIG_OPWEST_HALIDE, which calls a handler of the image"
    return ""


def _host_words(devices: list[dict[str, Any]]) -> str:
    if not devices:
        return "no devices"
    if any(d["host_latency_us"] is not None for d in devices):
        return "emulated devices"
    return "devices without hooks"


def workspace_tail(model: Model) -> list[str]:
    """Return the initialisers of all workspace members after the pools; -Wextra warns if one is missing."""
    parts = [["OPWEST_SLOT_INIT"] * len(model.devices)]
    parts += [["NULL" for t in tensors if t.placed] for tensors in (model.inputs, model.outputs)]
    busy = ["0"] if model.checks.busy else []
    *rows, last = ["OPWEST_STATUS_INIT", "false", *busy, *(f"{{{', '.join(part)}}}" for part in parts if part)]
    return [*rows, f"OPWEST_PROFILE_AFTER({last})"]
