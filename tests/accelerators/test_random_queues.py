# SPDX-License-Identifier: Apache-2.0
"""Random models with queue depths, programs per step and kinds of switching, executed by both machine models."""

import random
from dataclasses import replace

import pytest
from campaign import sized
from machine_model import MODES
from opwest.diagnostics import Diagnostics
from opwest.plan import order, queues
from opwest.plan import schedule as scheduling
from opwest.plan.memory import plan_model
from opwest.plan.schedule import Hold
from opwest.render.actions import actions
from plan_checks import Wrong, check_memory, check_order
from planned_graphs import Planned, execute
from timed_machine import TimedMachine, longest

GRAPHS = sized(60, 500)
CHANGED = sized(40, 200)
"""The models whose schedules are changed."""
FASTER = sized(4, 20)
"""Executions with random durations, per model."""


@pytest.fixture(scope="module")
def planned(tmp_path_factory):
    return Planned(tmp_path_factory.mktemp("queues"), queues=True)


def faster(seed):
    """Return random durations: from nothing to the longest."""
    rng = random.Random(seed)
    return lambda _, limit: rng.choice((0, limit, rng.randint(0, limit)))


def check_holds(schedule):
    """Check that every ownership begins with a step of the device, and ends as soon as its work has ended."""
    for name, hold in schedule.holds.items():
        used = [step.index for step in schedule.steps if step.device == name]
        waited = any(sync.device == name for sync in schedule.syncs[hold.last])
        assert hold.first == used[0]
        assert waited or (hold.last == used[-1] + 1 and not schedule.steps[used[-1]].operator.is_async)


def test_schedules_keep_depths_programs_and_the_bound(planned, record_property):
    figures = dict.fromkeys(("steps", "launched", "waits", "own waits", "partial waits", "loads", "reordered"), 0)
    shorter = 0
    full = {}
    for seed, (graph, model, plan, listed) in enumerate(planned.first(GRAPHS)):
        schedule = plan.schedule
        check_order(model, [f"op{index}" for index in range(len(graph.steps))])
        check_memory(model, plan, listed)
        check_holds(schedule)
        for mode in MODES:
            execute(graph, model, plan, listed, mode, seed)
        machine = TimedMachine(model, schedule, longest)
        bound = schedule.latency.cycles
        assert machine.run() == bound, f"{graph.name}: not the bound"
        for turn in range(FASTER):
            took = TimedMachine(model, schedule, faster(f"{seed} {turn}")).run()
            assert took <= bound, f"{graph.name}: {took} cycles, the bound is {bound}"
            shorter += took < bound
        for device in machine.devices.values():
            if device.most == device.rules.queue_depth:
                full[device.most] = full.get(device.most, 0) + 1
        syncs = [(index, sync) for index, before in enumerate(schedule.syncs) for sync in before]
        own = [s for i, s in syncs if i < len(schedule.steps) and s.device == schedule.steps[i].device]
        figures["steps"] += len(schedule.steps)
        figures["launched"] += sum(step.operator.is_async for step in schedule.steps)
        figures["waits"] += len(syncs)
        figures["own waits"] += len(own)
        figures["partial waits"] += sum(sync.leave > 0 for sync in own)
        figures["loads"] += machine.loads
        figures["reordered"] += [s.operator.name for s in model.steps] != [f"op{i}" for i in range(len(graph.steps))]
    figures |= {"graphs": GRAPHS, "full queues by depth": dict(sorted(full.items())), "faster runs": shorter}
    print(figures)
    for name, value in figures.items():
        record_property(name, value)
    assert figures["own waits"] > GRAPHS // 2
    assert figures["partial waits"] > GRAPHS // 2
    assert figures["loads"] > GRAPHS
    assert full.keys() == set(range(1, 9)) if GRAPHS >= 500 else len(full) > 4
    assert shorter > GRAPHS


def test_free_order_needs_fewer_loads(planned):
    """The order that considers loads, beside the order of the manifest and one that ignores loads."""
    given = ignored = found = 0
    for _, model, plan, _ in planned.first(GRAPHS):
        if model.reorder:
            found += len(plan.schedule.loads)
            given += len(scheduling.plan_schedule(replace(model, steps=in_manifest_order(model), reorder=False)).loads)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(queues.Queues, "switch_cost", lambda self, step: 0)
        for _, model, _, _ in planned.first(GRAPHS):
            if model.reorder:
                ignored += len(scheduling.plan_schedule(replace(model, steps=in_manifest_order(model))).loads)
    print({"any": found, "given": given, "any, loads ignored": ignored})
    assert found <= ignored
    assert found < given


def in_manifest_order(model):
    """Return the steps as the manifest lists them."""
    steps = sorted(model.steps, key=lambda step: int(step.operator.name.removeprefix("op")))
    return tuple(replace(step, index=index) for index, step in enumerate(steps))


def _detected(planned, patch=None, change=None):
    """Return the number of models whose changed schedule one of the machines rejects."""
    wrong = 0
    for seed, (graph, model, plan, _) in enumerate(planned.first(CHANGED)):
        large = replace(model, pools=tuple(replace(pool, size=None) for pool in model.pools))
        again, changed = plan_model(large, Diagnostics()) if patch else (large, plan)
        if change is not None:
            changed = replace(changed, schedule=change(changed.schedule))
        try:
            check_memory(again, changed, actions(again, changed))
            TimedMachine(again, changed.schedule, longest).run()
            for mode in MODES:
                execute(graph, again, changed, actions(again, changed), mode, seed)
        except Wrong:
            wrong += 1
    print(wrong)
    return wrong


def test_machines_accept_the_schedules_that_are_not_changed(planned):
    assert _detected(planned) == 0


def test_machines_detect_queues_that_are_too_long(planned, monkeypatch):
    monkeypatch.setattr(queues.Queues, "_room", lambda self, step, launched: launched)
    assert _detected(planned, patch=True) > CHANGED // 10


def longer(schedule):
    """Return waits that leave one step too many."""
    syncs = [tuple(replace(s, leave=s.leave + 1, steps=s.steps[:-1]) for s in before) for before in schedule.syncs]
    return replace(schedule, syncs=tuple(tuple(s for s in before if s.steps) for before in syncs))


def with_loads(schedule, loads):
    return replace(schedule, loads=frozenset(step.index for step in schedule.steps if loads and step.program))


def with_holds(schedule, later, earlier):
    """Return ownership that begins later and ends earlier."""
    holds = {n: Hold(h.first + later, h.last - earlier) for n, h in schedule.holds.items()}
    return replace(schedule, holds=holds)


CHANGES = {
    "waits that leave too much": (longer, 3),
    "no loads": (lambda schedule: with_loads(schedule, False), 2),
    "superfluous loads": (lambda schedule: with_loads(schedule, True), 5),
    "late ownership": (lambda schedule: with_holds(schedule, 1, 0), 2),
    "early release": (lambda schedule: with_holds(schedule, 0, 1), 2),
}


@pytest.mark.parametrize(("change", "part"), CHANGES.values(), ids=CHANGES)
def test_machines_detect_changed_schedules(planned, change, part):
    assert _detected(planned, change=change) > CHANGED // part


def test_orders_are_those_of_the_rule(planned):
    """Models in which the order has no effect keep the order of the manifest."""
    for graph, model, _, _ in planned.first(GRAPHS):
        if not order.matters(model):
            assert [s.operator.name for s in model.steps] == [f"op{i}" for i in range(len(graph.steps))]
