# SPDX-License-Identifier: Apache-2.0
"""The programs of accelerators: the files that devices, operators and steps name."""

from __future__ import annotations

from pathlib import PurePosixPath

from opwest.base.diagnostics import Location
from opwest.base.frozen_dataclass import dataclass
from opwest.manifest.located import Mapping
from opwest.model.inputs.context import Context
from opwest.model.types.conventions import Convention
from opwest.model.types.sections import STRUCT_DEVICE, STRUCT_LAUNCH, Program


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


@dataclass(frozen=True, slots=True)
class DeviceNeeds:
    """The keys of an operator about its device; the members of `Operator` describe them."""

    takes_device: bool
    takes_launch: bool
    handle: str
    type: str | None
    program_name: str | None
    program: Program | None
    is_async: bool
    launch_cycles: int


def operator_device(
    context: Context, programs: Programs, name: str, entry: Mapping, convention: Convention
) -> DeviceNeeds:
    """Return what an operator requires of its device; report keys that contradict each other."""
    device = context.section("device", entry)
    is_async = entry.get("async", False)
    if is_async and ("device" not in entry or "handle" in device):
        context.faults.error(
            f"asynchronous operator {name!r} takes no {'accelerator' if 'device' in entry else 'device'}",
            entry.value_location("async"),
            expected="device: {}, to take an accelerator as the last argument",
            hint="run waits for asynchronous steps through their accelerator",
        )
    if "device" in entry and convention.descriptors is not None:
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
    takes_launch = device.get("launch", False) and _can_launch(context, name, device, convention)
    return DeviceNeeds(
        takes_device="device" in entry,
        takes_launch=takes_launch,
        handle=STRUCT_LAUNCH if takes_launch else device.get("handle", STRUCT_DEVICE),
        type=device.get("type"),
        program_name=device.get("program"),
        program=_program(context, programs, name, entry),
        is_async=is_async,
        launch_cycles=entry.get("launch_cycles", 0),
    )


def _can_launch(context: Context, name: str, device: Mapping, convention: Convention) -> bool:
    """Whether an operator can take a launch; report one that cannot."""
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


def _program(context: Context, programs: Programs, name: str, entry: Mapping) -> Program | None:
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
