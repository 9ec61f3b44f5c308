# SPDX-License-Identifier: Apache-2.0
"""Greedy planning against a plain implementation that tries every byte in every order."""

import itertools
import random
import sys
import time

import pytest
from opwest.packing import greedy
from opwest.packing.greedy import _highest, _lowest, _place, _Placed, plan_pool
from opwest.packing.problem import Block, Peak, PoolPlan, peak
from opwest.packing.verify import PlanError, verify


def random_blocks(seed, most=10):
    rng = random.Random(seed)
    blocks = []
    for number in range(rng.randint(1, most)):
        first = rng.randint(0, 9)
        last = first + rng.choice([0, 1, 1, 3, 8])
        blocks.append(Block(f"b{number}", rng.randint(1, 9), rng.choice([1, 1, 2, 4]), first, last))
    return blocks


def together(one, other):
    return one.first <= other.last and other.first <= one.last


@pytest.mark.parametrize("seed", range(40))
def test_neighbours_of_a_block(seed):
    blocks = random_blocks(seed, most=14)
    placed = _Placed(max(b.last for b in blocks) + 1)
    rng = random.Random(seed)
    known = []
    for block in blocks:
        expected = sorted((at, at + b.size) for b, at in known if together(b, block))
        assert placed.beside(block) == expected
        known.append((block, rng.randint(0, 20)))
        placed.add(*known[-1])
    for step in range(max(b.last for b in blocks) + 1):
        probe = Block("probe", 1, 1, step, step)
        assert placed.beside(probe) == sorted((at, at + b.size) for b, at in known if together(b, probe))


def free(block, offset, neighbours):
    return offset % block.align == 0 and all(offset + block.size <= a or z <= offset for a, z in neighbours)


@pytest.mark.parametrize("seed", range(60))
def test_lowest_and_highest_free_offset(seed):
    rng = random.Random(seed)
    for _ in range(10):
        places = [(at, at + rng.randint(1, 6)) for at in (rng.randint(0, 25) for _ in range(rng.randint(0, 5)))]
        neighbours = sorted(places)
        block = Block("b", rng.randint(1, 6), rng.choice([1, 2, 4]), 0, 0)
        limit = rng.randint(0, 34)
        assert _lowest(block, neighbours) == next(at for at in range(99) if free(block, at, neighbours))
        below = [at for at in range(limit - block.size + 1) if free(block, at, neighbours)]
        assert _highest(block, neighbours, limit) == max(below, default=None)


def plain_place(blocks, limit):
    """Place blocks in order: at the bottom; with a limit, at the highest offset below it, or the lowest."""
    placed = {}
    for block in blocks:
        beside = [(at, at + b.size) for b, at in placed.items() if together(b, block)]
        lowest = next(at for at in range(999) if free(block, at, beside))
        below = [at for at in range((limit or 0) - block.size + 1) if free(block, at, beside)]
        placed[block] = lowest if lowest == 0 or not below else max(below)
    return {block.name: at for block, at in placed.items()}


@pytest.mark.parametrize("seed", range(40))
def test_first_fit(seed):
    blocks = random_blocks(seed)
    bound = peak(blocks).size
    assert _place(blocks, None) == plain_place(blocks, None)
    for limit in (1, bound - 1, bound, bound + 5):
        assert _place(blocks, limit) == plain_place(blocks, limit)


def test_first_fit_of_nothing():
    assert _place([], None) == _place([], 0) == {}


@pytest.mark.parametrize("seed", range(40))
def test_plan_is_the_first_of_the_smallest(seed):
    blocks = random_blocks(seed)
    bound = max(sum(b.size for b in blocks if b.first <= step <= b.last) for step in range(20))
    tries = [plain_place(sorted(blocks, key=o), limit) for limit in (None, bound) for o in greedy._ORDERS]
    needed = [max(offsets[b.name] + b.size for b in blocks) for offsets in tries]
    least = min(needed)
    align = max(b.align for b in blocks)
    assert plan_pool(blocks) == PoolPlan(tries[needed.index(least)], least, align, bound)


def test_search_for_an_order_ends_at_the_bound(monkeypatch):
    tried = []

    def place(blocks, limit):
        tried.append(limit)
        return _place(blocks, limit)

    monkeypatch.setattr(greedy, "_place", place)
    plan_pool([Block("a", 4, 1, 0, 0), Block("b", 4, 1, 0, 0)])
    assert tried == [None], "the first order reaches it"
    tried.clear()
    # No order reaches the bound here: all are tried from below, and all from both ends.
    blocks = [Block("A", 100, 1, 0, 1), Block("B", 60, 1, 2, 3), Block("C", 30, 1, 1, 2), Block("D", 64, 64, 1, 1)]
    plan = plan_pool(blocks)
    assert plan.size > plan.lower_bound == 194
    assert tried == [None] * 5 + [194] * 5


def test_orders_differ_in_the_first_block():
    """By size, by time, by area, by life, by death."""
    large, early, long_ = Block("large", 50, 1, 5, 5), Block("early", 1, 1, 0, 1), Block("long", 9, 1, 2, 8)
    late = Block("late", 2, 1, 9, 9)
    blocks = [late, long_, early, large]
    assert [min(blocks, key=order).name for order in greedy._ORDERS] == ["large", "early", "long", "long", "late"]


@pytest.mark.parametrize(
    ("blocks", "expected"),
    [
        ([], (0, 0, [])),
        ([Block("a", 4, 1, 3, 5)], (3, 4, ["a"])),
        ([Block("a", 4, 1, 0, 2), Block("b", 4, 1, 3, 4)], (0, 4, ["a"])),  # the first of two of equal height
        ([Block("a", 4, 1, 0, 2), Block("b", 5, 1, 3, 4)], (3, 5, ["b"])),
        ([Block("a", 4, 1, 0, 2), Block("b", 4, 1, 2, 4), Block("c", 1, 1, 3, 9)], (2, 8, ["a", "b"])),
        ([Block("a", 4, 1, 2, 2), Block("b", 4, 1, 2, 4), Block("c", 4, 1, 2, 9)], (2, 12, ["a", "b", "c"])),
        ([Block("a", 4, 1, 0, 0), Block("b", 3, 1, 1, 1), Block("c", 3, 1, 1, 1)], (1, 6, ["b", "c"])),
    ],
)
def test_peak(blocks, expected):
    step, size, names = expected
    assert peak(blocks) == Peak(step, size, tuple(b for b in blocks if b.name in names))


@pytest.mark.parametrize("seed", range(30))
def test_peak_beside_every_step(seed):
    blocks = random_blocks(seed)
    alive = [sum(b.size for b in blocks if b.first <= step <= b.last) for step in range(20)]
    most = peak(blocks)
    assert (most.size, most.step) == (max(alive), alive.index(max(alive)))


def chain(sizes):
    """Tensor i is written in step i and read in step i + 1."""
    return [Block(f"t{i}", size, 8, i, i + 1) for i, size in enumerate(sizes)]


def test_every_small_chain_reaches_the_lower_bound():
    for sizes in itertools.product([8, 24, 64], repeat=5):
        plan = plan_pool(chain(sizes))
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
    plan = plan_pool(blocks)
    assert plan.size == plan.lower_bound


def test_pool_overflow_missed_by_tvm():
    """A pool of 100 bytes: A (100) and B (60) are disjoint in time, C (30) overlaps both. No plan fits."""
    blocks = [Block("A", 100, 1, 0, 1), Block("B", 60, 1, 2, 3), Block("C", 30, 1, 1, 2)]
    plan = plan_pool(blocks)
    assert plan.size == plan.lower_bound == 130
    assert plan.offsets["C"] >= 60
    with pytest.raises(PlanError, match="overlaps"):
        verify(blocks, {"A": 0, "B": 0, "C": 60}, 100)
    with pytest.raises(PlanError, match="outside"):
        verify(blocks, plan.offsets, 100)


@pytest.mark.slow
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
