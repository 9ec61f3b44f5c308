# SPDX-License-Identifier: Apache-2.0
"""The actions of `run` in order, for C and for LLVM IR."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from opwest.model.model import Binding, Model, Step
from opwest.plan.memory import MemoryPlan
from opwest.plan.schedule import Sync
from opwest.records import dataclass
from opwest.render.tensors import external_line

CacheOperation = Literal["flush", "flush_and_invalidate", "invalidate"]


@dataclass(frozen=True, slots=True)
class Call:
    """Call a step's operator; `marks` is set if the step is the first launch on an idle device."""

    step: Step
    marks: bool


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


Action = Call | Wait | Cache | Copy


def actions(model: Model, plan: MemoryPlan) -> list[Action]:
    """Return all actions of run between opening and closing its devices."""
    return list(_Actions(model, plan).all())


class _Actions:
    def __init__(self, model: Model, plan: MemoryPlan) -> None:
        self.model = model
        self.plan = plan
        self.index = {device.name: index for index, device in enumerate(model.devices)}
        self.incoherent = {device.name for device in model.devices if not device.coherent}
        self.lines = {pool.name: pool.cache_line for pool in model.pools}
        self.external = {t.name: external_line(model, t) for t in (*model.inputs, *model.outputs)}
        self.busy: set[str] = set()

    def all(self) -> Iterator[Action]:
        for step, syncs in zip(self.model.steps, self.plan.schedule.syncs, strict=False):
            for sync in syncs:
                yield from self._wait(sync)
            yield from self._maintain(step, before=True)
            launched = step.operator.is_async and step.device is not None
            yield Call(step, launched and step.device not in self.busy)
            if launched and step.device:
                self.busy.add(step.device)
            else:
                yield from self._maintain(step, before=False)
        for sync in self.plan.schedule.syncs[-1]:
            yield from self._wait(sync)
        for state in self.model.states:
            if state.next is not None:
                yield Copy(state.name, state.next, state.type.size)

    def _wait(self, sync: Sync) -> Iterator[Action]:
        self.busy.discard(sync.device)
        yield Wait(sync.device, self.index[sync.device], sync.steps, sync.leave)
        for index in sync.steps:
            yield from self._maintain(self.model.steps[index], before=False)

    def _maintain(self, step: Step, *, before: bool) -> Iterator[Action]:
        """Flush tensors before a device reads them; invalidate those that it writes, before and after."""
        if step.device is None or step.device not in self.incoherent:
            return
        for argument, binding in zip(step.operator.args, step.bindings, strict=True):
            line = self._line(binding)
            if line is None or argument.supplied:  # used by the processor only, during the call
                continue
            operation: CacheOperation = "flush" if argument.direction == "in" else "flush_and_invalidate"
            if not before:
                if argument.direction == "in":
                    continue
                operation = "invalidate"
            start = binding.offset // line * line
            size = -(-(binding.offset + argument.type.size) // line) * line - start
            yield Cache(operation, binding, start, size, step.index, step.device, self.index[step.device])

    def _line(self, binding: Binding) -> int | None:
        if binding.role == "buffer":
            return self.lines[self.plan.place(binding.name)[0]]
        return self.external[binding.name] if binding.role in ("input", "output") else None
