# SPDX-License-Identifier: Apache-2.0
"""Which operands of concatenations of channels their layers write in place: all that can, or those that save time.

A layer that only a slow variant writes in place costs more than a copy of its results. A tensor that is written in
place is live from its first layer on: where that needs more memory, nothing is.
"""

from __future__ import annotations

import numpy as np

from opwest.importers.models.choice.choose import scratch_bytes
from opwest.importers.models.choice.joined_channels import in_place, write_in_place
from opwest.importers.models.choice.table import Table
from opwest.importers.models.emit.registry import candidates
from opwest.importers.models.ir.program import Operation, Program, Value


class Needs:
    """What the fastest variants of operations need on a class of processors."""

    def __init__(self, processor: str = "", table: Table | None = None) -> None:
        """Without a table, the portable variants are meant, and a copy is never cheaper."""
        self._processor = processor
        self._table = table
        self._known: dict[Operation, tuple[float, int]] = {}

    def _of(self, operation: Operation) -> tuple[float, int]:
        """Return the cycles and the bytes of scratch memory."""
        if operation not in self._known:
            found = candidates(operation, self._processor)
            table = self._table
            self._known[operation] = min(
                (0.0 if table is None else table.cost(operation, name).cycles, scratch_bytes(call))
                for name, call in found.items()
            )
        return self._known[operation]

    def scratch(self, operation: Operation) -> int:
        """Return the bytes of scratch memory."""
        return self._of(operation)[1]

    def is_faster(self, after: Program, before: Program) -> bool:
        """Whether a program takes less time than another one that has most of its operations."""
        if self._table is None:
            return True
        old, new = set(before.operations), set(after.operations)
        return sum(self._of(one)[0] for one in new - old) < sum(self._of(one)[0] for one in old - new)


def joined_in_place(program: Program, needs: Needs | None = None, *, caller_memory: bool = True) -> Program:
    """Return the program with the operands of concatenations in place that need less time and no more memory.

    `caller_memory`: whether the caller provides the memory of inputs and outputs. If nothing is in place, the result is
    the program itself.
    """
    needs = needs or Needs()
    seen: set[Operation] = set()
    most = None
    while True:
        # The last one first: a concatenation can be an operand of a later one.
        move = next((one for one in reversed(program.operations) if one not in seen and in_place(program, one)), None)
        if move is None:
            return program
        seen.add(move)
        each = ((value, write_in_place(program, move, [value])) for value in in_place(program, move))
        values = [value for value, one in each if needs.is_faster(one, program)]
        if not values:
            continue
        made = write_in_place(program, move, values)
        most = live_bytes(program, needs, caller_memory) if most is None else most
        needed = live_bytes(made, needs, caller_memory)
        if needed <= most:
            program, most = made, needed


def live_bytes(program: Program, needs: Needs, caller_memory: bool) -> int:
    """Return the greatest number of bytes of tensors that are live in one operation, with its scratch memory."""
    last = max(len(program.operations) - 1, 0)
    spans: dict[Value, tuple[int, int]] = {}
    for number, operation in enumerate(program.operations):
        for value in (*operation.inputs, *operation.results):
            spans[value.base] = spans.get(value.base, (number, number))[0], number
    kept = {one.next.base for one in program.states if one.next is not None}
    changes = np.zeros(last + 2, np.int64)
    for value, (first, end) in spans.items():
        if value.role == "intermediate" or (value.role in ("input", "output") and not caller_memory):
            size = value.size * np.dtype(value.dtype).itemsize
            changes[0 if value.role == "input" else first] += size
            changes[(last if value.role == "output" or value in kept else end) + 1] -= size
    live = changes.cumsum()
    return max((int(live[number]) + needs.scratch(one) for number, one in enumerate(program.operations)), default=0)
