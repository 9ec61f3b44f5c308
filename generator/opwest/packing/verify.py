# SPDX-License-Identifier: Apache-2.0
"""Verify every plan, without code shared with the planners.

TVM's USMP could place a buffer inside a live one; opwest uses a plan only after verification.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from opwest.packing.problem import Block, Share


class PlanError(Exception):
    """An invalid plan: a bug of the planner, not an error of the user."""


def verify(blocks: Sequence[Block], offsets: Mapping[str, int], size: int, shares: Sequence[Share] = ()) -> None:
    """Raise PlanError unless every block is within `size` bytes, aligned, and disjoint from all live blocks.

    A block may have the offset of a block whose memory it reuses, from its first step on; the other block
    must not live longer.

    Sweeps over time with the live blocks sorted by offset: a new block is compared only with its two
    neighbours, since all others are disjoint from it, or share the memory of a neighbour.
    """
    taken = _takers(blocks, shares)
    events: list[tuple[int, int, Block]] = []
    for block in blocks:
        if block.name not in offsets:
            raise PlanError(f"{block.name} has no offset")
        offset = offsets[block.name]
        if offset < 0 or offset % block.align:
            raise PlanError(f"{block.name} is at {offset}, not a multiple of {block.align}")
        if offset + block.size > size:
            raise PlanError(f"{block.name} ends at {offset + block.size}, outside {size} bytes")
        events.append((block.first, 1, block))
        events.append((block.last + 1, 0, block))
    live: list[tuple[int, int, str]] = []
    for _, starts, block in sorted(events, key=lambda e: (e[0], e[1], e[2].name)):
        offset = offsets[block.name]
        entry = (offset, offset + block.size, block.name)
        if not starts:
            live.remove(entry)
            continue
        position = sum(1 for other in live if other < entry)
        for other in live[max(position - 1, 0) : position + 1]:
            if other[0] < entry[1] and entry[0] < other[1]:
                if other[0] == offset and _took_over(block.name, other[2], taken):
                    continue
                raise PlanError(f"{block.name} at {offset} overlaps {other[2]} at {other[0]}")
        live.insert(position, entry)


def _takers(blocks: Sequence[Block], shares: Sequence[Share]) -> dict[str, str]:
    """Return for each block name the block whose memory it may reuse, if their lifetimes allow it.

    A block gives and takes memory at most once: two results in the memory of one argument would overlap.
    """
    known = {block.name: block for block in blocks}
    found: dict[str, str] = {}
    given = set()
    for share in shares:
        taken, taker = known.get(share.taken), known.get(share.taker)
        if not taken or not taker or share.taken in given or share.taker in found:
            continue
        follows = share.taken != share.taker and share.taker not in _below(share.taken, found)
        if follows and taken.first <= share.step == taker.first and taken.last <= taker.last:
            found[share.taker] = share.taken
            given.add(share.taken)
    return found


def _took_over(one: str, other: str, taken: Mapping[str, str]) -> bool:
    """Whether one of two blocks reuses the other's memory, directly or indirectly."""
    return other in _below(one, taken) or one in _below(other, taken)


def _below(name: str, taken: Mapping[str, str]) -> set[str]:
    """Return the earlier blocks in the memory of a block."""
    found: set[str] = set()
    while name in taken:
        name = taken[name]
        found.add(name)
    return found
