# SPDX-License-Identifier: Apache-2.0
"""Resolve the device of a step and the program that it runs there."""

from __future__ import annotations

from opwest.base.diagnostics import Diagnostics, Location, nearest
from opwest.base.frozen_dataclass import dataclass
from opwest.manifest.located import Mapping
from opwest.model.readers.programs import Programs
from opwest.model.types.model import Operator
from opwest.model.types.sections import STRUCT_DEVICE, Device, Program


@dataclass(frozen=True, slots=True)
class Placement:
    """The device of a step, and its program."""

    device: str | None
    program: Program | None


def step_device(
    faults: Diagnostics,
    devices: dict[str, Device],
    programs: Programs,
    entry: Mapping,
    operator: Operator,
    at: Location,
) -> Placement:
    """Return where a step runs; report a device or program that is missing, undefined, superfluous or incompatible."""
    device = _device(faults, devices, entry, operator, at)
    own = programs.of(entry, "step") if device is not None and device.has_hooks else None
    if device is None or not operator.takes_device:
        name = entry.get("device")
        if "program" in entry and (name is None or name in devices):
            _refuse_program(faults, entry, "the step has a program and no accelerator")
        return Placement(device.name if device else None, None)
    _check_kind(faults, device, operator, entry.value_location("device"))
    if not device.has_hooks:
        why = "has a vendor-specific handle" if device.handle else "has driver: none"
        if "program" in entry:
            _refuse_program(faults, entry, f"the step has a program, device {device.name!r} {why}")
        elif operator.program is not None:
            faults.error(
                f"operator {operator.name!r} has a program, device {device.name!r} {why}",
                entry.value_location("device"),
                expected="a device with driver: accelerator",
            )
        return Placement(device.name, None)
    program = own if "program" in entry else operator.program or device.program
    _check_program(faults, device, program, entry, operator)
    return Placement(device.name, program)


def _device(
    faults: Diagnostics, devices: dict[str, Device], entry: Mapping, operator: Operator, at: Location
) -> Device | None:
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
    elif not operator.takes_device:
        faults.error(
            f"operator {operator.name!r} takes no device",
            where,
            expected="a step without device",
            hint="to pass a device as the last argument, add `device: {}` to the operator",
        )
    return device


def _refuse_program(faults: Diagnostics, entry: Mapping, what: str) -> None:
    faults.error(
        what,
        entry.key_location("program"),
        expected="a device with driver: accelerator",
        hint="remove 'program', or run the step on an accelerator",
    )


def _check_kind(faults: Diagnostics, device: Device, operator: Operator, where: Location) -> None:
    if operator.device_type is not None and operator.device_type != device.type:
        faults.error(
            f"device {device.name!r} has {f'type {device.type}' if device.type else 'no type'}, "
            f"operator {operator.name!r} requires {operator.device_type}",
            where,
            expected=f"a device of type {operator.device_type}",
        )
    taken = STRUCT_DEVICE if operator.takes_launch else operator.handle
    if taken != device.c_type:
        faults.error(
            f"device {device.name!r} is passed as `{device.c_type}`, "
            f"operator {operator.name!r} takes `{operator.handle}`",
            where,
            expected=f"a device of C type `{taken}`",
            hint=None if device.handle is None else f'declare `device: {{handle: "{device.c_type}"}}` in the operator',
        )
    elif operator.is_async and not device.has_hooks and device.handle is None:
        faults.error(
            f"asynchronous operator {operator.name!r} on device {device.name!r} with driver: none",
            where,
            expected="a device with driver: accelerator",
        )
    elif operator.takes_launch and not device.has_hooks:
        faults.error(
            f"operator {operator.name!r} takes a launch, device {device.name!r} has driver: none",
            where,
            expected="a device with driver: accelerator",
            hint="declare `device: {}` in the operator: it takes the device itself",
        )


def _check_program(
    faults: Diagnostics, device: Device, program: Program | None, entry: Mapping, operator: Operator
) -> None:
    """Report a step without the program that its operator requires; that of the operator itself was checked."""
    required = operator.device_program
    carried = program.name if program else None
    if required is None or required == carried:
        return
    if "program" in entry:
        if program is not None:
            faults.error(
                f"the step has program {carried}, operator {operator.name!r} requires {required}",
                entry.value_location("program"),
                expected=f"a file with the name {required}",
            )
    elif operator.program is None:
        faults.error(
            f"device {device.name!r} has {f'program {carried}' if carried else 'no program'}, "
            f"operator {operator.name!r} requires {required}",
            entry.value_location("device"),
            expected=f"a device with program {required}",
            hint="`program: FILE` of the operator or the step replaces that of the device",
        )
