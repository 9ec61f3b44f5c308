# SPDX-License-Identifier: Apache-2.0
"""The search: its results, the sizes that it tries, their nodes, and the pools that it plans again."""

import csv
import itertools
import os
import random
import time
from pathlib import Path

import pytest
from campaign import sized
from hypothesis import given, settings
from hypothesis import strategies as st
from opwest.plan import greedy, search
from opwest.plan.memory import plan_pool
from opwest.plan.problem import Block, PoolPlan
from opwest.plan.search import Outcome, pack
from opwest.plan.verify import verify
from plan_support import HARD, least
from requirements_support import skip_here


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
        found = search.search_pool(blocks, capacity, budget)
        assert (found.align, found.lower_bound) == (unit, bound)
        assert found.size == max(found.offsets[b.name] + b.size for b in blocks)
        return found.size, fake.requests

    return planned


@pytest.mark.parametrize(
    ("least", "nodes", "options", "expected"),
    [
        # The bound is tried first, with half of the budget.
        (60, 10, {}, (60, [(60, 500)])),
        (60, 10, {"budget": 7}, (60, [(60, 4)])),
        (60, 10, {"budget": 1}, (60, [(60, 1)])),
        # Each trial gets half of the remaining budget; at the end single nodes.
        (101, 100, {}, (100, [(60, 500), (80, 450), (88, 400), (92, 350), (96, 300)])),
        (101, 10**6, {"budget": 10}, (100, [(60, 5), (80, 3), (88, 1), (92, 1)])),
        (101, 0, {"budget": 3}, (100, [(60, 2), (80, 1), (88, 1)])),  # a trial without nodes counts as one
        # A given capacity gets the whole budget.
        (80, 10, {"capacity": 90}, (90, [(90, 1000)])),
        (95, 10, {"capacity": 90}, (100, [(90, 1000)])),
        (0, 10, {"capacity": 60}, (60, [(60, 1000)])),
        # Capacities that need no search; below the bound there is no plan.
        *[(0, 10, {"capacity": capacity}, (100, [])) for capacity in (100, 150, 56)],
        (60, 10, {"budget": 0}, (100, [])),
        (60, 10, {"size": 60}, (60, [])),
    ],
)
def test_trials_and_their_budgets(plan, least, nodes, options, expected):
    assert plan(least, nodes, **options) == expected


@pytest.mark.parametrize(
    ("least", "options", "size", "tried"),
    [
        # 60 fails; 80 is between 60 and 100; 68 between 60 and 80; 72 and 76 between 68 and 80.
        (73, {}, 76, [60, 80, 68, 72, 76]),
        (101, {}, 100, [60, 80, 88, 92, 96]),
        (64, {}, 64, [60, 80, 68, 64]),
        # Sizes are multiples of what divides all blocks, or of their alignments.
        (70, {"unit": 10}, 70, [60, 80, 70]),
        (61, {"unit": 1}, 61, [60, 80, 70, 65, 62, 61]),
        (73, {"unit": 12, "align": 8}, 76, [60, 80, 68, 72, 76]),
    ],
)
def test_sizes_between_the_last_failure_and_the_best_are_tried(plan, least, options, size, tried):
    found, requests = plan(least, 0, **options)
    assert (found, [capacity for capacity, _ in requests]) == (size, tried)


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
    plan = search.search_pool(blocks, budget=1000)
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
    search.search_pool(blocks, budget=1000)
    assert budgets[:4] == [500, 493, 494, 487], "the first trial took 12 of 1000"


def test_failed_island_ends_the_trial(monkeypatch):
    blocks = [*at(0, HARD, "x"), *at(40, HARD, "y")]
    requests = []
    monkeypatch.setattr(search, "pack", lambda i, c, b: requests.append(i[0].name[0]) or Outcome(None, True, 7))
    plan = search.search_pool(blocks, 13, 50)
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


def test_plan_of_a_hard_problem():
    assert greedy.plan_pool(HARD).size == 14
    for capacity, size in ((12, 14), (13, 13), (14, 14), (None, 13)):
        plan = search.search_pool(HARD, capacity)
        verify(HARD, plan.offsets, plan.size)
        assert (plan.size, plan.lower_bound) == (size, 13)


# --- The search: never worse than greedy, optimal on small problems, the same everywhere

MINIMALLOC = Path(os.environ.get("OPWEST_MINIMALLOC", Path(__file__).resolve().parents[4] / "shared" / "minimalloc"))


def tiny(most, aligns):
    block = st.tuples(st.integers(1, 9), st.sampled_from(aligns), st.integers(0, 4), st.integers(0, 3))
    return st.lists(block, min_size=1, max_size=most).map(
        lambda rows: [Block(f"b{i}", size, align, at, at + life) for i, (size, align, at, life) in enumerate(rows)]
    )


@settings(max_examples=sized(30, 70), deadline=None, derandomize=True, database=None)
@given(tiny(6, [1, 2, 4]))
def test_small_problems_are_solved_to_the_optimum(blocks):
    plan = search.search_pool(blocks)
    verify(blocks, plan.offsets, plan.size)
    assert plan.size == least(blocks)
    assert plan.size <= greedy.plan_pool(blocks).size


@st.composite
def larger(draw):
    blocks = []
    for number in range(draw(st.integers(5, 40))):
        align = draw(st.sampled_from([1, 8, 16]))
        first = draw(st.integers(0, 30))
        blocks.append(Block(f"b{number}", draw(st.integers(1, 60)), align, first, first + draw(st.integers(0, 12))))
    return blocks


@pytest.mark.slow
@settings(max_examples=sized(12, 60), deadline=None, derandomize=True, database=None)
@given(larger())
def test_never_worse_than_greedy_and_always_valid(blocks):
    first = greedy.plan_pool(blocks)
    plan = search.search_pool(blocks, budget=2000)
    verify(blocks, plan.offsets, plan.size)
    assert first.lower_bound == plan.lower_bound <= plan.size <= first.size
    assert plan.align == first.align
    assert set(plan.offsets) == {b.name for b in blocks}
    assert plan.size == max(plan.offsets[b.name] + b.size for b in blocks)
    assert search.search_pool(blocks, budget=2000) == plan
    kept = search.search_pool(blocks, plan.size, budget=2000)
    verify(blocks, kept.offsets, kept.size)
    assert kept.size <= first.size


def test_no_blocks():
    assert search._islands([]) == []
    assert search.search_pool([], 10) == PoolPlan({}, 0, 1, 0)
    assert plan_pool([], "search") == plan_pool([], "greedy") == PoolPlan({}, 0, 1, 0)


def test_requested_planner_is_used(monkeypatch):
    expected = PoolPlan({"b0": 1}, 2, 1, 1)
    monkeypatch.setattr(search, "search_pool", lambda blocks: expected)
    assert plan_pool(HARD, "search") is expected
    assert plan_pool(HARD, "greedy") == greedy.plan_pool(HARD)


def test_too_many_blocks_are_left_to_greedy(monkeypatch):
    limit = sized(300, search.MAX_BLOCKS)  # the time of the search is quadratic
    monkeypatch.setattr(search, "MAX_BLOCKS", limit)
    blocks = [Block(f"b{i}", 1, 1, 0, 0) for i in range(limit + 1)]
    assert pack(blocks, 10**6, 10) == Outcome(None, False, 0)
    assert pack(blocks[:-1], 10**6, 10**5).offsets is not None


def test_budget_ends_the_search():
    blocks, _ = tables("K")
    outcome = pack(blocks, 1048576, 700)
    assert (outcome.offsets, outcome.proven, outcome.nodes) == (None, False, 700)


def tables(name):
    """Return a problem of the MiniMalloc paper and its capacity."""
    found = sorted(MINIMALLOC.glob(f"{name}.*.csv"))
    if not found:
        skip_here("the MiniMalloc problems are neither in $OPWEST_MINIMALLOC nor in ../shared/minimalloc")
    with found[0].open() as file:
        rows = list(csv.DictReader(file))
    times = {t: i for i, t in enumerate(sorted({int(r[k]) for r in rows for k in ("lower", "upper")}))}
    blocks = [Block(r["id"], int(r["size"]), 1, times[int(r["lower"])], times[int(r["upper"])] - 1) for r in rows]
    return blocks, int(found[0].name.split(".")[1])


@pytest.mark.parametrize("name", ["example", "B", "C", pytest.param("J", marks=pytest.mark.slow)])
def test_problems_of_the_minimalloc_paper(name):
    blocks, capacity = tables(name)
    plan = search.search_pool(blocks, capacity, budget=60_000)
    verify(blocks, plan.offsets, plan.size)
    assert plan.size <= capacity
    if name != "example":
        assert greedy.plan_pool(blocks).size > 1.1 * capacity


@pytest.mark.slow
@pytest.mark.parametrize("name", sized(["A", "G"], ["A", "D", "E", "F", "G", "H", "I", "K"]))
def test_other_problems_of_the_minimalloc_paper(name):
    blocks, capacity = tables(name)
    began = time.process_time()
    plan = search.search_pool(blocks, capacity, budget=1_000_000)
    seconds = time.process_time() - began
    verify(blocks, plan.offsets, plan.size)
    assert plan.size <= capacity
    assert seconds <= 60


def test_same_problem_gives_the_same_plan():
    blocks, capacity = tables("B")
    first, second = (search.search_pool(order, capacity, 10_000) for order in (blocks, blocks[::-1]))
    assert first == second
    assert first.size <= capacity
