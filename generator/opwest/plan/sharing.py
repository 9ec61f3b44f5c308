# SPDX-License-Identifier: Apache-2.0
"""Find results that may reuse an argument's memory, as declared by operators and allowed by the schedule."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from opwest.model.types.model import Model, Step
from opwest.plan.problem import Block, Share
from opwest.plan.schedule import Schedule, copied_at_end
from opwest.plan.uses import Use, allowed_shares

SHARED = "+"
"""Separates the names of buffers that share memory, in the ids of tables."""


def find_shares(model: Model, schedule: Schedule) -> tuple[Share, ...]:
    """Return the allowed sharing; each tensor gives and takes memory at most once."""
    waited = {i: before for before, syncs in enumerate(schedule.syncs) for sync in syncs for i in sync.steps}

    def has_ended(earlier: int, step: int) -> bool:
        """Whether an earlier step has ended when another one begins, or is before it in its device's queue."""
        return waited.get(earlier, 0) <= step or schedule.steps[earlier].device == schedule.steps[step].device

    roles = {buffer.name: buffer.role for buffer in model.buffers}
    uses = [list(_uses(step)) for step in schedule.steps]
    return allowed_shares(uses, roles, copied_at_end(model), has_ended)


def _uses(step: Step) -> Iterator[Use]:
    for argument, binding in zip(step.operator.args, step.bindings, strict=True):
        if binding.role == "buffer":
            view = binding.view is not None
            yield Use(binding.name, argument.name, argument.direction, argument.in_place, view)


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
        known = whole.get(name)
        if known is None:
            whole[name] = block if block.name == name else replace(block, name=name)
            continue
        first, begin = min((known.first, known.begin), (block.first, block.begin))
        last, end = max((known.last, known.end), (block.last, block.end))
        size, align = max(known.size, block.size), max(known.align, block.align)
        whole[name] = Block(name, size, align, first, last, begin, end)
    return list(whole.values()), owner
