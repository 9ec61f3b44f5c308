# SPDX-License-Identifier: Apache-2.0
"""The points after which the results of steps are compared: `opwest run --check-steps`."""

from __future__ import annotations

from collections.abc import Iterator

from opwest.base.frozen_dataclass import dataclass
from opwest.model.types.model import Model, Step
from opwest.plan.memory import MemoryPlan
from opwest.render.actions import Cache, Call, Measured, Wait, measured


@dataclass(frozen=True, slots=True)
class Breakpoint:
    """A point, and the tensors that are complete when it ends, each with the last step that wrote it."""

    point: int
    writes: tuple[tuple[str, int], ...]


def stops(model: Model, plan: MemoryPlan) -> list[Breakpoint]:
    """Return all stops in the order of the run.

    The results of a synchronous step are complete after its call, those of an asynchronous step after the wait for its
    device; then caches are invalidated. A result whose memory another step may have overwritten before that is left
    out: a device with a queue can write it again before the wait.
    """
    todo = measured(model, plan)
    memory = _Memory(model, plan)
    breakpoints = []
    called: list[int] = []
    order: dict[int, int] = {}
    """By step, the number of calls before its own."""
    for index, action in enumerate(todo):
        if isinstance(action, Call):
            order[action.step.index] = len(called)
            called.append(action.step.index)
        complete = _complete(action)
        if not complete:
            continue
        last = index
        while last + 1 < len(todo) and _invalidates(todo[last + 1]):
            last += 1
        writes = {
            tensor: step
            for step in complete
            for tensor in _written(model.steps[step])
            if not any(memory.overwrites(called[at], tensor) for at in range(order[step] + 1, len(called)))
        }
        if writes:
            breakpoints.append(Breakpoint(last + 1, tuple(writes.items())))  # point 0 is the whole run
    return breakpoints


def _complete(action: Measured) -> tuple[int, ...]:
    """Return the steps whose results an action completes."""
    if isinstance(action, Wait):
        return action.steps
    if isinstance(action, Call) and not (action.step.operator.is_async and action.step.device):
        return (action.step.index,)
    return ()


def _invalidates(action: Measured) -> bool:
    return isinstance(action, Cache) and action.operation == "invalidate"


def _written(step: Step) -> Iterator[str]:
    """Yield the tensors that a step writes, without scratch memory."""
    for argument, binding in zip(step.operator.args, step.bindings, strict=True):
        if argument.is_written and binding.role in ("input", "output", "buffer"):
            yield binding.shown


class _Memory:
    """The memory of the tensors and views of a model."""

    def __init__(self, model: Model, plan: MemoryPlan) -> None:
        self._steps = model.steps
        self._plan = plan
        self._sizes = {buffer.name: buffer.type.size for buffer in model.buffers}
        self._views = {view.name: view for view in model.views}

    def overwrites(self, step: int, tensor: str) -> bool:
        """Return whether a step writes memory of a tensor or view in the workspace as another tensor or view."""
        view = self._views.get(tensor)
        root = view.root if view else tensor
        arguments = zip(self._steps[step].operator.args, self._steps[step].bindings, strict=True)
        if root not in self._sizes:
            return any(
                view is not None and b.name == root and b.view != tensor and a.direction != "in" for a, b in arguments
            )
        pool, begin = self._plan.place(root)
        begin, size = (begin + view.offset, view.type.size) if view else (begin, self._sizes[root])
        for argument, binding in arguments:
            if argument.direction == "in" or binding.shown == tensor or binding.name not in self._sizes:
                continue
            other, start = self._plan.place(binding.name)
            start += binding.offset
            if other == pool and start < begin + size and begin < start + argument.type.size:
                return True
        return False
