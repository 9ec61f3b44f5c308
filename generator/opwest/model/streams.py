# SPDX-License-Identifier: Apache-2.0
"""Resolve `run.stream`: whether submit and poll are emitted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from opwest.model.context import Context
from opwest.model.devices import Device
from opwest.model.model import MemoryPlanner, Step


def streams(context: Context, steps: Sequence[Step], devices: Mapping[str, Device], planner: MemoryPlanner) -> bool:
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
