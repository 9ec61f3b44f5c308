# SPDX-License-Identifier: Apache-2.0
"""The bound on the latency in small cases; tests/accelerators/test_random_queues.py compares it with simulations."""

import pytest
from opwest.plan.latency import Latency
from opwest.plan.schedule import plan_schedule
from plan_support import device, model_of


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
    "a queue with room does not": (
        ["left: in -> a =10", "left: in -> b =10", "in -> c =20"],
        [device("left", 2)],
        20,
    ),
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
