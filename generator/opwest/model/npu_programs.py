# SPDX-License-Identifier: Apache-2.0
"""Check the programs of devices whose type is an NPU of the Ethos-U series, against the steps that run them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import takewhile

from opwest.ethos_u.check import check_program
from opwest.model.context import Context
from opwest.model.model import Device, Operator, Step

REGION = "region_"
"""The start of the names of arguments that are base pointers: `region_0`, `region_1`, ..."""


def check_npu_programs(context: Context, devices: Iterable[Device], steps: Sequence[Step]) -> None:
    """Report the faults of programs. Without a step, the sizes of the regions are unknown."""
    section = context.section("devices")
    for device in devices:
        if device.program is None:
            continue
        where = section[device.name].value_location("program")
        operators = {step.operator.name: step.operator for step in steps if step.device == device.name}
        given = {regions_of(operator) for operator in operators.values()} or {None}
        for regions in given:
            content, file = device.program.content, device.program.file
            check_program(content, file, device.type, regions, where, context.faults)


def regions_of(operator: Operator) -> tuple[int, ...] | None:
    """Return the sizes of the arguments that are base pointers, bytes; None if it has none."""
    sizes = {argument.name: argument.type.size for argument in operator.args}
    names = (f"{REGION}{number}" for number in range(len(sizes)))
    return tuple(sizes[name] for name in takewhile(sizes.__contains__, names)) or None
