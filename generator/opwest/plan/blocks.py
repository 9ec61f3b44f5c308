# SPDX-License-Identifier: Apache-2.0
"""The blocks that the buffers of a model are in their pools."""

from __future__ import annotations

from opwest.model.model import Buffer, Pool
from opwest.packing.problem import Block
from opwest.plan.schedule import Schedule


def block_of(pool: Pool, buffer: Buffer, schedule: Schedule) -> Block:
    """Return the block of a buffer in a pool, padded to cache lines if a non-coherent device accesses it."""
    line = pool.cache_line if pool.cache_line and buffer.incoherent else 1
    align = max(buffer.align, pool.align, line)
    life = schedule.lives[buffer.name]
    return Block(buffer.name, -(-buffer.type.size // align) * align, align, life.first, life.last)


def reserved_bytes(pool: Pool, buffer: Buffer, schedule: Schedule) -> int:
    """Return the bytes that a buffer occupies in a pool, including padding to its alignment."""
    return block_of(pool, buffer, schedule).size
