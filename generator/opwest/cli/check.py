# SPDX-License-Identifier: Apache-2.0
"""The summary of a valid model in `check`: targets, memory, steps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from opwest.base.diagnostics import Diagnostics, Location, nearest
from opwest.model.checks.stack_need import needs_json, stack_text
from opwest.model.types.builds import ANY_TARGET, TargetBuild
from opwest.model.types.model import Model, Step
from opwest.plan.memory import MemoryPlan
from opwest.plan.schedule import EXCLUDED, Latency, Schedule, latency_bound
from opwest.render.devices import device_origin
from opwest.report.data import Profile
from opwest.report.measured import read_profile


def summary(model: Model, plan: MemoryPlan) -> str:
    """Return the summary of a model as text."""
    lines = [f"{model.label}: {_counted(len(model.operators), 'operator')}, {_counted(len(model.steps), 'step')}"]
    for tensor, role in [(t, "input") for t in model.inputs] + [(t, "output") for t in model.outputs]:
        lines.append(f"  {role:<9} {tensor.name}: {tensor.type}, {_counted(tensor.type.size, 'byte')}")
    for state in model.states:
        home = plan.homes.get(state.name, "no pool")
        lines.append(f"  state     {state.name}: {state.type}, {_counted(state.type.size, 'byte')} in {home}")
    size = sum(len(c.content) for c in model.constants)
    lines.append(f"  constants {_counted(size, 'byte')} in {_counted(len(model.constants), 'tensor')}")
    for pool in model.pools:
        if pool.name in plan.pools:
            planned = plan.pools[pool.name]
            limit = f" of {pool.size}" if pool.size is not None else ""
            kept = sum(s.type.size for s in model.states if plan.homes.get(s.name) == pool.name)
            lasting = f", {kept} of them state" if kept else ""
            frames = plan.frames.get(pool.name)
            both = f", {frames.size} for two frames" if frames else ""
            bytes_ = f"{planned.size}{limit} bytes{lasting}{both}"
            lines.append(f"  pool      {pool.name}: {bytes_}, lower bound {planned.lower_bound}")
    for device in model.devices:
        program = f", program {device.program.name}" if device.program else ""
        lines.append(f"  device    {device.name}: {device_origin(device)}{program}")
    if model.variant:
        lines.append(f"  used by   {', '.join(target.name for target in model.variant.targets)}")
    lines += [f"  target    {_target(build)}" for build in model.builds]
    lines += [f"  ABI       {_unverified(build)}" for build in model.builds if build.unverified]
    lines += [f"  ABI       {_uncertain(build)}" for build in model.builds if build.uncertain]
    lines += [f"  stack     {stack_text(need)}" for need in model.stack]
    if not model.stack:
        lines.append(
            "  stack     unknown: the operators are compiled with the firmware and measured by its tests; "
            "give 'stack' of operators"
        )
    return "\n".join(lines)


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" + ("" if count == 1 else "s")


def _target(build: TargetBuild) -> str:
    sources = sum(s.compiled for s in build.sources)
    parts = [_counted(len(build.objects), "object")] if build.objects else []
    parts += [_counted(sources, "source")] if sources else []
    libc = "the host's C library" if build.libc == "host" else f"the C library {build.libc}"
    text = f"{_name(build)}: {', '.join(parts)}"
    return (
        f"{text}; undefined symbols checked against {libc}"
        if build.objects
        else f"{text}; undefined symbols not checked before linking"
    )


def _unverified(build: TargetBuild) -> str:
    """Return the objects whose debug information does not show which ABI they were compiled for."""
    names = _first(build.unverified)
    return f"{_name(build)}: options of the compiler not verified (no record; compile with -g): {names}"


def _uncertain(build: TargetBuild) -> str:
    """Return the operators whose calling convention is not known."""
    return f"{_name(build)}: calling convention not verified: {_first(build.uncertain)}"


def _name(build: TargetBuild) -> str:
    return build.target.name if build.target else ANY_TARGET


def _first(names: tuple[str, ...]) -> str:
    """Return the first names of a list."""
    others = len(names) - 3
    return ", ".join(names[:3]) + (f" and {others} more" if others > 0 else "")


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
    header = ["step", *agents, *(f"{pool} bytes" for pool in plan.pools), "line"]
    lines = [header]
    busy: set[str] = set()
    programs: dict[str, set[str]] = {}
    for step in plan.schedule.steps:
        if step.device and step.program:
            programs.setdefault(step.device, set()).add(step.program.name)
    for row in schedule_rows(model, plan):
        if "wait" in row:
            steps = ", ".join(map(str, row["steps"]))
            cells = {"cpu": f"wait {row['wait']} ({steps})"}
            if row["leave"]:
                cells["cpu"] += f", {row['leave']} left"
            else:
                busy.discard(row["wait"])
                cells[row["wait"]] = "done"
            extra = [""] * (len(plan.pools) + 1)
            number = ""
        else:
            if row["load"] and len(programs[row["device"]]) > 1:
                loaded = {"cpu": f"load {row['device']}", row["device"]: f"({row['program']})"}
                row_of_load = [loaded.get(a, "|" if a in busy else "") for a in agents]
                lines.append(["", *row_of_load, *[""] * (len(plan.pools) + 1)])
            agent = row["device"] or "cpu"
            cells = {agent: f"{row['operator']}{' >' if row['launched'] else ''}"}
            extra = [*(str(size) for size in row["live"].values()), str(row["line"])]
            number = str(row["step"])
        lines.append([number, *(cells.get(a, "|" if a in busy else "") for a in agents), *extra])
        if row.get("launched"):
            busy.add(row["device"])
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    right = {0, *range(1 + len(agents), len(header))}
    shown = [
        "  ".join(
            cell.rjust(width) if column in right else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]
    kept = {pool: sum(s.type.size for s in model.states if plan.homes.get(s.name) == pool) for pool in plan.pools}
    shown += [f"state in {pool}: {size} bytes, live in every step" for pool, size in kept.items() if size]
    shown += [
        f"end: copy {state.next.shown} to state {state.name}, {state.type.size} bytes"
        for state in model.states
        if state.next
    ]
    shown += [
        f"own {name}: from step {hold.first} to {_end(hold.last, len(plan.schedule.steps))}"
        for name, hold in plan.schedule.holds.items()
    ]
    shown.append(f"latency bound: {latency_words(latency, len(plan.schedule.steps))}")
    order = "any (steps reordered as far as tensors allow)" if model.reorder else "given"
    return "\n".join([f"{model.label}: schedule, order: {order}", *(f"  {line}" for line in shown)])


def _end(last: int, steps: int) -> str:
    """Return the end of an ownership in words."""
    return "the end" if last == steps else f"the waits before step {last}"


def latency_words(latency: Latency, steps: int) -> str:
    """Return the bound on the latency in words, or the steps without cycles; `steps` is the number of all steps."""
    if latency.cycles is not None:
        return f"{latency.cycles} cycles, without {EXCLUDED}"
    if len(latency.unknown) == steps:
        return "unknown, no step has cycles"
    listed = ", ".join(map(str, latency.unknown[:_LISTED]))
    more = len(latency.unknown) - _LISTED
    return f"unknown, steps without cycles: {listed}{f' and {more} more' if more > 0 else ''}"
