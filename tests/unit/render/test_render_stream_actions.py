# SPDX-License-Identifier: Apache-2.0
"""The gates of a stream: which actions of the younger frame wait for which actions of the older one."""

from dataclasses import replace

import pytest
from opwest.base.diagnostics import Diagnostics
from opwest.model.types.model import Binding, Interface, State
from opwest.plan.memory import plan_model
from opwest.render.actions import launch_count, uses
from opwest.render.c.stream import frame_actions
from plan_support import HERE, buffer, device, model_of, pool


def interface(name):
    """Return an input or output in a buffer of the caller."""
    return Interface(name, buffer(name).type, 1, None, None, None, None, HERE)


def frames(*texts, states=(), nexts=(), coherent=True, line=None):
    """Return the model, and its actions; the buffers in `states` are states."""
    plain = model_of(*texts)
    buffers = [replace(b, role="state") if b.name in states else b for b in plain.buffers]
    buffers += [buffer(name, role="state") for name in states if name not in {b.name for b in buffers}]
    if not coherent:
        buffers = [replace(b, incoherent=True) for b in buffers]
    kept = [
        State(name, buffer(name).type, 1, None, None, None, Binding("buffer", source), None, HERE)
        for name, source in nexts
    ]
    model = replace(
        plain,
        buffers=tuple(buffers),
        states=tuple(kept),
        devices=tuple(device(name, coherent=coherent) for name in ("left", "right")),
        pools=(pool(cache_line=line),),
        inputs=(interface("in"),),
        outputs=(interface("out"),),
        streams=True,
    )
    model, plan = plan_model(model, Diagnostics())
    return model, frame_actions(model, plan)


def shown(actions):
    """Return the actions as text: kind, step, gate."""
    return [f"{one.kind} {one.step}" + (f" after {one.gate}" if one.gate else "") for one in actions]


CASES = {
    "no state": (["left: in -> a", "a -> out"], (), ["launch 0", "wait 0", "call 1"]),
    "the processor uses a state": (
        ["in s -> a", "a -> s", "a -> out"],
        ("s",),
        ["call 0 after 2", "call 1 after 2", "call 2"],
    ),
    "a state that is only read": (["in s -> a", "a s -> out"], ("s",), ["call 0", "call 1"]),
    "on one device the launch is enough": (
        ["left: in s -> a", "left: a -> s", "a -> out"],
        ("s",),
        ["launch 0 after 2", "launch 1 after 2", "wait 0", "call 2"],
    ),
    "another agent waits for the end": (
        ["left: in s -> a", "right: in -> s", "a -> out"],
        ("s",),
        # The write of the same step precedes its read in the next frame: also those of a frame wait for each other.
        ["launch 0 after 3", "wait 0", "launch 1 after 3", "wait 0", "call 2"],
    ),
    "stateful operators run in the order of frames": (
        ["in -> a*", "left: a -> b*", "b -> out", "in -> c*"],
        (),
        ["call 0 after 5", "launch 1 after 5", "wait 1", "call 2", "call 3 after 5"],
    ),
    "views of a state": (
        ["in -> s[0:4]", "in -> s[4:8]", "s[0:4] -> out", "s[4:8] -> out"],
        ("s",),
        ["call 0 after 3", "call 1 after 4", "call 2 after 1", "call 3 after 2"],
    ),
}


@pytest.mark.parametrize(("texts", "states", "expected"), CASES.values(), ids=CASES)
def test_gates(texts, states, expected):
    _, actions = frames(*texts, states=states)
    found = shown(actions)
    if "right" in "".join(texts):  # the wait of step 1 before, and the end
        position = {text.split(" after")[0]: number for number, text in enumerate(found, 1)}
        gates = {one.step: one.gate for one in actions if one.kind == "launch"}
        last_wait = max(number for text, number in position.items() if text == "wait 1")
        assert gates[0] == last_wait, "step 0 reads what step 1 of the older frame wrote"
        assert gates[1] >= position["wait 0"], "step 1 writes what step 0 of the older frame read"
        return
    assert found == expected


def test_the_copy_to_a_state_precedes_its_readers():
    _, actions = frames("in s -> a", "a -> b", "b -> out", states=("s",), nexts=[("s", "b")])
    assert shown(actions) == ["call 0 after 4", "call 1", "call 2", "copy 3 after 4"]


def test_maintenance_before_a_step_has_its_gate():
    _, actions = frames("left: in s -> a", "a -> s", "s -> out", states=("s",), coherent=False, line=32)
    before = [one for one in actions if one.step == 0 and one.kind != "wait"]
    gate = next(number for number, one in enumerate(actions, 1) if one.kind == "call" and one.step == 1)
    assert [one.kind for one in before][:3] == ["cache", "cache", "launch"]
    assert {one.gate for one in before} == {gate}


def test_launches_are_numbered_and_waits_name_the_last_one():
    model, actions = frames("left: in -> a", "left: in -> b", "right: in -> c", "a c -> out", "b -> out")
    assert [one.launch for one in actions if one.kind == "launch"] == [0, 1, 2]
    assert [(one.step, one.launch) for one in actions if one.kind == "wait"] == [(0, 1), (2, 2)]
    assert launch_count(model) == 3


def test_a_step_without_a_program_uses_that_of_its_own_frame():
    """The other frame may have loaded the program of a later step."""
    model, actions = frames("left/p: in -> a", "left: a -> b", "left/q: b -> c", "c -> out")
    known = uses(model)
    used = [known[one.use] for one in actions if one.use is not None]
    assert [program.name for _, program in used] == ["p", "p", "q"]
