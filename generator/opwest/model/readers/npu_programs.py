# SPDX-License-Identifier: Apache-2.0
"""Check the programs of devices whose type is an NPU of the Ethos-U series, against the steps that run them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from opwest.base.diagnostics import Location
from opwest.model.inputs.context import Context
from opwest.model.readers.steps import listed_steps
from opwest.model.types.model import Operator, Step
from opwest.model.types.sections import Device, Program
from opwest.objects.ethos_u.commands import REGIONS
from opwest.objects.ethos_u.stream import check_program

REGION = "region_"
"""The start of the names of arguments that are base pointers: `region_0`, `region_1`, ..."""
_Regions = tuple[int | None, ...] | None


def check_npu_programs(context: Context, devices: Sequence[Device], steps: Sequence[Step]) -> None:
    """Report the faults of programs, once for each kind of NPU and sizes of regions."""
    types = {device.name: device.type for device in devices}
    seen: set[tuple[bytes, str | None, _Regions, frozenset[int]]] = set()
    for device, program, regions, constant, where in _uses(context, devices, steps):
        key = (program.content, types[device], regions, constant)
        if key not in seen:
            seen.add(key)
            check_program(program.content, program.file, types[device], regions, constant, where, context.faults)


def _uses(
    context: Context, devices: Sequence[Device], steps: Sequence[Step]
) -> Iterator[tuple[str, Program, _Regions, frozenset[int], Location]]:
    """Yield the device, the program, the sizes of the regions, the constant ones, and the place of the program's name.

    Without a step, the sizes of the regions are unknown.
    """
    entries = [entry for entry, _ in listed_steps(context)]
    operators, named = context.section("operators"), context.section("devices")
    used: set[tuple[str, bytes]] = set()
    for step in steps:
        if step.device is None or step.program is None:
            continue
        entry = entries[step.index]
        owners = (entry, operators[step.operator.name], named[step.device])
        where = next(owner.value_location("program") for owner in owners if "program" in owner)
        used.add((step.device, step.program.content))
        yield step.device, step.program, regions_of(step.operator), _constant(step.operator), where
    for device in devices:
        if device.program is not None and (device.name, device.program.content) not in used:
            yield device.name, device.program, None, frozenset(), named[device.name].value_location("program")


def _constant(operator: Operator) -> frozenset[int]:
    """Return the numbers of the regions that the operator only reads."""
    only_read = {argument.name for argument in operator.args if not argument.is_written}
    return frozenset(number for number in range(REGIONS) if f"{REGION}{number}" in only_read)


def regions_of(operator: Operator) -> _Regions:
    """Return the sizes of the arguments that are base pointers, bytes; None if it has none.

    Between others, the size of a region without an argument is unknown (None): that of weights which do not exist.
    """
    sizes = {argument.name: argument.type.size for argument in operator.args}
    regions = [sizes.get(f"{REGION}{number}") for number in range(REGIONS)]
    while regions and regions[-1] is None:
        regions.pop()
    return tuple(regions) or None
