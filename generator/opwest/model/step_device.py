# SPDX-License-Identifier: Apache-2.0
"""The device that a step runs on."""

from __future__ import annotations

from opwest.diagnostics import Diagnostics, Location, nearest
from opwest.manifest.located import Mapping
from opwest.model.model import Device, Operator


def step_device(
    faults: Diagnostics, devices: dict[str, Device], entry: Mapping, operator: Operator, at: Location
) -> str | None:
    """Return the device that a step names; report one that is missing, unknown, unwanted or of the wrong type."""
    name = entry.get("device")
    if name is None:
        if operator.takes_device:
            faults.error(
                f"operator {operator.name!r} takes a device, the step names none",
                at,
                expected="device: NAME",
                hint=nearest("", devices) or "declare it under devices",
            )
        return None
    where = entry.value_location("device")
    device = devices.get(name)
    if device is None:
        hint = nearest(name, devices) or "declare it under devices"
        faults.error(f"there is no device {name!r}", where, hint=hint)
        return None
    if not operator.takes_device:
        faults.error(
            f"operator {operator.name!r} takes no device",
            where,
            expected="a step without device",
            hint="`device: {}` in the operator makes it the last argument",
        )
    elif operator.device_type is not None and operator.device_type != device.type:
        faults.error(
            f"device {name!r} has {f'type {device.type}' if device.type else 'no type'}, "
            f"operator {operator.name!r} needs {operator.device_type}",
            where,
            expected=f"a device of type {operator.device_type}",
        )
    return device.name
