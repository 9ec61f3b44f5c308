# SPDX-License-Identifier: Apache-2.0
"""The sizes that the search tries, their nodes, and the pools that it plans again, with a substitute for `pack`."""

import itertools
import random

import pytest
from opwest.packing import greedy, search
from opwest.packing.canonical import Outcome
from opwest.packing.problem import Block, PoolPlan
from opwest.packing.verify import verify
from plan_support import HARD


class FakePack:
    """A substitute for `pack`: fails below a size, takes a number of nodes, and records the requests."""

    def __init__(self, least, nodes):
        self.least = least
        self.nodes = nodes
        self.requests = []

    def __call__(self, blocks, capacity, budget):
        assert type(capacity) is int and type(budget) is int
        self.requests.append((capacity, budget))
        if capacity < self.least:
            return Outcome(None, False, min(self.nodes, budget))
        offsets = [capacity - b.size if b is blocks[0] else 0 for b in blocks]
        return Outcome(offsets, False, min(self.nodes, budget))


@pytest.fixture
def plan(monkeypatch):
    """Plan one island with a greedy plan of 100 bytes and a bound of 60, with a substitute for `pack`."""

    def planned(least, nodes, *, capacity=None, budget=1000, unit=4, align=None, size=100, bound=60):
        fake = FakePack(least, nodes)
        blocks = [Block("top", unit, align or unit, 0, 0), Block("rest", 2 * unit, align or unit, 0, 0)]
        first = PoolPlan({"top": size - unit, "rest": 0}, size, unit, bound)
        monkeypatch.setattr(search, "pack", fake)
        monkeypatch.setattr(greedy, "plan_pool", lambda given: first)
        found = search.plan_pool(blocks, capacity, budget)
        assert (found.align, found.lower_bound) == (unit, bound)
        assert found.size == max(found.offsets[b.name] + b.size for b in blocks)
        return found.size, fake.requests

    return planned


def test_bound_is_tried_first_with_half_of_the_budget(plan):
    assert plan(60, 10) == (60, [(60, 500)])
    assert plan(60, 10, budget=7) == (60, [(60, 4)])
    assert plan(60, 10, budget=1) == (60, [(60, 1)])


def test_sizes_between_the_last_failure_and_the_best_are_tried(plan):
    # 60 fails; 80 is between 60 and 100; 68 between 60 and 80; 72 and 76 between 68 and 80.
    size, requests = plan(73, 0)
    assert (size, [capacity for capacity, _ in requests]) == (76, [60, 80, 68, 72, 76])
    size, requests = plan(101, 0)
    assert (size, [capacity for capacity, _ in requests]) == (100, [60, 80, 88, 92, 96])
    size, requests = plan(64, 0)
    assert (size, [capacity for capacity, _ in requests]) == (64, [60, 80, 68, 64])


def test_sizes_are_multiples_of_what_divides_all_blocks(plan):
    size, requests = plan(70, 0, unit=10)
    assert (size, [capacity for capacity, _ in requests]) == (70, [60, 80, 70])
    size, requests = plan(61, 0, unit=1)
    assert (size, [capacity for capacity, _ in requests]) == (61, [60, 80, 70, 65, 62, 61])


def test_alignments_count_where_sizes_are_no_multiples_of_them(plan):
    size, requests = plan(73, 0, unit=12, align=8)
    assert (size, [capacity for capacity, _ in requests]) == (76, [60, 80, 68, 72, 76])


def test_each_trial_gets_half_of_the_remaining_budget(plan):
    assert plan(101, 100)[1] == [(60, 500), (80, 450), (88, 400), (92, 350), (96, 300)]
    # Each trial takes its half; at the end single nodes.
    assert plan(101, 10**6, budget=10)[1] == [(60, 5), (80, 3), (88, 1), (92, 1)]
    assert plan(101, 0, budget=3)[1] == [(60, 2), (80, 1), (88, 1)], "a trial without nodes counts as one"


def test_given_capacity_gets_the_whole_budget(plan):
    assert plan(80, 10, capacity=90) == (90, [(90, 1000)])
    assert plan(95, 10, capacity=90) == (100, [(90, 1000)])


def test_capacity_that_needs_no_search(plan):
    assert plan(0, 10, capacity=100) == (100, [])
    assert plan(0, 10, capacity=150) == (100, [])
    assert plan(0, 10, capacity=56) == (100, []), "no plan exists below the bound"
    assert plan(0, 10, capacity=60) == (60, [(60, 1000)])


def test_without_a_budget_greedy_stays(plan):
    assert plan(60, 10, budget=0) == (100, [])


def test_greedy_at_the_bound_needs_no_search(plan):
    assert plan(60, 10, size=60) == (60, [])


def at(time, blocks, name):
    return [Block(f"{name}{b.name}", b.size, b.align, b.first + time, b.last + time) for b in blocks]


def test_only_overflowing_pools_are_planned_again(monkeypatch):
    small = [Block("small", 13, 1, 20, 25)]  # as high as the tried size
    blocks = [*at(40, HARD, "y"), *small, *at(0, HARD, "x")]
    requests = []

    def pack(island, capacity, budget):
        found = canonical_pack(island, capacity, budget)
        requests.append(([b.name for b in island], capacity, budget, found.nodes))
        return found

    canonical_pack = search.pack
    monkeypatch.setattr(search, "pack", pack)
    plan = search.plan_pool(blocks, budget=1000)
    verify(blocks, plan.offsets, plan.size)
    assert plan.size == 13 and plan.offsets["small"] == greedy.plan_pool(blocks).offsets["small"]
    ((first, *one), (second, *two)) = requests
    assert {name[0] for name in first} == {"x"} and {name[0] for name in second} == {"y"}
    assert one[:2] == [13, 500] and two[:2] == [13, 500 - one[2]], "the rest is for the second"
    assert one[2] == two[2] > 0


def test_nodes_of_all_islands_count(monkeypatch):
    blocks = [Block("x", 4, 1, 0, 0), Block("y", 4, 1, 1, 1)]
    monkeypatch.setattr(greedy, "plan_pool", lambda given: PoolPlan({"x": 96, "y": 96}, 100, 1, 60))
    budgets = []

    def pack(island, capacity, budget):
        budgets.append(budget)
        return Outcome([0], False, 7) if island[0].name == "x" else Outcome(None, False, 5)

    monkeypatch.setattr(search, "pack", pack)
    search.plan_pool(blocks, budget=1000)
    assert budgets[:4] == [500, 493, 494, 487], "the first trial took 12 of 1000"


def test_failed_island_ends_the_trial(monkeypatch):
    blocks = [*at(0, HARD, "x"), *at(40, HARD, "y")]
    requests = []
    monkeypatch.setattr(search, "pack", lambda i, c, b: requests.append(i[0].name[0]) or Outcome(None, True, 7))
    plan = search.plan_pool(blocks, 13, 50)
    assert requests == ["x"] and plan == greedy.plan_pool(blocks)


@pytest.mark.parametrize("seed", range(30))
def test_islands_share_no_time(seed):
    rng = random.Random(seed)
    blocks = []
    for number in range(rng.randint(1, 9)):
        first = rng.randint(0, 20)
        blocks.append(Block(f"b{number}", rng.randint(1, 3), 1, first, first + rng.choice([0, 0, 1, 3])))
    found = search._islands(blocks)
    assert sorted(b.name for island in found for b in island) == sorted(b.name for b in blocks)
    times = [{step for b in island for step in range(b.first, b.last + 1)} for island in found]
    for earlier, later in itertools.pairwise(times):
        assert max(earlier) < min(later)
    for island in found:
        assert island == sorted(island, key=lambda b: (b.first, b.last, b.size, b.name))
        reached = island[0].last
        for block in island[1:]:
            assert block.first <= reached, "each has connected lifetimes"
            reached = max(reached, block.last)
    assert search._islands(blocks[::-1]) == found


def test_no_blocks_no_islands():
    assert search._islands([]) == []
    assert search.plan_pool([], 10) == PoolPlan({}, 0, 1, 0)


def test_plan_of_a_hard_problem():
    assert greedy.plan_pool(HARD).size == 14
    for capacity, size in ((12, 14), (13, 13), (14, 14), (None, 13)):
        plan = search.plan_pool(HARD, capacity)
        verify(HARD, plan.offsets, plan.size)
        assert (plan.size, plan.lower_bound) == (size, 13)
