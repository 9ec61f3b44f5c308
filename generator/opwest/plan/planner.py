# SPDX-License-Identifier: Apache-2.0
"""Call the planner that the manifest selects, independent of installed packages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from opwest.plan import greedy
from opwest.plan.problem import Block, PoolPlan

Planner = Literal["greedy", "search"]


def plan_pool(blocks: Sequence[Block], planner: Planner) -> PoolPlan:
    """Return a plan for the blocks of one pool. It depends only on the blocks."""
    if planner == "greedy":
        return greedy.plan_pool(blocks)

    from opwest.plan.search import search_pool  # numpy is slow to import

    return search_pool(blocks)
