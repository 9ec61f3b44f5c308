# SPDX-License-Identifier: Apache-2.0
"""Operations that move elements."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from opwest.compiler.execution.registry import Arrays, executes
from opwest.compiler.ir.movement import (
    RESULT,
    GatherSlices,
    Interpolate,
    Lookup,
    Move,
    OneHot,
    ScatterSlices,
    UpdateSlice,
    places_of,
    simplified,
)
from opwest.compiler.ir.operations import Copy
from opwest.compiler.ir.program import extent_of, rows_of
from opwest.compiler.reference.layers import interpolated


@executes(Copy)
def copy(operation: Copy, arrays: Arrays) -> Any:
    """The same elements."""
    return arrays[0]


@executes(Move)
def move(operation: Move, arrays: Arrays) -> Any:
    """Regions in order, with the loops of the emitted code. Places are those of the memory of the result."""
    [result] = operation.results
    memory = np.zeros(extent_of(result), result.dtype)
    for one in map(simplified, operation.regions):
        sources, places = places_of(one)
        if one.source is None:
            memory[places] = np.asarray(one.fill).astype(result.dtype)
            continue
        taken = (memory if one.source == RESULT else arrays[one.source].reshape(-1))[sources]
        if one.table is not None:
            taken = np.asarray(one.table)[taken]
        memory[places] = taken
    return rows_of(memory, result)


def _checked(indices: Any, limit: int) -> Any:
    """Return indices as int64. Raises ValueError outside of their dimension."""
    if indices.size and not 0 <= indices.min() <= indices.max() < limit:
        raise ValueError(f"an index is outside of 0 to {limit - 1}")
    return indices.astype(np.int64)


def _offsets(indices: Any, lookups: tuple[Lookup, ...]) -> Any:
    """Return the first element of each slice: indices [tuples,lookups]."""
    columns = zip(indices.T, lookups, strict=True)
    return sum(_checked(column, one.limit) * one.stride for column, one in columns)


@executes(GatherSlices)
def gather(operation: GatherSlices, arrays: Arrays) -> Any:
    """Slices by tuples of indices; batches have indices of their own."""
    data, indices = arrays[0].reshape(-1), arrays[1].reshape(operation.batches, operation.tuples, -1)
    outer = np.arange(operation.outer)[:, None, None] * operation.outer_stride
    inner = np.arange(operation.inner)
    found = []
    for batch, tuples in enumerate(indices):
        first = batch * operation.batch_stride + _offsets(tuples, operation.lookups)
        found.append(data[outer + first[None, :, None] + inner])
    result = np.stack(found)
    if operation.scales is None:
        return result
    taken = indices.reshape(-1)
    scales = operation.scales[taken] if len(operation.scales) > 1 else np.repeat(operation.scales, len(taken))
    return result.reshape(len(taken), -1).astype(np.float32) * scales[:, None]


@executes(ScatterSlices)
def scatter(operation: ScatterSlices, arrays: Arrays) -> Any:
    """Zeros plus the updates; equal places add up."""
    indices, updates = arrays[0].reshape(operation.tuples, -1), arrays[1].reshape(operation.tuples, operation.inner)
    found = np.zeros(operation.results[0].size, updates.dtype)
    places = _offsets(indices, operation.lookups)[:, None] + np.arange(operation.inner)
    (np.logical_or if updates.dtype == np.bool_ else np.add).at(found, places, updates)
    return found


@executes(UpdateSlice)
def update(operation: UpdateSlice, arrays: Arrays) -> Any:
    """The start of the update is clamped."""
    data, part, starts = arrays
    limits = np.asarray(data.shape) - np.asarray(part.shape)
    first = np.clip(starts.astype(np.int64), 0, limits)
    found = data.copy()
    found[tuple(slice(int(a), int(a) + n) for a, n in zip(first, part.shape, strict=True))] = part
    return found


@executes(OneHot)
def one_hot(operation: OneHot, arrays: Arrays) -> Any:
    """One of two values by the index: [outer,depth,inner]."""
    indices, on, off = arrays
    each = indices.reshape(operation.outer, 1, operation.inner)
    is_on = each == np.arange(operation.depth).reshape(1, -1, 1)
    assert prod(is_on.shape) == operation.results[0].size
    return np.where(is_on, on.reshape(()), off.reshape(()))


@executes(Interpolate)
def interpolate(operation: Interpolate, arrays: Arrays) -> Any:
    """Weighted means of four elements."""
    return interpolated(arrays[0], operation.rows, operation.columns)
