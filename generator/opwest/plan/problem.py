# SPDX-License-Identifier: Apache-2.0
"""The planning problem of one pool, and its plan."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import replace

from opwest.base.frozen_dataclass import dataclass

LAST_PHASE = 1 << 16
"""The end of a step: no operator has so many phases."""


@dataclass(frozen=True, slots=True)
class Block:
    """Memory that is live from phase `begin` of step `first` to the end of phase `end` of step `last`.

    Sizes are in bytes.
    """

    name: str
    size: int
    align: int
    first: int
    last: int
    begin: int = 0
    end: int = LAST_PHASE


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


def in_moments(blocks: Sequence[Block]) -> Sequence[Block]:
    """Return the blocks with moments in place of steps and phases; the given ones if none has phases.

    A moment begins with the life of a block. The blocks of the result overlap in time if the given ones do.
    """
    if all(block.begin == 0 and block.end == LAST_PHASE for block in blocks):
        return blocks
    moments = sorted({(block.first, block.begin) for block in blocks})
    return [
        replace(
            block,
            first=bisect_left(moments, (block.first, block.begin)),
            last=bisect_right(moments, (block.last, block.end)) - 1,
            begin=0,
            end=LAST_PHASE,
        )
        for block in blocks
    ]


def peak(blocks: Sequence[Block]) -> Peak:
    """Return the step with the most live bytes, a lower bound of every plan."""
    moments = in_moments(blocks)
    most = _peak(moments)
    if moments is blocks:
        return most
    steps = {block.name: block for block in blocks}
    live = tuple(steps[block.name] for block in most.blocks)
    return Peak(max((block.first for block in live), default=0), most.size, live)


def _peak(blocks: Sequence[Block]) -> Peak:
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
