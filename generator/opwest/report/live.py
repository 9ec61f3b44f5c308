# SPDX-License-Identifier: Apache-2.0
"""Live bytes by step: the memory of a pool in use, with shared memory counted once."""

from __future__ import annotations

from collections.abc import Sequence

from opwest.report import data


def live_bytes(buffers: Sequence[data.Buffer], steps: int) -> list[int]:
    """Return the bytes of a pool that are in use in every step."""
    edges = sorted({edge for one in buffers for edge in (one.offset, one.offset + one.reserved)})
    place = {edge: index for index, edge in enumerate(edges)}
    starts: list[list[data.Buffer]] = [[] for _ in range(steps + 1)]
    ends: list[list[data.Buffer]] = [[] for _ in range(steps + 1)]
    for one in buffers:
        starts[min(one.first, steps)].append(one)
        ends[min(one.last + 1, steps)].append(one)
    covered = _Covered(edges)
    live = []
    for step in range(steps):
        for one in ends[step]:
            covered.add(place[one.offset], place[one.offset + one.reserved], -1)
        for one in starts[step]:
            covered.add(place[one.offset], place[one.offset + one.reserved], 1)
        live.append(covered.bytes)
    return live


class _Covered:
    """A segment tree over the edges of buffers: the number of buffers over each interval, and the bytes covered."""

    def __init__(self, edges: Sequence[int]) -> None:
        self._edges = edges
        self._count = [0] * (4 * len(edges) + 1)
        self._bytes = [0] * (4 * len(edges) + 1)

    @property
    def bytes(self) -> int:
        """The bytes covered by any buffer."""
        return self._bytes[1] if len(self._bytes) > 1 else 0

    def add(self, first: int, end: int, change: int) -> None:
        """Add or remove a buffer over the interval between two edges."""
        if first < end:
            self._add(1, 0, len(self._edges) - 1, first, end, change)

    def _add(self, node: int, low: int, high: int, first: int, end: int, change: int) -> None:
        if end <= low or high <= first:
            return
        if first <= low and high <= end:
            self._count[node] += change
        else:
            middle = (low + high) // 2
            self._add(2 * node, low, middle, first, end, change)
            self._add(2 * node + 1, middle, high, first, end, change)
        if self._count[node]:
            self._bytes[node] = self._edges[high] - self._edges[low]
        elif high - low == 1:
            self._bytes[node] = 0
        else:
            self._bytes[node] = self._bytes[2 * node] + self._bytes[2 * node + 1]
