# SPDX-License-Identifier: Apache-2.0
"""The devices of operators and steps, and the programs that accelerators run there."""

from __future__ import annotations

from pathlib import PurePosixPath

from opwest.base.diagnostics import Diagnostics, Location, nearest
from opwest.manifest.located import Mapping
from opwest.model.inputs.context import Context
from opwest.model.types.conventions import Convention
from opwest.model.types.model import Operator
from opwest.model.types.sections import STRUCT_DEVICE, Device, Program


class Programs:
    """The programs of a manifest; every file is read once."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self._by_file: dict[str, Program | None] = {}
        self._by_name: dict[str, Program] = {}

    def of(self, entry: Mapping, owner: str) -> Program | None:
        """Return the program of the device, operator or step `entry`; None if it names none.

        Report a file that cannot be read, an empty one, and two files with one name.
        """
        if "program" not in entry:
            return None
        file: str = entry["program"]
        if file not in self._by_file:
            self._by_file[file] = self._read(file, entry.value_location("program"), owner)
        return self._by_file[file]

    def _read(self, file: str, at: Location, owner: str) -> Program | None:
        faults = self.context.faults
        path = self.context.regular_file(file, at, f"the program of the {owner}")
        if path is None:
            return None
        program = Program(PurePosixPath(file).stem, file, path.read_bytes())
        if not program.content:
            faults.error(f"program {file!r} is empty", at, expected=f"the program of the {owner}")
        other = self._by_name.setdefault(program.name, program)
        if other.content != program.content:
            faults.error(
                f"programs {other.file!r} and {file!r} have the same name {program.name!r}",
                at,
                expected="unique file names without suffix",
                hint="operators refer to programs by this name",
            )
        return other


def check_device_keys(context: Context, name: str, entry: Mapping, convention: Convention) -> None:
    """Report keys of an operator about its device that contradict each other."""
    is_async = entry.get("async", False)
    if is_async and ("device" not in entry or "handle" in context.section("device", entry)):
        context.faults.error(
            f"asynchronous operator {name!r} takes no {'accelerator' if 'device' in entry else 'device'}",
            entry.value_location("async"),
            expected="device: {}, to take an accelerator as the last argument",
            hint="run waits for asynchronous steps through their accelerator",
        )
    if "device" in entry and (convention.descriptors is not None or convention.has_tables):
        context.faults.error(
            f"operator {name!r} is {convention.name} and takes a device",
            entry.key_location("device"),
            expected="an operator without 'device'",
        )
    if "launch_cycles" in entry and not is_async:
        context.faults.error(
            f"key 'launch_cycles' has no effect: operator {name!r} is not asynchronous",
            entry.key_location("launch_cycles"),
            expected="async: true",
            hint="'cycles' is the duration of a synchronous call",
        )


def takes_launch(context: Context, name: str, device: Mapping, convention: Convention) -> bool:
    """Whether an operator takes a launch; report one that cannot."""
    if not device.get("launch", False):
        return False
    if "handle" in device:
        context.faults.error(
            f"operator {name!r} takes both a launch and a vendor-specific handle",
            device.key_location("launch"),
            expected="one of 'launch' and 'handle'",
            hint="a launch refers to a device with driver: accelerator",
        )
        return False
    if convention.arrays is not None:
        context.faults.error(
            f"operator {name!r} is {convention.name} and takes a launch",
            device.key_location("launch"),
            expected="convention: unpacked",
        )
        return False
    return True


def operator_program(context: Context, programs: Programs, name: str, entry: Mapping) -> Program | None:
    """Return the program of an operator; report one that its steps cannot use."""
    if "program" not in entry:
        return None
    device = context.section("device", entry)
    if "device" not in entry or "handle" in device:
        context.faults.error(
            f"operator {name!r} has a program and takes no {'accelerator' if 'device' in entry else 'device'}",
            entry.key_location("program"),
            expected="device: {}, to take an accelerator as the last argument",
        )
        return None
    program = programs.of(entry, "operator")
    required = device.get("program")
    if program is not None and required not in (None, program.name):
        context.faults.error(
            f"operator {name!r} has program {program.name} and requires {required}",
            entry.value_location("program"),
            expected=f"a file with the name {required}, or no 'program' in 'device'",
        )
    return program


def step_device(
    faults: Diagnostics,
    devices: dict[str, Device],
    programs: Programs,
    entry: Mapping,
    operator: Operator,
    at: Location,
) -> tuple[str | None, Program | None]:
    """Return the name of the device of a step, and the program that it runs there.

    Report a device or program that is missing, undefined, superfluous or incompatible.
    """
    device = _device(faults, devices, entry, operator, at)
    own = programs.of(entry, "step") if device is not None and device.has_hooks else None
    if device is None or not operator.takes_device:
        name = entry.get("device")
        if "program" in entry and (name is None or name in devices):
            _refuse_program(faults, entry, "the step has a program and no accelerator")
        return (device.name if device else None), None
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
        return device.name, None
    program = own if "program" in entry else operator.program or device.program
    _check_program(faults, device, program, entry, operator)
    return device.name, program


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
