# SPDX-License-Identifier: Apache-2.0
"""The schedule of `run`: the order of the steps, the waits for devices, and the lifetime of every buffer.

A device runs its queue in order, so steps on one device need no waits between them. Another agent waits for
the device immediately before it accesses a tensor of a launched step; the wait covers all steps launched on
that device.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from opwest.model.model import Binding, Model, Step
from opwest.plan.access import Access, Accessed, Pending, access_of
from opwest.records import dataclass


@dataclass(frozen=True, slots=True)
class Sync:
    """A wait for a device, with the launched steps that it completes."""

    device: str
    steps: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Life:
    """The lifetime of a buffer: from the start of step `first` to the end of step `last` with the following waits."""

    first: int
    last: int


@dataclass(frozen=True)
class Schedule:
    """The order of steps and waits, and the lifetimes of buffers."""

    steps: tuple[Step, ...]
    """In the order of execution, with ascending indexes."""
    syncs: tuple[tuple[Sync, ...], ...]
    """Before every step, in order; one more for the end."""
    lives: dict[str, Life]
    """By the buffer's name."""


def plan_schedule(model: Model) -> Schedule:
    """Return the schedule. Steps keep the manifest's order unless it allows another."""
    launching = any(step.operator.is_async for step in model.steps)
    line = _shared_line(model)
    steps = _reordered(model.steps, line) if model.reorder and launching else model.steps
    steps = tuple(replace(step, index=index) for index, step in enumerate(steps))
    syncs = _syncs(steps, line)
    return Schedule(steps, syncs, _lives(model, steps, syncs))


def _shared_line(model: Model) -> int:
    """Return the bytes that cache maintenance for a device treats as one; 1 without such devices."""
    if all(device.coherent for device in model.devices):
        return 1
    return max((pool.cache_line or 1 for pool in model.pools), default=1)


def _needed(pending: dict[str, Pending], step: Step, access: Access) -> list[str]:
    """Return the devices to wait for before a step, in the order of their first launches."""
    agent = step.device or "cpu"
    return [device for device, launched in pending.items() if device != agent and launched.conflicts(access)]


def _launch(pending: dict[str, Pending], step: Step, access: Access, index: int) -> None:
    if step.operator.is_async and step.device:
        launched = pending.setdefault(step.device, Pending())
        launched.add(access, index)


def _syncs(steps: Sequence[Step], line: int) -> tuple[tuple[Sync, ...], ...]:
    pending: dict[str, Pending] = {}
    found = []
    for step in steps:
        access = access_of(step, line)
        waited = _needed(pending, step, access)
        found.append(tuple(Sync(device, tuple(pending.pop(device).steps)) for device in waited))
        _launch(pending, step, access, step.index)
    found.append(tuple(Sync(device, tuple(launched.steps)) for device, launched in pending.items()))
    return tuple(found)


def _lives(model: Model, steps: Sequence[Step], syncs: Sequence[Sequence[Sync]]) -> dict[str, Life]:
    """Return the lifetime of every buffer; those of launched steps extend to the wait for their device."""
    end = {step.index: step.index for step in steps}
    for before, listed in enumerate(syncs):
        for sync in listed:
            for index in sync.steps:
                end[index] = before - 1
    last = max(len(steps) - 1, 0)
    lives: dict[str, Life] = {}
    for step in steps:
        for binding in step.bindings:
            if binding.role == "buffer":
                known = lives.get(binding.name)
                first = known.first if known else step.index
                lives[binding.name] = Life(first, max(known.last if known else 0, end[step.index]))
    for buffer in model.buffers:
        life = lives.get(buffer.name, Life(0, last))
        if buffer.role == "input":  # the caller writes it before the run
            lives[buffer.name] = Life(0, life.last)
        elif buffer.role == "output":  # the caller reads it afterwards
            lives[buffer.name] = Life(life.first, last)
        elif buffer.role in ("constant", "state"):  # copied once; lasts until the next run
            lives[buffer.name] = Life(0, last)
        lives.setdefault(buffer.name, life)  # of unresolved steps
    for buffer in model.buffers:
        if buffer.inside is not None:
            lives[buffer.name] = lives[buffer.inside[0]] = Life(0, last)
    for name in copied_at_end(model):
        lives[name] = Life(lives[name].first, last)
    return lives


def copied_at_end(model: Model) -> set[str]:
    """Return the buffers that a run copies to states at its end."""
    nexts: list[Binding] = [state.next for state in model.states if state.next]
    return {binding.name for binding in nexts if binding.role == "buffer"}


def _reordered(steps: Sequence[Step], line: int) -> tuple[Step, ...]:
    """Return the steps with launches as early as their tensors allow, and waits as late as possible.

    A list schedule: among the steps whose predecessors have run, select one that launches without a wait, else
    one that a launch depends on, else the next in manifest order; steps with waits come last.
    """
    accesses = [access_of(step, line) for step in steps]
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
    pending: dict[str, Pending] = {}
    order: list[int] = []

    def rank(index: int) -> tuple[int, int, bool, int]:
        waits = len(_needed(pending, steps[index], accesses[index]))
        return (waits, 0 if steps[index].operator.is_async else 1, not feeds[index], index)

    while ready:
        index = min(ready, key=rank)
        ready.remove(index)
        for device in _needed(pending, steps[index], accesses[index]):
            del pending[device]
        _launch(pending, steps[index], accesses[index], index)
        order.append(index)
        for later in successors[index]:
            missing[later] -= 1
            if missing[later] == 0:
                ready.append(later)
    return tuple(steps[index] for index in order)


def _predecessors(steps: Sequence[Step], accesses: Sequence[Access]) -> list[set[int]]:
    """Return the predecessors of every step: by the memory of its tensors, and between stateful steps."""
    found: list[set[int]] = [set() for _ in steps]
    before = Accessed()
    stateful: int | None = None
    for index, access in enumerate(accesses):
        found[index].update(before.add(access, index))
        if steps[index].operator.stateful:
            if stateful is not None:
                found[index].add(stateful)
            stateful = index
    return found
