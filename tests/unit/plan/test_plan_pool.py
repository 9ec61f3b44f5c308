# SPDX-License-Identifier: Apache-2.0
"""The planner: every plan is verified and checked by brute force; plans of usual graphs reach the lower bound."""

import itertools
import random
import sys
import time

import pytest
from campaign import sized
from hypothesis import given, settings
from hypothesis import strategies as st
from opwest.packing.greedy import plan_pool
from opwest.packing.problem import Block, PoolPlan, peak
from opwest.packing.verify import PlanError, verify


def brute_force(blocks, offsets, size):
    """Return the faults of a plan by checking every byte in every step, independent of `verify`."""
    faults = []
    owners = {}
    for block in blocks:
        start = offsets[block.name]
        if start % block.align:
            faults.append(f"{block.name} misaligned")
        if start < 0 or start + block.size > size:
            faults.append(f"{block.name} outside")
        for step in range(block.first, block.last + 1):
            for byte in range(start, start + block.size):
                other = owners.setdefault((step, byte), block.name)
                if other != block.name:
                    faults.append(f"{block.name} on {other} in step {step}")
    return faults


def lower_bound(blocks):
    steps = {step for block in blocks for step in (block.first, block.last)}
    return max((sum(b.size for b in blocks if b.first <= step <= b.last) for step in steps), default=0)


def check(blocks) -> PoolPlan:
    """Plan and verify."""
    plan = plan_pool(blocks)
    verify(blocks, plan.offsets, plan.size)
    assert brute_force(blocks, plan.offsets, plan.size) == []
    assert plan.lower_bound == lower_bound(blocks) <= plan.size
    assert set(plan.offsets) == {block.name for block in blocks}
    assert plan.align == max((block.align for block in blocks), default=1)
    assert plan.size == max((plan.offsets[b.name] + b.size for b in blocks), default=0)
    return plan


@st.composite
def problems(draw):
    blocks = []
    for number in range(draw(st.integers(0, 14))):
        align = draw(st.sampled_from([1, 2, 4, 8, 16, 32]))
        size = draw(st.integers(1, 6)) * draw(st.sampled_from([1, align]))
        first = draw(st.integers(0, 10))
        blocks.append(Block(f"b{number}", size, align, first, first + draw(st.integers(0, 6))))
    return blocks


@settings(max_examples=sized(80, 300), deadline=None, derandomize=True, database=None)
@given(problems())
def test_random_problems(blocks):
    check(blocks)


@pytest.mark.parametrize("seed", range(20))
def test_larger_random_problems(seed):
    generator = random.Random(seed)
    blocks = []
    for number in range(generator.randint(20, 60)):
        first = generator.randint(0, 40)
        align = 8
        size = 8 * generator.randint(1, 30)
        blocks.append(Block(f"t{number}", size, align, first, first + generator.choice([0, 1, 1, 2, 5, 20])))
    plan = check(blocks)
    assert plan.size <= 1.25 * plan.lower_bound


def test_order_of_blocks_does_not_matter():
    generator = random.Random(3)
    blocks = [Block(f"t{i}", 8 * generator.randint(1, 9), 8, i // 3, i // 3 + i % 4) for i in range(30)]
    plans = []
    for _ in range(5):
        plans.append(check(list(blocks)))
        generator.shuffle(blocks)
    assert all(plan == plans[0] for plan in plans)


def chain(sizes):
    """Tensor i is written in step i and read in step i + 1."""
    return [Block(f"t{i}", size, 8, i, i + 1) for i, size in enumerate(sizes)]


def test_no_block():
    assert plan_pool([]) == PoolPlan({}, 0, 1, 0)
    verify([], {}, 0)
    assert peak([]).size == 0


def test_one_block():
    assert check([Block("only", 24, 8, 3, 3)]).size == 24


@pytest.mark.parametrize(
    "sizes",
    [
        [8] * 10,
        [64, 512, 128, 40, 8],
        [8, 16, 32, 64, 128, 256],
        [256, 128, 64, 32, 16, 8],
        [512, 8, 512, 8, 512, 8],
        [100 * 8, 60 * 8, 30 * 8, 60 * 8, 100 * 8],
        [3072, 24576, 6144, 36864, 9216, 55296, 13824, 9216, 1280],
    ],
)
def test_chains_reach_the_lower_bound(sizes):
    plan = check(chain(sizes))
    assert plan.size == plan.lower_bound == max(a + b for a, b in itertools.pairwise(sizes))


def test_every_small_chain_reaches_the_lower_bound():
    for sizes in itertools.product([8, 24, 64], repeat=5):
        plan = check(chain(sizes))
        assert plan.size == plan.lower_bound, sizes


@pytest.mark.parametrize("skip", [8, 64, 200])
@pytest.mark.parametrize("branch", [8, 64, 200])
def test_diamonds_reach_the_lower_bound(skip, branch):
    """A chain of residual blocks: t is alive beside the branch until both are added."""
    blocks = []
    for turn in range(4):
        at = 3 * turn
        blocks += [
            Block(f"t{turn}", skip, 8, at, at + 3),
            Block(f"a{turn}", branch, 8, at + 1, at + 2),
            Block(f"b{turn}", skip, 8, at + 2, at + 3),
        ]
    plan = check(blocks)
    assert plan.size == plan.lower_bound


def test_wide_diamond_reaches_the_lower_bound():
    """An inception block: one input, four branches, all alive at the concatenation."""
    blocks = [Block("in", 64, 8, 0, 4)]
    blocks += [Block(f"branch{i}", 16 * (i + 1), 8, i + 1, 5) for i in range(4)]
    blocks += [Block("out", 160, 8, 5, 6)]
    plan = check(blocks)
    assert plan.size == plan.lower_bound


def test_pool_overflow_missed_by_tvm():
    """A pool of 100 bytes: A (100) and B (60) are disjoint in time, C (30) overlaps both. No plan fits."""
    blocks = [Block("A", 100, 1, 0, 1), Block("B", 60, 1, 2, 3), Block("C", 30, 1, 1, 2)]
    plan = check(blocks)
    assert plan.size == plan.lower_bound == 130
    assert plan.offsets["C"] >= 60
    with pytest.raises(PlanError, match="overlaps"):
        verify(blocks, {"A": 0, "B": 0, "C": 60}, 100)
    with pytest.raises(PlanError, match="outside"):
        verify(blocks, plan.offsets, 100)


def test_blocks_that_are_alive_for_the_whole_run():
    blocks = [Block(f"state{i}", 8 * (i + 1), 8, 0, 99) for i in range(10)] + chain([64] * 99)
    plan = check(blocks)
    assert plan.size == plan.lower_bound


def test_alignment_is_kept():
    blocks = [Block("small", 1, 1, 0, 0), Block("wide", 64, 64, 0, 0), Block("odd", 3, 1, 0, 0)]
    plan = check(blocks)
    assert plan.offsets["wide"] % 64 == 0 and plan.align == 64 and plan.size == 68


def test_a_long_chain_is_planned_quickly():
    generator = random.Random(1)
    blocks = chain([8 * generator.randint(1, 1000) for _ in range(10_000)])
    tracer = sys.gettrace()
    sys.settrace(None)  # measure the planner without coverage, which takes two thirds of the time
    try:
        start = time.process_time()
        plan = plan_pool(blocks)
        verify(blocks, plan.offsets, plan.size)
        took = time.process_time() - start
    finally:
        sys.settrace(tracer)
    assert took < 2
    assert plan.size == plan.lower_bound
