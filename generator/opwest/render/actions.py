# SPDX-License-Identifier: Apache-2.0
"""The actions of `run` in order, for C and for LLVM IR."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from opwest.base.frozen_dataclass import dataclass
from opwest.model.types.model import Binding, Model, Step
from opwest.model.types.sections import Program
from opwest.plan.memory import MemoryPlan
from opwest.plan.problem import round_up
from opwest.plan.schedule import Sync
from opwest.render.tensors import external_line

CacheOperation = Literal["flush", "flush_and_invalidate", "invalidate"]


@dataclass(frozen=True, slots=True)
class Acquire:
    """Acquire the devices that a step is the first to need, and those that must be acquired before them."""

    step: int
    is_first: bool
    """Whether it is the first action of the run: a failure leaves the states unchanged."""


@dataclass(frozen=True, slots=True)
class Release:
    """Release a device, given its index in the context."""

    device: str
    index: int


@dataclass(frozen=True, slots=True)
class Call:
    """Call a step's operator."""

    step: Step
    index: int | None
    """The index of its device in the context, if the device is an accelerator."""
    use: int | None
    """The index of the device with the program of the step, in `uses`."""
    launches: bool
    """Whether the step is unfinished after the call."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait for a device, given its index in the context, until at most `leave` of its launches are unfinished."""

    device: str
    index: int
    steps: tuple[int, ...]
    leave: int


@dataclass(frozen=True, slots=True)
class Cache:
    """Cache maintenance of a tensor for a device that bypasses the cache: `start` and `size` in bytes, whole lines."""

    operation: CacheOperation
    binding: Binding
    start: int
    """From the begin of the tensor that the binding names."""
    size: int
    step: int
    device: str
    index: int


@dataclass(frozen=True, slots=True)
class Copy:
    """Copy a tensor to a state at the end of a run: `size` in bytes."""

    state: str
    source: Binding
    size: int


Action = Acquire | Release | Call | Wait | Cache | Copy
Measured = Call | Wait | Cache | Copy
"""The actions that profiling measures."""


def measured(model: Model, plan: MemoryPlan) -> list[Measured]:
    """Return the actions that profiling measures, in order: point n is the action n - 1."""
    return [action for action in actions(model, plan) if not isinstance(action, (Acquire, Release))]


def uses(model: Model) -> list[tuple[int, Program | None]]:
    """Return the pairs of a device, as its index in the context, and a program that steps use on it."""
    index = {device.name: index for index, device in enumerate(model.devices) if device.has_hooks}
    steps = [step for step in model.steps if step.device in index]
    return list(dict.fromkeys((index[step.device or ""], step.program) for step in steps))


def actions(model: Model, plan: MemoryPlan) -> list[Action]:
    """Return all actions of run."""
    return list(_Actions(model, plan).all())


def launch_count(model: Model) -> int:
    """Return the number of launches of a frame."""
    return sum(step.operator.is_async and step.device is not None for step in model.steps)


class _Actions:
    def __init__(self, model: Model, plan: MemoryPlan) -> None:
        self.model = model
        self.plan = plan
        self.index = {device.name: index for index, device in enumerate(model.devices)}
        self.hooked = {device.name for device in model.devices if device.has_hooks}
        self.uses = {use: number for number, use in enumerate(uses(model))}
        self.incoherent = {device.name for device in model.devices if not device.coherent}
        self.lines = {pool.name: pool.cache_line for pool in model.pools}
        self.external = {t.name: external_line(model, t) for t in (*model.inputs, *model.outputs)}

    def all(self) -> Iterator[Action]:
        holds = self.plan.schedule.holds
        acquired = {hold.first for hold in holds.values()}
        released: dict[int, list[str]] = {}
        for device, hold in holds.items():
            released.setdefault(hold.last, []).append(device)
        for step, syncs in zip(self.model.steps, self.plan.schedule.syncs, strict=False):
            yield from self._waits(syncs, released.get(step.index, ()))
            if step.index in acquired:
                yield Acquire(step.index, is_first=step.index == 0)
            yield from self._maintain(step, before=True)
            call = self._call(step)
            yield call
            if not call.launches:
                yield from self._maintain(step, before=False)
        yield from self._waits(self.plan.schedule.syncs[-1], released.get(len(self.model.steps), ()))
        for state in self.model.states:
            if state.next is not None:
                yield Copy(state.name, state.next, state.type.size)

    def _call(self, step: Step) -> Call:
        launches = step.operator.is_async and step.device is not None
        if step.device not in self.hooked:
            return Call(step, None, None, launches)
        index = self.index[step.device or ""]
        return Call(step, index, self.uses[index, step.program], launches)

    def _waits(self, syncs: Sequence[Sync], released: Sequence[str]) -> Iterator[Action]:
        """Wait before a step; then release the devices that no later step needs."""
        for sync in syncs:
            yield Wait(sync.device, self.index[sync.device], sync.steps, sync.leave)
            for index in sync.steps:
                yield from self._maintain(self.model.steps[index], before=False)
        for device in released:
            yield Release(device, self.index[device])

    def _maintain(self, step: Step, *, before: bool) -> Iterator[Action]:
        """Flush tensors before a device reads them; invalidate those that it writes, before and after."""
        if step.device is None or step.device not in self.incoherent:
            return
        for argument, binding in zip(step.operator.args, step.bindings, strict=True):
            line = self._line(binding)
            if line is None or argument.supplied or argument.scalar:  # used by the processor only, during the call
                continue
            operation: CacheOperation = "flush" if argument.direction == "in" else "flush_and_invalidate"
            if not before:
                if argument.direction == "in":
                    continue
                operation = "invalidate"
            start = binding.offset // line * line
            size = round_up(binding.offset + argument.type.size, line) - start
            yield Cache(operation, binding, start, size, step.index, step.device, self.index[step.device])

    def _line(self, binding: Binding) -> int | None:
        if binding.role == "buffer":
            return self.lines[self.plan.place(binding.name)[0]]
        return self.external[binding.name] if binding.role in ("input", "output") else None
