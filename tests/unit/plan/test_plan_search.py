# SPDX-License-Identifier: Apache-2.0
"""The search: never worse than greedy, optimal on small problems, the same everywhere."""

import csv
import os
import sys
import time
from pathlib import Path

import pytest
from campaign import sized
from hypothesis import given, settings
from hypothesis import strategies as st
from opwest.packing import canonical, greedy, search
from opwest.packing.canonical import Outcome, pack
from opwest.packing.planner import plan_pool
from opwest.packing.problem import Block, PoolPlan
from opwest.packing.verify import verify
from plan_support import HARD, least
from requirements_support import skip_here

MINIMALLOC = Path(os.environ.get("OPWEST_MINIMALLOC", Path(__file__).resolve().parents[4] / "shared" / "minimalloc"))


def tiny(most, aligns):
    """Return problems of few blocks."""
    block = st.tuples(st.integers(1, 9), st.sampled_from(aligns), st.integers(0, 4), st.integers(0, 3))
    return st.lists(block, min_size=1, max_size=most).map(
        lambda rows: [Block(f"b{i}", size, align, at, at + life) for i, (size, align, at, life) in enumerate(rows)]
    )


@settings(max_examples=sized(30, 70), deadline=None, derandomize=True, database=None)
@given(tiny(6, [1, 2, 4]))
def test_small_problems_are_solved_to_the_optimum(blocks):
    plan = search.plan_pool(blocks)
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
    plan = search.plan_pool(blocks, budget=2000)
    verify(blocks, plan.offsets, plan.size)
    assert first.lower_bound == plan.lower_bound <= plan.size <= first.size
    assert plan.align == first.align
    assert set(plan.offsets) == {b.name for b in blocks}
    assert plan.size == max(plan.offsets[b.name] + b.size for b in blocks)
    assert search.plan_pool(blocks, budget=2000) == plan
    kept = search.plan_pool(blocks, plan.size, budget=2000)
    verify(blocks, kept.offsets, kept.size)
    assert kept.size <= first.size


def test_no_blocks():
    assert plan_pool([], "search") == plan_pool([], "greedy") == PoolPlan({}, 0, 1, 0)


def test_requested_planner_is_used(monkeypatch):
    expected = PoolPlan({"b0": 1}, 2, 1, 1)
    monkeypatch.setattr(search, "plan_pool", lambda blocks: expected)
    assert plan_pool(HARD, "search") is expected
    assert plan_pool(HARD, "greedy") == greedy.plan_pool(HARD)


def test_too_many_blocks_are_left_to_greedy(monkeypatch):
    limit = sized(300, canonical.MOST_BLOCKS)  # the time of the search is quadratic
    monkeypatch.setattr(canonical, "MOST_BLOCKS", limit)
    blocks = [Block(f"b{i}", 1, 1, 0, 0) for i in range(limit + 1)]
    assert pack(blocks, 10**6, 10) == Outcome(None, False, 0)
    assert pack(blocks[:-1], 10**6, 10**5).offsets is not None


def test_recursion_limit_is_restored():
    before = sys.getrecursionlimit()
    blocks = [Block(f"b{i}", 1, 1, i, i + 1) for i in range(400)]
    assert pack(blocks, 2, 10_000).offsets is not None
    assert sys.getrecursionlimit() == before


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
    plan = search.plan_pool(blocks, capacity, budget=60_000)
    verify(blocks, plan.offsets, plan.size)
    assert plan.size <= capacity
    if name != "example":
        assert greedy.plan_pool(blocks).size > 1.1 * capacity


@pytest.mark.slow
@pytest.mark.parametrize("name", sized(["A", "G"], ["A", "D", "E", "F", "G", "H", "I", "K"]))
def test_other_problems_of_the_minimalloc_paper(name):
    blocks, capacity = tables(name)
    began = time.process_time()
    plan = search.plan_pool(blocks, capacity, budget=1_000_000)
    seconds = time.process_time() - began
    verify(blocks, plan.offsets, plan.size)
    assert plan.size <= capacity
    assert seconds <= 60


def test_same_problem_gives_the_same_plan():
    blocks, capacity = tables("B")
    first, second = (search.plan_pool(order, capacity, 10_000) for order in (blocks, blocks[::-1]))
    assert first == second
    assert first.size <= capacity
