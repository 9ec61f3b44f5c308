# SPDX-License-Identifier: Apache-2.0
"""The bytes of tensors that earlier steps have written."""

from __future__ import annotations

from opwest.model.types.dtypes import TensorType


class Coverage:
    """Disjoint ranges of bytes by tensor, in ascending order, and the rows of views with a pitch."""

    def __init__(self) -> None:
        self._ranges: dict[str, list[tuple[int, int]]] = {}
        self._rows: dict[str, list[tuple[int, TensorType]]] = {}
        """By tensor: the first byte of a view with a pitch, and its type."""

    def add(self, tensor: str, begin: int, end: int) -> None:
        """Add the bytes from `begin` up to `end`; an empty tensor counts as written."""
        left = []
        for low, high in self._ranges.get(tensor, []):
            if high < begin or low > end:
                left.append((low, high))
            else:
                begin, end = min(begin, low), max(end, high)
        self._ranges[tensor] = sorted([*left, (begin, end)])

    def add_view(self, tensor: str, begin: int, type_: TensorType) -> None:
        """Add a view: of one with a pitch, its rows."""
        if type_.pitch:
            self._ranges.setdefault(tensor, [])
            self._rows.setdefault(tensor, []).append((begin, type_))
        else:
            self.add(tensor, begin, begin + type_.size)

    def add_whole(self, tensor: str) -> None:
        """Add a whole tensor, also one whose size is unknown because of an error."""
        self._ranges[tensor] = [(0, 1 << 62)]

    def gap(self, tensor: str, begin: int, end: int) -> tuple[int, int] | None:
        """Return the first bytes in a range that are not written; None if all are."""
        first = self._gap(tensor, begin, end)
        if first is None or tensor not in self._rows:
            return first
        # Rows of several views together can be whole ranges.
        missing = bytearray(b"\1") * (end - begin)
        for low, high in self._ranges[tensor]:
            start, stop = max(low, begin), min(high, end)
            if start < stop:
                missing[start - begin : stop - begin] = bytes(stop - start)
        for start, type_ in self._rows[tensor]:
            item = type_.dtype.size
            for at in range(start, start + type_.shape[-1] * item):
                # The same byte of each row, from the first one in the range on.
                skipped = max(0, -(-(begin - at) // (type_.pitch * item)))
                stop = min(end, start + type_.size) - begin
                some = range(at + skipped * type_.pitch * item - begin, stop, type_.pitch * item)
                if some:
                    missing[some.start : some.stop : some.step] = bytes(len(some))
        low = missing.find(1)
        if low < 0:
            return None
        high = missing.find(0, low)
        return begin + low, end if high < 0 else begin + high

    def _gap(self, tensor: str, begin: int, end: int) -> tuple[int, int] | None:
        """Return the first bytes that are in none of the ranges."""
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
