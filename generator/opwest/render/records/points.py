# SPDX-License-Identifier: Apache-2.0
"""The points of `run` that profiling measures: the whole run, then each action."""

from __future__ import annotations

from opwest.model.model import Model
from opwest.plan.memory import MemoryPlan
from opwest.records import dataclass
from opwest.render.actions import Call, Copy, Measured, Wait, measured
from opwest.render.records.layout import NO_DEVICE, NO_STEP


@dataclass(frozen=True, slots=True)
class Point:
    """A row of the table of points: struct opwest_point of the runtime."""

    kind: str
    name: str
    step: int = NO_STEP.value
    device: int = NO_DEVICE.value


def points(model: Model, plan: MemoryPlan) -> list[Point]:
    """Return all points: 0 is the whole run, n is the measured action n - 1."""
    return [Point("run", model.name), *(_point(model, action) for action in measured(model, plan))]


def _point(model: Model, action: Measured) -> Point:
    if isinstance(action, Wait):
        return Point("wait", action.device, action.steps[0], action.index)
    if isinstance(action, Call):
        step = action.step
        names = [device.name for device in model.devices]
        kind = "launch" if step.operator.is_async and step.device else "step"
        return Point(kind, step.operator.name, step.index, names.index(step.device) if step.device else NO_DEVICE.value)
    if isinstance(action, Copy):
        return Point("copy", action.state)
    return Point("cache", model.steps[action.step].operator.name, action.step, action.index)
