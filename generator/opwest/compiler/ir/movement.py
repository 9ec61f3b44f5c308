# SPDX-License-Identifier: Apache-2.0
"""Operations that move elements: strided copies, copies by indices, interpolation."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.ir.program import Operation

RESULT = -1
"""The source of a region that reads what earlier regions wrote."""


@dataclass(frozen=True)
class Axis:
    """One loop of a region."""

    count: int
    source: int | tuple[int, ...]
    """The step in elements of the source, negative for reversed order, 0 for repetition; or the offset of each turn."""
    result: int
    """The step in elements of the result."""


@dataclass(frozen=True)
class Region:
    """Elements that are copied, or set to one value."""

    source: int | None
    """The number of the input; RESULT; None: `fill`."""
    axes: tuple[Axis, ...]
    """The outermost loop first."""
    start: int = 0
    """The first element in the source."""
    place: int = 0
    """The first element in the result."""
    fill: int | float = 0
    table: tuple[int, ...] | None = None
    """The result for each of the 256 values of uint8 elements; None: the same value."""


def simplified(region: Region) -> Region:
    """Return an equal region with as few loops as possible."""
    start, axes = region.start, []
    for axis in region.axes:
        source = axis.source
        if isinstance(source, tuple):
            start += source[0]
            steps = {after - before for before, after in pairwise(source)}
            # Offsets that grow evenly are a step.
            source = steps.pop() if len(steps) == 1 else tuple(offset - source[0] for offset in source)
        if axis.count > 1:
            axes.append(Axis(axis.count, 0 if region.source is None else source, axis.result))
    joined: list[Axis] = []
    for axis in axes:
        if joined and _can_join(joined[-1], axis, region.source is None):
            joined[-1] = Axis(joined[-1].count * axis.count, axis.source, axis.result)
        else:
            joined.append(axis)
    return dataclasses.replace(region, axes=tuple(joined), start=start)


def _can_join(outer: Axis, inner: Axis, is_fill: bool) -> bool:
    if outer.result != inner.result * inner.count:
        return False
    if is_fill:
        return True
    if isinstance(outer.source, tuple) or isinstance(inner.source, tuple):
        return False
    return outer.source == inner.source * inner.count


def runs(region: Region) -> int:
    """Return the number of parts of a region whose elements follow each other in the source and in the result."""
    axes = simplified(region).axes
    is_run = bool(axes) and axes[-1].result == 1 and (region.source is None or axes[-1].source == 1)
    return prod(axis.count for axis in (axes[:-1] if is_run and region.table is None else axes))


def is_copy(regions: Sequence[Region], size: int) -> bool:
    """Whether the regions copy `size` elements of the first input in their order."""
    if len(regions) != 1:
        return False
    region = simplified(regions[0])
    is_whole = region.axes == ((Axis(size, 1, 1),) if size > 1 else ())
    return is_whole and (region.source, region.start, region.place, region.table) == (0, 0, 0, None)


@dataclass(frozen=True, eq=False)
class Move(Operation):
    """The regions in order, which together write all elements of the result."""

    regions: tuple[Region, ...]


@dataclass(frozen=True)
class Lookup:
    """One dimension that indices select from."""

    limit: int
    """The number of its elements. An index below 0 or from `limit` on ends the operation with -EINVAL."""
    stride: int
    """The elements from one to the next."""


@dataclass(frozen=True, eq=False)
class GatherSlices(Operation):
    """inputs [data, indices]; each tuple of indices selects a slice of `inner` elements.

    For each batch, outer element, tuple: result = data[batch * batch_stride + outer * outer_stride + offset of tuple].
    """

    lookups: tuple[Lookup, ...]
    """By the position in a tuple."""
    batches: int
    batch_stride: int
    outer: int
    outer_stride: int
    tuples: int
    """The tuples of a batch."""
    inner: int
    scales: Any = None
    """float32 factors of int8 data with a float32 result: one, or one by index; None: elements are copied."""


@dataclass(frozen=True, eq=False)
class ScatterSlices(Operation):
    """inputs [indices, updates]; the result is zeros plus each slice of the updates at its place."""

    lookups: tuple[Lookup, ...]
    tuples: int
    inner: int


@dataclass(frozen=True, eq=False)
class UpdateSlice(Operation):
    """inputs [data, update, indices]; the result is the data with the update at the place of the indices.

    Indices are clamped so that the update is inside of the data.
    """


@dataclass(frozen=True, eq=False)
class OneHot(Operation):
    """inputs [indices [outer, inner], on, off]; results [[outer, depth, inner]]."""

    outer: int
    depth: int
    inner: int


@dataclass(frozen=True, eq=False)
class Interpolate(Operation):
    """inputs [data [n,h,w,c]], results [[n,rows,columns,c]]: weighted means of four elements."""

    rows: Any
    """An object of semantics/windows.py: the two source rows and the weight of each row of the result."""
    columns: Any


def places_of(region: Region) -> tuple[Any, Any]:
    """Return the indices of the elements in the source, and of those in the result, in the order of the copies."""
    source, place = np.full(1, region.start, np.int64), np.full(1, region.place, np.int64)
    for axis in region.axes:
        counts = np.arange(axis.count, dtype=np.int64)
        offsets = np.asarray(axis.source, np.int64) if isinstance(axis.source, tuple) else counts * axis.source
        if region.source is not None:
            source = (source[:, None] + offsets).reshape(-1)
        place = (place[:, None] + counts * axis.result).reshape(-1)
    return source, place
