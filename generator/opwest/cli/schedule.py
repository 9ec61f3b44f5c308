# SPDX-License-Identifier: Apache-2.0
"""`check --schedule`: a timeline of steps, devices, waits, loads and live bytes, and a bound on the latency."""

from __future__ import annotations

from typing import Any

from opwest.model.model import Model
from opwest.plan.latency import EXCLUDED, Latency
from opwest.plan.memory import MemoryPlan

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
