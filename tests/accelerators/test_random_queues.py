# SPDX-License-Identifier: Apache-2.0
"""Random models with queue depths, programs, kinds of switching and values, executed by both machine models."""

import random
from dataclasses import replace

import pytest
from campaign import sized
from opwest.base.diagnostics import Diagnostics
from opwest.plan import schedule as order
from opwest.plan import schedule as queues
from opwest.plan import schedule as scheduling
from opwest.plan.access import Pending, access_of
from opwest.plan.memory import plan_model
from opwest.plan.schedule import Ownership
from opwest.render.actions import actions
from planned_graphs import Figures, Planned, in_given_order
from timed_machine import TimedMachine, longest

GRAPHS = sized(60, 500)
CHANGED = sized(40, 200)
"""The models whose schedules are changed."""
FASTER = sized(4, 20)
"""Executions with random durations, per model."""


@pytest.fixture(scope="module")
def planned(tmp_path_factory):
    return Planned(tmp_path_factory.mktemp("queues"), queues=True, values=True)


def faster(seed):
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
    figures, full = Figures(graphs=GRAPHS), set()
    for seed, (graph, model, plan, _) in enumerate(planned.checked(GRAPHS)):
        schedule = plan.schedule
        check_holds(schedule)
        machine = TimedMachine(model, schedule, longest)
        bound = schedule.latency.cycles
        assert machine.run() == bound, f"{graph.name}: not the bound"
        for turn in range(FASTER):
            took = TimedMachine(model, schedule, faster(f"{seed} {turn}")).run()
            assert took <= bound, f"{graph.name}: {took} cycles, the bound is {bound}"
            figures["faster runs"] += took < bound
        full |= {d.most for d in machine.devices.values() if d.most == d.rules.queue_depth}
        syncs = [(index, sync) for index, before in enumerate(schedule.syncs) for sync in before]
        own = [s for i, s in syncs if i < len(schedule.steps) and s.device == schedule.steps[i].device]
        values = [
            step.operator.is_async
            for step in model.steps
            for argument, binding in zip(step.operator.args, step.bindings, strict=True)
            if argument.scalar and binding.role != "scalar"
        ]
        is_given = list(model.steps) == in_given_order(model)
        assert is_given or order.matters(model), "an order without an effect is that of the manifest"
        figures.update(
            {
                "steps": len(schedule.steps),
                "launched": sum(step.operator.is_async for step in schedule.steps),
                "waits": len(syncs),
                "own waits": len(own),
                "partial waits": sum(sync.leave > 0 for sync in own),
                "loads": machine.loads,
                "reordered": not is_given,
                "values": len(values),
                "values of launches": sum(values),
            }
        )
    figures.record(record_property)
    print(f"full queues of {sorted(full)}")
    assert min(figures["own waits"], figures["partial waits"]) > GRAPHS // 2
    assert min(figures["loads"], figures["faster runs"], figures["values of launches"]) > GRAPHS
    assert full == set(range(1, 9)) if GRAPHS >= 500 else len(full) > 4


def test_free_order_needs_fewer_loads(planned, monkeypatch):
    """The order that considers loads, beside the order of the manifest and one that ignores loads."""
    models = [(model, plan) for _, model, plan, _ in planned.first(GRAPHS) if model.reorder]

    def loads(**changes):
        again = (replace(model, steps=in_manifest_order(model), **changes) for model, _ in models)
        return sum(len(scheduling.plan_schedule(model).loads) for model in again)

    found, given = sum(len(plan.schedule.loads) for _, plan in models), loads(reorder=False)
    monkeypatch.setattr(queues.Queues, "switch_cost", lambda self, step: 0)
    ignored = loads()
    print({"any": found, "given": given, "any, loads ignored": ignored})
    assert found <= ignored
    assert found < given


def in_manifest_order(model):
    """Return the steps as the manifest lists them."""
    return tuple(replace(step, index=index) for index, step in enumerate(in_given_order(model)))


def run_timed(model, plan):
    TimedMachine(model, plan.schedule, longest).run()


RULES = {
    "queues that are too long": (queues.Queues, "_room", lambda self, step, launched: launched),
    "values that are read before their steps end": (Pending, "after_writers", lambda self, access: len(self)),
    "values without a writer": (scheduling, "access_of", lambda *step: replace(access_of(*step), values={})),
}


@pytest.mark.parametrize(("owner", "name", "rule"), RULES.values(), ids=RULES)
def test_machines_detect_schedules_by_wrong_rules(planned, owner, name, rule, monkeypatch):
    planned.first(CHANGED)
    monkeypatch.setattr(owner, name, rule)

    def remade(model, _plan, _listed):
        again, plan = plan_model(model, Diagnostics())
        return again, plan, actions(again, plan)

    assert planned.detected(CHANGED, remade, run_timed) > CHANGED // 10


def longer(schedule):
    """Return waits that leave one step too many."""
    syncs = [tuple(replace(s, leave=s.leave + 1, steps=s.steps[:-1]) for s in before) for before in schedule.syncs]
    return replace(schedule, syncs=tuple(tuple(s for s in before if s.steps) for before in syncs))


def with_loads(schedule, loads):
    return replace(schedule, loads=frozenset(step.index for step in schedule.steps if loads and step.program))


def with_holds(schedule, later, earlier):
    """Return ownership that begins later and ends earlier."""
    holds = {n: Ownership(h.first + later, h.last - earlier) for n, h in schedule.holds.items()}
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
    def remade(model, plan, _listed):
        changed = replace(plan, schedule=change(plan.schedule))
        return model, changed, actions(model, changed)

    assert planned.detected(CHANGED, remade, run_timed) > CHANGED // part
