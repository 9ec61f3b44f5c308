# SPDX-License-Identifier: Apache-2.0
"""Judge offsets from outside: every fault becomes an error at the offset that causes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from opwest.base.diagnostics import Diagnostics, Location
from opwest.base.frozen_dataclass import dataclass
from opwest.plan.problem import Block, PoolPlan, Share, peak
from opwest.plan.tables import Row
from opwest.plan.verify import Flaw, flaws


@dataclass(frozen=True, slots=True)
class Given:
    """An offset from outside, bytes, and where it is given."""

    offset: int
    place: Location


def report_flaws(
    blocks: Sequence[Block],
    given: Mapping[str, Given],
    pool: str,
    size: int | None,
    faults: Diagnostics,
    shares: Sequence[Share] = (),
    unit: str = "step",
) -> bool:
    """Report every fault of the offsets of `blocks`, all of which are given; return whether there are none.

    `size` (bytes) is the limit of the pool, None without one. `pool` and `unit` (of time) are words of the messages.
    """
    offsets = {name: entry.offset for name, entry in given.items()}
    limit = _end(blocks, offsets) if size is None else size
    before = len(faults)
    for flaw in flaws(blocks, offsets, limit, shares):
        _report(flaw, given, pool, limit, unit, faults)
    return len(faults) == before


def judged(rows: Sequence[Row], faults: Diagnostics) -> PoolPlan | None:
    """Return the plan of a table with offsets, None after faults."""
    blocks = [Block(row.name, row.size, row.align, row.lower, row.upper - 1) for row in rows]
    given = {row.name: Given(row.offset or 0, row.place) for row in rows}
    if not report_flaws(blocks, given, "the plan", None, faults, unit="time"):
        return None
    return plan_of(blocks, given, peak(blocks).size)


def plan_of(blocks: Sequence[Block], given: Mapping[str, Given], lower_bound: int) -> PoolPlan:
    """Return the offsets as a plan."""
    offsets = {block.name: given[block.name].offset for block in blocks}
    return PoolPlan(offsets, _end(blocks, offsets), max((b.align for b in blocks), default=1), lower_bound)


def _end(blocks: Sequence[Block], offsets: Mapping[str, int]) -> int:
    return max((offsets[b.name] + b.size for b in blocks), default=0)


def _report(flaw: Flaw, given: Mapping[str, Given], pool: str, size: int, unit: str, faults: Diagnostics) -> None:
    block = flaw.block
    entry = given[block.name]
    if flaw.kind == "misaligned":
        faults.error(
            f"the offset of {block.name!r} is {entry.offset}",
            entry.place,
            expected=f"a multiple of {block.align}",
        )
    elif flaw.kind == "outside":
        most = (size - block.size) // block.align * block.align
        faults.error(
            f"{block.name!r} ends at {entry.offset + block.size}, {pool} has {size} bytes",
            entry.place,
            expected=f"an offset of at most {most}" if most >= 0 else f"a size of {block.size} or more",
        )
    elif flaw.other is not None:
        one, other = flaw.other, block
        start = max(one.first, other.first)
        end = min(one.last, other.last)
        faults.error(
            f"{other.name!r} overlaps {one.name!r} in {pool}: bytes {_bytes(other, given)} and {_bytes(one, given)}",
            entry.place,
            expected="different bytes for buffers in use at the same time",
            hint=f"both are in use {f'at {unit} {start}' if start == end else f'from {unit} {start} to {end}'}; "
            f"the other offset is at {given[one.name].place}",
        )


def _bytes(block: Block, given: Mapping[str, Given]) -> str:
    offset = given[block.name].offset
    return f"{offset} to {offset + block.size - 1}"
