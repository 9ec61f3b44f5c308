# SPDX-License-Identifier: Apache-2.0
"""Queue depths and programs in schedules: small cases, and random ones against a plain implementation."""

import random

import pytest
from opwest.plan.schedule import Lifetime, plan_schedule
from plan_support import conflict, device, model_of, order, random_steps, waits


def many(count):
    """Return launches without common tensors."""
    return [f"left: in -> t{index}" for index in range(count)]


WAITS = {
    "a queue with room": (many(2), device("left", 2), [[], [], ["left 0 1"]]),
    "the oldest step makes room": (many(3), device("left", 2), [[], [], ["left 0, 1 left"], ["left 1 2"]]),
    "a queue of one step": (many(3), device("left", 1), [[], ["left 0"], ["left 1"], ["left 2"]]),
    "a synchronous step needs a place": (["left: in -> a", "left! in -> b"], device("left", 1), [[], ["left 0"], []]),
    "a synchronous step with room": (["left: in -> a", "left! in -> b"], device("left", 2), [[], [], ["left 0"]]),
    "one program": (["left/p: in -> a", "left/p: in -> b"], device("left"), [[], [], ["left 0 1"]]),
    "a step without a program": (["left/p: in -> a", "left: in -> b"], device("left"), [[], [], ["left 0 1"]]),
}


@pytest.mark.parametrize("case", WAITS)
def test_waits(case):
    steps, left, expected = WAITS[case]
    assert waits(plan_schedule(model_of(*steps, devices=[left]))) == expected


def test_waits_for_several_devices_in_the_order_of_their_first_launches():
    steps = ["left: in -> a", "right: in -> b", "left: in -> c", "left: b -> d"]
    schedule = plan_schedule(model_of(*steps, devices=[device("left", 2), device("right")]))
    assert waits(schedule) == [[], [], [], ["left 0, 1 left", "right 1"], ["left 2 3"]]
    steps = ["left: in -> a", "right: in -> b", "left: in -> c", "left: in -> d", "b d -> out"]
    schedule = plan_schedule(model_of(*steps, devices=[device("left", 2), device("right")]))
    assert waits(schedule)[4] == ["right 1", "left 2 3"], "step 0 of left has ended"


def test_equal_programs_in_two_files_are_one():
    model = model_of("left/p: in -> a", "left/q: in -> b", devices=[device("left")])
    same = [step.program.content for step in model.steps]
    assert same[0] != same[1] and len(plan_schedule(model).loads) == 2
    for step in model.steps:
        object.__setattr__(step.program, "content", b"one")
    assert plan_schedule(model).loads == {0}


HOLDS = {
    "between the processor's steps": (["in -> a", "left: a -> b", "in -> c", "b -> out", "c -> d"], (1, 3)),
    "a synchronous step": (["in -> a", "left! a -> b", "b -> out"], (1, 2)),
    "a synchronous step at the end": (["left! in -> a"], (0, 1)),
    "to the end": (["left: in -> a", "in -> b"], (0, 2)),
    "a wait after a synchronous step": (["left: in -> a", "left! in -> b", "in -> c", "a -> out"], (0, 3)),
    "a synchronous step after a wait": (["left: in -> a", "a -> b", "left! in -> c", "in -> d"], (0, 3)),
}


@pytest.mark.parametrize("case", HOLDS)
def test_ownership(case):
    steps, expected = HOLDS[case]
    holds = plan_schedule(model_of(*steps, devices=[device("left"), device("right")])).holds
    assert {name: (hold.first, hold.last) for name, hold in holds.items()} == {"left": expected}


def test_devices_without_hooks_have_no_owner():
    assert plan_schedule(model_of("left! in -> a", devices=[device("left", hooks=False)])).holds == {}


ORDERS = {
    "the loaded program first": (
        ["left/p: in -> a", "left/q: in -> b", "left/p: in -> c", "left/q: in -> d"],
        [device("left")],
        [0, 2, 1, 3],
    ),
    "also of synchronous steps": (
        ["left/p! in -> a", "left/q! in -> b", "left/p! in -> c"],
        [device("left")],
        [0, 2, 1],
    ),
    "free switching keeps the order": (
        ["left/p: in -> a", "left/q: in -> b", "left/p: in -> c"],
        [device("left", switching="free")],
        [0, 1, 2],
    ),
    "the cheapest load first": (
        ["left/p! in -> a", "right/p! in -> b", "left/q: in -> c", "right/q: in -> d", "a b c d -> out"],
        [device("left", switch_cycles=9), device("right", switch_cycles=5)],
        [2, 3, 1, 0, 4],
    ),
    "loads do not come before waits": (
        ["left/p! in -> a", "right: in -> b", "left/q! in -> c", "left/p! b -> d"],
        [device("left"), device("right")],
        [1, 0, 2, 3],
    ),
    "a launch before a full queue": ([*many(2), "in -> a", "left: in -> b"], [device("left", 2)], [0, 1, 2, 3]),
    "the first program of a device costs nothing": (
        ["left/p: in -> a", "right/p: in -> b", "left/p: in -> c"],
        [device("left"), device("right")],
        [0, 1, 2],
    ),
}


@pytest.mark.parametrize("case", ORDERS)
def test_orders(case):
    steps, devices, expected = ORDERS[case]
    assert order(plan_schedule(model_of(*steps, devices=devices, reorder=True))) == expected
    assert order(plan_schedule(model_of(*steps, devices=devices))) == list(range(len(steps)))


def test_order_without_launches_and_switches_is_that_of_the_manifest():
    steps = ["left/p! in -> a", "in -> b", "left/p! in -> c", "right/q! in -> d"]
    assert order(plan_schedule(model_of(*steps, devices=[device("left")], reorder=True))) == [0, 1, 2, 3]


class Plain:
    """A plain implementation: after the steps of `done`, it derives everything from the list of events."""

    def __init__(self, devices):
        self.devices = {one.name: one for one in devices}

    def flying(self, events, name):
        """Return the launched steps of a device that no wait has completed."""
        running = []
        for event in events:
            if event[0] == "wait" and event[1] == name:
                running = running[len(running) - event[2] :]
            elif event[0] == "step" and event[1].device == name and event[1].operator.is_async:
                running.append(event[1])
        return running

    def program(self, events, name):
        used = [event[1].program for event in events if event[0] == "step" and event[1].device == name]
        return next((program.content for program in reversed(used) if program), None)

    def needed(self, events, step):
        """Return the waits before a step as (first launch, device, steps to leave)."""
        found = []
        for name, rules in self.devices.items():
            running = self.flying(events, name)
            if not running:
                continue
            limit = len(running)
            if name != step.device:
                limit = 0 if any(conflict(step, other) for other in running) else limit
            else:
                current = self.program(events, name)
                switches = step.program is not None and step.program.content != current
                if switches and rules.switching in ("load", "exclusive"):
                    limit = 0
                elif rules.queue_depth is not None:
                    limit = min(limit, rules.queue_depth - 1)
            if limit < len(running):
                found.append((running[0].index, name, limit))
        return sorted(found)


def with_programs(texts, rng):
    """Return steps with programs for many of those on devices."""
    found = []
    for text in texts:
        name = text.partition(" ")[0]
        program = rng.choice(["", "/p", "/p", "/q"])
        on_device = name[-1:] in (":", "!") and name[:-1] in ("left", "right")
        found.append(f"{name[:-1]}{program}{name[-1]}{text[len(name) :]}" if on_device else text)
    return found


@pytest.mark.parametrize("seed", range(100))
def test_random_steps_equal_the_reference(seed):
    rng = random.Random(seed)
    texts = with_programs(random_steps(seed, most=20), rng)
    devices = [
        device(name, rng.choice([None, 1, 2, 3, 4]), rng.choice(["free", "load", "exclusive"]))
        for name in ("left", "right")
    ]
    schedule = plan_schedule(model_of(*texts, devices=devices))
    plain = Plain(devices)
    events, ends, loads = [], {}, set()
    for step, before in zip(schedule.steps, schedule.syncs, strict=False):
        assert [(sync.steps[0], sync.device, sync.leave) for sync in before] == plain.needed(events, step)
        for sync in before:
            running = plain.flying(events, sync.device)
            assert sync.steps == tuple(s.index for s in running[: len(running) - sync.leave])
            ends.update(dict.fromkeys(sync.steps, step.index - 1))
            events.append(("wait", sync.device, sync.leave))
        if step.program and plain.program(events, step.device) != step.program.content:
            loads.add(step.index)
        events.append(("step", step))
    left = {name: tuple(s.index for s in plain.flying(events, name)) for name in ("left", "right")}
    assert {sync.device: sync.steps for sync in schedule.syncs[-1]} == {n: steps for n, steps in left.items() if steps}
    assert schedule.loads == loads
    ends.update({index: len(texts) - 1 for steps in left.values() for index in steps})
    for name, life in schedule.lives.items():
        users = [s.index for s in schedule.steps if any(b.name == name for b in s.bindings)]
        assert life == Lifetime(min(users), max(ends.get(index, index) for index in users))
