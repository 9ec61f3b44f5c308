# SPDX-License-Identifier: Apache-2.0
"""Concatenations of channels in place: layers write their results into the joined tensor, between its other channels.

A concatenation is a Move with a region for each operand. For an operand that its layer writes in place, the region is
left out, and the result of the layer is a view with a pitch: its rows are parts of the rows of the joined tensor.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from opwest.importers.models.emit.registry import takes_pitch
from opwest.importers.models.ir.movement import RESULT, Move, Region, simplified
from opwest.importers.models.ir.passes import JOINED_CHANNELS
from opwest.importers.models.ir.program import Operation, Program, Value
from opwest.importers.models.lower.regions import region
from opwest.records import dataclass


@dataclass(frozen=True)
class Operand:
    """An operand of a concatenation."""

    first: int
    """Its first channel in the joined tensor."""
    region: Region
    """The copy of the operand alone: its place is its first element."""


def operands_of(move: Operation) -> dict[Value, Operand]:
    """Return the operands of a concatenation of channels that are copied once and unchanged; none for other moves."""
    if not isinstance(move, Move) or len(move.inputs) < 2 or len(move.regions) < 2:
        return {}
    [result] = move.results
    channels = result.shape[-1] if result.shape else 1
    rows, first = result.size // channels, 0
    if rows < 2:
        return {}
    found: dict[Value, Operand] = {}
    repeated: set[Value] = set()
    for one in move.regions:
        if one.source is None or one.source == RESULT:
            return {}
        value = move.inputs[one.source]
        width = value.size // rows
        copied = dataclasses.replace(one, source=0, place=0)
        if one.place != first or not _is_block(copied, rows, width, result.row):
            return {}
        if value in found or one.table is not None or value.shape[-1:] != (width,):
            repeated.add(value)
        found[value] = Operand(first, copied)
        first += width
    return {} if first != channels else {value: one for value, one in found.items() if value not in repeated}


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
    readers: dict[Value, list[Operation]] = {}
    for operation in program.operations:
        for value in operation.results:
            writers.setdefault(value.base, []).append(operation)
        for value in operation.inputs:
            readers.setdefault(value.base, []).append(operation)
    kept = {one.next.base for one in program.states if one.next is not None}
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
                made = _with_result(operation, value, _part(result, value, operands[value].first))
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
    for one in move.regions:
        assert one.source is not None
        value = move.inputs[one.source]
        width = value.size // (result.size // result.shape[-1])
        if value not in values:
            part = _part(result, dataclasses.replace(value, shape=(*result.shape[:-1], width)), first)
            copied = dataclasses.replace(one, source=0, place=0)
            yield Move(move.label, (value,), (part,), (copied,))
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
    regions = [_spread(one, value.shape[-1], part.row) for one in operation.regions]
    if None in regions or any(one.source == RESULT for one in operation.regions):
        return None
    return dataclasses.replace(operation, results=(part,), regions=tuple(one for one in regions if one is not None))


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
