# SPDX-License-Identifier: Apache-2.0
"""Call the planner that the manifest selects, independent of installed packages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from opwest.packing import greedy
from opwest.packing.problem import Block, PoolPlan

Planner = Literal["greedy", "search"]


def plan_pool(blocks: Sequence[Block], planner: Planner) -> PoolPlan:
    """Return a plan for the blocks of one pool. It depends only on the blocks."""
    if planner == "greedy":
        return greedy.plan_pool(blocks)
    from opwest.packing import search  # numpy is slow to import

    return search.plan_pool(blocks)
