# SPDX-License-Identifier: Apache-2.0
"""Random models whose steps pass elements of tensors by value, executed by an adversarial machine model."""

from dataclasses import replace

import pytest
from campaign import sized
from opwest.base.diagnostics import Diagnostics
from opwest.plan import schedule as scheduling
from opwest.plan.access import Pending, access_of
from opwest.plan.memory import plan_model
from opwest.render.actions import Call, actions
from planned_graphs import Figures, Planned

GRAPHS = sized(40, 500)


@pytest.fixture(scope="module")
def planned(tmp_path_factory):
    return Planned(tmp_path_factory.mktemp("values"), values=True, queues=True)


def test_processor_reads_values_after_they_are_written(planned, record_property):
    figures = Figures(graphs=GRAPHS)
    for _, model, plan, listed in planned.checked(GRAPHS):
        passed = [
            step
            for step in model.steps
            for argument, binding in zip(step.operator.args, step.bindings, strict=True)
            if argument.scalar and binding.role != "scalar"
        ]
        launched = {a.step.index for a in listed if isinstance(a, Call) and a.launches}
        own = {step.index for step in model.steps for sync in plan.schedule.syncs[step.index] if sync.leave}
        figures.update(
            {
                "values": len(passed),
                "of launches": sum(step.index in launched for step in passed),
                "partial waits": len(own & {step.index for step in passed}),
            }
        )
    figures.record(record_property)
    assert figures["values"] > 4 * GRAPHS
    assert figures["of launches"] > GRAPHS
    assert figures["partial waits"] > GRAPHS // 4


def without_values(step, line):
    return replace(access_of(step, line), values={})


RULES = {
    "no waits for values": (scheduling, "access_of", without_values),
    "no wait for the own device": (Pending, "after_writers", lambda self, access: len(self)),
}


@pytest.mark.parametrize(("owner", "name", "rule"), RULES.values(), ids=RULES)
def test_machine_model_detects_values_that_are_read_too_early(planned, monkeypatch, owner, name, rule):
    planned.first(GRAPHS)
    monkeypatch.setattr(owner, name, rule)

    def remade(model, _plan, _listed):
        again, plan = plan_model(model, Diagnostics())
        return again, plan, actions(again, plan)

    assert planned.detected(GRAPHS, remade) > GRAPHS // 8
