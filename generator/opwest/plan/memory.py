# SPDX-License-Identifier: Apache-2.0
"""Plan the memory of a model: a pool and a verified offset for every buffer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Literal

from opwest.base.diagnostics import Diagnostics
from opwest.base.frozen_dataclass import dataclass
from opwest.model.types.model import Model, Pool
from opwest.plan import greedy
from opwest.plan.fixed import block_of, plan_fixed
from opwest.plan.problem import Block, PoolPlan, Share, peak, round_up
from opwest.plan.schedule import Schedule, plan_schedule
from opwest.plan.sharing import alternatives, find_shares, merged
from opwest.plan.verify import verify

Planner = Literal["greedy", "search"]


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
    start = round_up(shared.size, own.align)
    offsets = dict(shared.offsets) | {name: start + offset for name, offset in own.offsets.items()}
    return PoolPlan(offsets, start + own.size, max(shared.align, own.align), shared.lower_bound + own.lower_bound)


def frames_of(blocks: Sequence[Block], plan: PoolPlan, shared: frozenset[str]) -> Frames:
    """Return the memory of two frames for a plan of `joined`."""
    own = [block for block in blocks if block.name not in shared]
    if not own:
        return Frames(0, plan.size)
    start = min(plan.offsets[block.name] for block in own)
    stride = round_up(plan.size - start, max(block.align for block in own))
    return Frames(stride, plan.size + stride)


def verify_frames(
    blocks: Sequence[Block], plan: PoolPlan, frames: Frames, shared: frozenset[str], shares: Sequence[Share]
) -> None:
    """Raise PlanError unless both frames are valid plans, and no tensor of one overlaps any of the other.

    Frames begin and end at any time, so the whole extent of each must be apart from the other one.
    """
    last = max((block.last for block in blocks), default=0)
    extents = [Block(block.name, block.size, block.align, 0, last) for block in blocks if block.name in shared]
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


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """The schedule, and the plans of all non-empty pools, by pool name in manifest order."""

    schedule: Schedule
    pools: Mapping[str, PoolPlan]
    homes: Mapping[str, str]
    """The pool of every buffer."""
    frames: Mapping[str, Frames] = field(default_factory=dict)
    """The memory of two frames by pool, if the model streams."""

    def place(self, buffer: str) -> tuple[str, int]:
        """Return the pool of a buffer and its offset there, bytes."""
        pool = self.homes[buffer]
        return pool, self.pools[pool].offsets[buffer]


def plan_model(model: Model, faults: Diagnostics) -> tuple[Model, MemoryPlan]:
    """Return a model with its steps in the order in which they run, and its plan; report pools that are too small."""
    schedule = plan_schedule(model)
    ordered = replace(model, steps=schedule.steps)
    return ordered, plan_memory(ordered, schedule, faults)


def plan_memory(model: Model, schedule: Schedule, faults: Diagnostics) -> MemoryPlan:
    """Return a verified plan; report every pool that is too small, and every fault of offsets that are given.

    A planner places a buffer in its first pool; if the pool overflows, the largest buffers with further pools move on.
    """
    planner = model.memory_planner
    if planner == "fixed":
        return _with_views(model, schedule, *plan_fixed(model, schedule, faults), {})
    choices = {buffer.name: list(buffer.pools) for buffer in model.planned}
    shares = find_shares(model, schedule)
    plans: dict[str, PoolPlan] = {}
    frames: dict[str, Frames] = {}
    for pool in model.pools:
        blocks, plan, both = _fill(pool, model, choices, schedule, shares, planner)
        if not blocks:
            continue
        verify(blocks, plan.offsets, plan.size, shares)
        plans[pool.name] = plan
        if both is not None:
            verify_frames(blocks, plan, both, shared_by_frames(model), shares)
            frames[pool.name] = both
        if pool.size is not None and _required(plan, both) > pool.size:
            _report_overflow(pool, plan, both, blocks, faults)
    homes = {name: left[0] for name, left in choices.items()}
    return _with_views(model, schedule, plans, homes, frames)


def _with_views(
    model: Model,
    schedule: Schedule,
    plans: Mapping[str, PoolPlan],
    homes: Mapping[str, str],
    frames: Mapping[str, Frames],
) -> MemoryPlan:
    """Return a plan with the places of the buffers that others contain."""
    plans, homes = dict(plans), dict(homes)
    for buffer in model.buffers:
        if buffer.inside is not None and buffer.inside[0] in homes:
            arena, offset = buffer.inside
            plan = plans[homes[arena]]
            homes[buffer.name] = homes[arena]
            offsets = {**plan.offsets, buffer.name: plan.offsets[arena] + offset}
            plans[homes[arena]] = replace(plan, offsets=offsets)
    return MemoryPlan(schedule, plans, homes, frames)


def _fill(
    pool: Pool,
    model: Model,
    choices: dict[str, list[str]],
    schedule: Schedule,
    shares: Sequence[Share],
    planner: Planner,
) -> tuple[list[Block], PoolPlan, Frames | None]:
    """Plan the buffers of a pool; while it overflows, move buffers with further pools to the next one."""
    shared = shared_by_frames(model)
    while True:
        blocks = [block_of(pool, b, schedule) for b in model.planned if choices[b.name][0] == pool.name]
        plan, frames = plan_blocks(blocks, shares, planner), None
        if model.streams:
            parts = ([b for b in blocks if (b.name in shared) == lasting] for lasting in (True, False))
            plan = joined(*(plan_blocks(part, shares, planner) for part in parts))
            frames = frames_of(blocks, plan, shared)
        if pool.size is None or _required(plan, frames) <= pool.size:
            return blocks, plan, frames
        spare = _required(plan, frames) - plan.size
        above = [b for b in blocks if plan.offsets[b.name] + b.size + spare > pool.size]
        movable = [b for b in above if len(choices[b.name]) > 1] or [
            b for b in peak(blocks).blocks if len(choices[b.name]) > 1
        ]
        if not movable:
            return blocks, plan, frames
        choices[max(movable, key=lambda b: (b.size, b.name)).name].pop(0)


def _required(plan: PoolPlan, frames: Frames | None) -> int:
    """Return the bytes that a pool must have."""
    return plan.size if frames is None else frames.size


def plan_pool(blocks: Sequence[Block], planner: Planner) -> PoolPlan:
    """Return a plan for the blocks of one pool. It depends only on the blocks."""
    if planner == "greedy":
        return greedy.plan_pool(blocks)

    from opwest.plan.search import search_pool  # numpy is slow to import

    return search_pool(blocks)


def plan_blocks(blocks: Sequence[Block], shares: Sequence[Share], planner: Planner) -> PoolPlan:
    """Return the best plan of all alternatives of sharing."""
    plans = []
    for chosen in alternatives(blocks, shares):
        whole, owner = merged(blocks, chosen)
        plan = plan_pool(whole, planner)
        plans.append(replace(plan, offsets={block.name: plan.offsets[owner[block.name]] for block in blocks}))
    bound = min(plan.lower_bound for plan in plans)
    return replace(min(plans, key=lambda plan: plan.size), lower_bound=bound)


def _report_overflow(
    pool: Pool, plan: PoolPlan, frames: Frames | None, blocks: list[Block], faults: Diagnostics
) -> None:
    required = _required(plan, frames)
    most = peak(blocks)
    alive = ", ".join(f"{b.name} ({b.size})" for b in sorted(most.blocks, key=lambda b: -b.size))
    hint = "increase the size of the pool, or move a tensor to another pool"
    if plan.size > plan.lower_bound:
        hint += f" (lower bound of all plans: {plan.lower_bound} bytes)"
    faults.error(
        f"pool {pool.name!r} is too small{' for two frames' if frames else ''}: {required} bytes required, "
        f"{pool.size} available; "
        f"live at the peak, step {most.step}: {alive}",
        pool.size_location,
        expected=f"size: {required} or more",
        hint=hint,
    )
