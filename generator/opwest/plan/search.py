# SPDX-License-Identifier: Apache-2.0
"""Search planning: exact search with a budget; the result is never larger than that of greedy planning.

The plan depends on the blocks alone: work is counted in nodes of the search tree, not in seconds, and all
arithmetic is on integers."""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from opwest.base.frozen_dataclass import dataclass
from opwest.plan import greedy
from opwest.plan.problem import Block, PoolPlan, in_moments

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Component:
    """Blocks in the order of a run, one row each; moments count from the first with a live block."""

    numbers: Ints
    """Indexes in the order of the run, ascending."""
    start: Ints
    end: Ints
    """The first moment of a block's life, and the first after it."""
    size: Ints
    align: Ints
    beside: Flags
    """[block, block]: whether they share a moment."""
    living: Flags
    """[block, moment]: whether the block is alive."""
    twin: Ints
    """The nearest earlier block with equal lifetime, size and alignment; -1 for none."""
    alive: Ints
    alive_at: Ints
    """The concatenated blocks of all moments, and the start index of each moment."""
    crossing: Ints
    """The number of blocks alive at both a moment and the next one."""

    @staticmethod
    def of(blocks: Sequence[Block], spans: Sequence[tuple[int, int]]) -> Component:
        """Return a component from blocks and their half-open ranges of moments."""
        start = np.array([span[0] for span in spans], dtype=np.int64)
        end = np.array([span[1] for span in spans], dtype=np.int64)
        seen: dict[tuple[int, int, int, int], int] = {}
        twin = []
        for index, (block, span) in enumerate(zip(blocks, spans, strict=True)):
            kind = (*span, block.size, block.align)
            twin.append(seen.get(kind, -1))
            seen[kind] = index
        moments = np.arange(end.max())
        return _component(
            np.arange(len(blocks)),
            start,
            end,
            np.array([b.size for b in blocks], dtype=np.int64),
            np.array([b.align for b in blocks], dtype=np.int64),
            (start[:, None] < end) & (start < end[:, None]) & ~np.eye(len(blocks), dtype=np.bool_),
            (start[:, None] <= moments) & (moments < end[:, None]),
            np.array(twin, dtype=np.int64),
        )

    def islands(self, waiting: Flags) -> list[Ints]:
        """Return the unplaced blocks in groups without common moments, each ascending."""
        rows = np.flatnonzero(waiting)
        if not rows.size:
            return []
        by_start = rows[np.argsort(self.start[rows])]
        reached = np.maximum.accumulate(self.end[by_start])
        gaps = np.flatnonzero(self.start[by_start[1:]] >= reached[:-1]) + 1
        return [np.sort(group) for group in np.split(by_start, gaps)]

    def only(self, rows: Ints) -> Component:
        """Return a connected subset of the blocks as a component."""
        first, last = self.start[rows].min(), self.end[rows].max()
        new = np.full(len(self.numbers) + 1, -1)
        new[rows] = np.arange(len(rows))
        return _component(
            self.numbers[rows],
            self.start[rows] - first,
            self.end[rows] - first,
            self.size[rows],
            self.align[rows],
            self.beside[rows[:, None], rows],
            self.living[rows, first:last],
            new[self.twin[rows]],
        )

    def free(self, capacity: int) -> Ints:
        """Return the free bytes at every moment: the capacity minus the size of all live blocks."""
        return capacity - self.size @ self.living


def _component(
    numbers: Ints, start: Ints, end: Ints, size: Ints, align: Ints, beside: Flags, living: Flags, twin: Ints
) -> Component:
    counts = living.sum(axis=0)
    alive_at = np.concatenate(([0], np.cumsum(counts)[:-1]))
    crossing = (living[:, :-1] & living[:, 1:]).sum(axis=0)
    return Component(
        numbers, start, end, size, align, beside, living, twin, np.nonzero(living.T)[1], alive_at, crossing
    )


MAX_BLOCKS = 2000
"""Limit on the blocks of a component: each can add a level of recursion."""

FIRST_RUN, RUN = 3000, 800
"""Limits on the nodes of the first run and of each later one, after which the next one starts.

A longer first run ends most proofs; short runs learn faster.
"""

RUN_OF_A_BLOCK = 2
"""Nodes of a run for each block, if they are more: a plan needs one for almost every block."""

_GUILTY, _CONCERNED = 1, 1
"""The weights added at a failure: to the last placed block, and to the blocks alive at the overflow."""

_FIRST = 5
"""The weight of a block without failures, relative to those of a failure."""

_PLACED = np.int64(1) << 60
"""The offset of placed blocks in the bounds: larger than all others."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a search."""

    offsets: list[int] | None
    """Offsets in bytes, in the order of the blocks; None if no plan was found."""
    proven: bool
    """Whether it is proven that no plan exists."""
    nodes: int


class _OutOfNodesError(Exception):
    pass


def pack(blocks: Sequence[Block], capacity: int, budget: int) -> Outcome:
    """Search for a plan of blocks within a capacity (bytes), with a budget in nodes."""
    if len(blocks) > MAX_BLOCKS:
        return Outcome(None, False, 0)
    if any(b.size > capacity for b in blocks):
        return Outcome(None, True, 0)
    return _Search(blocks, capacity).run(budget)


class _Search:
    """The runs of one search, with a weight per block learnt from failures."""

    def __init__(self, blocks: Sequence[Block], capacity: int) -> None:
        self.blocks = blocks
        self.capacity = capacity
        align = math.lcm(*(b.align for b in blocks))
        self.rounds = any(b.size % align for b in blocks)
        """Whether offsets have to be rounded up; sums of sizes are aligned otherwise."""
        self.spans = _moments(blocks)
        self.unit = math.gcd(*(b.size for b in blocks))
        self.weight = np.zeros(len(blocks), dtype=np.int64)
        """The state shared by runs with one initial order of blocks."""
        self.order: Ints = np.zeros(0, dtype=np.int64)
        self.place: dict[int, int] = {}
        self.left = 0

    def run(self, budget: int) -> Outcome:
        """Start runs until one ends before it runs out of nodes."""
        spent = 0
        start = np.array([span[0] for span in self.spans], dtype=np.int64)
        end = np.array([span[1] for span in self.spans], dtype=np.int64)
        neighbours = ((start[:, None] < end) & (start < end[:, None])).sum(axis=1) - 1
        area = (end - start) * np.array([b.size // self.unit for b in self.blocks], dtype=np.int64)
        measures = (neighbours, area)
        weights = [np.zeros_like(area) for _ in measures]
        with _recursion(4 * len(self.blocks) + 1000):
            for turn in itertools.cycle(range(len(measures))):
                if spent >= budget:
                    break
                self.weight = weights[turn]
                longest = max(RUN if spent else FIRST_RUN, RUN_OF_A_BLOCK * len(self.blocks))
                self.left = share = min(longest, budget - spent)
                self.order = np.lexsort((-self.weight, -(self.weight + _FIRST) * measures[turn]))
                try:
                    is_solved = self._solve()
                except _OutOfNodesError:
                    spent += share
                    continue
                spent += share - self.left
                offsets = [self.place[index] for index in range(len(self.blocks))] if is_solved else None
                return Outcome(offsets, not is_solved, spent)
        return Outcome(None, False, spent)

    def _solve(self) -> bool:
        ordered = [self.blocks[index] for index in self.order]
        whole = Component.of(ordered, [self.spans[index] for index in self.order])
        return self._each(whole, np.zeros(len(ordered), dtype=np.int64), -1, -1)

    def _each(self, part: Component, lowest: Ints, last: int, after: int) -> bool:
        """Solve the components of the unplaced blocks, small ones first, since they fail sooner."""
        for chosen in sorted(part.islands(lowest < _PLACED), key=len):
            if len(chosen) == 1:
                done = self._alone(part, int(chosen[0]), lowest, last, after)
            else:
                smaller = part.only(chosen)
                done = self._descend(
                    smaller, lowest[chosen], smaller.free(self.capacity), smaller.crossing, last, after
                )
            if not done:
                return False
        return True

    def _alone(self, part: Component, block: int, lowest: Ints, last: int, after: int) -> bool:
        offset, number = int(lowest[block]), int(part.numbers[block])
        if (offset, number) < (last, after) or offset + int(part.size[block]) > self.capacity:
            self._blame(part.numbers[[block]], after)
            return False
        self.place[int(self.order[number])] = offset
        return True

    def _descend(self, part: Component, lowest: Ints, free: Ints, crossing: Ints, last: int, after: int) -> bool:
        """Place the waiting blocks of a component.

        `lowest` contains the lowest offsets above the placed blocks, `free` the free bytes per moment after all
        unplaced blocks, `crossing` the number of unplaced blocks alive at a moment and the next one. The
        previously placed block, number `after`, has the offset `last`: unplaced blocks follow it in the order
        of offsets and numbers.
        """
        if self.left == 0:
            raise _OutOfNodesError
        self.left -= 1
        stuck = (lowest < last) | ((lowest == last) & (part.numbers < after))
        bounds = self._bounds(part, lowest, stuck, last)
        (over,) = (np.minimum.reduceat(bounds.take(part.alive), part.alive_at) > free).nonzero()
        if over.size:
            self._blame(part.numbers[part.living[:, over[0]] & (lowest < _PLACED)], after)
            return False
        # If another block fits below this one, the two can be exchanged: another branch covers that plan.
        (candidates,) = (~stuck & (lowest < np.minimum.reduce(bounds + part.size))).nonzero()
        if candidates.size > 1:
            candidates = candidates[lowest[candidates].argsort(kind="stable")]
        for block in candidates:
            twin = part.twin[block]
            if twin >= 0 and lowest[twin] < _PLACED:
                continue  # place identical blocks in order
            offset, number = int(lowest[block]), int(part.numbers[block])
            start, end, size = part.start[block], part.end[block], part.size[block]
            self.place[int(self.order[number])] = offset
            beside = part.beside[block]
            above = np.where(beside, np.maximum(lowest, offset + size), lowest)
            if self.rounds:
                above = -(-above // part.align) * part.align
            above[block] = _PLACED
            cut = crossing.copy()
            crossed = cut[start : end - 1]
            crossed -= 1
            if cut.size and np.logical_and.reduce(crossed):
                freed = free.copy()
                here = freed[start:end]
                here += size
                here[here == self.capacity] = _PLACED * 2
                done = self._descend(part, above, freed, cut, offset, number)
            else:
                done = self._each(part, above, offset, number)
            if done:
                return True
            if not np.logical_or.reduce(above[beside] < _PLACED):
                break  # no unplaced block overlaps it in time: its offset did not cause the failure
        return False

    def _bounds(self, part: Component, lowest: Ints, stuck: Flags, last: int) -> Ints:
        """Return bounds on the offsets of the unplaced blocks.

        A stuck block has a lowest offset below the offset reached so far: it must be lifted by a neighbour that
        is placed below it. Such a neighbour exists: the last placed block connected this component, so an
        unplaced block lies above it, and all unplaced blocks are connected by shared lifetimes.
        """
        bounds = np.maximum(lowest, last)
        (rows,) = stuck.nonzero()
        if not rows.size:
            return bounds
        tops = bounds + part.size
        tops[rows] = _PLACED
        tops[rows] = np.minimum.reduce(tops) + part.size[rows]
        lifted = np.minimum.reduce(np.where(part.beside[rows], tops, _PLACED), axis=1)
        if self.rounds:
            lifted = -(-lifted // part.align[rows]) * part.align[rows]
        bounds[rows] = np.maximum(bounds[rows], lifted)
        return bounds

    def _blame(self, numbers: Ints, after: int) -> None:
        self.weight[self.order[numbers]] += _CONCERNED
        if after >= 0:
            self.weight[self.order[after]] += _GUILTY


def _moments(blocks: Sequence[Block]) -> list[tuple[int, int]]:
    """Return lifetimes as half-open ranges of moments with a maximal set of live blocks."""
    births = {b.first for b in blocks}
    deaths = {b.last + 1 for b in blocks}
    moment, born = 0, False
    at: dict[int, int] = {}
    for time in sorted(births | deaths):
        if time in deaths and born:
            moment, born = moment + 1, False
        born = born or time in births
        at[time] = moment
    return [(at[b.first], at[b.last + 1]) for b in blocks]


@contextmanager
def _recursion(depth: int) -> Iterator[None]:
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, depth))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


BUDGET = 200_000
"""Nodes for one pool; a node takes some 50 microseconds."""


def search_pool(blocks: Sequence[Block], capacity: int | None = None, budget: int = BUDGET) -> PoolPlan:
    """Return the best plan found, or, with a capacity (bytes), the first plan within it.

    The lower bound is tried first, with half of the budget; then sizes between the largest failure and the best plan.
    """
    blocks = in_moments(blocks)
    best = greedy.plan_pool(blocks)
    goal = best.lower_bound if capacity is None else capacity
    if best.size <= goal:
        return best
    islands = _islands(blocks)
    unit = math.gcd(*(b.size for b in blocks), *(b.align for b in blocks))
    failed = best.lower_bound - unit
    target, left = goal, budget
    while failed < target < best.size and left > 0:
        share = left if capacity is not None else -(-left // 2)
        offsets, nodes = _keep_to(islands, best, target, share)
        left -= max(nodes, 1)
        if offsets is None:
            failed = target
        else:
            size = max(offsets[b.name] + b.size for b in blocks)
            best = PoolPlan(offsets, size, best.align, best.lower_bound)
        if capacity is not None:
            break
        target = failed + max((best.size - failed) // 2 // unit, 1) * unit
    return best


def _keep_to(
    islands: Sequence[Sequence[Block]], best: PoolPlan, capacity: int, budget: int
) -> tuple[dict[str, int] | None, int]:
    """Return the best plan with every island above a capacity replanned, or None, and the number of nodes."""
    offsets, nodes = dict(best.offsets), 0
    for island in islands:
        if all(offsets[b.name] + b.size <= capacity for b in island):
            continue
        outcome = pack(island, capacity, budget - nodes)
        nodes += outcome.nodes
        if outcome.offsets is None:
            return None, nodes
        offsets.update(zip((b.name for b in island), outcome.offsets, strict=True))
    return offsets, nodes


def _islands(blocks: Sequence[Block]) -> list[list[Block]]:
    """Return the blocks in groups with disjoint lifetimes, each sorted by lifetime."""
    islands: list[list[Block]] = []
    reached = -1
    for block in sorted(blocks, key=lambda b: (b.first, b.last, b.size, b.name)):
        if block.first > reached:
            islands.append([])
        islands[-1].append(block)
        reached = max(reached, block.last)
    return islands
