# SPDX-License-Identifier: Apache-2.0
"""`check --schedule --profile FILE`: the bound on the latency with the longest measured durations.

A profile belongs to one board and one build, so it is not part of a manifest, which serves several targets. It has the
durations of calls only: the work of launched steps keeps the `cycles` of the manifest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from opwest.diagnostics import Diagnostics, Location, nearest
from opwest.model.model import Model, Step
from opwest.plan.latency import Latency, latency_bound
from opwest.plan.schedule import Schedule
from opwest.report.data import Profile
from opwest.report.measured import read_profile


class MeasuredLatency:
    """The durations of a profile."""

    def __init__(self, path: Path, models: Sequence[Model], faults: Diagnostics) -> None:
        """Read a profile for one of the models. Raises OpwestError if it does not fit."""
        self.path = path
        at = Location(str(path))
        name, profile = read_profile(path, faults)
        self.model = name
        self.points: dict[int, tuple[str, int]] = {}
        fitting = [model for model in models if model.name == name]
        if not fitting:
            faults.error(f"profile of unknown model {name!r}", at, hint=nearest(name, [model.name for model in models]))
        if profile.unit != "cycles":
            faults.error(
                f"the profile of {profile.where} is in {profile.unit}",
                at,
                expected="a profile in cycles, of a board",
                hint="'cycles' of the manifest and of a profile are cycles of the processor of the target",
            )
        self._add(profile, fitting, at, faults)
        faults.raise_if_errors()

    def _add(self, profile: Profile, models: Sequence[Model], at: Location, faults: Diagnostics) -> None:
        for point in profile.points:
            if point.kind in ("step", "launch") and point.step is not None:
                self.points[point.step] = (point.operator or "", math.ceil(point.max))
        for model in models:
            wrong = next((number for number in self.points if not self._fits(model.steps, number)), None)
            if wrong is not None:
                there = model.steps[wrong].operator.name if wrong < len(model.steps) else "absent"
                faults.error(
                    f"the profile is from another version of model {model.label!r}: "
                    f"step {wrong} is {self.points[wrong][0]}, in the manifest {there}",
                    at,
                    expected="a profile of the current steps",
                    hint="measure again with 'opwest run --output-profile'",
                )

    def _fits(self, steps: Sequence[Step], number: int) -> bool:
        return number < len(steps) and steps[number].operator.name == self.points[number][0]

    def bound(self, model: Model, schedule: Schedule) -> Latency:
        """Return the bound of a model; that of its manifest if the profile is of another model."""
        if model.name != self.model:
            return schedule.latency
        steps = [self._measured(step) for step in schedule.steps]
        return latency_bound(model, steps, schedule.syncs, schedule.loads)

    def _measured(self, step: Step) -> Step:
        if step.index not in self.points:
            return step
        cycles = self.points[step.index][1]
        if step.operator.is_async:
            return replace(step, operator=replace(step.operator, launch_cycles=cycles))
        return replace(step, cycles=cycles)
