# SPDX-License-Identifier: Apache-2.0
"""What profiling measures of `run`: the whole of it, then each of its actions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from opwest.model.model import Model
from opwest.plan.memory import MemoryPlan
from opwest.render.actions import Action, Call, Wait, actions

KINDS = ("run", "step", "launch", "wait", "cache")
"""enum opwest_point_kind of the runtime."""
NONE = 0xFFFF
"""OPWEST_NO_STEP and OPWEST_NO_DEVICE."""


@dataclass(frozen=True, slots=True)
class Point:
    """A row of the table of points: struct opwest_point of the runtime."""

    kind: str
    name: str
    step: int = NONE
    device: int = NONE

    @property
    def code(self) -> int:
        """The kind as the runtime numbers it."""
        return KINDS.index(self.kind)


def points(model: Model, plan: MemoryPlan) -> list[Point]:
    """Return all points: 0 is the whole of run, n is action n - 1."""
    return [Point("run", model.name), *(_point(model, action) for action in actions(model, plan))]


def _point(model: Model, action: Action) -> Point:
    if isinstance(action, Wait):
        return Point("wait", action.device, action.steps[0], action.index)
    if isinstance(action, Call):
        step = action.step
        names = [device.name for device in model.devices]
        kind = "launch" if step.operator.is_async and step.device else "step"
        return Point(kind, step.operator.name, step.index, names.index(step.device) if step.device else NONE)
    return Point("cache", model.steps[action.step].operator.name, action.step, action.index)


def point_rows(model: Model, plan: MemoryPlan) -> list[dict[str, Any]]:
    """Return the rows of the C table."""
    return [
        {
            "name": point.name,
            "step": "OPWEST_NO_STEP" if point.step == NONE else f"{point.step}U",
            "device": "OPWEST_NO_DEVICE" if point.device == NONE else f"{point.device}U",
            "kind": f"OPWEST_POINT_{point.kind.upper()}",
        }
        for point in points(model, plan)
    ]
