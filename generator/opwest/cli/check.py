# SPDX-License-Identifier: Apache-2.0
"""The summary of a valid model in `check`: targets, memory, steps."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from opwest.base.diagnostics import Diagnostics, Location, nearest
from opwest.base.result import counted, table_lines
from opwest.model.checks.stack_need import needs_json, stack_text
from opwest.model.types.builds import ANY_TARGET, TargetBuild
from opwest.model.types.model import Model, Step
from opwest.plan.memory import MemoryPlan
from opwest.plan.schedule import EXCLUDED, Latency, Schedule, latency_bound
from opwest.render.devices import device_origin
from opwest.reports.data import Profile
from opwest.reports.measured import read_profile


def summary(model: Model, plan: MemoryPlan) -> str:
    """Return the summary of a model as text."""
    rows = []
    for role, tensors in (("input", model.inputs), ("output", model.outputs)):
        rows += [(role, f"{tensor.name}: {tensor.type}, {counted(tensor.type.size, 'byte')}") for tensor in tensors]
    for state in model.states:
        home = plan.homes.get(state.name, "no pool")
        rows.append(("state", f"{state.name}: {state.type}, {counted(state.type.size, 'byte')} in {home}"))
    size = sum(len(constant.content) for constant in model.constants)
    rows.append(("constants", f"{counted(size, 'byte')} in {counted(len(model.constants), 'tensor')}"))
    for pool in model.pools:
        if pool.name in plan.pools:
            planned = plan.pools[pool.name]
            limit = f" of {pool.size}" if pool.size is not None else ""
            states = _state_bytes(model, plan, pool.name)
            lasting = f", {states} of them state" if states else ""
            frames = plan.frames.get(pool.name)
            both = f", {frames.size} for two frames" if frames else ""
            sizes = f"{planned.size}{limit} bytes{lasting}{both}, lower bound {planned.lower_bound}"
            rows.append(("pool", f"{pool.name}: {sizes}"))
    for device in model.devices:
        program = f", program {device.program.name}" if device.program else ""
        rows.append(("device", f"{device.name}: {device_origin(device)}{program}"))
    if model.variant:
        rows.append(("used by", ", ".join(target.name for target in model.variant.targets)))
    rows += [("target", f"{_name(build)}: {_content(build)}") for build in model.builds]
    for build in model.builds:
        if build.unverified:
            listed = _first(build.unverified, 3)
            reason = "options of the compiler not verified (no record; compile with -g)"
            rows.append(("ABI", f"{_name(build)}: {reason}: {listed}"))
    for build in model.builds:
        if build.uncertain:
            rows.append(("ABI", f"{_name(build)}: calling convention not verified: {_first(build.uncertain, 3)}"))
    rows += [("stack", stack_text(need)) for need in model.stack]
    if not model.stack:
        unknown = "unknown: the operators are compiled with the firmware and measured by its tests"
        rows.append(("stack", f"{unknown}; give 'stack' of operators"))
    heading = f"{model.label}: {counted(len(model.operators), 'operator')}, {counted(len(model.steps), 'step')}"
    return "\n".join([heading, *(f"  {label:<9} {text}" for label, text in rows)])


def _state_bytes(model: Model, plan: MemoryPlan, pool: str) -> int:
    """Return the bytes of the states in a pool."""
    return sum(state.type.size for state in model.states if plan.homes.get(state.name) == pool)


def _content(build: TargetBuild) -> str:
    """Return the numbers of objects and sources of a target, and how their undefined symbols are checked."""
    sources = sum(source.compiled for source in build.sources)
    counts = [(len(build.objects), "object"), (sources, "source")]
    parts = ", ".join(counted(count, what) for count, what in counts if count)
    if not build.objects:
        return f"{parts}; undefined symbols not checked before linking"
    libc = "the host's C library" if build.libc == "host" else f"the C library {build.libc}"
    return f"{parts}; undefined symbols checked against {libc}"


def _name(build: TargetBuild) -> str:
    return build.target.name if build.target else ANY_TARGET


def _first(items: Sequence[object], most: int) -> str:
    """Return the first items of a list, and the number of the others."""
    others = len(items) - most
    return ", ".join(map(str, items[:most])) + (f" and {others} more" if others > 0 else "")


def summary_json(model: Model, plan: MemoryPlan) -> dict[str, Any]:
    """Return the summary of a model as JSON."""
    return {
        "model": model.name,
        **({"variant": model.variant.name} if model.variant else {}),
        "operators": [o.name for o in model.operators],
        "steps": [s.operator.name for s in model.steps],
        "inputs": [{"name": t.name, "dtype": t.type.dtype.name, "shape": t.type.shape} for t in model.inputs],
        "outputs": [{"name": t.name, "dtype": t.type.dtype.name, "shape": t.type.shape} for t in model.outputs],
        "states": [
            {
                "name": s.name,
                "dtype": s.type.dtype.name,
                "shape": s.type.shape,
                "pool": plan.homes.get(s.name),
                "next": s.next.shown if s.next else None,
            }
            for s in model.states
        ],
        "views": [{"name": v.name, "root": v.root, "offset": v.offset, "size": v.type.size} for v in model.views],
        "constant_bytes": sum(len(c.content) for c in model.constants),
        "pools": {
            name: {"size": p.size, "lower_bound": p.lower_bound, "align": p.align, "offsets": dict(p.offsets)}
            for name, p in plan.pools.items()
        },
        **(
            {"frames": {name: {"stride": both.stride, "size": both.size} for name, both in plan.frames.items()}}
            if plan.frames
            else {}
        ),
        "devices": [d.name for d in model.devices],
        "stack": needs_json(model.stack),
        "targets": [
            {
                "name": b.target.name if b.target else None,
                "objects": [o.origin for o in b.objects],
                "libc": b.libc,
                "unverified_abi": list(b.unverified),
                "unverified_conventions": list(b.uncertain),
            }
            for b in model.builds
        ],
    }


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


_LISTED = 10
"""The largest number of steps without cycles that are listed."""


def schedule_json(model: Model, plan: MemoryPlan, latency: Latency) -> dict[str, Any]:
    """Return the schedule for the JSON output of `check`."""
    holds = plan.schedule.holds
    return {
        "schedule": schedule_rows(model, plan),
        "holds": {name: {"first": hold.first, "last": hold.last} for name, hold in holds.items()},
        "latency": {"cycles": latency.cycles, "unknown": list(latency.unknown)},
    }


def schedule_rows(model: Model, plan: MemoryPlan) -> list[dict[str, Any]]:
    """Return the steps and waits in execution order, with the live bytes of every pool during a step.

    `load` is set if the program of a step is loaded before it; `leave` is the number of steps that may be unfinished
    after a wait.
    """
    rows: list[dict[str, Any]] = []
    schedule = plan.schedule
    for index, syncs in enumerate(schedule.syncs):
        for sync in syncs:
            rows.append({"wait": sync.device, "steps": list(sync.steps), "leave": sync.leave})
        if index < len(schedule.steps):
            step = schedule.steps[index]
            rows.append(
                {
                    "step": index,
                    "operator": step.operator.name,
                    "device": step.device,
                    "launched": step.operator.is_async,
                    "program": step.program.name if step.program else None,
                    "load": index in schedule.loads,
                    "cycles": step.cycles,
                    "line": step.location.line,
                    "live": live_bytes(model, plan, index),
                }
            )
    return rows


def live_bytes(model: Model, plan: MemoryPlan, step: int) -> dict[str, int]:
    """Return the live bytes of every pool in a step."""
    live = dict.fromkeys(plan.pools, 0)
    for buffer in model.planned:
        life = plan.schedule.lives[buffer.name]
        if life.first <= step <= life.last:
            live[plan.homes[buffer.name]] += buffer.type.size
    return live


def timeline(model: Model, plan: MemoryPlan, latency: Latency) -> str:
    """Return the schedule as a table with a column per device: `>` marks a launch, `|` a possibly running step.

    Loads have a row if the steps of the device have several programs.
    """
    agents = ["cpu", *(device.name for device in model.devices)]
    rows = [["step", *agents, *(f"{pool} bytes" for pool in plan.pools), "line"]]
    blank = [""] * (len(plan.pools) + 1)
    busy: set[str] = set()
    programs: dict[str, set[str]] = {}
    for step in plan.schedule.steps:
        if step.device and step.program:
            programs.setdefault(step.device, set()).add(step.program.name)

    def add(number: str, cells: Mapping[str, str], sizes_and_line: Sequence[str] = blank) -> None:
        by_agent = [cells.get(agent, "|" if agent in busy else "") for agent in agents]
        rows.append([number, *by_agent, *sizes_and_line])

    for row in schedule_rows(model, plan):
        if "wait" in row:
            wait = f"wait {row['wait']} ({', '.join(map(str, row['steps']))})"
            if row["leave"]:
                add("", {"cpu": f"{wait}, {row['leave']} left"})
            else:
                busy.discard(row["wait"])
                add("", {"cpu": wait, row["wait"]: "done"})
            continue
        device = row["device"]
        if row["load"] and len(programs[device]) > 1:
            add("", {"cpu": f"load {device}", device: f"({row['program']})"})
        operator = row["operator"] + (" >" if row["launched"] else "")
        add(str(row["step"]), {device or "cpu": operator}, [*map(str, row["live"].values()), str(row["line"])])
        if row["launched"]:
            busy.add(device)
    lines = table_lines(rows, {0, *range(1 + len(agents), len(rows[0]))})
    for pool in plan.pools:
        if size := _state_bytes(model, plan, pool):
            lines.append(f"state in {pool}: {size} bytes, live in every step")
    for state in model.states:
        if state.next:
            lines.append(f"end: copy {state.next.shown} to state {state.name}, {state.type.size} bytes")
    count = len(plan.schedule.steps)
    for name, hold in plan.schedule.holds.items():
        end = "the end" if hold.last == count else f"the waits before step {hold.last}"
        lines.append(f"own {name}: from step {hold.first} to {end}")
    lines.append(f"latency bound: {_latency_words(latency, count)}")
    order = "any (steps reordered as far as tensors allow)" if model.reorder else "given"
    return "\n".join([f"{model.label}: schedule, order: {order}", *(f"  {line}" for line in lines)])


def _latency_words(latency: Latency, steps: int) -> str:
    """Return the bound on the latency in words, or the steps without cycles; `steps` is the number of all steps."""
    if latency.cycles is not None:
        return f"{latency.cycles} cycles, without {EXCLUDED}"
    if len(latency.unknown) == steps:
        return "unknown, no step has cycles"
    return f"unknown, steps without cycles: {_first(latency.unknown, _LISTED)}"
