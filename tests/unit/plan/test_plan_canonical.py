# SPDX-License-Identifier: Apache-2.0
"""The exact search: results against brute force, the budget, and the effect of pruning."""

import itertools
import random
import sys

import pytest
from opwest.plan import search
from opwest.plan.problem import Block
from opwest.plan.search import Component, Outcome, _moments, _recursion, pack
from opwest.plan.verify import verify
from plan_support import HARD, least


def random_blocks(seed, count, aligns=(1,), sizes=(1, 9)):
    """Return blocks with connected lifetimes: one lives from the first step to the last."""
    rng = random.Random(seed)
    blocks = [Block("always", rng.randint(*sizes), rng.choice(aligns), 0, 6)]
    for number in range(1, count):
        first = rng.randint(0, 6)
        last = min(first + rng.choice([0, 0, 1, 2, 3]), 6)
        blocks.append(Block(f"b{number}", rng.randint(*sizes), rng.choice(aligns), first, last))
    rng.shuffle(blocks)
    return blocks


def check(blocks, best, budget=20_000):
    """Search at the minimum capacity and one byte below; return the numbers of nodes."""
    found = pack(blocks, best, budget)
    assert found.offsets is not None and not found.proven
    verify(blocks, {b.name: offset for b, offset in zip(blocks, found.offsets, strict=True)}, best)
    assert all(type(offset) is int for offset in found.offsets)
    none = pack(blocks, best - 1, budget)
    assert (none.offsets, none.proven) == (None, True)
    assert pack(blocks, best, budget) == found, "the same everywhere"
    return found.nodes + none.nodes


@pytest.mark.parametrize("aligns", [(1,), (1, 4), (2, 4, 8), (1, 3)])
def test_few_blocks(aligns):
    for seed in range(25):
        blocks = random_blocks(seed, 2 + seed % 5, aligns)
        check(blocks, least(blocks))


def limit_runs(monkeypatch, nodes):
    """Limit every run of the search, the first as well, to a number of nodes."""
    for name, value in (("FIRST_RUN", nodes), ("RUN", nodes), ("RUN_OF_A_BLOCK", 0)):
        monkeypatch.setattr(search, name, value)


@pytest.mark.parametrize("run", [1, 2, 3, 3000])
def test_budget_is_exact(monkeypatch, run):
    limit_runs(monkeypatch, run)
    nodes = pack(HARD, 13, 10_000).nodes if run == 3000 else 10**9
    for budget in range(1, 30):
        found = pack(HARD, 13, budget)
        if budget < nodes:
            assert found == Outcome(None, False, budget)
        else:
            assert found.nodes == nodes and found.offsets is not None


def test_no_plan_without_a_budget():
    assert pack(HARD, 13, 0) == Outcome(None, False, 0)


def test_problems_without_search():
    assert pack([Block("a", 5, 1, 0, 0), Block("b", 6, 1, 3, 3)], 5, 100) == Outcome(None, True, 0)
    assert pack([Block("a", 5, 1, 3, 9)], 5, 100).offsets == [0]
    assert pack([Block("a", 5, 4, 3, 9)], 5, 100).offsets == [0]


def test_component_of_too_many_blocks_is_not_searched(monkeypatch):
    monkeypatch.setattr(search, "MAX_BLOCKS", 7)
    assert pack(HARD, 13, 10_000).offsets is not None
    assert pack([*HARD, Block("one", 1, 1, 9, 9)], 13, 10_000) == Outcome(None, False, 0)


def test_components_are_solved_one_by_one():
    """Groups with disjoint lifetimes below one permanent block: the work is the sum, not the product."""
    groups = 6
    blocks = [Block("always", 1, 1, 0, 10 * groups)]
    for at in range(groups):
        blocks += [Block(f"{at}{b.name}", b.size, 1, b.first + 10 * at, b.last + 10 * at) for b in HARD]
    one = pack([Block("always", 1, 1, 0, 10), *HARD], 14, 10_000)
    many = pack(blocks, 14, 10_000)
    assert one.offsets is not None and many.offsets is not None
    verify(blocks, {b.name: offset for b, offset in zip(blocks, many.offsets, strict=True)}, 14)
    assert many.nodes <= 2 * groups * one.nodes


def test_equal_blocks_are_tried_in_one_order():
    alike = [Block(f"b{i}", 3, 1, 0, 0) for i in range(9)]
    assert pack(alike, 27, 1000).offsets is not None
    # Pairs of 3 leave 2 bytes unused: there is no plan, and the search must not try all 9! orders.
    others = [Block("low", 26, 1, 0, 1), *(Block(f"c{i}", 3, 1, 1, 1) for i in range(9))]
    found = pack(others, 52, 20_000)
    assert found.proven and found.nodes < 20


def windmill(seed, count, steps, height):
    """Return blocks that fill a rectangle to the last byte: rectangles are cut into five that lock one another."""
    rng = random.Random(seed)
    pieces = [(0, steps, 0, height)]
    while len(pieces) < count:
        fit = [p for p in pieces if p[1] - p[0] > 2 and p[3] - p[2] > 2]
        piece = max(fit, key=lambda p: (p[1] - p[0]) * (p[3] - p[2]) * rng.uniform(0.2, 1))
        pieces.remove(piece)
        a, z, low, high = piece
        t, u = sorted(rng.sample(range(a + 1, z), 2))
        b, c = sorted(rng.sample(range(low + 1, high), 2))
        if rng.random() < 0.5:
            pieces += [(a, u, low, b), (u, z, low, c), (t, z, c, high), (a, t, b, high), (t, u, b, c)]
        else:
            pieces += [(a, t, low, c), (t, z, low, b), (u, z, b, high), (a, u, c, high), (t, u, b, c)]
    rng.shuffle(pieces)
    return [Block(f"b{i}", top - low, 1, a, z - 1) for i, (a, z, low, top) in enumerate(pieces)]


# The recorded numbers of nodes of the problems, which show the effect of pruning and of the order of trials:
# no change may need more.
@pytest.mark.parametrize(
    ("count", "steps", "height", "most"), [(13, 12, 30, 596), (21, 20, 60, 1196), (25, 24, 60, 3174)]
)
def test_rectangles_are_filled_to_the_last_byte(count, steps, height, most):
    nodes = 0
    for seed in range(40):
        blocks = windmill(seed, count, steps, height)
        found = pack(blocks, height, 3000)
        assert found.offsets is not None, seed
        verify(blocks, {b.name: offset for b, offset in zip(blocks, found.offsets, strict=True)}, height)
        nodes += found.nodes
    assert nodes <= most


def test_proofs_with_few_nodes():
    nodes = proven = 0
    for seed in range(25):
        blocks = random_blocks(seed, 7, (1, 2, 4), (1, 20))
        capacity = max(sum(b.size for b in blocks if b.first <= step <= b.last) for step in range(7))
        while (found := pack(blocks, capacity, 3000)).proven:
            nodes += found.nodes
            proven += 1
            capacity += 1
        assert found.offsets is not None
        nodes += found.nodes
    assert proven > 10
    assert nodes <= 1900


@pytest.mark.parametrize(("run", "most"), [(30, 2744), (100, 2600)])
def test_interrupted_runs_restart_with_the_recorded_failures(monkeypatch, run, most):
    limit_runs(monkeypatch, run)
    nodes = restarted = 0
    for seed in range(40):
        blocks = windmill(seed, 25, 24, 60)
        found = pack(blocks, 60, 3000)
        assert found.offsets is not None and not found.proven
        verify(blocks, {b.name: offset for b, offset in zip(blocks, found.offsets, strict=True)}, 60)
        nodes += found.nodes
        restarted += found.nodes > run
    assert restarted >= 5
    assert nodes <= most


@pytest.mark.parametrize("seed", range(60))
def test_moments_have_the_most_live_blocks(seed):
    blocks = random_blocks(seed, 12)
    spans = _moments(blocks)
    alive = [{i for i, b in enumerate(blocks) if b.first <= step <= b.last} for step in range(7)]
    most = {frozenset(one) for one in alive if not any(one < other for other in alive)}
    at = [
        frozenset(i for i, (start, stop) in enumerate(spans) if start <= moment < stop)
        for moment in range(max(stop for _, stop in spans))
    ]
    assert len(at) == len(most) and set(at) == most
    assert all(start < stop for start, stop in spans)
    order = [max(blocks[i].first for i in one) for one in at]
    assert order == sorted(order)
    crossing = [len(one & following) for one, following in itertools.pairwise(at)]
    assert list(Component.of(blocks, spans).crossing) == crossing


def test_lengths_of_runs(monkeypatch):
    """The first run is longer, and every run has two nodes for each block."""
    lengths = []

    def solve(run):
        lengths.append(run.left)
        run.left = 0
        raise search._OutOfNodesError

    monkeypatch.setattr(search._Search, "_solve", solve)
    assert pack(HARD, 13, 5500) == Outcome(None, False, 5500)
    assert lengths == [3000, 800, 800, 800, 100]
    lengths.clear()
    pack([Block(f"b{i}", 1, 1, 0, 0) for i in range(1700)], 1700, 10_000)
    assert lengths == [3400, 3400, 3200]


def test_recursion_limit_is_restored_after_a_fault():
    before = sys.getrecursionlimit()
    with pytest.raises(KeyError), _recursion(before + 50):
        assert sys.getrecursionlimit() == before + 50
        raise KeyError
    assert sys.getrecursionlimit() == before
    with _recursion(5):
        assert sys.getrecursionlimit() == before
