# SPDX-License-Identifier: Apache-2.0
"""Schedules: waits, lifetimes, order and latency in small cases, and random ones against a plain implementation."""

import pytest
from opwest.plan.schedule import Latency, Lifetime, plan_schedule
from opwest.plan.uses import lifetimes
from plan_support import buffer, conflict, device, model_of, order, random_steps, waits


def lives(schedule):
    return {name: (life.first, life.last) for name, life in schedule.lives.items()}


WAITS = {
    "before what reads the result": (["left: in -> a", "in -> b", "a b -> out"], [[], [], ["left 0"], []]),
    "a queue runs in its order": (["left: in -> a", "left: a -> b", "left: b -> a"], [[], [], [], ["left 0 1 2"]]),
    "at the end, in the order of their launches": (
        ["right: in -> a", "left: in -> b"],
        [[], [], ["right 0", "left 1"]],
    ),
    "no step": ([], [[]]),
    "other bytes of one tensor": (["left: in -> a[0:4]", "in -> a[4:8]", "a[4:8] -> b"], [[], [], [], ["left 0"]]),
    "the last byte of a view": (["left: in -> a[0:4]", "a[3:8] -> b"], [[], ["left 0"], []]),
    "a view of a tensor that is written": (["left: in -> a", "a[3:8] -> b"], [[], ["left 0"], []]),
    "a tensor of which a view is written": (["left: in -> a[3:8]", "a -> b"], [[], ["left 0"], []]),
    "views that are only read": (["left: a[0:4] -> b", "a[2:6] -> c"], [[], [], ["left 0"]]),
    "a view that is read and written": (["left: -> +a[0:4]", "-> +a[2:3]"], [[], ["left 0"], []]),
    "views of the caller's output": (
        ["left: in -> out[0:4]", "in -> out[4:8]", "in -> out[0:1]"],
        [[], [], ["left 0"], []],
    ),
}


@pytest.mark.parametrize("case", WAITS)
def test_waits(case):
    steps, expected = WAITS[case]
    schedule = plan_schedule(model_of(*steps))
    assert waits(schedule) == expected
    assert order(schedule) == list(range(len(steps)))


def test_lifetimes_end_at_the_wait_for_the_device():
    steps = ["in -> a", "left: a -> b ^s", "in -> c", "c -> d", "b d -> out", "-> e"]
    found = lives(plan_schedule(model_of(*steps)))
    # `run` waits for left before step 4: the tensors of its job are alive until the end of step 3.
    assert found == {"a": (0, 3), "b": (1, 4), "s": (1, 3), "c": (2, 3), "d": (3, 4), "e": (5, 5)}


def test_lifetimes_of_tensors_shared_with_other_devices():
    steps = ["-> a", "x a -> b", "b w_in_ram -> y", "b -> c"]
    names = {"a": "intermediate", "b": "intermediate", "c": "intermediate", "x": "input", "y": "output"}
    buffers = [buffer(name, role=role) for name, role in names.items()]
    buffers += [buffer(f"k{role[0]}", role=role) for role in ("constant", "input", "output", "intermediate")]
    schedule = plan_schedule(model_of(*steps, buffers=buffers))
    assert lives(schedule) == {
        "a": (0, 1),
        "b": (1, 3),
        "c": (3, 3),
        "x": (0, 1),  # the caller writes it before
        "y": (2, 3),  # and reads it afterwards
        "kc": (0, 3),
        "ki": (0, 3),  # not used by a step
        "ko": (0, 3),
    }
    assert all(isinstance(life, Lifetime) for life in schedule.lives.values())


def test_copied_constant_is_alive_in_all_steps():
    steps = ["in -> a", "k a -> b", "b -> out"]
    buffers = [buffer("a"), buffer("b"), buffer("k", role="constant")]
    assert lives(plan_schedule(model_of(*steps, buffers=buffers)))["k"] == (0, 2)


def test_model_without_steps_has_lifetimes():
    assert lives(plan_schedule(model_of(buffers=[buffer("a")]))) == {"a": (0, 0)}


def test_indexes_are_those_of_the_new_order():
    schedule = plan_schedule(model_of("in -> a", "left: in -> b", "a b -> out", reorder=True))
    assert order(schedule) == [1, 0, 2]
    assert [step.index for step in schedule.steps] == [0, 1, 2]
    assert waits(schedule) == [[], [], ["left 0"], []]


ORDERS = {
    "a launch comes first": (["in -> a", "left: in -> b", "a b -> out"], [1, 0, 2]),
    "what a launch needs comes first": (["in -> a", "in -> b", "left: b -> c", "a c -> out"], [1, 2, 0, 3]),
    "what waits comes last": (["left: in -> a", "a -> b", "in -> c", "b c -> out"], [0, 2, 1, 3]),
    "a tensor is not written before it was read": (["in -> a", "a -> b", "left: in -> a"], [0, 1, 2]),
    "a neighbour": (["in -> a[0:4]", "left: in -> a[4:8]"], [1, 0]),
    "an overlap": (["in -> a[0:5]", "left: in -> a[4:8]"], [0, 1]),
    "an earlier writer of other bytes": (["in -> a[0:8]", "in -> a[2:4]", "left: a[6:8] -> b"], [0, 2, 1]),
}


@pytest.mark.parametrize("case", ORDERS)
def test_orders(case):
    steps, expected = ORDERS[case]
    assert order(plan_schedule(model_of(*steps, reorder=True))) == expected
    assert order(plan_schedule(model_of(*steps))) == list(range(len(steps))), "only if the manifest permits it"


class Plain:
    """A plain implementation: checks every pair of steps, without state."""

    def __init__(self, steps):
        self.steps = steps

    def launched(self, done, device):
        """Return the work on a device after `done`: pairs of steps and waits, in order."""
        running = []
        for step, waited in done:
            if device in waited:
                running = []
            if step.operator.is_async and step.device == device:
                running.append(step)
        return running

    def needed(self, done, step):
        devices = [s.device for s, _ in done if s.operator.is_async and s.device != step.device]
        return {d for d in devices if any(conflict(other, step) for other in self.launched(done, d))}

    def behind(self, later, earlier):
        return conflict(later, earlier) or (later.operator.stateful and earlier.operator.stateful)

    def leads_to_a_launch(self, step):
        after = [s for s in self.steps if s.index > step.index and self.behind(s, step)]
        return any(s.operator.is_async or self.leads_to_a_launch(s) for s in after)

    def order(self):
        done = []
        left = list(self.steps)
        while left:
            ready = [s for s in left if not any(o.index < s.index and self.behind(s, o) for o in left)]
            chosen = min(
                ready,
                key=lambda s: (
                    len(self.needed(done, s)),
                    not s.operator.is_async,
                    not self.leads_to_a_launch(s),
                    s.index,
                ),
            )
            done.append((chosen, self.needed(done, chosen)))
            left.remove(chosen)
        return [step.index for step, _ in done]


@pytest.mark.parametrize("seed", range(150))
def test_random_orders_equal_the_reference(seed):
    texts = random_steps(seed)
    model = model_of(*texts, reorder=True)
    launching = any(step.operator.is_async for step in model.steps)
    expected = Plain(model.steps).order() if launching else list(range(len(texts)))
    assert order(plan_schedule(model)) == expected


# --- The bound on the latency in small cases; tests/accelerators/test_random_queues.py compares it with simulations


def bound(*steps, devices=()):
    return plan_schedule(model_of(*steps, devices=devices)).latency


CASES = {
    "nothing": ([], [], 0),
    "the processor": (["in -> a =3", "a -> b =4"], [], 7),
    "a synchronous step": (["in -> a =3", "left! a -> b =10"], [device("left")], 13),
    "a launched step alone": (["left: in -> a =2+10"], [device("left")], 12),
    "beside the processor": (["left: in -> a =2+10", "in -> b =7", "a b -> out =1"], [device("left")], 13),
    "the processor is slower": (["left: in -> a =2+10", "in -> b =70", "a b -> out =1"], [device("left")], 73),
    "a queue in order": (["left: in -> a =1+10", "left: in -> b =1+10", "in -> c =3"], [device("left")], 21),
    "two devices at once": (
        ["left: in -> a =1+10", "right: in -> b =1+20", "a b -> out =5"],
        [device("left"), device("right")],
        27,
    ),
    "a full queue stops the processor": (
        ["left: in -> a =10", "left: in -> b =10", "in -> c =10"],
        [device("left", 1)],
        20,
    ),
    "a queue with room does not": (["left: in -> a =10", "left: in -> b =10", "in -> c =20"], [device("left", 2)], 20),
    "loads": (
        ["left/p: in -> a =10", "left/q: in -> b =10", "left/q: in -> c =10"],
        [device("left", switch_cycles=5)],
        40,
    ),
    "a synchronous step behind a launched one": (
        ["left: in -> a =10", "left! in -> b =5", "in -> c =1"],
        [device("left")],
        16,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_bounds(case):
    steps, devices, expected = CASES[case]
    assert bound(*steps, devices=devices) == Latency(expected, ())


def test_steps_without_cycles_are_listed():
    assert bound("in -> a =3", "a -> b", "left: b -> c", devices=[device("left")]) == Latency(None, (1, 2))


def test_steps_without_cycles_have_the_numbers_of_the_order_of_execution():
    steps = ["in -> a", "left: in -> b =4"]
    assert plan_schedule(model_of(*steps, devices=[device("left")], reorder=True)).latency.unknown == (1,)


def test_tensors_that_a_run_copies_to_states_live_to_its_end():
    roles = {"in": "input", "kept": "input", "a": "intermediate", "b": "intermediate"}
    lives = lifetimes([["in", "kept"], ["a"], ["b"], ["a"]], range(4), roles, {"kept", "b"})
    assert lives == {"in": Lifetime(0, 0), "kept": Lifetime(0, 3), "a": Lifetime(1, 3), "b": Lifetime(2, 3)}
