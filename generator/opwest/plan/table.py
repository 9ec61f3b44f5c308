# SPDX-License-Identifier: Apache-2.0
"""The problem of a pool as a table in MiniMalloc's format, for planners outside of opwest."""

from __future__ import annotations

from opwest.model.model import Model
from opwest.packing.table import Row
from opwest.plan.blocks import block_of
from opwest.plan.memory import MemoryPlan
from opwest.plan.sharing import SHARED, find_shares, merged


def pool_rows(model: Model, plan: MemoryPlan, pool: str) -> list[Row]:
    """Return the rows of one pool with the offsets of the plan, times in steps.

    The buffers that share memory in the plan form one row; its name contains all of theirs.
    """
    declared = next(p for p in model.pools if p.name == pool)
    blocks = [block_of(declared, b, plan.schedule) for b in model.planned if plan.homes[b.name] == pool]
    offsets = plan.pools[pool].offsets
    names = {block.name for block in blocks}
    shares = [
        share
        for share in find_shares(model, plan.schedule)
        if {share.taken, share.taker} <= names and offsets[share.taken] == offsets[share.taker]
    ]
    whole, owner = merged(blocks, shares)
    members: dict[str, list[str]] = {}
    for block in sorted(blocks, key=lambda b: (b.first, b.last)):
        members.setdefault(owner[block.name], []).append(block.name)
    return [Row(SHARED.join(members[b.name]), b.first, b.last + 1, b.size, b.align, offsets[b.name]) for b in whole]
