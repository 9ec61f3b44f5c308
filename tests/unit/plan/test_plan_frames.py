# SPDX-License-Identifier: Apache-2.0
"""The memory of two frames: constants and states once, all other tensors twice."""

import random
from dataclasses import replace

import pytest
from opwest.diagnostics import Diagnostics
from opwest.packing.problem import Block, PoolPlan
from opwest.packing.verify import PlanError
from opwest.plan.frames import Frames, frames_of, joined, verify_frames
from opwest.plan.memory import plan_model
from plan_support import buffer, model_of, pool

ROLES = ("intermediate", "scratch", "input", "output", "constant", "state")


def planned(buffers, *texts, **given):
    faults = Diagnostics()
    model = replace(model_of(*texts, buffers=buffers, **given), streams=True)
    _, plan = plan_model(model, faults)
    return plan, [fault.message for fault in faults]


def test_states_and_constants_are_first_and_once():
    buffers = [buffer("a", 40), buffer("s", 10, role="state"), buffer("b", 24), buffer("k", 6, role="constant")]
    plan, _ = planned(buffers, "in -> a", "a s k -> b", "b -> out")
    offsets = plan.pools["sram"].offsets
    assert sorted((offsets["s"], offsets["k"])) == [0, 10]
    assert sorted((offsets["a"], offsets["b"])) == [16, 56]
    assert plan.pools["sram"].size == 80 == plan.pools["sram"].lower_bound
    assert plan.frames["sram"] == Frames(64, 144)


def test_a_pool_with_states_only_is_shared():
    plan, _ = planned([buffer("s", 12, role="state")], "s -> out")
    assert plan.frames["sram"] == Frames(0, 12)


def test_frames_keep_alignment_and_cache_lines():
    buffers = [buffer("s", 3, role="state"), buffer("a", 5, align=16), buffer("b", 7, incoherent=True)]
    plan, _ = planned(buffers, "in s -> a", "a -> b", "b -> out", pools=[pool(cache_line=64)])
    assert plan.frames["sram"].stride % 64 == 0


def test_two_frames_must_fit_the_pool():
    buffers = [buffer("a", 16), buffer("b", 16)]
    plan, errors = planned(buffers, "in -> a", "a -> b", "b -> out", pools=[pool(size=48)])
    assert plan.pools["sram"].size == 32, "one frame fits"
    assert errors == [
        "pool 'sram' is too small for two frames: 64 bytes required, 48 available; live at the peak, step 1: a (16), "
        "b (16)"
    ]


def test_a_tensor_moves_to_another_pool_if_two_frames_do_not_fit():
    buffers = [buffer("a", 16, pools=("fast", "slow")), buffer("b", 16, pools=("fast", "slow"))]
    plan, errors = planned(buffers, "in -> a", "a -> b", "b -> out", pools=[pool("fast", 40), pool("slow")])
    assert errors == []
    assert sorted(plan.homes.values()) == ["fast", "slow"]
    assert {name: both.size for name, both in plan.frames.items()} == {"fast": 32, "slow": 32}


def test_random_plans_are_verified():
    """plan_model raises PlanError for a plan that is not valid."""
    for seed in range(200):
        rng = random.Random(seed)
        names = [f"t{index}" for index in range(rng.randint(1, 9))]
        buffers = [
            buffer(name, rng.randint(1, 99), role=rng.choice(ROLES), align=rng.choice((1, 4, 32))) for name in names
        ]
        texts = [f"{rng.choice(names)} -> {rng.choice(names)}" for _ in range(8)] + [f"{name} -> out" for name in names]
        plan, _ = planned(buffers, *texts)
        both, one = plan.frames["sram"], plan.pools["sram"]
        lasting = sum(b.type.size for b in buffers if b.role in ("constant", "state"))
        assert one.size + both.stride == both.size
        assert both.size <= 2 * one.size + 64
        assert lasting == 0 or both.size < 2 * one.size or both.stride % 32 == 0


def blocks_of(*rows):
    return [Block(name, size, align, 0, 3) for name, size, align in rows]


@pytest.mark.parametrize(
    ("frames", "fault"),
    [
        (Frames(8, 30), "overlaps"),  # the frames overlap
        (Frames(12, 20), "outside"),
        (Frames(14, 30), "not a multiple"),
    ],
)
def test_faults_of_frames_are_detected(frames, fault):
    blocks = blocks_of(("s", 4, 1), ("a", 12, 4))
    plan = PoolPlan({"s": 0, "a": 4}, 16, 4, 16)
    verify_frames(blocks, plan, frames_of(blocks, plan, frozenset("s")), frozenset("s"), ())
    with pytest.raises(PlanError, match=fault):
        verify_frames(blocks, plan, frames, frozenset("s"), ())


def test_a_shared_block_inside_a_frame_is_detected():
    blocks = blocks_of(("a", 4, 1), ("s", 4, 1), ("b", 4, 1))
    plan = PoolPlan({"a": 0, "s": 4, "b": 8}, 12, 1, 12)
    with pytest.raises(PlanError, match="overlaps"):
        verify_frames(blocks, plan, Frames(12, 24), frozenset("s"), ())


def test_joined_plans():
    shared = PoolPlan({"s": 0}, 5, 1, 5)
    own = PoolPlan({"a": 0, "b": 8}, 16, 8, 16)
    assert joined(shared, own) == PoolPlan({"s": 0, "a": 8, "b": 16}, 24, 8, 21)
