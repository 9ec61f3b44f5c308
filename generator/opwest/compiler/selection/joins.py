# SPDX-License-Identifier: Apache-2.0
"""Which operands of concatenations of channels their layers write in place: all that can, or those that save time.

A layer that only a slow variant writes in place costs more than a copy of its results. A tensor that is written in
place is live from its first layer on: where that needs more memory, nothing is.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np

from opwest.compiler.ir import labels
from opwest.compiler.ir.movement import RESULT, Move, Region, simplified
from opwest.compiler.ir.program import JOINED_CHANNELS, Operation, Program, Value
from opwest.compiler.lowering.builder import region
from opwest.compiler.output.emit import candidates, takes_pitch
from opwest.compiler.selection.choose import scratch_bytes
from opwest.compiler.selection.costs import Table


def operands_of(move: Operation) -> dict[Value, int]:
    """Return the operands of a concatenation of channels that are copied once and unchanged; none for other moves.

    The numbers are those of their first channels in the joined tensor.
    """
    if not isinstance(move, Move) or len(move.inputs) < 2 or len(move.regions) < 2:
        return {}
    [result] = move.results
    channels = result.shape[-1] if result.shape else 1
    rows, first = result.size // channels, 0
    if rows < 2:
        return {}
    operands: dict[Value, int] = {}
    repeated: set[Value] = set()
    for copy in move.regions:
        if copy.source is None or copy.source == RESULT:
            return {}
        value = move.inputs[copy.source]
        width = value.size // rows
        copied = dataclasses.replace(copy, source=0, place=0)
        if copy.place != first or not _is_block(copied, rows, width, result.row):
            return {}
        if value in operands or copy.table is not None or value.shape[-1:] != (width,):
            repeated.add(value)
        operands[value] = first
        first += width
    return {} if first != channels else {value: at for value, at in operands.items() if value not in repeated}


def _is_block(one: Region, rows: int, width: int, row: int) -> bool:
    """Whether a region copies rows of `width` elements to the start of rows that are `row` elements apart."""
    block = region(0, (rows, width), (width, 1), (row, 1), table=one.table)
    return simplified(one) == simplified(block)


def in_place(program: Program, move: Operation) -> list[Value]:
    """Return the operands of a concatenation whose layers can write them in place."""
    operands = operands_of(move)
    if not operands:
        return []
    writers: dict[Value, list[Operation]] = {}
    for operation in program.operations:
        for value in operation.results:
            writers.setdefault(value.base, []).append(operation)
    readers, kept = program.readers, program.new_contents
    return [
        value
        for value in operands
        if value.role == "intermediate"
        and value.root is None
        and value not in kept
        and readers[value] == [move]
        and len(writers.get(value, ())) == 1
        and _with_result(writers[value][0], value, value) is not None
    ]


def write_in_place(program: Program, move: Operation, values: Sequence[Value]) -> Program:
    """Return a program whose layers write some operands of a concatenation in place; the others are copied."""
    assert isinstance(move, Move)
    [result] = move.results
    operands = operands_of(move)
    replaced: dict[Operation, list[Operation]] = {}
    for operation in program.operations:
        for value in operation.results:
            if value in values:
                made = _with_result(operation, value, _part(result, value, operands[value]))
                assert made is not None
                replaced[operation] = [made]
    replaced[move] = list(_copies(move, values))
    # A tensor without memory of its own cannot be compared.
    return program.derived(
        JOINED_CHANNELS,
        operations=[new for old in program.operations for new in replaced.get(old, [old])],
        tensors={value: tensor for value, tensor in program.tensors.items() if value not in values},
    )


def _copies(move: Move, values: Sequence[Value]) -> Iterator[Move]:
    """Yield the copies of the other operands, each to its part of the result."""
    [result] = move.results
    first = 0
    for copy in move.regions:
        assert copy.source is not None
        value = move.inputs[copy.source]
        width = value.size // (result.size // result.shape[-1])
        if value not in values:
            part = _part(result, dataclasses.replace(value, shape=(*result.shape[:-1], width)), first)
            copied = dataclasses.replace(copy, source=0, place=0)
            yield Move(labels.with_part(move.label, f"copy of operand {copy.source}"), (value,), (part,), (copied,))
        first += width


def _part(result: Value, value: Value, first: int) -> Value:
    """Return the channels of a joined tensor, from `first` on, that are a value of the same rows."""
    root, offset = (result, 0) if result.root is None else (result.root, result.offset)
    return dataclasses.replace(
        value, role="intermediate", dtype=result.dtype, root=root, offset=offset + first, pitch=result.row, content=None
    )


def _with_result(operation: Operation, value: Value, part: Value) -> Operation | None:
    """Return an operation that writes a part of a joined tensor instead of a value; None if it cannot."""
    if operation.results != (value,) or not takes_pitch(operation) or not value.shape:
        return None
    if not isinstance(operation, Move):
        return dataclasses.replace(operation, results=(part,))
    spread = [_spread(copy, value.shape[-1], part.row) for copy in operation.regions]
    regions = tuple(copy for copy in spread if copy is not None)
    if len(regions) < len(spread) or any(copy.source == RESULT for copy in operation.regions):
        return None
    return dataclasses.replace(operation, results=(part,), regions=regions)


def _spread(one: Region, channels: int, row: int) -> Region | None:
    """Return a region for rows that are `row` elements apart instead of `channels`; None if a loop leaves its row."""
    line, at = divmod(one.place, channels)
    axes, last = [], at
    for axis in one.axes:
        step = axis.result
        if step % channels == 0:
            step = step // channels * row
        elif step > 0:
            last += (axis.count - 1) * step
        else:
            return None
        axes.append(dataclasses.replace(axis, result=step))
    return None if last >= channels else dataclasses.replace(one, axes=tuple(axes), place=line * row + at)


class Needs:
    """The memory that the fastest variants require on a class of processors."""

    def __init__(self, processor: str = "", table: Table | None = None) -> None:
        """Without a table, the portable variants are meant, and a copy is never cheaper."""
        self._processor = processor
        self._table = table
        self._known: dict[Operation, tuple[float, int]] = {}

    def of(self, operation: Operation) -> tuple[float, int]:
        """Return the cycles and the bytes of scratch memory."""
        if operation not in self._known:
            calls = candidates(operation, self._processor)
            table = self._table
            self._known[operation] = min(
                (0.0 if table is None else table.cost(operation, name).cycles, scratch_bytes(call))
                for name, call in calls.items()
            )
        return self._known[operation]

    def is_faster(self, after: Program, before: Program) -> bool:
        """Whether a program takes less time than another one that has most of its operations."""
        if self._table is None:
            return True
        old, new = set(before.operations), set(after.operations)
        gone, added = (sum(self.of(operation)[0] for operation in some) for some in (old - new, new - old))
        return added < gone


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
        unseen = (operation for operation in reversed(program.operations) if operation not in seen)
        move = next((operation for operation in unseen if in_place(program, operation)), None)
        if move is None:
            return program
        seen.add(move)
        each = ((value, write_in_place(program, move, [value])) for value in in_place(program, move))
        values = [value for value, joined in each if needs.is_faster(joined, program)]
        if not values:
            continue
        made = write_in_place(program, move, values)
        most = live_bytes(program, needs, caller_memory) if most is None else most
        needed = live_bytes(made, needs, caller_memory)
        if needed <= most:
            program, most = made, needed


def live_bytes(program: Program, needs: Needs, caller_memory: bool) -> int:
    """Return the greatest number of bytes of tensors that are live in one operation, with its scratch memory."""
    changes = np.zeros(max(len(program.operations) - 1, 0) + 2, np.int64)
    for value, (first, end) in program.spans.items():
        if value.role == "intermediate" or (value.role in ("input", "output") and not caller_memory):
            changes[first] += value.nbytes
            changes[end + 1] -= value.nbytes
    live = changes.cumsum()
    return max(
        (int(live[number]) + needs.of(operation)[1] for number, operation in enumerate(program.operations)), default=0
    )
