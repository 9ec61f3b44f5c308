# SPDX-License-Identifier: Apache-2.0
"""Planning a whole model: a verified plan for each pool, or the reason why a pool is too small."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from opwest.diagnostics import Diagnostics
from opwest.model.model import Model, Pool
from opwest.plan.greedy import plan_pool
from opwest.plan.problem import Block, PoolPlan, peak
from opwest.plan.verify import verify


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """The plans of all pools that hold something, by pool name in the manifest's order."""

    pools: Mapping[str, PoolPlan]

    def place(self, pool: str, buffer: str) -> int:
        """Return the offset of a buffer in its pool, bytes."""
        return self.pools[pool].offsets[buffer]


def plan_memory(model: Model, faults: Diagnostics) -> MemoryPlan:
    """Return a verified plan; report every pool that is too small."""
    plans = {}
    for pool in model.pools:
        blocks = [Block(b.name, b.size, b.align, b.first, b.last) for b in model.buffers if b.pool == pool.name]
        if not blocks:
            continue
        plan = plan_pool(blocks)
        verify(blocks, plan.offsets, plan.size)
        plans[pool.name] = plan
        if pool.size is not None and plan.size > pool.size:
            _report_overflow(pool, plan, blocks, faults)
    return MemoryPlan(plans)


def _report_overflow(pool: Pool, plan: PoolPlan, blocks: list[Block], faults: Diagnostics) -> None:
    most = peak(blocks)
    alive = ", ".join(f"{b.name} ({b.size})" for b in sorted(most.blocks, key=lambda b: -b.size))
    hint = "make the pool larger, or move a tensor to another pool"
    if plan.size > most.size:
        hint += f" (the least that any plan needs is {most.size} bytes)"
    faults.error(
        f"pool {pool.name!r} is too small: {plan.size} bytes are needed, {pool.size} are there; "
        f"alive at the peak, step {most.step}: {alive}",
        pool.size_location,
        expected=f"size: {plan.size} or more",
        hint=hint,
    )
