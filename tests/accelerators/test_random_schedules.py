# SPDX-License-Identifier: Apache-2.0
"""Schedules, lifetimes and cache maintenance of random models, executed by an adversarial machine model."""

from dataclasses import replace

import pytest
from campaign import sized
from machine_model import MODES
from opwest.diagnostics import Diagnostics
from opwest.plan import schedule as scheduling
from opwest.plan.access import Access
from opwest.plan.memory import plan_memory, plan_model
from opwest.plan.schedule import Life, Schedule
from opwest.render.actions import Cache, Call, Copy, Wait, actions
from plan_checks import Wrong, check_memory, check_order, conflict, shared_line
from planned_graphs import Planned, execute

GRAPHS = sized(150, 3000)


@pytest.fixture(scope="module")
def planned(tmp_path_factory):
    return Planned(tmp_path_factory.mktemp("graphs"))


def neighbours(model):
    """Return the pairs of steps that use different bytes of one cache line, one of them on an incoherent device."""
    incoherent = {device.name for device in model.devices if not device.coherent}
    line = shared_line(model)
    found = 0
    for number, step in enumerate(model.steps):
        for other in model.steps[:number]:
            apart = step.device != other.device and {step.device, other.device} & incoherent
            found += bool(apart and conflict(step, other, line) and not conflict(step, other, 1))
    return found


def test_schedules_compute_what_sequential_execution_does(planned, record_property):
    launched = waits = maintained = reordered = views = copies = shared = 0
    for seed, (graph, model, plan, listed) in enumerate(planned.first(GRAPHS)):
        check_order(model, [f"op{index}" for index in range(len(graph.steps))])
        check_memory(model, plan, listed)
        for mode in MODES:
            execute(graph, model, plan, listed, mode, seed)
        launched += sum(isinstance(a, Call) and a.step.operator.is_async for a in listed)
        waits += sum(isinstance(a, Wait) for a in listed)
        maintained += sum(isinstance(a, Cache) for a in listed)
        views += sum(b.view is not None for step in model.steps for b in step.bindings)
        copies += sum(isinstance(a, Copy) for a in listed)
        shared += neighbours(model)
        reordered += [s.operator.name for s in model.steps] != [f"op{i}" for i in range(len(graph.steps))]
    figures = {"graphs": GRAPHS, "launched": launched, "waits": waits, "maintenance": maintained}
    figures |= {"reordered": reordered, "views": views, "copies": copies, "neighbours": shared}
    print(figures)
    for name, value in figures.items():
        record_property(name, value)
    assert launched > 2 * GRAPHS
    assert launched > waits > GRAPHS // 2, "one wait can cover several steps"
    assert maintained > 2 * GRAPHS
    assert reordered > GRAPHS // 10
    assert views > 5 * GRAPHS
    assert copies > GRAPHS // 5
    assert shared > GRAPHS // 3


def _wrong(planned, change):
    """Return the number of models with detected faults after a change of their actions."""
    wrong = 0
    for seed, (graph, model, plan, listed) in enumerate(planned.first(120)):
        changed = change(listed)
        if changed == listed:
            continue
        try:
            for mode in MODES:
                execute(graph, model, plan, changed, mode, seed)
        except Wrong:
            wrong += 1
    return wrong


@pytest.mark.parametrize("operation", ["flush", "flush_and_invalidate", "invalidate"])
def test_machine_model_detects_missing_maintenance(planned, operation):
    def without(listed):
        return [a for a in listed if not (isinstance(a, Cache) and a.operation == operation)]

    wrong = _wrong(planned, without)
    print(operation, wrong)
    assert wrong > 5


def test_machine_model_detects_missing_and_late_waits(planned):
    def without(listed):
        return [a for a in listed if not isinstance(a, Wait)]

    def late(listed):
        swapped = list(listed)
        for at in range(len(swapped) - 1):
            if isinstance(swapped[at], Wait) and isinstance(swapped[at + 1], Call):
                swapped[at], swapped[at + 1] = swapped[at + 1], swapped[at]
        return swapped

    wrong = _wrong(planned, without), _wrong(planned, late)
    print(wrong)
    assert wrong[0] > 50
    assert wrong[1] > 20


def _detected(planned, remade, count=120):
    """Return the number of models with detected faults among those that `remade` plans in another way."""
    wrong = 0
    for seed, (graph, model, plan, _) in enumerate(planned.first(count)):
        again = remade(unlimited(model), plan)
        if again is None:
            continue
        listed = actions(*again)
        try:
            check_memory(*again, listed)
            for mode in MODES:
                execute(graph, *again, listed, mode, seed)
        except Wrong:
            wrong += 1
    return wrong


def unlimited(model):
    """Return a model whose pools have any size, so that each plan is possible."""
    return replace(model, pools=tuple(replace(pool, size=None) for pool in model.pools))


def by_view(step, line):
    """Return the accesses of a step by the name that it uses: a view has no bytes in common with its tensor."""
    ranges = {"in": {}, "out": {}}
    for argument, binding in zip(step.operator.args, step.bindings, strict=True):
        if binding.role in ("buffer", "output"):
            for kind, other in (("in", "out"), ("out", "in")):
                if argument.direction != other:
                    ranges[kind].setdefault(binding.shown, []).append((0, 1))
    return Access(ranges["in"], ranges["out"])


def test_machine_model_detects_conflicts_by_the_name_of_a_view(planned, monkeypatch):
    monkeypatch.setattr(scheduling, "access_of", by_view)
    wrong = _detected(planned, lambda model, plan: plan_model(model, Diagnostics()))
    print(wrong)
    assert wrong > 15


def test_machine_model_detects_neighbours_in_one_cache_line(planned, monkeypatch):
    """Without units of cache lines, agents write parts of one line at the same time."""
    monkeypatch.setattr(scheduling, "shared_line", lambda model: 1)

    def by_bytes(model, plan):
        return plan_model(model, Diagnostics()) if neighbours(model) else None

    wrong = _detected(planned, by_bytes, GRAPHS)
    print(wrong)
    assert wrong > 5


def test_machine_model_detects_maintenance_without_the_lines_at_the_ends_of_views(planned):
    def inner(listed):
        return [short for action in listed if (short := _without_ends(action, listed)) is not None]

    wrong = _wrong(planned, inner)
    print(wrong)
    assert wrong > 10


def _without_ends(action, listed):
    """Return the maintenance of the lines that a view fills; None if there are none."""
    if not isinstance(action, Cache) or action.binding.view is None:
        return action
    step = next(a.step for a in listed if isinstance(a, Call) and a.step.index == action.step)
    sizes = {b.view: a.type.size for a, b in zip(step.operator.args, step.bindings, strict=True)}
    line = next(n for n in (64, 32, 16) if action.start % n == action.size % n == 0)
    start = -(-action.binding.offset // line) * line
    end = (action.binding.offset + sizes[action.binding.view]) // line * line
    return replace(action, start=start, size=end - start) if end > start else None


def test_machine_model_rejects_maintenance_of_parts_of_lines(planned):
    def bytes_only(listed):
        return [replace(a, start=a.binding.offset) if isinstance(a, Cache) else a for a in listed]

    assert _wrong(planned, bytes_only) > 10


def test_machine_model_detects_memory_of_states_that_is_shared(planned):
    def passing(model, plan):
        """Plan the states as intermediate tensors."""
        if not model.states:
            return None
        used = {b.name: [] for b in model.buffers}
        for step in model.steps:
            for binding in step.bindings:
                if binding.role == "buffer":
                    used[binding.name].append(step.index)
        lives = dict(plan.schedule.lives)
        lives |= {s.name: Life(min(used[s.name]), max(used[s.name])) for s in model.states if used[s.name]}
        return model, plan_memory(model, replace(plan.schedule, lives=lives), Diagnostics())

    wrong = _detected(planned, passing)
    print(wrong)
    assert wrong > 20


def test_machine_model_detects_copies_before_the_last_wait(planned):
    def early(listed):
        copies = [a for a in listed if isinstance(a, Copy)]
        rest = [a for a in listed if not isinstance(a, Copy)]
        last = max((at for at, action in enumerate(rest) if isinstance(action, Wait)), default=len(rest))
        return [*rest[:last], *copies, *rest[last:]]

    wrong = _wrong(planned, early)
    print(wrong)
    assert wrong > 5


def test_machine_model_detects_copies_of_memory_that_was_released(planned, monkeypatch):
    monkeypatch.setattr(scheduling, "copied_at_end", lambda model: set())

    def released(model, plan):
        """Plan without regard to the tensors that run copies at its end."""
        return plan_model(model, Diagnostics()) if any(state.next for state in model.states) else None

    wrong = _detected(planned, released, GRAPHS)
    print(wrong)
    assert wrong > 3


def test_machine_model_detects_early_release_of_memory(planned):
    """A plan for the schedule without launches: lifetimes end with the last step."""
    wrong = executed_wrong = 0
    for graph, model, plan, listed in planned.first(120):
        lives = {}
        for step in model.steps:
            for binding in step.bindings:
                if binding.role == "buffer":
                    known = lives.get(binding.name, Life(step.index, step.index))
                    lives[binding.name] = Life(known.first, step.index)
        for buffer in model.buffers:
            if buffer.role not in ("intermediate", "scratch"):
                lives[buffer.name] = plan.schedule.lives[buffer.name]
        large = unlimited(model)
        faults = Diagnostics()
        short = plan_memory(large, Schedule(plan.schedule.steps, plan.schedule.syncs, lives), faults)
        try:
            check_memory(large, short, listed)
        except Wrong:
            wrong += 1
            try:
                for mode in MODES:
                    execute(graph, large, short, listed, mode, 0)
            except Wrong:
                executed_wrong += 1
    # Not all: a device reuses its own memory in the order of its queue.
    print(wrong, executed_wrong)
    assert wrong > 10
    assert executed_wrong > wrong // 2
