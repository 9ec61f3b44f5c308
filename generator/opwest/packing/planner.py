# SPDX-License-Identifier: Apache-2.0
"""The planners behind one function. Which one plans is said in the manifest, never by what is installed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from opwest.packing import greedy
from opwest.packing.problem import Block, PoolPlan

Planner = Literal["greedy", "search"]


def plan_pool(blocks: Sequence[Block], planner: Planner) -> PoolPlan:
    """Return a plan for the blocks of one pool: the same blocks give the same plan everywhere."""
    if planner == "greedy":
        return greedy.plan_pool(blocks)
    from opwest.packing import search  # numpy takes its time to load

    return search.plan_pool(blocks)
