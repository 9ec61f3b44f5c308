# SPDX-License-Identifier: Apache-2.0
"""A bound on the duration of a run, from the cycles of its steps."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from opwest.base.frozen_dataclass import dataclass
from opwest.model.types.model import Model, Step
from opwest.plan.queues import Sync

EXCLUDED = (
    "preemption, interrupts, contention for memory, other owners of the devices, full queues of drivers, "
    "and the time of run itself between the steps"
)
"""What the bound does not contain, for output and emitted comments. The time of run includes cache maintenance."""


@dataclass(frozen=True, slots=True)
class Latency:
    """The bound on the duration of a run."""

    cycles: int | None
    """In the unit of the steps' `cycles`; None if steps without `cycles` exist."""
    unknown: tuple[int, ...]
    """The steps without `cycles`."""


def latency_bound(
    model: Model, steps: Sequence[Step], syncs: Sequence[Sequence[Sync]], loads: Collection[int]
) -> Latency:
    """Return the longest duration of a run whose steps take at most their `cycles`, all in cycles of one clock.

    The processor runs its steps, synchronous steps of devices, launches (`launch_cycles`) and loads (`switch_cycles`)
    one after the other. A launched step starts when it is launched and the earlier steps of its device have ended; a
    wait ends when its steps have ended. `steps` are in the order of execution; `syncs` has one more entry.

    A longer step never makes the run shorter, so no durations up to `cycles` exceed the bound, and equal durations
    reach it. It excludes what EXCLUDED lists.
    """
    unknown = tuple(step.index for step in steps if step.cycles is None)
    if unknown:
        return Latency(None, unknown)
    switch = {device.name: device.switch_cycles for device in model.devices}
    now = 0
    ends: dict[int, int] = {}
    free: dict[str, int] = {}
    """When the last step of a device has ended."""
    for step, waits in zip(steps, syncs, strict=False):
        for sync in waits:
            now = max(now, *(ends[index] for index in sync.steps))
        if step.index in loads:
            now += switch.get(step.device or "", 0)
        cycles = step.cycles or 0
        if step.device is None:
            now += cycles
        elif step.operator.is_async:
            now += step.operator.launch_cycles
            ends[step.index] = free[step.device] = max(now, free.get(step.device, 0)) + cycles
        else:
            now = free[step.device] = max(now, free.get(step.device, 0)) + cycles
    return Latency(max([now, *free.values()]), ())
