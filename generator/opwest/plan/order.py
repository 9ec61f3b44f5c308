# SPDX-License-Identifier: Apache-2.0
"""The order of steps where the manifest permits any."""

from __future__ import annotations

from collections.abc import Sequence

from opwest.model.model import Model, Step
from opwest.plan.access import Access, Accessed
from opwest.plan.queues import Queues


def matters(model: Model) -> bool:
    """Whether the order has an effect: a step is launched, or the steps of a device have several programs."""
    if any(step.operator.is_async for step in model.steps):
        return True
    programs: dict[str, bytes] = {}
    for step in model.steps:
        if step.device is not None and step.program is not None:
            content = step.program.content
            if programs.setdefault(step.device, content) != content:
                return True
    return False


def reordered(model: Model, accesses: Sequence[Access]) -> tuple[Step, ...]:
    """Return the steps with launches as early as their tensors allow, waits as late as possible, and few loads.

    A list schedule: among the steps whose predecessors have run, select one that launches without a wait, with the
    program that its device has, else with the cheapest load; else one that a launch depends on, else the next in
    manifest order; steps with waits come last. `accesses` has an entry for every step.
    """
    steps = model.steps
    blockers = _predecessors(steps, accesses)
    successors: list[list[int]] = [[] for _ in steps]
    for later, earlier in enumerate(blockers):
        for index in earlier:
            successors[index].append(later)
    feeds = [False] * len(steps)
    for index in range(len(steps) - 1, -1, -1):
        feeds[index] = any(steps[later].operator.is_async or feeds[later] for later in successors[index])
    missing = [len(earlier) for earlier in blockers]
    ready = [index for index, count in enumerate(missing) if count == 0]
    queues = Queues(model)
    order: list[int] = []

    def rank(index: int) -> tuple[int, int, int, bool, int]:
        step = steps[index]
        waits = len(queues.needed(step, accesses[index]))
        return (waits, 0 if step.operator.is_async else 1, queues.switch_cost(step), not feeds[index], index)

    while ready:
        index = min(ready, key=rank)
        ready.remove(index)
        for device, leave in queues.needed(steps[index], accesses[index]):
            queues.wait(device, leave)
        queues.start(steps[index], accesses[index], len(order))
        order.append(index)
        for later in successors[index]:
            missing[later] -= 1
            if missing[later] == 0:
                ready.append(later)
    return tuple(steps[index] for index in order)


def _predecessors(steps: Sequence[Step], accesses: Sequence[Access]) -> list[set[int]]:
    """Return the predecessors of every step: by the memory of its tensors, and between steps with effects."""
    found: list[set[int]] = [set() for _ in steps]
    before = Accessed()
    effects: int | None = None
    for index, access in enumerate(accesses):
        found[index].update(before.add(access, index))
        if steps[index].operator.permits:
            if effects is not None:
                found[index].add(effects)
            effects = index
    return found
