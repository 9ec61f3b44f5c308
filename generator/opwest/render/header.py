# SPDX-License-Identifier: Apache-2.0
"""Rows of the public header and of the devicetree header."""

from __future__ import annotations

from typing import Any

from opwest.model.c_names import CNames
from opwest.model.model import Device, Model, Pool
from opwest.plan.memory import MemoryPlan
from opwest.render.literals import c_comment, c_string
from opwest.render.templates import render
from opwest.render.tensors import devicetree_node, interface_rows, manifest_name, where_fault


def pool_rows(model: Model, plan: MemoryPlan) -> list[dict[str, Any]]:
    """Return a row for every pool that holds something."""
    names = CNames(model.name)
    return [
        {
            "name": pool.name,
            "macro": names.pool_macro(pool.name),
            "size": plan.pools[pool.name].size,
            "align": max(plan.pools[pool.name].align, pool.align),
            "bindings": _bindings(model, pool),
        }
        for pool in model.pools
        if pool.name in plan.pools
    ]


def _bindings(model: Model, pool: Pool) -> list[dict[str, str]]:
    rows = []
    for board, tree in pool.boards:
        line = tree.location.line
        node = f"{tree.kind} {tree.value}"
        rows.append(
            {
                "kconfig": board_kconfig(board),
                "node": devicetree_node(tree.kind, tree.value, tree.index),
                "fault": where_fault(model, line, f"pool {pool.name}: board {board} has no enabled node {node}"),
                "size_fault": where_fault(
                    model, line, f"pool {pool.name}: the region {node} of board {board} is too small"
                ),
            }
        )
    return rows


def board_kconfig(board: str) -> str:
    """Return the Kconfig symbol that Zephyr sets for a board with its qualifiers."""
    board, _, qualifiers = board.partition("/")
    name = board.split("@", 1)[0] + (f"/{qualifiers}" if qualifiers else "")  # a revision is no part of the symbol
    return "CONFIG_BOARD_" + "".join(c if c.isalnum() else "_" for c in name).upper()


def device_rows(model: Model) -> list[dict[str, Any]]:
    """Return a row for every device."""
    return [
        {
            "name": device.name,
            "title": c_comment(f"Device {device.name}: devicetree {device.devicetree.kind} {device.devicetree.value}"),
            "node": devicetree_node(device.devicetree.kind, device.devicetree.value, device.devicetree.index),
            "fault": where_fault(model, device.devicetree.location.line, _device_fault(device)),
            "type": c_string(device.type) if device.type else "NULL",
        }
        for device in model.devices
    ]


def _device_fault(device: Device) -> str:
    tree = device.devicetree
    number = f" number {tree.index}" if tree.kind == "compatible" else ""
    return f"device {device.name}: the board has no enabled devicetree node with {tree.kind} {tree.value}{number}"


def render_headers(model: Model, plan: MemoryPlan) -> dict[str, bytes]:
    """Return include/<model>.h and include/<model>_devicetree.h."""
    names = CNames(model.name)
    pools = pool_rows(model, plan)
    tensors = interface_rows(model)
    devices = device_rows(model)
    bound = any(pool["bindings"] for pool in pools)
    stateful = [o.name for o in model.operators if o.stateful]
    common = {"model": model.name, "macro": names.macro, "manifest": manifest_name(model), "devices": devices}
    header = render(
        "models/model/include/model.h",
        **common,
        guard=names.guard,
        brief=c_comment(model.description or f"Model {model.name}"),
        reentrancy=_reentrancy(stateful),
        tensors=tensors,
        inputs=[t for t in tensors if t["role"] == "input"],
        outputs=[t for t in tensors if t["role"] == "output"],
        pools=pools,
        bound_pools=bound,
        step_count=len(model.steps),
        host_devices="devices that are only names" if devices else "there are no devices",
        host_init=", ".join(f"&{names.host_device(d['name'])}" for d in devices) or "0",
        host_names=[{"symbol": names.host_device(d["name"]), "name": c_string(d["name"])} for d in devices],
    )
    devicetree = render(
        "models/model/include/model_devicetree.h",
        **common,
        guard=f"OPWEST_MODEL_{names.macro}_DEVICETREE_H_",
        pools=pools if bound else [],
    )
    return {f"include/{model.name}.h": header, f"include/{model.name}_devicetree.h": devicetree}


def _reentrancy(stateful: list[str]) -> str:
    if not stateful:
        return "."
    return (
        f", but for\n * operators that keep state of their own and are therefore not reentrant: {', '.join(stateful)}."
    )
