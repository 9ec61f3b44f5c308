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

GRAPHS = sized(100, 3000)
CONTROLS = 60
"""The models of the negative controls, in which the machine must detect faults."""


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


def _detected(planned, remade, count=CONTROLS):
    """Return the number of models with detected faults among those for which `remade` returns a plan and actions."""
    wrong = 0
    for seed, (graph, model, plan, listed) in enumerate(planned.first(count)):
        again = remade(replace(model, pools=tuple(replace(pool, size=None) for pool in model.pools)), plan, listed)
        if again is None:
            continue
        changed, changed_plan, changed_actions = again
        try:
            check_memory(changed, changed_plan, changed_actions)
            for mode in MODES:
                execute(graph, changed, changed_plan, changed_actions, mode, seed)
        except Wrong:
            wrong += 1
    print(wrong)
    return wrong


def without(kind, **values):
    """Return a change that leaves out actions."""

    def change(listed):
        return [a for a in listed if not (isinstance(a, kind) and all(getattr(a, k) == v for k, v in values.items()))]

    return change


def late_waits(listed):
    swapped = list(listed)
    for at in range(len(swapped) - 1):
        if isinstance(swapped[at], Wait) and isinstance(swapped[at + 1], Call):
            swapped[at], swapped[at + 1] = swapped[at + 1], swapped[at]
    return swapped


def inner_lines(listed):
    """Leave out the maintenance of the lines at the ends of views."""
    return [short for action in listed if (short := _without_ends(action, listed)) is not None]


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


def parts_of_lines(listed):
    return [replace(a, start=a.binding.offset) if isinstance(a, Cache) else a for a in listed]


def early_copies(listed):
    copies = [a for a in listed if isinstance(a, Copy)]
    rest = [a for a in listed if not isinstance(a, Copy)]
    last = max((at for at, action in enumerate(rest) if isinstance(action, Wait)), default=len(rest))
    return [*rest[:last], *copies, *rest[last:]]


ACTIONS = {
    "no flush": (without(Cache, operation="flush"), 2),
    "no flush with invalidation": (without(Cache, operation="flush_and_invalidate"), 2),
    "no invalidation": (without(Cache, operation="invalidate"), 2),
    "no waits": (without(Wait), 25),
    "late waits": (late_waits, 10),
    "no lines at the ends of views": (inner_lines, 5),
    "parts of lines": (parts_of_lines, 5),
    "copies before the last wait": (early_copies, 2),
}


@pytest.mark.parametrize(("change", "least"), ACTIONS.values(), ids=ACTIONS)
def test_machine_model_detects_changed_actions(planned, change, least):
    def changed(model, plan, listed):
        return (model, plan, change(listed)) if change(listed) != listed else None

    assert _detected(planned, changed) > least


def by_view(step, line):
    """Return the accesses of a step by the name that it uses: a view has no bytes in common with its tensor."""
    ranges = {"in": {}, "out": {}}
    for argument, binding in zip(step.operator.args, step.bindings, strict=True):
        if binding.role in ("buffer", "output"):
            for kind, other in (("in", "out"), ("out", "in")):
                if argument.direction != other:
                    ranges[kind].setdefault(binding.shown, []).append((0, 1))
    return Access(ranges["in"], ranges["out"])


RULES = {
    # The rule in its place, the models that it affects; the number of models with a detected fault.
    "access_of": (by_view, lambda model: True, 7),
    # Agents write parts of one line at the same time.
    "shared_line": (lambda model: 1, neighbours, 3),
    # A plan without regard to the tensors that run copies at its end.
    "copied_at_end": (lambda model: set(), lambda model: any(state.next for state in model.states), 1),
}


@pytest.mark.parametrize("name", RULES)
def test_machine_model_detects_plans_by_wrong_rules(planned, monkeypatch, name):
    rule, affects, least = RULES[name]
    planned.first(GRAPHS)
    monkeypatch.setattr(scheduling, name, rule)

    def remade(model, _plan, _listed):
        if not affects(model):
            return None
        again, plan = plan_model(model, Diagnostics())
        return again, plan, actions(again, plan)

    assert _detected(planned, remade, GRAPHS) > least


def states_as_tensors(model, plan):
    """Return lifetimes of states as if they were intermediate tensors."""
    used = {b.name: [] for b in model.buffers}
    for step in model.steps:
        for binding in step.bindings:
            if binding.role == "buffer":
                used[binding.name].append(step.index)
    return {s.name: Life(min(used[s.name]), max(used[s.name])) for s in model.states if used[s.name]}


def ending_with_steps(model, plan):
    """Return lifetimes that end with the last step, not with the wait for it."""
    lives = {}
    passing = {b.name for b in model.buffers if b.role in ("intermediate", "scratch")}
    for step in model.steps:
        for binding in step.bindings:
            if binding.role == "buffer" and binding.name in passing:
                known = lives.get(binding.name, Life(step.index, step.index))
                lives[binding.name] = Life(known.first, step.index)
    return lives


@pytest.mark.parametrize(("lives", "least"), [(states_as_tensors, 10), (ending_with_steps, 5)])
def test_machine_model_detects_shared_memory(planned, lives, least):
    def remade(model, plan, listed):
        changed = lives(model, plan)
        if not changed:
            return None
        schedule = Schedule(plan.schedule.steps, plan.schedule.syncs, {**plan.schedule.lives, **changed})
        short = plan_memory(model, schedule, Diagnostics())
        return model, short, actions(model, replace(short, schedule=plan.schedule))

    assert _detected(planned, remade) > least
