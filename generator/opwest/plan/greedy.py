# SPDX-License-Identifier: Apache-2.0
"""Greedy planning: place blocks one by one at the lowest free offset, in several orders, and keep the best.

Which order wins depends on the graph: by size for networks with one large tensor, by time for chains.
The first order that meets the lower bound ends the search.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Sequence
from typing import Any

from opwest.plan.problem import Block, PoolPlan, peak

_ORDERS: tuple[Callable[[Block], tuple[Any, ...]], ...] = (
    lambda b: (-b.size, -(b.last - b.first), b.first, b.name),
    lambda b: (b.first, -b.size, -b.last, b.name),
    lambda b: (-b.size * (b.last - b.first + 1), b.first, b.name),
    lambda b: (-(b.last - b.first), -b.size, b.first, b.name),
    lambda b: (-b.last, -b.size, b.first, b.name),
)


def plan_pool(blocks: Sequence[Block]) -> PoolPlan:
    """Return a plan for the blocks of one pool."""
    bound = peak(blocks).size
    align = max((b.align for b in blocks), default=1)
    best: dict[str, int] = {}
    best_size = -1
    for order in _ORDERS:
        offsets = _place(sorted(blocks, key=order))
        size = max((offsets[b.name] + b.size for b in blocks), default=0)
        if best_size < 0 or size < best_size:
            best, best_size = offsets, size
        if best_size <= bound:
            break
    return PoolPlan(best, max(best_size, 0), align, bound)


def _place(blocks: Sequence[Block]) -> dict[str, int]:
    """First fit: each block goes to the lowest offset that is free during its whole life."""
    placed_at: dict[int, list[tuple[int, int, str]]] = {}
    offsets: dict[str, int] = {}
    for block in blocks:
        # The same neighbour stands in the list of every step it lives in: look at each once.
        neighbours = sorted({entry for step in range(block.first, block.last + 1) for entry in placed_at.get(step, ())})
        offset = 0
        for start, end, _ in neighbours:
            if start >= offset + block.size:
                break
            offset = max(offset, -(-end // block.align) * block.align)
        offsets[block.name] = offset
        entry = (offset, offset + block.size, block.name)
        for step in range(block.first, block.last + 1):
            insort(placed_at.setdefault(step, []), entry)
    return offsets
