# SPDX-License-Identifier: Apache-2.0
"""Which operands of concatenations of channels their layers write in place: all that can, or those that save time.

A layer that only a slow variant writes in place costs more than a copy of its results.
"""

from __future__ import annotations

from collections.abc import Callable

from opwest.importers.models.choice.joined_channels import in_place, write_in_place
from opwest.importers.models.choice.table import Table
from opwest.importers.models.emit.registry import candidates
from opwest.importers.models.ir.program import Operation, Program

Cost = Callable[[Operation], float]


def joined_in_place(program: Program, cost: Cost | None = None) -> Program:
    """Return the program with concatenations in place; with costs, only the operands that make it cheaper."""
    seen: set[Operation] = set()
    while True:
        # The last one first: a concatenation can be an operand of a later one.
        move = next((one for one in reversed(program.operations) if one not in seen and in_place(program, one)), None)
        if move is None:
            return program
        seen.add(move)
        values = in_place(program, move)
        if cost is not None:
            given = cost
            values = [value for value in values if _gain(program, write_in_place(program, move, [value]), given) > 0]
        if values:
            program = write_in_place(program, move, values)


def _gain(before: Program, after: Program, cost: Cost) -> float:
    """Return what a program costs more than another one that has most of its operations."""
    old, new = set(before.operations), set(after.operations)
    return sum(map(cost, old - new)) - sum(map(cost, new - old))


def least_cycles(processor: str, table: Table) -> Cost:
    """Return the function from an operation to the cycles of its fastest variant on a class of processors."""
    known: dict[Operation, float] = {}

    def cost(operation: Operation) -> float:
        if operation not in known:
            known[operation] = min(table.cost(operation, name).cycles for name in candidates(operation, processor))
        return known[operation]

    return cost
