# SPDX-License-Identifier: Apache-2.0
"""The planning problem of one pool, and its plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from opwest.base.frozen_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Block:
    """Memory that is live from the start of step `first` to the end of step `last`; sizes in bytes."""

    name: str
    size: int
    align: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Share:
    """Step `step` may write the block `taker` over the block `taken`, of which it is the last reader."""

    taken: str
    taker: str
    step: int


@dataclass(frozen=True, slots=True)
class Peak:
    """The maximum of live bytes: the step, and the blocks live in it."""

    step: int
    size: int
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class PoolPlan:
    """The plan of one pool: offsets in bytes by block name, and the total size in bytes."""

    offsets: Mapping[str, int]
    size: int
    align: int
    lower_bound: int


def round_up(size: int, multiple: int) -> int:
    """Return the least multiple that is not less than a size."""
    return -(-size // multiple) * multiple


def peak(blocks: Sequence[Block]) -> Peak:
    """Return the step with the most live bytes, a lower bound of every plan."""
    if not blocks:
        return Peak(0, 0, ())
    change: dict[int, int] = {}
    for block in blocks:
        change[block.first] = change.get(block.first, 0) + block.size
        change[block.last + 1] = change.get(block.last + 1, 0) - block.size
    most, at, alive = 0, 0, 0
    for step in sorted(change):
        alive += change[step]
        if alive > most:
            most, at = alive, step
    return Peak(at, most, tuple(b for b in blocks if b.first <= at <= b.last))
