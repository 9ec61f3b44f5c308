# SPDX-License-Identifier: Apache-2.0
"""The stops of `opwest run --check-steps`, and the memory of `opwest call`."""

from __future__ import annotations

from pathlib import Path

from golden_support import copy_project
from opwest.diagnostics import Diagnostics
from opwest.model.model import Model
from opwest.plan.memory import MemoryPlan
from opwest.render.actions import Cache, Call, Wait, measured
from opwest.render.arguments import argument_memory, operator_rows
from opwest.render.stops import stops
from projects import check


class OnePlace:
    """A plan that puts all buffers at the same place."""

    def __init__(self, plan: MemoryPlan) -> None:
        self.schedule = plan.schedule

    def place(self, name: str) -> tuple[str, int]:
        return "shared", 0


def planned(folder: Path) -> tuple[Model, MemoryPlan]:
    found: tuple[Model, MemoryPlan] = next(iter(check(copy_project("asynchronous", folder / "source"), Diagnostics())))
    return found


def test_results_are_complete_after_waits_and_invalidation(tmp_path: Path) -> None:
    model, plan = planned(tmp_path)
    todo = measured(model, plan)
    found = stops(model, plan)
    assert sorted({step for stop in found for _, step in stop.writes}) == list(range(len(model.steps)))
    assert [stop.point for stop in found] == sorted({stop.point for stop in found})
    waits = 0
    for stop in found:
        last = todo[stop.point - 1]
        following = todo[stop.point] if stop.point < len(todo) else None
        assert not (isinstance(following, Cache) and following.operation == "invalidate")
        for _, step in stop.writes:
            operator = model.steps[step].operator
            if operator.is_async and model.steps[step].device:
                done = [a for a in todo[: stop.point] if isinstance(a, Wait) and step in a.steps]
                assert done and not (isinstance(last, Call) and last.step.operator.is_async)
                waits += 1
    assert waits


def test_results_that_a_later_step_may_overwrite_are_left_out(tmp_path: Path) -> None:
    model, plan = planned(tmp_path)
    kept = {write for stop in stops(model, OnePlace(plan)) for write in stop.writes}  # type: ignore[arg-type]
    whole = {write for stop in stops(model, plan) for write in stop.writes}
    assert kept < whole
    buffers = {buffer.name for buffer in model.buffers}
    synchronous = {
        (tensor, step)
        for tensor, step in whole
        if not (model.steps[step].operator.is_async and model.steps[step].device) or tensor not in buffers
    }
    assert synchronous <= kept, "they are complete before any later step"


def test_arguments_of_any_operator_fit_without_overlap(tmp_path: Path) -> None:
    model, _ = planned(tmp_path)
    memory = argument_memory(model)
    rows = operator_rows(model)
    assert [row["name"] for row in rows] == [operator.name for operator in model.operators]
    for row, operator in zip(rows, model.operators, strict=True):
        end = 8 * len(row["args"])
        assert len(row["args"]) <= memory.count
        for argument in row["args"]:
            if not argument["scalar"]:
                assert argument["offset"] >= end and argument["offset"] % memory.align == 0
                end = argument["offset"] + argument["size"]
        assert end <= memory.size
        types = {device.name: device.type for device in model.devices}
        assert all(types[name] == operator.device_type or operator.device_type is None for name in row["devices"])
