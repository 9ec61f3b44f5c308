# SPDX-License-Identifier: Apache-2.0
"""Random models with their plans, and their execution by the machine model."""

from collections import Counter
from dataclasses import replace

import projects
from machine_model import MODES, Machine, first_content, sequential
from opwest.base.diagnostics import Diagnostics
from opwest.render.actions import actions
from plan_checks import Wrong, check_memory, check_order
from random_graphs import RandomGraph

RUNS = 3


class Planned:
    def __init__(self, work, **kinds):
        self.work = work
        self.kinds = kinds
        """`queues`, `values` of RandomGraph."""
        self.found = []

    def first(self, count):
        while len(self.found) < count:
            self.found.append(self._plan(len(self.found)))
        return self.found[:count]

    def _plan(self, seed):
        graph = RandomGraph(seed, cached=seed % 2 == 1, **self.kinds)
        ((model, plan),) = projects.check([graph.write(self.work / str(seed))], Diagnostics())
        return graph, model, plan, actions(model, plan)

    def checked(self, count):
        """Yield models whose order, memory and results are those of the manifest."""
        for seed, found in enumerate(self.first(count)):
            graph, model, plan, listed = found
            check_order(model, [f"op{index}" for index in range(len(graph.steps))])
            check_memory(model, plan, listed)
            execute(graph, model, plan, listed, seed)
            yield found

    def detected(self, count, remade, also=lambda model, plan: None):
        """Return the number of models with detected faults, if `remade` returns a model, a plan and actions for them.

        It is called with pools of unlimited size.
        """
        wrong = 0
        for seed, (graph, model, plan, listed) in enumerate(self.first(count)):
            again = remade(replace(model, pools=tuple(replace(pool, size=None) for pool in model.pools)), plan, listed)
            if again is not None:
                try:
                    check_memory(*again)
                    also(*again[:2])
                    execute(graph, *again, seed)
                except Wrong:
                    wrong += 1
        print(wrong)
        return wrong


def in_given_order(model):
    """Return the steps in the order of the manifest."""
    return sorted(model.steps, key=lambda step: int(step.operator.name.removeprefix("op")))


def execute(graph, model, plan, listed, seed):
    """Run several times on machines, the last time after opening again, and compare with sequential execution."""
    for mode in MODES:
        machine = Machine(model, plan, mode, seed)
        for turn in range(RUNS):
            if turn in (0, RUNS - 1):
                machine.open()
                lasting = first_content(model)
            inputs = {t.name: [("input", t.name, turn, i) for i in range(t.type.size)] for t in model.inputs}
            expected = sequential(model, in_given_order(model), inputs, machine.state, lasting)
            found = machine.run(listed, inputs)
            lasting = {state.name: expected[state.name] for state in model.states}
            for name in (*(tensor.name for tensor in model.outputs), *lasting):
                if found[name] != expected[name]:
                    raise Wrong(f"{graph.name}: {name} of run {turn} is wrong ({mode})")


class Figures(Counter):
    """Sums over all models."""

    def record(self, record_property):
        print(dict(self))
        for name, value in self.items():
            record_property(name, value)
