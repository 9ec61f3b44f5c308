# SPDX-License-Identifier: Apache-2.0
"""`opwest.check`: check manifests and their objects, without writing files."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from opwest import pipeline
from opwest.api.calls import AnyPath, CallResult, Paths, Words, api_function, path_of, paths_of, words_of
from opwest.api.summary import ModelSummary, schedule_of, summary_of
from opwest.api.zephyr import warn_of_base, zephyr_options
from opwest.base.diagnostics import Diagnostics, Location, OpwestError, fail, nearest
from opwest.base.frozen_dataclass import dataclass
from opwest.model.checks.exportability import ObjectRow, exportability
from opwest.model.checks.signatures import note_unverified
from opwest.model.types.model import Model, Step
from opwest.plan.schedule import Latency, Schedule, latency_bound
from opwest.project.request import Examination, Request
from opwest.reports.data import Profile
from opwest.reports.measured import read_profile


@dataclass(frozen=True)
class ObjectTable:
    """The objects of a model."""

    model: str
    variant: str | None
    label: str
    """The name in output for users, with the variant."""
    rows: tuple[ObjectRow, ...]


@dataclass(frozen=True)
class CheckResult(CallResult):
    """The models of manifests, and their objects. After errors, `result` of OpwestError has the objects only."""

    models: tuple[ModelSummary, ...]
    """The base of each manifest, followed by its variants."""
    objects: tuple[ObjectTable, ...]
    """For each model, whether its objects can be exported, and if not, why."""


def _examined(request: Request, faults: Diagnostics) -> list[Examination]:
    """Return the models of an application, and report their faults; nothing after an error that stops the check."""
    own = Diagnostics()
    found: list[Examination] = []
    try:
        found = pipeline.run(request, own, "plan").examinations
    except OpwestError as error:
        for diagnostic in error.diagnostics:
            own.add(diagnostic)
    for diagnostic in own:
        faults.add(diagnostic)
    faults.sources |= own.sources
    return found


@api_function
def check(
    faults: Diagnostics,
    manifests: Paths,
    *,
    each: bool = False,
    schedule: bool = False,
    profile: AnyPath | None = None,
    board: Words = (),
    zephyr_version: str | None = None,
    zephyr_base: AnyPath | None = None,
) -> CheckResult:
    """Check manifests and their objects like `generate`, without writing files; return a summary.

    With `each`, every manifest is an application of its own; otherwise they form one.
    With `schedule`, the summary has the steps in the order of execution and a bound on the latency; with `profile`,
    the bound is from the longest durations of a profile in cycles.
    """
    if profile is not None and not schedule:
        raise fail("--profile requires --schedule")
    base = path_of(zephyr_base)
    warn_of_base(base, faults)
    zephyr = zephyr_options(words_of(board), zephyr_version, base)
    given = paths_of(manifests)
    examinations: list[Examination] = []
    for together in [(path,) for path in given] if each else [given]:
        examinations += _examined(Request(together, zephyr=zephyr), faults)
    measured = None
    if profile is not None and not faults.has_errors:
        measured = _MeasuredLatency(Path(profile), [examination.model for examination in examinations], faults)
    models, objects = [], []
    for model, plan, examined, _ in examinations:
        variant = model.variant.name if model.variant else None
        objects.append(ObjectTable(model.name, variant, model.label, tuple(exportability(model, examined))))
        if faults.has_errors:
            continue
        note_unverified(faults, model)
        steps = None
        if schedule:
            latency = measured.bound(model, plan.schedule) if measured else plan.schedule.latency
            steps = schedule_of(model, plan, latency)
        models.append(summary_of(model, plan, steps))
    return CheckResult(models=tuple(models), objects=tuple(objects))


class _MeasuredLatency:
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
