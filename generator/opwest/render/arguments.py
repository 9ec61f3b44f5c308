# SPDX-License-Identifier: Apache-2.0
"""The memory for the arguments of one operator: `opwest call`."""

from __future__ import annotations

from typing import Any

from opwest.model.types.model import Model, Operator
from opwest.model.types.sections import Device
from opwest.plan.problem import round_up
from opwest.render.tensors import type_row

ENTRY = 8
"""Bytes of an entry of the table at the begin: the offset of a tensor, or the bits of a scalar."""
MIN_ALIGN = 128
"""The address of every tensor is a multiple of this, the largest cache line of the processors that Zephyr supports, and
of the cache lines of all pools."""


def argument_row(model: Model) -> dict[str, Any]:
    """Return the memory for any operator of a model, for templates and the project's record.

    `size` and `align` are in bytes; `count` is the largest number of arguments.
    """
    align = _align(model)
    return {
        "size": max([ENTRY, *(_layout(operator, align)[1] for operator in model.operators)]),
        "align": align,
        "count": max([1, *(len(operator.args) for operator in model.operators)]),
        "devices": bool(model.devices),
    }


def operator_rows(model: Model) -> list[dict[str, Any]]:
    """Return the row of each operator for the project's record: its arguments, their offsets, the fitting devices."""
    align = _align(model)
    rows = []
    for operator in model.operators:
        offsets, _ = _layout(operator, align)
        args = [
            {
                **type_row(a.name, a.type),
                "direction": a.direction,
                "scalar": a.scalar,
                "offset": offset,
                **({"pitch": a.type.pitch} if a.type.pitch else {}),
            }
            for a, offset in zip(operator.args, offsets, strict=True)
        ]
        fitting = [device.name for device in model.devices if _fits(operator, device)]
        rows.append({"name": operator.name, "takes_device": operator.takes_device, "devices": fitting, "args": args})
    return rows


def _fits(operator: Operator, device: Device) -> bool:
    """Return whether the operator takes a device of this type that runs its program."""
    program = operator.program or device.program
    is_type = operator.device_type in (None, device.type)
    runs = operator.device_program in (None, program.name if program else None)
    is_driven = device.has_hooks or (operator.program is None and not operator.takes_launch)
    return operator.takes_device and is_type and runs and is_driven


def _align(model: Model) -> int:
    lines = [pool.cache_line or 0 for pool in model.pools]
    return max([MIN_ALIGN, *lines, *(a.align for operator in model.operators for a in operator.args)])


def _layout(operator: Operator, align: int) -> tuple[list[int], int]:
    """Return the offset of each argument, 0 for scalars, and the end: whole units of `align`."""
    end = round_up(ENTRY * len(operator.args), align)
    offsets = []
    for argument in operator.args:
        offsets.append(0 if argument.scalar else end)
        if not argument.scalar:
            end += round_up(argument.type.size, align)
    return offsets, end
