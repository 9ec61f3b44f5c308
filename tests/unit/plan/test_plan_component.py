# SPDX-License-Identifier: Apache-2.0
"""The search's data about blocks with connected lifetimes: every array against a plain definition."""

import itertools
import random

import numpy as np
import pytest
from opwest.packing.canonical import _moments
from opwest.packing.component import Component
from opwest.packing.problem import Block


def random_blocks(seed, most=9):
    rng = random.Random(seed)
    blocks = []
    for number in range(rng.randint(1, most)):
        first = rng.randint(0, 8)
        blocks.append(
            Block(f"b{number}", rng.randint(1, 3), rng.choice([1, 1, 2]), first, first + rng.choice([0, 1, 2, 5]))
        )
    return blocks


def spans_of(blocks):
    return [(b.first, b.last + 1) for b in blocks]


def component(blocks):
    return Component.of(blocks, spans_of(blocks))


def moments_of(span):
    return set(range(*span))


def check(part, blocks, spans):
    """Compare a component with blocks; moments are counted from the first."""
    end = max(stop for _, stop in spans)
    assert list(zip(part.start, part.end, strict=True)) == spans
    assert [(b.size, b.align) for b in blocks] == list(zip(part.size, part.align, strict=True))
    for (i, one), (j, other) in itertools.product(enumerate(spans), repeat=2):
        assert part.beside[i, j] == (i != j and bool(moments_of(one) & moments_of(other)))
    assert part.living.shape == (len(blocks), end)
    assert [set(np.flatnonzero(row)) for row in part.living] == list(map(moments_of, spans))
    alive = [[i for i, span in enumerate(spans) if moment in moments_of(span)] for moment in range(end)]
    assert list(part.alive) == [i for at in alive for i in at]
    assert list(part.alive_at) == [sum(map(len, alive[:moment])) for moment in range(end)]
    assert list(part.crossing) == [len(set(one) & set(next_)) for one, next_ in itertools.pairwise(alive)]
    assert list(part.free(100)) == [100 - sum(blocks[i].size for i in at) for at in alive]
    kinds = [(*span, b.size, b.align) for span, b in zip(spans, blocks, strict=True)]
    assert list(part.twin) == [
        max((j for j in range(i) if kinds[j] == kinds[i]), default=-1) for i in range(len(kinds))
    ]
    for array in (part.numbers, part.start, part.end, part.size, part.align, part.twin, part.alive, part.crossing):
        assert array.dtype == np.int64


@pytest.mark.parametrize("seed", range(40))
def test_all_arrays(seed):
    blocks = random_blocks(seed)
    part = component(blocks)
    assert list(part.numbers) == list(range(len(blocks)))
    check(part, blocks, spans_of(blocks))


def groups(spans, chosen):
    """Return the chosen blocks in groups with connected lifetimes."""
    found = []
    for index in sorted(chosen, key=lambda i: spans[i]):
        near = [g for g in found if any(moments_of(spans[i]) & moments_of(spans[index]) for i in g)]
        found = [g for g in found if g not in near] + [sorted([index, *itertools.chain(*near)])]
    return sorted(found)


@pytest.mark.parametrize("seed", range(40))
def test_islands_of_waiting_blocks(seed):
    blocks = random_blocks(seed)
    part, spans = component(blocks), spans_of(blocks)
    rng = random.Random(seed)
    for _ in range(5):
        waiting = np.array([rng.random() < 0.7 for _ in blocks])
        islands = part.islands(waiting)
        assert sorted(map(list, islands)) == groups(spans, set(np.flatnonzero(waiting)))
        for rows in islands:
            first = min(spans[i][0] for i in rows)
            only = part.only(rows)
            assert list(only.numbers) == list(rows)
            check(only, [blocks[i] for i in rows], [(spans[i][0] - first, spans[i][1] - first) for i in rows])
            whole = only.only(np.arange(len(rows)))
            assert all(np.array_equal(getattr(whole, n), getattr(only, n)) for n in ("numbers", "twin", "living"))


def test_numbers_in_nested_parts():
    blocks = [Block(f"b{i}", 1, 1, 0, 3) for i in range(6)]
    part = component(blocks).only(np.array([1, 3, 4, 5])).only(np.array([1, 3]))
    assert list(part.numbers) == [3, 5]
    assert list(part.twin) == [-1, -1], "omitted twins are not twins here"
    assert list(component(blocks).only(np.array([1, 2, 5])).twin) == [-1, 0, -1]


def test_no_waiting_blocks_no_islands():
    assert component(random_blocks(1)).islands(np.zeros(len(random_blocks(1)), dtype=np.bool_)) == []


@pytest.mark.parametrize("seed", range(60))
def test_moments_have_the_most_live_blocks(seed):
    blocks = random_blocks(seed, most=12)
    spans = _moments(blocks)
    alive = [
        {i for i, b in enumerate(blocks) if b.first <= step <= b.last}
        for step in range(max(b.last for b in blocks) + 1)
    ]
    most = {frozenset(one) for one in alive if one and not any(one < other for other in alive)}
    at = [
        frozenset(i for i, span in enumerate(spans) if moment in moments_of(span))
        for moment in range(max(stop for _, stop in spans))
    ]
    assert len(at) == len(most) and set(at) == most
    assert all(start < stop for start, stop in spans)
    order = [min(blocks[i].first for i in one) for one in at]
    assert order == sorted(order)
