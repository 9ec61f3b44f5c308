# SPDX-License-Identifier: Apache-2.0
"""`check --schedule`: a timeline of steps, devices, waits and live bytes."""

from __future__ import annotations

from typing import Any

from opwest.model.model import Model
from opwest.plan.memory import MemoryPlan


def schedule_rows(model: Model, plan: MemoryPlan) -> list[dict[str, Any]]:
    """Return the steps and waits in execution order, with the live bytes of every pool during a step."""
    rows: list[dict[str, Any]] = []
    schedule = plan.schedule
    for index, syncs in enumerate(schedule.syncs):
        for sync in syncs:
            rows.append({"wait": sync.device, "steps": list(sync.steps)})
        if index < len(schedule.steps):
            step = schedule.steps[index]
            rows.append(
                {
                    "step": index,
                    "operator": step.operator.name,
                    "device": step.device,
                    "launched": step.operator.is_async,
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


def timeline(model: Model, plan: MemoryPlan) -> str:
    """Return the schedule as a table with a column per device: `>` marks a launch, `|` a possibly running step."""
    agents = ["cpu", *(device.name for device in model.devices)]
    header = ["step", *agents, *(f"{pool} bytes" for pool in plan.pools), "line"]
    lines = [header]
    busy: set[str] = set()
    for row in schedule_rows(model, plan):
        if "wait" in row:
            busy.discard(row["wait"])
            steps = ", ".join(map(str, row["steps"]))
            cells = {"cpu": f"wait {row['wait']} ({steps})", row["wait"]: "done"}
            extra = [""] * (len(plan.pools) + 1)
            number = ""
        else:
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
    order = "any (steps reordered as far as tensors allow)" if model.reorder else "given"
    return "\n".join([f"{model.label}: schedule, order: {order}", *(f"  {line}" for line in shown)])
