# SPDX-License-Identifier: Apache-2.0
"""Schedules, lifetimes and cache maintenance of random models, executed by an adversarial machine model."""

import itertools
from dataclasses import replace

import pytest
from campaign import sized
from opwest.base.diagnostics import Diagnostics
from opwest.plan import schedule as scheduling
from opwest.plan.access import Access
from opwest.plan.memory import plan_memory, plan_model
from opwest.plan.schedule import Lifetime, Schedule
from opwest.render.actions import Cache, Call, Copy, Wait, actions
from plan_checks import conflict, shared_line
from planned_graphs import Figures, Planned, in_given_order

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
    return sum(
        step.device != other.device
        and bool({step.device, other.device} & incoherent)
        and conflict(step, other, line)
        and not conflict(step, other, 1)
        for step, other in itertools.combinations(model.steps, 2)
    )


def test_schedules_compute_what_sequential_execution_does(planned, record_property):
    figures = Figures(graphs=GRAPHS)
    for _, model, _, listed in planned.checked(GRAPHS):
        figures.update(
            {
                "launched": sum(isinstance(a, Call) and a.step.operator.is_async for a in listed),
                "waits": sum(isinstance(a, Wait) for a in listed),
                "maintenance": sum(isinstance(a, Cache) for a in listed),
                "reordered": list(model.steps) != in_given_order(model),
                "views": sum(b.view is not None for step in model.steps for b in step.bindings),
                "copies": sum(isinstance(a, Copy) for a in listed),
                "neighbours": neighbours(model),
            }
        )
    figures.record(record_property)
    assert figures["launched"] > 2 * GRAPHS
    assert figures["launched"] > figures["waits"] > GRAPHS // 2, "one wait can cover several steps"
    assert figures["maintenance"] > 2 * GRAPHS
    assert figures["reordered"] > GRAPHS // 10
    assert figures["views"] > 5 * GRAPHS
    assert figures["copies"] > GRAPHS // 5
    assert figures["neighbours"] > GRAPHS // 3


def without(kind, **values):
    """Return a change that leaves out actions."""

    def change(listed):
        return [a for a in listed if not (isinstance(a, kind) and all(getattr(a, k) == v for k, v in values.items()))]

    return change


def late_waits(listed):
    swapped = list(listed)
    for at, pair in enumerate(itertools.pairwise(listed)):
        if isinstance(swapped[at], Wait) and isinstance(pair[1], Call):
            swapped[at : at + 2] = reversed(swapped[at : at + 2])
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

    assert planned.detected(CONTROLS, changed) > least


def by_view(step, line):
    """Return the accesses of a step by the name that it uses: a view has no bytes in common with its tensor."""
    ranges = {"in": {}, "out": {}}
    for argument, binding in zip(step.operator.args, step.bindings, strict=True):
        if binding.role in ("buffer", "output"):
            for kind, other in (("in", "out"), ("out", "in")):
                if argument.direction != other:
                    ranges[kind].setdefault(binding.shown, []).append((0, 1))
    return Access(ranges["in"], ranges["out"], {})


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

    assert planned.detected(GRAPHS, remade) > least


def states_as_tensors(model, plan):
    """Return lifetimes of states as if they were intermediate tensors."""
    used = {b.name: [] for b in model.buffers}
    for step in model.steps:
        for binding in step.bindings:
            if binding.role == "buffer":
                used[binding.name].append(step.index)
    return {s.name: Lifetime(min(used[s.name]), max(used[s.name])) for s in model.states if used[s.name]}


def ending_with_steps(model, plan):
    """Return lifetimes that end with the last step, not with the wait for it."""
    lives = {}
    passing = {b.name for b in model.buffers if b.role in ("intermediate", "scratch")}
    for step in model.steps:
        for binding in step.bindings:
            if binding.role == "buffer" and binding.name in passing:
                known = lives.get(binding.name, Lifetime(step.index, step.index))
                lives[binding.name] = Lifetime(known.first, step.index)
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

    assert planned.detected(CONTROLS, remade) > least
