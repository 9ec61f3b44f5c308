# SPDX-License-Identifier: Apache-2.0
"""Rows for the devices of a model: handles, devicetree nodes, their replacements on a host."""

from __future__ import annotations

from typing import Any

from opwest.model.types.c_names import CNames, member_name
from opwest.model.types.model import Model
from opwest.model.types.sections import Device, Devicetree
from opwest.render.boards import board_kconfig
from opwest.render.literals import c_comment, c_string
from opwest.render.tensors import devicetree_node, where_fault


def device_rows(model: Model) -> list[dict[str, Any]]:
    """Return a row for every device."""
    names = CNames(model.name)
    return [
        {
            "index": index,
            "name": device.name,
            "member": member_name(device.name),
            "title": c_comment(f"Device {device.name}: {device_origin(device)}"),
            "c_type": device.c_type,
            "foreign": device.handle is not None,
            "expression": device.handle.expression if device.handle else None,
            "nodes": _nodes(model, device),
            "macro": names.device_macro(device.name),
            "node_macro": f"{names.device_macro(device.name)}_NODE",
            "host_latency_us": device.host_latency_us,
            "host_symbol": names.host_device(device.name),
            "host_name": c_string(device.name),
        }
        for index, device in enumerate(model.devices)
    ]


def first_incoherent(model: Model, tensor: str) -> int:
    """Return the index of the first device that accesses a tensor without the processor's cache."""
    incoherent = {device.name: index for index, device in enumerate(model.devices) if not device.coherent}
    return next(
        incoherent[step.device]
        for step in model.steps
        if step.device in incoherent and any((b.role, b.name) == ("buffer", tensor) for b in step.bindings)
    )


def reach_rows(model: Model) -> list[dict[str, Any]]:
    """Return a row for every buffer of the caller that devices access: the regions in reach of all of them, per board.

    A board with such a pool in ordinary memory is omitted: that memory has no bounds to check.
    """
    names = CNames(model.name)
    rows = []
    for tensor in (*model.inputs, *model.outputs):
        agents = tensor.agents - {"cpu"}
        if tensor.placed or not agents:
            continue
        pools = [pool for pool in model.pools if agents <= (pool.reachable_by or agents)]
        boards = {board for pool in pools for board, _ in pool.boards}
        bound = {board: [dict(p.boards)[board] for p in pools if board in dict(p.boards)] for board in sorted(boards)}
        rows.append(
            {
                "function": names.reaches(tensor.name),
                "size": tensor.type.size,
                "boards": [
                    {"kconfig": board_kconfig(board), "nodes": [devicetree_node(tree) for tree in trees]}
                    for board, trees in bound.items()
                    if len(trees) == len(pools)
                ],
            }
        )
    return rows


def device_origin(device: Device) -> str:
    """Return a description of the source of a device's handle."""
    if device.handle:
        return f"{device.handle.type} from {device.handle.header}"
    trees = [*([device.devicetree] if device.devicetree else []), *(tree for _, tree in device.boards)]
    return "devicetree " + ", ".join(dict.fromkeys(map(str, trees)))


def _nodes(model: Model, device: Device) -> list[dict[str, Any]]:
    """Return the nodes of boards with their own node, then the node for all other boards."""
    trees: list[tuple[str | None, Devicetree]] = [*device.boards]
    if device.devicetree:
        trees.append((None, device.devicetree))
    rows: list[dict[str, Any]] = []
    for board, tree in trees:
        number = f" number {tree.index}" if tree.kind == "compatible" else ""
        which = f"board {board}" if board else "the board"
        fault = f"device {device.name}: {which} has no enabled devicetree node with {tree}{number}"
        driver_fault = f"device {device.name}: no driver is built for {tree}: set its option in prj.conf"
        rows.append(
            {
                "kconfig": board_kconfig(board) if board else None,
                "node": devicetree_node(tree),
                "fault": where_fault(model, tree, fault),
                "driver_fault": where_fault(model, tree, driver_fault),
            }
        )
    if not device.devicetree and not device.handle:
        fault = where_fault(model, device, f"device {device.name}: no devicetree node for this board")
        rows.append({"kconfig": None, "node": None, "fault": fault})
    return rows
