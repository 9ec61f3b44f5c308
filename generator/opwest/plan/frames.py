# SPDX-License-Identifier: Apache-2.0
"""The memory of two frames in flight, for `run: {stream: true}`.

Constants and states are at the start of a pool, once. The other tensors follow, twice: the tensors of the second
frame are at a constant distance from those of the first one. `run` uses the memory of the first frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from opwest.base.frozen_dataclass import dataclass
from opwest.model.types.model import Model
from opwest.plan.problem import Block, PoolPlan, Share
from opwest.plan.verify import verify


@dataclass(frozen=True, slots=True)
class Frames:
    """The memory of two frames in one pool, bytes."""

    stride: int
    """From a tensor of the first frame to that of the second one; 0 if both share all tensors."""
    size: int
    """The size of the pool."""


def shared_by_frames(model: Model) -> frozenset[str]:
    """Return the buffers that frames share: constants and states."""
    return frozenset(buffer.name for buffer in model.buffers if buffer.role in ("constant", "state"))


def joined(shared: PoolPlan, own: PoolPlan) -> PoolPlan:
    """Return the plan of a pool for one frame: the shared blocks first, then its own."""
    start = _rounded(shared.size, own.align)
    offsets = dict(shared.offsets) | {name: start + offset for name, offset in own.offsets.items()}
    return PoolPlan(offsets, start + own.size, max(shared.align, own.align), shared.lower_bound + own.lower_bound)


def frames_of(blocks: Sequence[Block], plan: PoolPlan, shared: frozenset[str]) -> Frames:
    """Return the memory of two frames for a plan of `joined`."""
    own = [block for block in blocks if block.name not in shared]
    if not own:
        return Frames(0, plan.size)
    start = min(plan.offsets[block.name] for block in own)
    stride = _rounded(plan.size - start, max(block.align for block in own))
    return Frames(stride, plan.size + stride)


def verify_frames(
    blocks: Sequence[Block], plan: PoolPlan, frames: Frames, shared: frozenset[str], shares: Sequence[Share]
) -> None:
    """Raise PlanError unless both frames are valid plans, and no tensor of one overlaps any of the other.

    Frames begin and end at any time, so the whole extent of each must be apart from the other one.
    """
    last = max((block.last for block in blocks), default=0)
    extents = [replace(block, first=0, last=last) for block in blocks if block.name in shared]
    places = {block.name: plan.offsets[block.name] for block in extents}
    for number in range(2):
        moved = {name: at + (0 if name in shared else number * frames.stride) for name, at in plan.offsets.items()}
        verify(blocks, moved, frames.size, shares)
        own = [block for block in blocks if block.name not in shared]
        if own:
            begin = min(moved[block.name] for block in own)
            end = max(moved[block.name] + block.size for block in own)
            extents.append(Block(f"frame {number}", end - begin, 1, 0, last))
            places[f"frame {number}"] = begin
    verify(extents, places, frames.size)


def _rounded(size: int, align: int) -> int:
    return -(-size // align) * align
