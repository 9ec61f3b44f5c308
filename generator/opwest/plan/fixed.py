# SPDX-License-Identifier: Apache-2.0
"""The plan that a manifest gives: `memory_planner: fixed`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from opwest.base.diagnostics import Diagnostics, nearest
from opwest.base.result import counted
from opwest.model.types.model import Buffer, FixedOffset, FixedPlan, FixedPool, Model, Pool
from opwest.plan.problem import Block, PoolPlan, Share, peak, round_up
from opwest.plan.schedule import Schedule
from opwest.plan.sharing import SHARED, alternatives, find_shares, merged
from opwest.plan.verify import Flaw, flaws

if TYPE_CHECKING:
    from opwest.plan.tables import Row


def report_flaws(
    blocks: Sequence[Block],
    given: Mapping[str, FixedOffset],
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
        _report_flaw(flaw, given, pool, limit, unit, faults)
    return len(faults) == before


def judged(rows: Sequence[Row], faults: Diagnostics) -> PoolPlan | None:
    """Return the plan of a table with offsets, None after faults."""
    blocks = [Block(row.name, row.size, row.align, row.lower, row.upper - 1) for row in rows]
    given = {row.name: FixedOffset(row.name, row.offset or 0, row.place) for row in rows}
    if not report_flaws(blocks, given, "the plan", None, faults, unit="time"):
        return None
    return plan_of(blocks, given, peak(blocks).size)


def plan_of(blocks: Sequence[Block], given: Mapping[str, FixedOffset], lower_bound: int) -> PoolPlan:
    """Return the offsets as a plan."""
    offsets = {block.name: given[block.name].offset for block in blocks}
    return PoolPlan(offsets, _end(blocks, offsets), max((b.align for b in blocks), default=1), lower_bound)


def _end(blocks: Sequence[Block], offsets: Mapping[str, int]) -> int:
    return max((offsets[b.name] + b.size for b in blocks), default=0)


def _report_flaw(
    flaw: Flaw, given: Mapping[str, FixedOffset], pool: str, size: int, unit: str, faults: Diagnostics
) -> None:
    block = flaw.block
    entry = given[block.name]
    if flaw.kind == "misaligned":
        faults.error(
            f"the offset of {block.name!r} is {entry.offset}",
            entry.location,
            expected=f"a multiple of {block.align}",
        )
    elif flaw.kind == "outside":
        most = (size - block.size) // block.align * block.align
        faults.error(
            f"{block.name!r} ends at {entry.offset + block.size}, {pool} has {counted(size, 'byte')}",
            entry.location,
            expected=f"an offset of at most {most}" if most >= 0 else f"a size of {block.size} or more",
        )
    elif flaw.other is not None:
        earlier, later = flaw.other, block
        start = max(earlier.first, later.first)
        end = min(earlier.last, later.last)
        faults.error(
            f"{later.name!r} overlaps {earlier.name!r} in {pool}: "
            f"bytes {_bytes(later, given)} and {_bytes(earlier, given)}",
            entry.location,
            expected="different bytes for buffers in use at the same time",
            hint=f"both are in use {f'at {unit} {start}' if start == end else f'from {unit} {start} to {end}'}; "
            f"the other offset is at {given[earlier.name].location}",
        )


def _bytes(block: Block, given: Mapping[str, FixedOffset]) -> str:
    offset = given[block.name].offset
    return f"{offset} to {offset + block.size - 1}"


def block_of(pool: Pool, buffer: Buffer, schedule: Schedule) -> Block:
    """Return the block of a buffer in a pool, padded to cache lines if a non-coherent device accesses it."""
    line = pool.cache_line if pool.cache_line and buffer.incoherent else 1
    align = max(buffer.align, pool.align, line)
    life = schedule.lives[buffer.name]
    return Block(buffer.name, round_up(buffer.type.size, align), align, life.first, life.last, life.begin, life.end)


_SHOWN = 8


def plan_fixed(
    model: Model, schedule: Schedule, faults: Diagnostics
) -> tuple[Mapping[str, PoolPlan], Mapping[str, str]]:
    """Return the plans of all pools that are not empty, and the pool of every buffer; report every fault.

    The plans are valid only without faults.
    """
    fixed = model.fixed or FixedPlan(model.location, ())
    entries = [(part.pool, entry) for part in fixed.pools for entry in _offsets(part, faults)]
    complete = not faults.has_errors
    given, homes = _collected(model, entries, faults, complete=complete)
    if complete:
        _report_missing(model, fixed, given, faults)
    shares = find_shares(model, schedule)
    plans = {}
    for pool in model.pools:
        blocks = [block_of(pool, b, schedule) for b in model.planned if homes.get(b.name) == pool.name]
        if blocks:
            report_flaws(blocks, given, f"pool {pool.name!r}", pool.size, faults, shares)
            bound = min(peak(merged(blocks, chosen)[0]).size for chosen in alternatives(blocks, shares))
            plans[pool.name] = plan_of(blocks, given, bound)
    return plans, homes


def _collected(
    model: Model, entries: Sequence[tuple[str, FixedOffset]], faults: Diagnostics, *, complete: bool
) -> tuple[dict[str, FixedOffset], dict[str, str]]:
    """Return the offset and the pool of every buffer that has an offset.

    The buffers of a manifest with other errors may be incomplete: without `complete`, unknown names are not reported.
    """
    buffers = {buffer.name: buffer for buffer in model.planned}
    given: dict[str, FixedOffset] = {}
    homes: dict[str, str] = {}
    for pool, entry in entries:
        name = entry.buffer
        if name not in buffers:
            if complete:
                _report_unknown(model, name, entry, faults)
            continue
        if name in given:
            faults.error(
                f"duplicate offset of {name!r}",
                entry.location,
                expected="one offset per tensor",
                hint=f"first defined at {given[name].location}",
            )
            continue
        given[name] = entry
        if pool in buffers[name].pools:
            homes[name] = pool
        else:
            faults.error(
                f"{name!r} has an offset in pool {pool!r}",
                entry.location,
                expected=f"an offset in pool {' or '.join(map(repr, buffers[name].pools))}",
                hint="a tensor is in the pool that the manifest names, or in one that all its users can reach",
            )
    return given, homes


def _offsets(fixed: FixedPool, faults: Diagnostics) -> list[FixedOffset]:
    """Return the offsets of one pool; a line of a table may name several buffers that share memory."""
    if fixed.table is None:
        return list(fixed.offsets)
    from opwest.plan.tables import read_table  # most plans have no table

    rows = read_table(fixed.table, fixed.file, faults)
    if rows and rows[0].offset is None:
        faults.error(
            f"the table of pool {fixed.pool!r} has no offsets",
            fixed.location,
            expected="a column 'offset'",
            hint="'opwest plan TABLE -o NEW' writes a table with offsets",
        )
        return []
    return [FixedOffset(name, row.offset or 0, row.place) for row in rows for name in row.name.split(SHARED)]


def _report_unknown(model: Model, name: str, entry: FixedOffset, faults: Diagnostics) -> None:
    outside = {t.name: "the caller provides its memory" for t in (*model.inputs, *model.outputs)}
    outside |= {c.name: "it is read from flash" for c in model.constants}
    if name in outside:
        faults.error(
            f"{name!r} is not in the workspace",
            entry.location,
            expected="a tensor in a pool",
            hint=f"{outside[name]}: remove the offset, or specify a pool of the tensor",
        )
    else:
        faults.error(f"unknown tensor {name!r}", entry.location, hint=nearest(name, (b.name for b in model.planned)))


def _report_missing(model: Model, fixed: FixedPlan, given: Mapping[str, FixedOffset], faults: Diagnostics) -> None:
    """Report the buffers without an offset, one error per pool."""
    absent: dict[str, list[str]] = {}
    for buffer in model.planned:
        if buffer.name not in given:
            absent.setdefault(buffer.pools[0], []).append(buffer.name)
    places = {part.pool: part.location for part in fixed.pools}
    for pool, names in absent.items():
        listed = ", ".join(map(repr, names[:_SHOWN])) + (", …" if len(names) > _SHOWN else "")
        faults.error(
            f"missing offset{'s' * (len(names) > 1)} in pool {pool!r}: {listed}",
            places.get(pool, fixed.location),
            expected=f"an offset for every tensor: {names[0]}: 0",
            hint="'opwest plan MANIFEST --planner greedy' prints the tensors of every pool",
        )
