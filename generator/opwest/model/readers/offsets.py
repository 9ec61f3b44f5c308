# SPDX-License-Identifier: Apache-2.0
"""Read `run.offsets`: the plan of a manifest with `memory_planner: fixed`."""

from __future__ import annotations

from collections import abc
from collections.abc import Sequence

from opwest.base.diagnostics import Location, nearest
from opwest.manifest.located import Mapping
from opwest.model.inputs.context import Context
from opwest.model.types.devices import Device
from opwest.model.types.model import FixedOffset, FixedPlan, FixedPool, MemoryPlanner, Pool, Step


def memory_planner(context: Context, replacement: MemoryPlanner | None) -> MemoryPlanner:
    """Return the planner: `replacement`, if any, else that of the manifest; report offsets without `fixed`."""
    run = context.section("run")
    declared: MemoryPlanner = run.get("memory_planner", "greedy")
    if (replacement or declared) == "fixed" and "offsets" not in run:
        context.faults.error(
            "missing key 'offsets'",
            run.value_location("memory_planner"),
            expected="offsets: the offset of every tensor, by pool",
            hint="'opwest plan MANIFEST --planner greedy' prints the tensors of every pool",
        )
    elif declared != "fixed" and "offsets" in run:
        context.faults.error(
            "'offsets' requires memory_planner: fixed",
            run.key_location("offsets"),
            expected="memory_planner: fixed",
            hint=f"the planner {declared} chooses the offsets",
        )
    return replacement or declared


def fixed_plan(context: Context, pools: dict[str, Pool]) -> FixedPlan:
    """Return the offsets that the manifest gives; report undefined pools and unreadable tables."""
    run = context.section("run")
    section = context.section("offsets", run)
    found = []
    for name, given in section.items():
        if name not in pools:
            context.faults.error(f"undefined pool {name!r}", section.key_location(name), hint=nearest(name, pools))
        elif isinstance(given, Mapping):
            offsets = tuple(FixedOffset(b, at, given.value_location(b)) for b, at in given.items())
            found.append(FixedPool(name, section.key_location(name), offsets))
        else:
            table = _table(context, name, given, section.value_location(name))
            found += [table] if table is not None else []
    return FixedPlan(run.key_location("offsets"), tuple(found))


def _table(context: Context, pool: str, name: str, at: Location) -> FixedPool | None:
    expected = "a table in MiniMalloc's format with a column 'offset'"
    path = context.regular_file(name, at, expected)
    if path is None:
        return None
    try:
        return FixedPool(pool, at, table=path.read_text(encoding="utf-8-sig"), file=str(path))
    except UnicodeDecodeError as error:
        context.faults.error(f"cannot read {name!r}: not UTF-8 (byte {error.start})", at, expected=expected)
    return None


def streams(context: Context, steps: Sequence[Step], devices: abc.Mapping[str, Device], planner: MemoryPlanner) -> bool:
    """Return whether the model streams; report a model in which no two frames could overlap, and a given plan."""
    run = context.section("run")
    if not run.get("stream", False):
        return False
    at = run.value_location("stream")
    launched = any(step.operator.is_async and step.device in devices for step in steps)
    if not launched and not context.faults.has_errors:
        context.faults.error(
            "stream: true has no effect: no step runs while the processor continues",
            at,
            expected="a step of an operator with async: true on a device with driver: accelerator",
            hint="without one, <model>_run computes as many frames per second",
        )
    if planner == "fixed":
        context.faults.error(
            "stream: true with memory_planner: fixed",
            at,
            expected="memory_planner: greedy or search",
            hint="two frames share constants and states: the planner puts them before the tensors that exist twice",
        )
    return True
