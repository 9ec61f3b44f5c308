# SPDX-License-Identifier: Apache-2.0
"""The output of `opwest check`: targets, memory, objects, the timeline of steps."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from opwest.api.calls import collecting
from opwest.api.check import check as check_manifests
from opwest.api.summary import ModelSummary, Pool, ScheduledStep, ScheduleSummary, TargetSummary, Tensor
from opwest.base.diagnostics import Diagnostics
from opwest.base.result import Result, counted, table_lines
from opwest.cli.inspect import table
from opwest.model.checks.exportability import rows_json
from opwest.model.checks.stack_need import needs_json, stack_text
from opwest.model.types.builds import ANY_TARGET
from opwest.plan.schedule import EXCLUDED, Latency


def check(options: argparse.Namespace, faults: Diagnostics) -> Result:
    """Check manifests; with errors, print only the tables of objects."""
    result = collecting(check_manifests, faults)(
        options.manifests,
        schedule=options.schedule,
        each=options.each,
        profile=options.profile,
        board=options.board,
        zephyr_version=options.zephyr_version,
        zephyr_base=options.zephyr_base,
    )
    if not result.models:
        listed = [objects for objects in result.objects if objects.rows]
        texts = [f"{objects.label}: objects\n\n{table(objects.rows)}" for objects in listed]
        values: list[dict[str, Any]] = [
            {
                "model": objects.model,
                "variant": objects.variant,
                "exportability": rows_json(objects.rows),
            }
            for objects in listed
        ]
        return Result("\n\n".join(texts), values or None)
    texts, values = [], []
    for model, objects in zip(result.models, result.objects, strict=True):
        texts.append(f"{summary(model)}\n\n{table(objects.rows)}")
        values.append({**summary_json(model), "exportability": rows_json(objects.rows)})
        if model.schedule is not None:
            texts.append(timeline(model, model.schedule))
            values[-1].update(schedule_json(model.schedule))
    return Result("\n\n".join(texts), values)


def summary(model: ModelSummary) -> str:
    """Return the summary of a model as text."""
    rows = []
    for role, tensors in (("input", model.inputs), ("output", model.outputs)):
        rows += [(role, f"{tensor.name}: {tensor.type}, {counted(tensor.bytes, 'byte')}") for tensor in tensors]
    for state in model.states:
        home = state.pool or "no pool"
        rows.append(("state", f"{state.name}: {state.type}, {counted(state.bytes, 'byte')} in {home}"))
    rows.append(("constants", f"{counted(model.constant_bytes, 'byte')} in {counted(model.constants, 'tensor')}"))
    rows += [("pool", _pool(pool)) for pool in model.pools]
    for device in model.devices:
        program = f", program {device.program}" if device.program else ""
        rows.append(("device", f"{device.name}: {device.origin}{program}"))
    if model.variant:
        rows.append(("used by", ", ".join(model.variant_targets)))
    rows += [("target", f"{_name(target)}: {_content(target)}") for target in model.targets]
    for target in model.targets:
        if target.unverified_abi:
            listed = _first(target.unverified_abi, 3)
            reason = "options of the compiler not verified (no record; compile with -g)"
            rows.append(("ABI", f"{_name(target)}: {reason}: {listed}"))
    for target in model.targets:
        if target.unverified_conventions:
            listed = _first(target.unverified_conventions, 3)
            rows.append(("ABI", f"{_name(target)}: calling convention not verified: {listed}"))
    rows += [("stack", stack_text(need)) for need in model.stack]
    if not model.stack:
        unknown = "unknown: the operators are compiled with the firmware and measured by its tests"
        rows.append(("stack", f"{unknown}; give 'stack' of operators"))
    heading = f"{model.label}: {counted(len(model.operators), 'operator')}, {counted(len(model.steps), 'step')}"
    return "\n".join([heading, *(f"  {label:<9} {text}" for label, text in rows)])


def _pool(pool: Pool) -> str:
    limit = f" of {pool.limit_bytes}" if pool.limit_bytes is not None else ""
    lasting = f", {pool.state_bytes} of them state" if pool.state_bytes else ""
    both = f", {pool.frames.size} for two frames" if pool.frames is not None else ""
    return f"{pool.name}: {pool.bytes}{limit} bytes{lasting}{both}, lower bound {pool.lower_bound_bytes}"


def _content(target: TargetSummary) -> str:
    """Return the numbers of objects and sources of a target, and how their undefined symbols are checked."""
    counts = [(len(target.objects), "object"), (target.sources, "source")]
    parts = ", ".join(counted(count, what) for count, what in counts if count)
    if not target.objects:
        return f"{parts}; undefined symbols not checked before linking"
    libc = "the host's C library" if target.libc == "host" else f"the C library {target.libc}"
    return f"{parts}; undefined symbols checked against {libc}"


def _name(target: TargetSummary) -> str:
    return ANY_TARGET if target.name is None else target.name


def _first(items: Sequence[object], most: int) -> str:
    """Return the first items of a list, and the number of the others."""
    others = len(items) - most
    return ", ".join(map(str, items[:most])) + (f" and {others} more" if others > 0 else "")


def summary_json(model: ModelSummary) -> dict[str, Any]:
    """Return the summary of a model as JSON."""
    return {
        "model": model.name,
        "variant": model.variant,
        "operators": list(model.operators),
        "steps": list(model.steps),
        "inputs": [_tensor_json(tensor) for tensor in model.inputs],
        "outputs": [_tensor_json(tensor) for tensor in model.outputs],
        "states": [{**_tensor_json(state), "pool": state.pool, "next": state.next} for state in model.states],
        "views": [{"name": v.name, "root": v.root, "offset": v.offset, "bytes": v.bytes} for v in model.views],
        "constant_bytes": model.constant_bytes,
        "pools": [_pool_json(pool) for pool in model.pools],
        "devices": [device.name for device in model.devices],
        "stack": needs_json(model.stack),
        "targets": [
            {
                "name": target.name,
                "objects": list(target.objects),
                "libc": target.libc,
                "unverified_abi": list(target.unverified_abi),
                "unverified_conventions": list(target.unverified_conventions),
                "unverified_signatures": list(target.unverified_signatures),
            }
            for target in model.targets
        ],
    }


def _tensor_json(tensor: Tensor) -> dict[str, Any]:
    return {"name": tensor.name, "dtype": tensor.dtype, "shape": tensor.shape, "bytes": tensor.bytes}


def _pool_json(pool: Pool) -> dict[str, Any]:
    both = pool.frames
    return {
        "name": pool.name,
        "bytes": pool.bytes,
        "limit_bytes": pool.limit_bytes,
        "lower_bound_bytes": pool.lower_bound_bytes,
        "align": pool.align,
        "frames": both and {"stride_bytes": both.stride, "bytes": both.size},
        "buffers": [{"name": name, "offset": offset} for name, offset in pool.offsets.items()],
    }


_LISTED = 10
"""The largest number of steps without cycles that are listed."""


def schedule_json(schedule: ScheduleSummary) -> dict[str, Any]:
    """Return the schedule for the JSON output of `check`.

    `load` is set if the program of a step is loaded before it; `leave` is the number of steps that may be unfinished
    after a wait.
    """
    latency = schedule.latency
    return {
        "schedule": [_row_json(row) for row in schedule.rows],
        "holds": [{"device": name, "first": hold.first, "last": hold.last} for name, hold in schedule.holds.items()],
        "latency": {"cycles": latency.cycles, "unknown": list(latency.unknown)},
    }


def _row_json(row: ScheduledStep) -> dict[str, Any]:
    if row.kind == "wait":
        return {"kind": "wait", "device": row.device, "steps": list(row.steps), "leave": row.leave}
    return {
        "kind": row.kind,
        "step": row.step,
        "operator": row.operator,
        "device": row.device,
        "program": row.program,
        "load": row.load,
        "cycles": row.cycles,
        "line": row.line,
        "live_bytes": dict(row.live_bytes),
    }


def timeline(model: ModelSummary, schedule: ScheduleSummary) -> str:
    """Return the schedule as a table with a column per device: `>` marks a launch, `|` a possibly running step.

    Loads have a row if the steps of the device have several programs.
    """
    pools = [pool.name for pool in model.pools]
    agents = ["cpu", *(device.name for device in model.devices)]
    rows = [["step", *agents, *(f"{pool} bytes" for pool in pools), "line"]]
    blank = [""] * (len(pools) + 1)
    busy: set[str] = set()
    programs: dict[str, set[str]] = {}
    for row in schedule.rows:
        if row.device and row.program:
            programs.setdefault(row.device, set()).add(row.program)

    def add(number: str, cells: Mapping[str, str], sizes_and_line: Sequence[str] = blank) -> None:
        by_agent = [cells.get(agent, "|" if agent in busy else "") for agent in agents]
        rows.append([number, *by_agent, *sizes_and_line])

    for row in schedule.rows:
        device = row.device or "cpu"
        if row.kind == "wait":
            wait = f"wait {device} ({', '.join(map(str, row.steps))})"
            if row.leave:
                add("", {"cpu": f"{wait}, {row.leave} left"})
            else:
                busy.discard(device)
                add("", {"cpu": wait, device: "done"})
            continue
        if row.load and len(programs[device]) > 1:
            add("", {"cpu": f"load {device}", device: f"({row.program})"})
        operator = row.operator + (" >" if row.kind == "launch" else "")
        add(str(row.step), {device: operator}, [*map(str, row.live_bytes.values()), str(row.line)])
        if row.kind == "launch":
            busy.add(device)
    lines = table_lines(rows, {0, *range(1 + len(agents), len(rows[0]))})
    for pool in model.pools:
        if pool.state_bytes:
            lines.append(f"state in {pool.name}: {pool.state_bytes} bytes, live in every step")
    for state in model.states:
        if state.next:
            lines.append(f"end: copy {state.next} to state {state.name}, {state.bytes} bytes")
    count = len(model.steps)
    for name, hold in schedule.holds.items():
        end = "the end" if hold.last == count else f"the waits before step {hold.last}"
        lines.append(f"own {name}: from step {hold.first} to {end}")
    lines.append(f"latency bound: {_latency_words(schedule.latency, count)}")
    order = "any (steps reordered as far as tensors allow)" if schedule.reorder else "given"
    return "\n".join([f"{model.label}: schedule, order: {order}", *(f"  {line}" for line in lines)])


def _latency_words(latency: Latency, steps: int) -> str:
    """Return the bound on the latency in words, or the steps without cycles; `steps` is the number of all steps."""
    if latency.cycles is not None:
        return f"{latency.cycles} cycles, without {EXCLUDED}"
    if len(latency.unknown) == steps:
        return "unknown, no step has cycles"
    return f"unknown, steps without cycles: {_first(latency.unknown, _LISTED)}"
