# SPDX-License-Identifier: Apache-2.0
"""The schedule of `run`: the order of the steps, the waits for devices, their owners, the lifetime of every buffer.

A device runs its queue in order, so steps on one device need no waits between them. Another agent waits for
the device immediately before it accesses a tensor of a launched step; the wait covers all steps launched on
that device. A step waits for its own device if the queue has no room for it, if its program is loaded while
the queue is empty, or if the processor passes it a value that an earlier step in the queue writes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import field, replace

from opwest.base.frozen_dataclass import dataclass
from opwest.model.types.model import Binding, Model, Step
from opwest.model.types.sections import Device
from opwest.plan.access import Access, Accessed, Pending, access_of
from opwest.plan.problem import LAST_PHASE
from opwest.plan.uses import Lifetime, Phases, lifetimes


@dataclass(frozen=True, slots=True)
class Sync:
    """A wait for a device, with the launched steps that it completes."""

    device: str
    steps: tuple[int, ...]
    leave: int = 0
    """Wait until at most this many launched steps are pending."""


class Queues:
    """The devices after a number of steps."""

    def __init__(self, model: Model) -> None:
        self._devices: dict[str, Device] = {device.name: device for device in model.devices}
        self._pending: dict[str, Pending] = {}
        self._loaded: dict[str, bytes] = {}

    def needed(self, step: Step, access: Access) -> list[tuple[str, int]]:
        """Return the waits before a step: devices with the steps to leave, in the order of their first launches."""
        waits = []
        for device, launched in self._pending.items():
            if device != step.device:
                if launched.conflicts(access):
                    waits.append((device, 0))
            elif (leave := min(self._room(step, len(launched)), launched.after_writers(access))) < len(launched):
                waits.append((device, leave))
        return sorted(waits, key=self._first) if len(waits) > 1 else waits

    def _first(self, wait: tuple[str, int]) -> int:
        return self._pending[wait[0]].first

    def _room(self, step: Step, launched: int) -> int:
        """Return the largest number of launched steps that its own device may have before a step."""
        device = self._devices.get(step.device or "")
        if device is None:
            return launched
        if self.loads(step) and device.switching != "free":
            return 0
        # A synchronous step needs a place in the queue, too.
        return launched if device.queue_depth is None else min(launched, device.queue_depth - 1)

    def loads(self, step: Step) -> bool:
        """Whether the program of a step must be loaded before it."""
        return step.program is not None and self._loaded.get(step.device or "") != step.program.content

    def switch_cost(self, step: Step) -> int:
        """Return the cost of the step's program: 0 if none is replaced, otherwise 1 and the cycles of the load."""
        if step.program is None or step.device not in self._loaded or not self.loads(step):
            return 0
        device = self._devices.get(step.device)
        return 0 if device is None or device.switching == "free" else 1 + device.switch_cycles

    def wait(self, device: str, leave: int) -> Sync:
        """Complete all launched steps of a device except the last `leave`."""
        launched = self._pending[device]
        done = launched.complete(len(launched) - leave)
        if not len(launched):
            del self._pending[device]
        return Sync(device, done, leave)

    def wait_for_all(self) -> tuple[Sync, ...]:
        """Complete all launched steps, the devices in the order of their first launches."""
        devices = sorted(self._pending, key=lambda name: self._pending[name].first)
        return tuple(self.wait(device, 0) for device in devices)

    def start(self, step: Step, access: Access, index: int) -> None:
        """Load the program of a step and start it; `index` is its position in the order of execution."""
        if step.device is None:
            return
        if step.program is not None:
            self._loaded[step.device] = step.program.content
        if step.operator.is_async:
            self._pending.setdefault(step.device, Pending()).add(access, index)


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
    predecessors: list[set[int]] = [set() for _ in steps]
    before = Accessed()
    effects: int | None = None
    for index, access in enumerate(accesses):
        predecessors[index].update(before.add(access, index))
        if steps[index].operator.permits:
            if effects is not None:
                predecessors[index].add(effects)
            effects = index
    return predecessors


@dataclass(frozen=True, slots=True)
class Ownership:
    """The ownership of a device: from before step `first` to after the waits before step `last`.

    `last` is the number of steps if the device is released at the end of the run.
    """

    first: int
    last: int


@dataclass(frozen=True)
class Schedule:
    """The order of steps and waits, and the lifetimes of buffers."""

    steps: tuple[Step, ...]
    """In the order of execution, with ascending indexes."""
    syncs: tuple[tuple[Sync, ...], ...]
    """Before every step, in order; one more for the end."""
    lives: dict[str, Lifetime]
    """By the buffer's name."""
    loads: frozenset[int] = frozenset()
    """The steps whose program is loaded after the waits before them."""
    holds: dict[str, Ownership] = field(default_factory=dict)
    """By name, the devices with hooks that steps use, in the order of the context."""
    latency: Latency = Latency(None, ())


def plan_schedule(model: Model) -> Schedule:
    """Return the schedule. Steps keep the manifest's order unless it allows another."""
    line = shared_line(model)
    steps = model.steps
    if model.reorder and matters(model):
        steps = reordered(model, [access_of(step, line) for step in steps])
    steps = tuple(step if step.index == index else replace(step, index=index) for index, step in enumerate(steps))
    syncs, loads = _syncs(model, steps, [access_of(step, line) for step in steps])
    holds = _holds(model, steps, syncs)
    latency = latency_bound(model, steps, syncs, loads)
    return Schedule(steps, syncs, _lives(model, steps, syncs), loads, holds, latency)


def shared_line(model: Model) -> int:
    """Return the bytes that cache maintenance for a device treats as one; 1 without such devices."""
    if all(device.coherent for device in model.devices):
        return 1
    return max((pool.cache_line or 1 for pool in model.pools), default=1)


def _syncs(
    model: Model, steps: Sequence[Step], accesses: Iterable[Access]
) -> tuple[tuple[tuple[Sync, ...], ...], frozenset[int]]:
    """Return the waits before every step and at the end, and the steps that load their program."""
    queues = Queues(model)
    syncs = []
    loads = set()
    for step, access in zip(steps, accesses, strict=True):
        syncs.append(tuple(queues.wait(device, leave) for device, leave in queues.needed(step, access)))
        if queues.loads(step):
            loads.add(step.index)
        queues.start(step, access, step.index)
    syncs.append(queues.wait_for_all())
    return tuple(syncs), frozenset(loads)


def _holds(model: Model, steps: Sequence[Step], syncs: Sequence[Sequence[Sync]]) -> dict[str, Ownership]:
    """Return the ownership of every device with hooks that steps use."""
    holds: dict[str, Ownership] = {}
    for step in steps:
        if step.device is not None:  # a launched step ends at a wait
            known = holds.get(step.device, Ownership(step.index, 0))
            holds[step.device] = Ownership(known.first, step.index + 1)
    for before, listed in enumerate(syncs):
        for sync in listed:
            holds[sync.device] = Ownership(holds[sync.device].first, max(holds[sync.device].last, before))
    return {d.name: holds[d.name] for d in model.devices if d.has_hooks and d.name in holds}


def _lives(model: Model, steps: Sequence[Step], syncs: Sequence[Sequence[Sync]]) -> dict[str, Lifetime]:
    """Return the lifetime of every buffer; those of launched steps extend to the wait for their device."""
    end = {step.index: step.index for step in steps}
    for before, listed in enumerate(syncs):
        for sync in listed:
            for index in sync.steps:
                end[index] = before - 1
    roles = {buffer.name: buffer.role for buffer in model.buffers}
    # The caches of a device that is not coherent are maintained for whole steps.
    whole = {buffer.name for buffer in model.buffers if buffer.incoherent}
    used = [_phases(step, whole) for step in steps]
    lives = lifetimes(used, [end[step.index] for step in steps], roles, copied_at_end(model))
    for buffer in model.buffers:
        if buffer.inside is not None:
            lives[buffer.name] = lives[buffer.inside[0]] = Lifetime(0, max(len(steps) - 1, 0))
    return lives


def _phases(step: Step, whole: Collection[str]) -> dict[str, Phases | None]:
    """Return the buffers of a step with the phases from the first to the last access; None for the whole step.

    Results last until the end of the step, also if no step reads them: then `--check-steps` does.
    """
    found: dict[str, Phases | None] = {}
    for argument, binding in zip(step.operator.args, step.bindings, strict=True):
        if binding.role != "buffer":
            continue
        before = found.get(binding.name, (LAST_PHASE, 0))
        known = None if binding.name in whole or step.operator.is_async else argument.phases
        if known is not None and argument.is_written:
            known = known[0], LAST_PHASE
        found[binding.name] = (min(before[0], known[0]), max(before[1], known[1])) if before and known else None
    return found


def copied_at_end(model: Model) -> set[str]:
    """Return the buffers that a run copies to states at its end."""
    nexts: list[Binding] = [state.next for state in model.states if state.next]
    return {binding.name for binding in nexts if binding.role == "buffer"}
