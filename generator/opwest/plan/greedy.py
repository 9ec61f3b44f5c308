# SPDX-License-Identifier: Apache-2.0
"""Greedy planning: place blocks one by one at the first free offset, in several orders, and keep the best.

The best order depends on the graph: by size for networks with one large tensor, by time for chains. Every
order is tried from below, and from both ends of the lower bound: a chain that alternates between the two ends
always meets the bound. The first plan that meets the bound ends the search.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Sequence
from typing import Any

from opwest.plan.problem import Block, PoolPlan, in_moments, peak

_ORDERS: tuple[Callable[[Block], tuple[Any, ...]], ...] = (
    lambda b: (-b.size, -(b.last - b.first), b.first, b.name),
    lambda b: (b.first, -b.size, -b.last, b.name),
    lambda b: (-b.size * (b.last - b.first + 1), b.first, b.name),
    lambda b: (-(b.last - b.first), -b.size, b.first, b.name),
    lambda b: (-b.last, -b.size, b.first, b.name),
)


def plan_pool(blocks: Sequence[Block]) -> PoolPlan:
    """Return a plan for the blocks of one pool."""
    blocks = in_moments(blocks)
    bound = peak(blocks).size
    align = max((b.align for b in blocks), default=1)
    best: dict[str, int] = {}
    best_size = -1
    for order, limit in ((order, limit) for limit in (None, bound) for order in _ORDERS):
        offsets = _place(sorted(blocks, key=order), limit)
        size = max((offsets[b.name] + b.size for b in blocks), default=0)
        if best_size < 0 or size < best_size:
            best, best_size = offsets, size
        if best_size <= bound:
            break
    return PoolPlan(best, max(best_size, 0), align, bound)


class _Placed:
    """Placed blocks, indexed by lifetime."""

    def __init__(self, steps: int) -> None:
        # A segment tree over steps: the nodes that cover the lifetime of a block contain it, and so exactly one node
        # on the path from any of its steps to the root. In addition, all blocks sorted by first step.
        self._leaves = steps
        self._nodes: list[list[tuple[int, int]]] = [[] for _ in range(2 * steps)]
        self._starts: list[tuple[int, int, int]] = []

    def add(self, block: Block, offset: int) -> None:
        """Add a block with its offset."""
        place = (offset, offset + block.size)
        insort(self._starts, (block.first, *place))
        low, high = block.first + self._leaves, block.last + 1 + self._leaves
        while low < high:
            if low & 1:
                self._nodes[low].append(place)
                low += 1
            if high & 1:
                high -= 1
                self._nodes[high].append(place)
            low, high = low // 2, high // 2

    def beside(self, block: Block) -> list[tuple[int, int]]:
        """Return the ranges of the blocks that overlap `block` in time."""
        begin = bisect_left(self._starts, (block.first + 1,))
        end = bisect_left(self._starts, (block.last + 1,))
        ranges = [(start, stop) for _, start, stop in self._starts[begin:end]]
        node = block.first + self._leaves
        while node:
            ranges += self._nodes[node]
            node //= 2
        return sorted(ranges)


def _place(blocks: Sequence[Block], limit: int | None) -> dict[str, int]:
    """First fit: place each block at the first offset that is free during its whole lifetime.

    Without a limit this is the lowest offset. With a limit (bytes) it is 0 if free, else the highest
    offset below the limit, if there is one.
    """
    placed = _Placed(max((b.last for b in blocks), default=0) + 1)
    offsets: dict[str, int] = {}
    for block in blocks:
        neighbours = placed.beside(block)
        offset = _lowest(block, neighbours)
        if limit is not None and offset > 0:
            highest = _highest(block, neighbours, limit)
            offset = offset if highest is None else highest
        offsets[block.name] = offset
        placed.add(block, offset)
    return offsets


def _lowest(block: Block, neighbours: Sequence[tuple[int, int]]) -> int:
    offset = 0
    for start, end in neighbours:
        if start >= offset + block.size:
            break
        offset = max(offset, -(-end // block.align) * block.align)
    return offset


def _highest(block: Block, neighbours: Sequence[tuple[int, int]], limit: int) -> int | None:
    offset = (limit - block.size) // block.align * block.align
    for start, end in sorted(neighbours, key=lambda place: -place[1]):
        if end <= offset:
            break
        offset = min(offset, (start - block.size) // block.align * block.align)
    return offset if offset >= 0 else None
