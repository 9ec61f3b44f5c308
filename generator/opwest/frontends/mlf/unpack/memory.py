# SPDX-License-Identifier: Apache-2.0
"""The memory that an operator accesses: its arguments, and the parts of TVM's workspace and constants that it uses."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import field
from typing import Any, Literal

from opwest.base.frozen_dataclass import dataclass
from opwest.frontends.mlf.unpack.expressions import Expression, Grid, Loop, interval, loops_of, points
from opwest.frontends.mlf.unpack.functions import NotUnpackedError, Tree

Role = Literal["tensor", "workspace", "constants", "device"]
Kind = Literal["argument", "pool", "part", "local"]
Guard = tuple[Expression, bool]
"""A condition and the value that it has where an access happens."""

_POINTS = 1 << 22
"""The maximum number of points of a grid: 32 MiB of indices."""
_ALL_POINTS = 1 << 27
"""The maximum for all grids of an import, a few seconds."""


@dataclass(frozen=True)
class Access:
    """Bytes from `offset` to before `offset + size`. `certain`: it happens at all points of its loops and guards."""

    offset: Expression
    size: int
    writes: bool
    guards: tuple[Guard, ...]
    certain: bool


@dataclass
class Base:
    """A range of memory, and its accesses in one operator."""

    name: str
    kind: Kind
    accesses: dict[Any, Access] = field(default_factory=dict)
    escapes: set[int] = field(default_factory=set)
    """Numbers of the calls that receive a pointer to it: they can access any of its bytes."""
    sized: dict[int, int] = field(default_factory=dict)
    """The size in bytes that a call receives with the pointer, by the number of the call."""
    declared: int = 0
    """The size that the code declares to a library, bytes."""
    lent: set[int] = field(default_factory=set)
    """Numbers of the calls that receive it with a declared size."""
    parts: dict[int, Base] = field(default_factory=dict)
    """For a pool: the memory at its constant offsets."""
    label: str = ""
    """The variable that the code gives it."""
    phases: tuple[int, int] | None = None
    """The first and the last statement of the operator that can access it; None if no statement does."""

    def touch(self, first: int, last: int) -> None:
        """Record that statements can access it."""
        known = self.phases or (first, last)
        self.phases = min(known[0], first), max(known[1], last)

    def part(self, offset: int) -> Base:
        """Return the memory at an offset of a pool."""
        return self.parts.setdefault(offset, Base(f"{self.name}[{offset}]", "part"))


@dataclass(frozen=True)
class Extent:
    """The bytes that an operator accesses, from the start; None if unknown."""

    size: int | None
    reads: bool
    writes: bool
    escapes: frozenset[int]
    reads_first: bool
    """The first access in the text reads."""
    read: int | None
    """The end of the bytes that it reads."""


@dataclass
class Budget:
    """The remaining points of the grids of an import."""

    points: int = _ALL_POINTS

    def take(self, count: int) -> bool:
        """Return whether a grid of this size is affordable."""
        if count > _POINTS or count > self.points:
            return False
        self.points -= count
        return True


def extent_of(base: Base, budget: Budget) -> Extent:
    """Return the bytes that an operator can access. Raises NotUnpackedError if they can be before the start."""
    sizes: list[int | None] = [base.declared, *(base.sized.get(number) for number in base.escapes)]
    reading = list(sizes)
    for access in base.accesses.values():
        bounds = _range(access, budget)
        if bounds is not None and bounds[0] < 0:
            raise NotUnpackedError(f"an operator can access memory before the start of '{base.name}'")
        (sizes if access.writes else reading).append(bounds[1] if bounds is not None else None)
    read, written = _largest(reading), _largest(sizes)
    size = None if read is None or written is None else max(read, written)
    reads = any(not a.writes for a in base.accesses.values())
    writes = any(a.writes for a in base.accesses.values())
    first = next(iter(base.accesses.values()), None)
    reads_first = first is not None and not first.writes
    declared = bool(base.declared)
    return Extent(size, reads or declared, writes or declared, frozenset(base.escapes), reads_first, read)


def _largest(sizes: Sequence[int | None]) -> int | None:
    known = [size for size in sizes if size is not None]
    return max(known) if len(known) == len(sizes) else None


def _range(access: Access, budget: Budget) -> tuple[int, int] | None:
    """Return the start and the end of the bytes of an access; None if unknown."""
    bounds = interval(access.offset)
    own = {id(loop) for loop in loops_of([access.offset])}
    guards = [g for g in access.guards if own & {id(loop) for loop in loops_of([g[0]])}]
    if guards:
        loops = loops_of([access.offset, *(g[0] for g in guards)])
        offsets = _offsets(access, guards, loops) if budget.take(points(loops)) else None
        if offsets is not None:
            chosen = offsets[0]
            return (int(chosen.min()), int(chosen.max()) + access.size) if chosen.size else (0, 0)
    return None if bounds is None else (bounds[0], bounds[1] + access.size)


def _offsets(access: Access, guards: Sequence[Guard], loops: list[Loop]) -> tuple[Any, bool] | None:
    """Return the offsets where all guards can hold, and whether the guards are exact; None for an unknown offset."""
    grid = Grid(loops)
    np, values = grid.np, grid.values(access.offset)
    if values is None:
        return None
    mask, exact = np.bool_(True), True
    for condition, true in guards:
        holds, is_known = grid.condition(condition, true)
        mask, exact = mask & holds, exact and is_known
    return np.broadcast_to(values, grid.shape)[np.broadcast_to(mask, grid.shape)], exact


def surely_written(base: Base, budget: Budget) -> int:
    """Return the number of bytes from the start that an operator certainly writes."""
    import numpy as np

    whole = np.zeros(0, np.bool_)
    for access in base.accesses.values():
        if not access.writes or not access.certain:
            continue
        loops = loops_of([access.offset, *(g[0] for g in access.guards)])
        if not all(loop.exact for loop in loops) or not budget.take(points(loops)):
            continue
        offsets = _offsets(access, access.guards, loops)
        if offsets is None or not offsets[1]:
            continue
        chosen = offsets[0]
        if not chosen.size or chosen.min() < 0 or chosen.max() > _POINTS * 16:
            continue
        end = int(chosen.max()) + access.size
        if end > whole.size:
            whole = np.concatenate([whole, np.zeros(end - whole.size, np.bool_)])
        for byte in range(access.size):
            whole[chosen + byte] = True
    missing = np.flatnonzero(~whole)
    return int(missing[0]) if missing.size else int(whole.size)


@dataclass(frozen=True)
class Pointer:
    """An address: a base, a byte offset, and the size of an element, 0 for void."""

    base: Base
    offset: Expression
    size: int


@dataclass(frozen=True)
class Lent:
    """A structure that passes memory with its size to a library."""

    base: Base


@dataclass(frozen=True)
class Shape:
    """A structure that passes the number of elements of the next argument to a library."""

    elements: int


Value = Any
"""Pointer | Expression"""


@dataclass(frozen=True)
class Offset:
    """A literal offset in a pool: its position in the text of the function, bytes, and that of the pool's name."""

    parameter: int
    start: int
    end: int
    offset: int
    name: tuple[int, int]


@dataclass(frozen=True)
class Allocation:
    """Memory that an operator allocates: its size and its offset in the operator's stack, bytes.

    `call` is the position of the call in the text of the function, `freed` those of the statements that free it.
    """

    base: Base
    size: int
    offset: int
    call: tuple[int, int]
    freed: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Operator:
    """What an operator does with its parameters, in order."""

    tree: Tree
    roles: Sequence[Role]
    bases: tuple[Base, ...]
    literals: tuple[Offset, ...]
    allocations: tuple[Allocation, ...]
    """The memory that it allocates, if it becomes arguments."""
    in_order: bool
    """Whether no statement of the body runs after a later one, and no two pointers are declared as separate."""

    def phases(self) -> dict[int, tuple[int, int]]:
        """Return the phases of tensors and parts, by the identity of their base; empty if there is only one phase.

        A phase is the longest range of statements in which the same memory is in use. Memory with unknown statements
        is in use in all phases.
        """
        used = [b for b, role in zip(self.bases, self.roles, strict=True) if role == "tensor"]
        used += [allocation.base for allocation in self.allocations]
        used += [p for b, r in zip(self.bases, self.roles, strict=True) if r == "workspace" for p in b.parts.values()]
        spans = {id(base): base.phases for base in used if base.phases is not None}
        # Ranges that end before another one begins are nested: their numbers identify them, and number the phases.
        starts, ends = (sorted(span[at] for span in spans.values()) for at in (0, 1))
        before = {name: bisect_left(ends, first) for name, (first, _) in spans.items()}
        after = {name: len(starts) - bisect_right(starts, last) for name, (_, last) in spans.items()}
        count = len(set(before.values()))
        if not self.in_order or count <= 1:
            return {}
        begins = {number: phase for phase, number in enumerate(sorted(set(before.values())))}
        finishes = {number: phase for phase, number in enumerate(sorted(set(after.values()), reverse=True))}
        found = {name: (begins[before[name]], finishes[after[name]]) for name in spans}
        return {id(base): found.get(id(base), (0, count - 1)) for base in used}
