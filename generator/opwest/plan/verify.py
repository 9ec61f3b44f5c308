# SPDX-License-Identifier: Apache-2.0
"""Verify every plan, without code shared with the planners.

TVM's USMP could place a buffer inside a live one; opwest uses a plan only after verification. Offsets from outside
are judged here as well.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from opwest.base.frozen_dataclass import dataclass
from opwest.base.result import counted
from opwest.plan.problem import Block, Share


class PlanError(Exception):
    """An invalid plan: a bug of the planner, not an error of the user."""


@dataclass(frozen=True, slots=True)
class Flaw:
    """One fault of a plan."""

    kind: Literal["missing", "misaligned", "outside", "overlap"]
    block: Block
    text: str
    other: Block | None = None
    """The block that `block` overlaps; it begins first, or has the first name."""


def verify(blocks: Sequence[Block], offsets: Mapping[str, int], size: int, shares: Sequence[Share] = ()) -> None:
    """Raise PlanError unless `flaws` finds none."""
    for flaw in flaws(blocks, offsets, size, shares):
        raise PlanError(flaw.text)


def flaws(
    blocks: Sequence[Block], offsets: Mapping[str, int], size: int, shares: Sequence[Share] = ()
) -> Iterator[Flaw]:
    """Yield every block without an offset, not aligned, outside `size` bytes, or overlapping a live block.

    A block may have the offset of a block whose memory it reuses, from its first step on; the other block
    must not live longer. A block that overlaps several is reported with the first of them in memory.

    Sweeps over time with the live blocks sorted by offset.
    """
    taken = _takers(blocks, shares)
    events: list[tuple[int, int, int, Block]] = []
    for block in blocks:
        if block.name not in offsets:
            yield Flaw("missing", block, f"{block.name} has no offset")
            continue
        offset = offsets[block.name]
        if offset < 0 or offset % block.align:
            yield Flaw("misaligned", block, f"{block.name} is at {offset}, not a multiple of {block.align}")
        if offset + block.size > size:
            yield Flaw("outside", block, f"{block.name} ends at {offset + block.size}, outside {counted(size, 'byte')}")
        events.append((block.first, block.begin, 1, block))
        events.append((block.last, block.end + 1, 0, block))
    live: list[tuple[int, int, str]] = []
    known = {block.name: block for block in blocks}
    for _, _, starts, block in sorted(events, key=lambda e: (*e[:3], e[3].name)):
        offset = offsets[block.name]
        entry = (offset, offset + block.size, block.name)
        if not starts:
            live.remove(entry)
            continue
        for other in live:
            if other[0] >= entry[1]:
                break
            if offset < other[1] and not (other[0] == offset and _took_over(block.name, other[2], taken)):
                text = f"{block.name} at {offset} overlaps {other[2]} at {other[0]}"
                yield Flaw("overlap", block, text, known[other[2]])
                break
        insort(live, entry)


def _takers(blocks: Sequence[Block], shares: Sequence[Share]) -> dict[str, str]:
    """Return for each block name the block whose memory it may reuse, if their lifetimes allow it.

    A block gives and takes memory at most once: two results in the memory of one argument would overlap.
    """
    known = {block.name: block for block in blocks}
    owners: dict[str, str] = {}
    given = set()
    for share in shares:
        taken, taker = known.get(share.taken), known.get(share.taker)
        if not taken or not taker or share.taken in given or share.taker in owners:
            continue
        follows = share.taken != share.taker and share.taker not in _below(share.taken, owners)
        if follows and taken.first <= share.step == taker.first and taken.last <= taker.last:
            owners[share.taker] = share.taken
            given.add(share.taken)
    return owners


def _took_over(first: str, second: str, taken: Mapping[str, str]) -> bool:
    """Whether one of two blocks reuses the other's memory, directly or indirectly."""
    return second in _below(first, taken) or first in _below(second, taken)


def _below(name: str, taken: Mapping[str, str]) -> set[str]:
    """Return the earlier blocks in the memory of a block."""
    below: set[str] = set()
    while name in taken:
        name = taken[name]
        below.add(name)
    return below
