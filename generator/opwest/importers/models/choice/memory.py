# SPDX-License-Identifier: Apache-2.0
"""Choose variants so that the planned workspace has at most a number of bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from opwest.importers.models.choice.arena import arena
from opwest.importers.models.choice.choose import Choice
from opwest.importers.models.emit.emit import emit_program
from opwest.importers.models.ir.program import Operation, Program

ROUNDS = 12
"""The plans of a search: each one lowers the limit of scratch memory of the layers at the peak."""
Limits = Mapping[Operation, int]


def arena_of(program: Program, choice: Choice, caller_memory: bool) -> int:
    """Return the bytes of the planned workspace of a choice."""
    return arena(program, emit_program(program, "", choice.variants), caller_memory).plan.size


def within(
    program: Program, choose: Callable[[Limits | None], Choice | None], limit: int, caller_memory: bool
) -> Choice | None:
    """Return the best choice that the search finds whose plan has at most `limit` bytes; None without one.

    `choose` returns the best choice for limits of the scratch memory of operations. Each choice is planned. An
    operation gets what the limit leaves beside the tensors that are live with it; where a plan has gaps, less.
    """
    choice = choose(None)
    limits: dict[Operation, int] = {}
    for _ in range(ROUNDS):
        if choice is None:
            return None
        planned = arena(program, emit_program(program, "", choice.variants), caller_memory)
        if planned.plan.size <= limit:
            return choice
        needs = [live + row.scratch for live, row in zip(planned.live, choice.rows, strict=True)]
        if max(needs) > limit:
            for live, row in zip(planned.live, choice.rows, strict=True):
                limits[row.operation] = min(limits.get(row.operation, limit), limit - live)
        else:
            largest = choice.rows[needs.index(max(needs))]
            limits[largest.operation] = largest.scratch - 1
        choice = choose(limits)
    return None
