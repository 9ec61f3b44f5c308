# SPDX-License-Identifier: Apache-2.0
"""Blocks that share time, as arrays: what the search of `canonical.py` knows of them and never changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from opwest.packing.problem import Block

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Component:
    """Blocks in the order of a run, a row each; moments count from the first at which one of them lives."""

    numbers: Ints
    """Places in the order of the run, rising."""
    start: Ints
    end: Ints
    """The first moment of a block's life, and the first after it."""
    size: Ints
    align: Ints
    beside: Flags
    """[block, block]: they share a moment."""
    living: Flags
    """[block, moment]"""
    twin: Ints
    """The nearest earlier block with the same life, size and alignment; -1 for none."""
    alive: Ints
    alive_at: Ints
    """The blocks of every moment, one moment after the other, and where each begins."""
    crossing: Ints
    """How many blocks live at a moment and at the next."""

    @staticmethod
    def of(blocks: Sequence[Block], spans: Sequence[tuple[int, int]]) -> Component:
        """Return blocks with the moments of their lives, half-open, as a component."""
        start = np.array([span[0] for span in spans], dtype=np.int64)
        end = np.array([span[1] for span in spans], dtype=np.int64)
        seen: dict[tuple[int, int, int, int], int] = {}
        twin = []
        for index, (block, span) in enumerate(zip(blocks, spans, strict=True)):
            kind = (*span, block.size, block.align)
            twin.append(seen.get(kind, -1))
            seen[kind] = index
        moments = np.arange(end.max())
        return _component(
            np.arange(len(blocks)),
            start,
            end,
            np.array([b.size for b in blocks], dtype=np.int64),
            np.array([b.align for b in blocks], dtype=np.int64),
            (start[:, None] < end) & (start < end[:, None]) & ~np.eye(len(blocks), dtype=np.bool_),
            (start[:, None] <= moments) & (moments < end[:, None]),
            np.array(twin, dtype=np.int64),
        )

    def islands(self, waiting: Flags) -> list[Ints]:
        """Return the waiting blocks in groups that share no moment, each rising."""
        rows = np.flatnonzero(waiting)
        if not rows.size:
            return []
        by_start = rows[np.argsort(self.start[rows])]
        reached = np.maximum.accumulate(self.end[by_start])
        gaps = np.flatnonzero(self.start[by_start[1:]] >= reached[:-1]) + 1
        return [np.sort(group) for group in np.split(by_start, gaps)]

    def only(self, rows: Ints) -> Component:
        """Return some of the blocks, which share time, as a component of their own."""
        first, last = self.start[rows].min(), self.end[rows].max()
        new = np.full(len(self.numbers) + 1, -1)
        new[rows] = np.arange(len(rows))
        return _component(
            self.numbers[rows],
            self.start[rows] - first,
            self.end[rows] - first,
            self.size[rows],
            self.align[rows],
            self.beside[rows[:, None], rows],
            self.living[rows, first:last],
            new[self.twin[rows]],
        )

    def room(self, capacity: int) -> Ints:
        """Return the bytes that a capacity leaves at every moment beside all blocks that live then."""
        return capacity - self.size @ self.living


def _component(
    numbers: Ints, start: Ints, end: Ints, size: Ints, align: Ints, beside: Flags, living: Flags, twin: Ints
) -> Component:
    counts = living.sum(axis=0)
    alive_at = np.concatenate(([0], np.cumsum(counts)[:-1]))
    crossing = (living[:, :-1] & living[:, 1:]).sum(axis=0)
    return Component(
        numbers, start, end, size, align, beside, living, twin, np.nonzero(living.T)[1], alive_at, crossing
    )
