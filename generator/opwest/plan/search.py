# SPDX-License-Identifier: Apache-2.0
"""Search planning: exact search with a budget; the result is never larger than that of greedy planning.

The plan depends on the blocks alone: work is counted in nodes of the search tree, not in seconds, and all
arithmetic is on integers."""

from __future__ import annotations

import math
from collections.abc import Sequence

from opwest.plan import greedy
from opwest.plan.exact_search import pack
from opwest.plan.problem import Block, PoolPlan

BUDGET = 200_000
"""Nodes for one pool; a node takes some 50 microseconds."""


def search_pool(blocks: Sequence[Block], capacity: int | None = None, budget: int = BUDGET) -> PoolPlan:
    """Return the best plan found, or, with a capacity (bytes), the first plan within it.

    The lower bound is tried first, with half of the budget; then sizes between the largest failure and the best plan.
    """
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
    found: list[list[Block]] = []
    reached = -1
    for block in sorted(blocks, key=lambda b: (b.first, b.last, b.size, b.name)):
        if block.first > reached:
            found.append([])
        found[-1].append(block)
        reached = max(reached, block.last)
    return found
