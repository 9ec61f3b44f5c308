# SPDX-License-Identifier: Apache-2.0
"""Find results that may reuse an argument's memory, as declared by operators and allowed by the schedule."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from opwest.model.types.model import Model, Step
from opwest.plan.problem import Block, Share
from opwest.plan.schedule import Schedule, copied_at_end

SHARED = "+"
"""Separates the names of buffers that share memory, in the ids of tables."""


def find_shares(model: Model, schedule: Schedule) -> tuple[Share, ...]:
    """Return the allowed sharing; each tensor gives and takes memory at most once."""
    touched: dict[str, list[int]] = {}
    for step in schedule.steps:
        for binding in step.bindings:
            if binding.role == "buffer":
                touched.setdefault(binding.name, []).append(step.index)
    waited = {i: before for before, syncs in enumerate(schedule.syncs) for sync in syncs for i in sync.steps}
    kept = copied_at_end(model)
    passing = {b.name for b in model.buffers if b.role in ("intermediate", "input")} - kept
    lasting = {b.name for b in model.buffers if b.role == "state"}
    found: dict[str, Share] = {}
    takers: set[str] = set()
    for step in schedule.steps:
        for share in _declared(step):
            if share.taken not in passing or share.taken in found or share.taker in takers | lasting:
                continue
            ended = all(_over(schedule.steps[i], step, waited) for i in touched[share.taken])
            if ended and touched[share.taker][0] == step.index == touched[share.taken][-1]:
                found[share.taken] = share
                takers.add(share.taker)
    return tuple(found.values())


def _declared(step: Step) -> Iterator[Share]:
    """Yield the sharing that a step's operator allows.

    `in_place` must list all arguments with the tensor; it does not permit views, which begin at other addresses.
    """
    given = list(zip(step.operator.args, step.bindings, strict=True))
    for argument, result in given:
        for reading, taken in given:
            if reading.name not in argument.in_place or (argument.direction, reading.direction) != ("out", "in"):
                continue
            same = [(a, b) for a, b in given if (b.role, b.name) == (taken.role, taken.name)]
            named = all(a.name in argument.in_place and b.view is None for a, b in same)
            whole = result.view is None and result.name != taken.name
            if named and whole and taken.role == result.role == "buffer":
                yield Share(taken.name, result.name, step.index)


def _over(earlier: Step, step: Step, waited: Mapping[int, int]) -> bool:
    """Whether an earlier step has ended when `step` begins, or is before it in its device's queue."""
    return waited.get(earlier.index, 0) <= step.index or earlier.device == step.device


def alternatives(blocks: Sequence[Block], shares: Sequence[Share]) -> list[tuple[Share, ...]]:
    """Return the sharing to plan with: all that is allowed among the blocks, between equal sizes, none.

    Sharing can increase the size if a small result extends the lifetime of a large argument.
    """
    sizes = {block.name: block.size for block in blocks}
    local = [share for share in shares if share.taken in sizes and share.taker in sizes]
    equal = [share for share in local if sizes[share.taken] == sizes[share.taker]]
    return sorted({tuple(local), tuple(equal), ()}, key=len, reverse=True)


def merged(blocks: Sequence[Block], shares: Sequence[Share]) -> tuple[list[Block], dict[str, str]]:
    """Return the blocks with sharing blocks merged, and for each block the name of its merged block."""
    owner = {block.name: block.name for block in blocks}
    for share in sorted(shares, key=lambda s: s.step):
        owner[share.taker] = owner[share.taken]
    whole: dict[str, Block] = {}
    for block in blocks:
        name = owner[block.name]
        known = whole.get(name, replace(block, name=name))
        whole[name] = Block(
            name,
            max(known.size, block.size),
            max(known.align, block.align),
            min(known.first, block.first),
            max(known.last, block.last),
        )
    return list(whole.values()), owner
