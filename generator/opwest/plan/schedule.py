# SPDX-License-Identifier: Apache-2.0
"""The schedule of `run`: the order of the steps, the waits for devices, and the lifetime of every buffer.

A device runs its queue in order, so steps on one device need no waits between them. Another agent waits for
the device immediately before it accesses a tensor of a launched step; the wait covers all steps launched on
that device.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace

from opwest.model.model import Model, Step
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


@dataclass
class _Pending:
    """The steps launched on a device and not waited for."""

    steps: list[int] = field(default_factory=list)
    reads: set[str] = field(default_factory=set)
    writes: set[str] = field(default_factory=set)

    def conflicts(self, access: _Access) -> bool:
        return bool(access.reads & self.writes or access.writes & (self.reads | self.writes))


@dataclass(frozen=True, slots=True)
class _Access:
    """The tensors that a step accesses, without read-only ones: constants and inputs of the caller."""

    reads: frozenset[str]
    writes: frozenset[str]

    @staticmethod
    def of(step: Step) -> _Access:
        reads, writes = set(), set()
        for argument, binding in zip(step.operator.args, step.bindings, strict=True):
            if binding.role in ("buffer", "output"):
                if argument.direction != "out":
                    reads.add(binding.name)
                if argument.direction != "in":
                    writes.add(binding.name)
        return _Access(frozenset(reads), frozenset(writes))


def plan_schedule(model: Model) -> Schedule:
    """Return the schedule. Steps keep the manifest's order unless it allows another."""
    launching = any(step.operator.is_async for step in model.steps)
    steps = _reordered(model.steps) if model.reorder and launching else model.steps
    steps = tuple(replace(step, index=index) for index, step in enumerate(steps))
    syncs = _syncs(steps)
    return Schedule(steps, syncs, _lives(model, steps, syncs))


def _needed(pending: dict[str, _Pending], step: Step, access: _Access) -> list[str]:
    """Return the devices to wait for before a step, in the order of their first launches."""
    agent = step.device or "cpu"
    return [device for device, launched in pending.items() if device != agent and launched.conflicts(access)]


def _launch(pending: dict[str, _Pending], step: Step, access: _Access, index: int) -> None:
    if step.operator.is_async and step.device:
        launched = pending.setdefault(step.device, _Pending())
        launched.steps.append(index)
        launched.reads |= access.reads
        launched.writes |= access.writes


def _syncs(steps: Sequence[Step]) -> tuple[tuple[Sync, ...], ...]:
    pending: dict[str, _Pending] = {}
    found = []
    for step in steps:
        access = _Access.of(step)
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
        elif buffer.role == "constant":  # copied once
            lives[buffer.name] = Life(0, last)
        lives.setdefault(buffer.name, life)  # of unresolved steps
    return lives


def _reordered(steps: Sequence[Step]) -> tuple[Step, ...]:
    """Return the steps with launches as early as their tensors allow, and waits as late as possible.

    A list schedule: among the steps whose predecessors have run, select one that launches without a wait, else
    one that a launch depends on, else the next in manifest order; steps with waits come last.
    """
    accesses = [_Access.of(step) for step in steps]
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
    pending: dict[str, _Pending] = {}
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


def _predecessors(steps: Sequence[Step], accesses: Sequence[_Access]) -> list[set[int]]:
    """Return the predecessors of every step: by its tensors, and between stateful steps."""
    found: list[set[int]] = [set() for _ in steps]
    writer: dict[str, int] = {}
    readers: dict[str, list[int]] = {}
    stateful: int | None = None
    for index, access in enumerate(accesses):
        for name in access.reads | access.writes:
            if name in writer:
                found[index].add(writer[name])
        for name in access.writes:
            found[index].update(readers.pop(name, ()))
            writer[name] = index
        for name in access.reads:
            readers.setdefault(name, []).append(index)
        if steps[index].operator.stateful:
            if stateful is not None:
                found[index].add(stateful)
            stateful = index
        found[index].discard(index)
    return found
