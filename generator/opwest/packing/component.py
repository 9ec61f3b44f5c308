# SPDX-License-Identifier: Apache-2.0
"""Blocks connected by shared lifetimes, as arrays: the constant data of the search in `canonical.py`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from opwest.packing.problem import Block
from opwest.records import dataclass

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Component:
    """Blocks in the order of a run, one row each; moments count from the first with a live block."""

    numbers: Ints
    """Indexes in the order of the run, ascending."""
    start: Ints
    end: Ints
    """The first moment of a block's life, and the first after it."""
    size: Ints
    align: Ints
    beside: Flags
    """[block, block]: whether they share a moment."""
    living: Flags
    """[block, moment]: whether the block is alive."""
    twin: Ints
    """The nearest earlier block with equal lifetime, size and alignment; -1 for none."""
    alive: Ints
    alive_at: Ints
    """The concatenated blocks of all moments, and the start index of each moment."""
    crossing: Ints
    """The number of blocks alive at both a moment and the next one."""

    @staticmethod
    def of(blocks: Sequence[Block], spans: Sequence[tuple[int, int]]) -> Component:
        """Return a component from blocks and their half-open ranges of moments."""
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
        """Return the unplaced blocks in groups without common moments, each ascending."""
        rows = np.flatnonzero(waiting)
        if not rows.size:
            return []
        by_start = rows[np.argsort(self.start[rows])]
        reached = np.maximum.accumulate(self.end[by_start])
        gaps = np.flatnonzero(self.start[by_start[1:]] >= reached[:-1]) + 1
        return [np.sort(group) for group in np.split(by_start, gaps)]

    def only(self, rows: Ints) -> Component:
        """Return a connected subset of the blocks as a component."""
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

    def free(self, capacity: int) -> Ints:
        """Return the free bytes at every moment: the capacity minus the size of all live blocks."""
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
