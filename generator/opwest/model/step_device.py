# SPDX-License-Identifier: Apache-2.0
"""Resolve the device of a step."""

from __future__ import annotations

from opwest.diagnostics import Diagnostics, Location, nearest
from opwest.manifest.located import Mapping
from opwest.model.model import Device, Operator


def step_device(
    faults: Diagnostics, devices: dict[str, Device], entry: Mapping, operator: Operator, at: Location
) -> str | None:
    """Return the device of a step; report a missing, undefined, superfluous or incompatible one."""
    name = entry.get("device")
    if name is None:
        if operator.takes_device:
            faults.error(
                f"operator {operator.name!r} takes a device, the step has none",
                at,
                expected="device: NAME",
                hint=nearest("", devices) or "declare the device under 'devices'",
            )
        return None
    where = entry.value_location("device")
    device = devices.get(name)
    if device is None:
        hint = nearest(name, devices) or "declare the device under 'devices'"
        faults.error(f"undefined device {name!r}", where, hint=hint)
        return None
    if not operator.takes_device:
        faults.error(
            f"operator {operator.name!r} takes no device",
            where,
            expected="a step without device",
            hint="to pass a device as the last argument, add `device: {}` to the operator",
        )
        return device.name
    _check_kind(faults, device, operator, where)
    return device.name


def _check_kind(faults: Diagnostics, device: Device, operator: Operator, where: Location) -> None:
    if operator.device_type is not None and operator.device_type != device.type:
        faults.error(
            f"device {device.name!r} has {f'type {device.type}' if device.type else 'no type'}, "
            f"operator {operator.name!r} requires {operator.device_type}",
            where,
            expected=f"a device of type {operator.device_type}",
        )
    carried = device.program.name if device.program else None
    if operator.device_program is not None and operator.device_program != carried:
        faults.error(
            f"device {device.name!r} has {f'program {carried}' if carried else 'no program'}, "
            f"operator {operator.name!r} requires {operator.device_program}",
            where,
            expected=f"a device with program {operator.device_program}",
        )
    if operator.handle != device.c_type:
        faults.error(
            f"device {device.name!r} is passed as `{device.c_type}`, "
            f"operator {operator.name!r} takes `{operator.handle}`",
            where,
            expected=f"a device of C type `{operator.handle}`",
            hint=None if device.handle is None else f'declare `device: {{handle: "{device.c_type}"}}` in the operator',
        )
    elif operator.is_async and not device.has_hooks and device.handle is None:
        faults.error(
            f"asynchronous operator {operator.name!r} on device {device.name!r} with driver: none",
            where,
            expected="a device with driver: accelerator",
        )
