# SPDX-License-Identifier: Apache-2.0
"""Schedules, lifetimes and cache maintenance of random models, executed by an adversarial machine model."""

from dataclasses import replace

import projects
import pytest
from machine_model import MODES, Machine, Wrong, check_memory, check_order, sequential
from opwest.diagnostics import Diagnostics
from opwest.render.actions import Cache, Call, Wait, actions
from random_graphs import RandomGraph

GRAPHS = 300


class Planned:
    """The random models, planned on use: graph, model, plan, actions."""

    def __init__(self, work):
        self.work = work
        self.found = []

    def first(self, count):
        while len(self.found) < count:
            self.found.append(self._plan(len(self.found)))
        return self.found[:count]

    def _plan(self, seed):
        graph = RandomGraph(seed, cached=seed % 2 == 1)
        ((model, plan),) = projects.check([graph.write(self.work / str(seed))], Diagnostics())
        return graph, model, plan, actions(model, plan)


@pytest.fixture(scope="module")
def planned(tmp_path_factory):
    return Planned(tmp_path_factory.mktemp("graphs"))


def execute(graph, model, plan, listed, mode, seed):
    """Run twice on the machine and compare with sequential execution."""
    in_order = sorted(model.steps, key=lambda step: int(step.operator.name.removeprefix("op")))
    machine = Machine(model, plan, mode, seed)
    machine.open()
    for turn in range(2):
        inputs = {t.name: [("input", t.name, turn, i) for i in range(t.type.size)] for t in model.inputs}
        before = machine.state
        expected = sequential(model, in_order, inputs, before)
        found = machine.run(listed, inputs)
        for tensor in model.outputs:
            if found[tensor.name] != expected[tensor.name]:
                raise Wrong(f"{graph.name}: output {tensor.name} of run {turn} is wrong ({mode})")


def test_schedules_compute_what_sequential_execution_does(planned, record_property):
    launched = waits = maintained = reordered = 0
    for seed, (graph, model, plan, listed) in enumerate(planned.first(GRAPHS)):
        check_order(model, [f"op{index}" for index in range(len(graph.steps))])
        check_memory(model, plan, listed)
        for mode in MODES:
            execute(graph, model, plan, listed, mode, seed)
        launched += sum(isinstance(a, Call) and a.step.operator.is_async for a in listed)
        waits += sum(isinstance(a, Wait) for a in listed)
        maintained += sum(isinstance(a, Cache) for a in listed)
        reordered += [s.operator.name for s in model.steps] != [f"op{i}" for i in range(len(graph.steps))]
    figures = {"graphs": GRAPHS, "launched": launched, "waits": waits, "maintenance": maintained}
    figures["reordered"] = reordered
    print(figures)
    for name, value in figures.items():
        record_property(name, value)
    assert launched > 2 * GRAPHS
    assert launched > waits > GRAPHS // 2, "one wait can cover several steps"
    assert maintained > 2 * GRAPHS
    assert reordered > GRAPHS // 10


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


def test_machine_model_detects_early_release_of_memory(planned):
    """A plan for the schedule without launches: lifetimes end with the last step."""
    from opwest.plan.memory import plan_memory
    from opwest.plan.schedule import Life, Schedule

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
        unlimited = replace(model, pools=tuple(replace(pool, size=None) for pool in model.pools))
        faults = Diagnostics()
        short = plan_memory(unlimited, Schedule(plan.schedule.steps, plan.schedule.syncs, lives), faults)
        try:
            check_memory(unlimited, short, listed)
        except Wrong:
            wrong += 1
            try:
                for mode in MODES:
                    execute(graph, unlimited, short, listed, mode, 0)
            except Wrong:
                executed_wrong += 1
    # Not all: a device reuses its own memory in the order of its queue.
    print(wrong, executed_wrong)
    assert wrong > 10
    assert executed_wrong > wrong // 2
