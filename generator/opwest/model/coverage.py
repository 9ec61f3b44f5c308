# SPDX-License-Identifier: Apache-2.0
"""The bytes of tensors that earlier steps have written."""

from __future__ import annotations


class Coverage:
    """Disjoint ranges of bytes by tensor, in ascending order."""

    def __init__(self) -> None:
        self._ranges: dict[str, list[tuple[int, int]]] = {}

    def add(self, tensor: str, begin: int, end: int) -> None:
        """Add the bytes from `begin` up to `end`; an empty tensor counts as written."""
        left = []
        for low, high in self._ranges.get(tensor, []):
            if high < begin or low > end:
                left.append((low, high))
            else:
                begin, end = min(begin, low), max(end, high)
        self._ranges[tensor] = sorted([*left, (begin, end)])

    def add_whole(self, tensor: str) -> None:
        """Add a whole tensor, also one whose size is unknown because of an error."""
        self._ranges[tensor] = [(0, 1 << 62)]

    def gap(self, tensor: str, begin: int, end: int) -> tuple[int, int] | None:
        """Return the first bytes in a range that are not written; None if all are."""
        for low, high in self._ranges.get(tensor, []):
            if low <= begin and end <= high:
                return None
            if low <= begin < high:
                begin = high
            elif begin < low < end:
                return begin, low
        return begin, end

    @property
    def tensors(self) -> set[str]:
        """The tensors that are written, at least in part."""
        return set(self._ranges)

    def __contains__(self, tensor: str) -> bool:
        return tensor in self._ranges
