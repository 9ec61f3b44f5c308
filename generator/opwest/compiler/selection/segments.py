# SPDX-License-Identifier: Apache-2.0
"""Choose which layers of a program become blocks in stripes, so that the memory of no step is above a limit.

A program is divided into segments: single operations, and blocks. The bytes that are live in a segment depend on the
tensors that it separates, not on the other segments, so dynamic programming finds the division whose largest segment is
the least, and the fastest one within a limit: exact for these numbers. The memory planner then places the tensors.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.emission.function import Call
from opwest.compiler.ir.program import STRIPES, Operation, Program, Value
from opwest.compiler.ir.stripes import ALIGN, Striped
from opwest.compiler.output.emit import candidates
from opwest.compiler.selection.block import Part, block_of, layout_of, part_of, readings
from opwest.compiler.selection.choose import scratch_bytes
from opwest.compiler.selection.costs import Table

MAX_LAYERS = 16
"""The layers of a block."""
FORMS = ((1, 1), (1, 2), (1, 4), (2, 4), (2, 8), (4, 8), (8, 8))
"""The rows of the result in each call, and the most rows in a call of the layers before."""


@dataclass(frozen=True)
class _Segment:
    """Operations from `first` on, in one of their forms."""

    first: int
    form: tuple[int, int] | None
    """None: one operation as it is."""
    need: int
    """The bytes that are live in it, with scratch memory."""
    cycles: float


class Segments:
    """The divisions of a program for a class of processors."""

    def __init__(
        self,
        program: Program,
        processor: str,
        table: Table,
        caller_memory: bool,
        prefer: Sequence[str] = (),
    ) -> None:
        self._program, self._processor, self._table = program, processor or "portable", table
        self._spans = program.spans
        self._operations = tuple(program.operations)
        self._caller_memory, self._prefer = caller_memory, prefer
        self._parts: dict[tuple[Operation, int], Part] = {}
        self._calls: dict[Operation, Mapping[str, Call]] = {}
        self._blocks: dict[tuple[int, int, tuple[int, int]], Striped | None] = {}

    @cached_property
    def least(self) -> int:
        """The least bytes of the largest segment."""
        best = [0]
        for end in range(1, len(self._operations) + 1):
            need = max(best[-1], min(single.need for single in self._singles[end - 1]))
            for first in self._firsts(end):
                # The result of a block replaces one of its inputs at best.
                result = self._operations[end - 1].results[0]
                if max(best[first], self._live(first, end, None) - result.nbytes) < need:
                    block = self._block(first, end, FORMS[0])
                    if block is not None:
                        need = min(need, max(best[first], self._need(first, end, block)))
            best.append(need)
        return best[-1]

    def within(self, limit: int) -> Program | None:
        """Return the fastest program whose segments have at most `limit` bytes.

        Only layers beyond the limit are in blocks, with others where that saves memory. None without blocks, or if no
        program is within the limit.
        """
        best: list[tuple[float, _Segment | None]] = [(math.inf, None) for _ in range(len(self._operations) + 1)]
        best[0] = (0.0, None)
        for end in range(1, len(best)):
            for candidate in self._segments(end, limit):
                if candidate.need <= limit and best[candidate.first][0] + candidate.cycles < best[end][0]:
                    best[end] = (best[candidate.first][0] + candidate.cycles, candidate)
        place, operations = len(self._operations), []
        while place:
            segment = best[place][1]
            if segment is None:
                return None
            if segment.form is None:
                operations.append(self._operations[segment.first])
            else:
                block = self._block(segment.first, place, segment.form)
                assert block is not None
                operations.append(block)
            place = segment.first
        if not any(isinstance(operation, Striped) for operation in operations):
            return None
        return self._program.derived(STRIPES, operations=operations[::-1])

    def _segments(self, end: int, limit: int) -> Iterator[_Segment]:
        """Yield the segments that end before operation `end`."""
        yield from self._singles[end - 1]
        for first in self._firsts(end):
            if all(
                min(segment.need for segment in self._singles[number]) <= limit for number in range(first, end)
            ):  # none is beyond it
                continue
            for number, form in enumerate(FORMS):
                block = self._block(first, end, form)
                if block is None:
                    break
                need = self._need(first, end, block)
                if number == 0 and need > limit:
                    break
                yield _Segment(first, form, need, self._table.cost(block, "stripes").cycles)

    def _firsts(self, end: int) -> Iterator[int]:
        """Yield the first operations of blocks that end before operation `end`."""
        for first in range(end - 2, max(self._starts[end - 1] - 1, end - 1 - MAX_LAYERS), -1):
            if self._is_closed(first, end):
                yield first

    def _need(self, first: int, end: int, block: Striped) -> int:
        """Return the bytes that are live in a block, with its scratch memory."""
        return self._live(first, end, block) + block.scratch

    @cached_property
    def _starts(self) -> Sequence[int]:
        """By operation: the first one of the run of operations that can be in a block with it."""
        firsts: list[int] = []
        for number, operation in enumerate(self._operations):
            can_join = (
                number > 0 and readings(operation) is not None and readings(self._operations[number - 1]) is not None
            )
            firsts.append(firsts[-1] if can_join else number)
        return firsts

    def _is_closed(self, first: int, end: int) -> bool:
        """Whether only the last result of some operations is read after them, and none is a view."""
        for operation in self._operations[first : end - 1]:
            for value in operation.results:
                if value.role != "intermediate" or value.root is not None or self._spans[value][1] >= end:
                    return False
                if self._spans[value][0] < first or value in self._viewed:
                    return False
        return True

    @cached_property
    def _viewed(self) -> frozenset[Value]:
        """The tensors that have views."""
        values = (value for operation in self._operations for value in (*operation.inputs, *operation.results))
        return frozenset(value.base for value in values if value.root is not None)

    def _live(self, first: int, end: int, block: Striped | None) -> int:
        """Return the bytes of tensors that are live in some operations."""
        inner = {value for operation in self._operations[first : end - 1] for value in operation.results}
        total = 0
        for value, (start, stop) in self._spans.items():
            has_memory = value.role not in ("input", "output") or not self._caller_memory
            if start < end and stop >= first and value not in inner and has_memory:
                total += value.nbytes
        if block is not None:
            total -= self._replaced([block.inputs[number] for number in block.in_place], block.results[0], end - 1)
        return total

    def _replaced(self, inputs: Sequence[Value], result: Value, last: int) -> int:
        """Return the bytes that a result shares with an input that nothing reads later."""
        if result.root is not None or result.role == "state" or result not in self._spans:
            return 0
        sizes = [
            min(value.nbytes, result.nbytes)
            for value in inputs
            if value.root is None and value.role in ("intermediate", "input") and self._spans[value][1] == last
            if not (self._caller_memory and (value.role == "input" or result.role == "output"))
        ]
        return max(sizes, default=0)

    @cached_property
    def _singles(self) -> Sequence[Sequence[_Segment]]:
        return [list(self._single(number)) for number in range(len(self._operations))]

    def _single(self, number: int) -> Iterator[_Segment]:
        """Yield an operation as it is, in the variants that differ in memory."""
        operation = self._operations[number]
        live = self._live(number, number + 1, None)
        for name, call in self._calls_of(operation).items():
            given = [parameter for parameter in call.function.parameters if parameter.direction != "scratch"]
            values = {p.name: v for p, v in zip(given, call.arguments, strict=True) if isinstance(v, Value)}
            replaced = max(
                (
                    self._replaced([values[name] for name in p.in_place if name in values], values[p.name], number)
                    for p in given
                    if p.in_place and p.name in values
                ),
                default=0,
            )
            scratch = scratch_bytes(call)
            cycles = self._table.cost(operation, name).cycles
            yield _Segment(number, None, live - replaced + scratch, cycles)

    def _calls_of(self, operation: Operation) -> Mapping[str, Call]:
        """Return the variants of an operation; a preferred one alone."""
        if operation not in self._calls:
            calls = candidates(operation, self._processor)
            wanted = next((name for name in self._prefer if name in calls), None)
            self._calls[operation] = calls if wanted is None else {wanted: calls[wanted]}
        return self._calls[operation]

    def _block(self, first: int, end: int, form: tuple[int, int]) -> Striped | None:
        key = (first, end, form)
        if key not in self._blocks:
            operations = self._operations[first:end]
            layout = layout_of(operations, *form)
            self._blocks[key] = None if layout is None else block_of(operations, layout, self._part, self._processor)
        return self._blocks[key]

    def _part(self, operation: Operation, count: int) -> Part:
        """Return a layer for some rows, in the variant with the least cycles."""
        key = (operation, count)
        if key not in self._parts:
            part = part_of(operation, count)
            calls = {
                name: call
                for name, call in self._calls_of(part).items()
                if not (call.function.check or call.function.external or call.function.has_status)
            }
            name = min(calls, key=lambda variant: self._table.cost(part, variant).cycles)
            self._parts[key] = Part(part, name, -(-scratch_bytes(calls[name]) // ALIGN) * ALIGN)
        return self._parts[key]
