# SPDX-License-Identifier: Apache-2.0
"""Resolve the hardware declarations of a manifest: devices and memory pools."""

from __future__ import annotations

from opwest.base.diagnostics import Location, nearest
from opwest.base.result import counted
from opwest.manifest.located import Mapping
from opwest.model.inputs.context import Context, devicetree, located_items, size_in_bytes
from opwest.model.readers.programs import Programs
from opwest.model.types.c_names import check_name
from opwest.model.types.model import Pool
from opwest.model.types.sections import FOREVER, Device, Devicetree, Handle

MAX_DEVICES = 255
"""`struct opwest_status` stores the index of a device in 8 bits; one value means "none"."""
ACCELERATORS_ONLY = (
    "program",
    "timeout_ms",
    "own_timeout_ms",
    "queue_depth",
    "switching",
    "switch_cycles",
    "power",
)


def devices(context: Context, programs: Programs) -> dict[str, Device]:
    """Return the devices by name."""
    resolved: dict[str, Device] = {}
    section = context.section("devices")
    for name, entry in section.items():
        at = section.key_location(name)
        check_name("device", name, at, context.faults)
        if name == "cpu":
            context.faults.error(
                "device name 'cpu' is reserved for the host processor",
                at,
                expected="another device name",
                hint="steps without a device run on the host processor",
            )
        resolved[name] = _device(context, programs, name, entry, at)
    if len(resolved) > MAX_DEVICES:
        context.faults.error(
            f"the model has {counted(len(resolved), 'device')}",
            context.manifest.value_location("devices"),
            expected=f"at most {MAX_DEVICES}",
        )
    return resolved


def _device(context: Context, programs: Programs, name: str, entry: Mapping, at: Location) -> Device:
    handle = _handle(context, name, entry, at)
    node = (
        devicetree(context, entry["devicetree"], entry.value_location("devicetree")) if "devicetree" in entry else None
    )
    has_hooks = handle is None and entry.get("driver", "accelerator") == "accelerator"
    if not has_hooks:
        for key in ACCELERATORS_ONLY:
            if key in entry:
                why = "has a vendor-specific handle" if handle else "has driver: none"
                context.faults.error(
                    f"key {key!r} has no effect: device {name!r} {why}",
                    entry.key_location(key),
                    expected="an accelerator driver with hooks",
                    hint="remove the key and configure the device in its driver",
                )
    switching = entry.get("switching", "load")
    if has_hooks and switching == "free" and "switch_cycles" in entry:
        context.faults.error(
            f"key 'switch_cycles' has no effect: device {name!r} has switching: free",
            entry.key_location("switch_cycles"),
            expected="switching: load or exclusive",
            hint="include the cost of a program in the 'launch_cycles' of its operators",
        )
    return Device(
        name=name,
        devicetree=node,
        boards=_nodes_by_board(context, entry),
        handle=handle,
        has_hooks=has_hooks,
        type=entry.get("type"),
        program=programs.of(entry, "device") if has_hooks else None,
        timeout_ms=entry.get("timeout_ms", FOREVER),
        own_timeout_ms=entry.get("own_timeout_ms", FOREVER),
        queue_depth=entry.get("queue_depth"),
        switching=switching,
        switch_cycles=entry.get("switch_cycles", 0),
        power=entry.get("power", "open"),
        coherent=entry.get("coherent", False),
        reads_flash=entry.get("reads_flash", True),
        host_latency_us=entry["host"].get("latency_us", 1000) if "host" in entry else None,
        location=at,
    )


def _handle(context: Context, name: str, entry: Mapping, at: Location) -> Handle | None:
    if "handle" not in entry:
        if "devicetree" not in entry and "boards" not in entry:
            context.faults.error(
                f"device {name!r} has neither devicetree node nor handle",
                at,
                expected="devicetree: {nodelabel: ...}, or a vendor-specific handle",
            )
        return None
    for key in ("devicetree", "boards", "driver", "host"):
        if key in entry:
            context.faults.error(
                f"device {name!r} has both 'handle' and {key!r}",
                entry.key_location(key),
                expected="one of the two keys",
                hint="a handle is defined by its expression alone; no hooks are called for it",
            )
    given = entry["handle"]
    return Handle(given["type"], given["header"], given["expression"])


def _nodes_by_board(context: Context, entry: Mapping) -> tuple[tuple[str, Devicetree], ...]:
    boards = []
    for board, node in context.section("boards", entry).items():
        tree = devicetree(context, node, entry["boards"].value_location(board))
        if tree:
            boards.append((board, tree))
    return tuple(boards)


def pools(context: Context, known_devices: dict[str, Device]) -> dict[str, Pool]:
    """Return the pools by name, in order of preference."""
    section = context.section("memory")
    if not section:
        return {"sram": Pool("sram", None, 1, None, None, (), context.manifest.location, context.manifest.location)}
    resolved = {}
    for name, entry in section.items():
        at = section.key_location(name)
        check_name("pool", name, at, context.faults)
        reachable = context.items("reachable_by", entry)
        for device, place in located_items(reachable):
            if device not in known_devices and device != "cpu":
                context.faults.error(
                    f"undefined device {device!r}", place, hint=nearest(device, [*known_devices, "cpu"])
                )
        # An undefined device was reported: do not restrict the pool as well.
        certain = "reachable_by" in entry and all(device in known_devices or device == "cpu" for device in reachable)
        resolved[name] = Pool(
            name=name,
            size=size_in_bytes(entry["size"]) if "size" in entry else None,
            align=entry.get("align", 1),
            cache_line=entry.get("cache_line"),
            reachable_by=frozenset(reachable) if certain else None,
            boards=_nodes_by_board(context, entry),
            location=at,
            size_location=entry.value_location("size") if "size" in entry else at,
        )
    return resolved
