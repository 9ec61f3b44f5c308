# SPDX-License-Identifier: Apache-2.0
"""Random models with their plans, and their execution by the machine model."""

import projects
from machine_model import Machine, first_content, sequential
from opwest.diagnostics import Diagnostics
from opwest.render.actions import actions
from plan_checks import Wrong
from random_graphs import RandomGraph

RUNS = 3


class Planned:
    """The random models, planned on use: graph, model, plan, actions."""

    def __init__(self, work, *, queues=False):
        self.work = work
        self.queues = queues
        self.found = []

    def first(self, count):
        while len(self.found) < count:
            self.found.append(self._plan(len(self.found)))
        return self.found[:count]

    def _plan(self, seed):
        graph = RandomGraph(seed, cached=seed % 2 == 1, queues=self.queues)
        ((model, plan),) = projects.check([graph.write(self.work / str(seed))], Diagnostics())
        return graph, model, plan, actions(model, plan)


def execute(graph, model, plan, listed, mode, seed):
    """Run several times on the machine, the last time after opening again, and compare with sequential execution."""
    in_order = sorted(model.steps, key=lambda step: int(step.operator.name.removeprefix("op")))
    machine = Machine(model, plan, mode, seed)
    for turn in range(RUNS):
        if turn in (0, RUNS - 1):
            machine.open()
            lasting = first_content(model)
        inputs = {t.name: [("input", t.name, turn, i) for i in range(t.type.size)] for t in model.inputs}
        before = machine.state
        expected = sequential(model, in_order, inputs, before, lasting)
        found = machine.run(listed, inputs)
        lasting = {state.name: expected[state.name] for state in model.states}
        for name in (*(tensor.name for tensor in model.outputs), *lasting):
            if found[name] != expected[name]:
                raise Wrong(f"{graph.name}: {name} of run {turn} is wrong ({mode})")
