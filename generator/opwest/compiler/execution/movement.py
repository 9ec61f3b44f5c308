# SPDX-License-Identifier: Apache-2.0
"""Operations that move elements."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from opwest.compiler.execution.run import FUNCTIONS, Arrays, executes
from opwest.compiler.ir import movement as ir
from opwest.compiler.ir.operations import Copy
from opwest.compiler.ir.program import extent_of, rows_of
from opwest.compiler.reference.layers import interpolated
from opwest.compiler.reference.movement import checked, updated

FUNCTIONS.update(
    {
        Copy: lambda op, arrays: arrays[0],
        # The start of the update is clamped.
        ir.UpdateSlice: lambda op, arrays: updated(*arrays),
        ir.Interpolate: lambda op, arrays: interpolated(arrays[0], op.rows, op.columns),
    }
)


@executes(ir.Move)
def move(operation: ir.Move, arrays: Arrays) -> Any:
    """Regions in order, with the loops of the emitted code. Places are those of the memory of the result."""
    [result] = operation.results
    memory = np.zeros(extent_of(result), result.dtype)
    for region in map(ir.simplified, operation.regions):
        sources, places = ir.places_of(region)
        if region.source is None:
            memory[places] = np.asarray(region.fill).astype(result.dtype)
            continue
        taken = (memory if region.source == ir.RESULT else arrays[region.source].reshape(-1))[sources]
        if region.table is not None:
            taken = np.asarray(region.table)[taken]
        memory[places] = taken
    return rows_of(memory, result)


def _offsets(indices: Any, lookups: tuple[ir.Lookup, ...]) -> Any:
    """Return the first element of each slice: indices [tuples,lookups]."""
    columns = zip(indices.T, lookups, strict=True)
    return sum(checked(column, lookup.limit) * lookup.stride for column, lookup in columns)


@executes(ir.GatherSlices)
def gather(operation: ir.GatherSlices, arrays: Arrays) -> Any:
    """Slices by tuples of indices; batches have indices of their own."""
    data, indices = arrays[0].reshape(-1), arrays[1].reshape(operation.batches, operation.tuples, -1)
    outer = np.arange(operation.outer)[:, None, None] * operation.outer_stride
    inner = np.arange(operation.inner)
    slices = []
    for batch, tuples in enumerate(indices):
        first = batch * operation.batch_stride + _offsets(tuples, operation.lookups)
        slices.append(data[outer + first[None, :, None] + inner])
    result = np.stack(slices)
    if operation.scales is None:
        return result
    taken = indices.reshape(-1)
    scales = operation.scales[taken] if len(operation.scales) > 1 else np.repeat(operation.scales, len(taken))
    return result.reshape(len(taken), -1).astype(np.float32) * scales[:, None]


@executes(ir.ScatterSlices)
def scatter(operation: ir.ScatterSlices, arrays: Arrays) -> Any:
    """Zeros plus the updates; equal places add up."""
    indices, updates = arrays[0].reshape(operation.tuples, -1), arrays[1].reshape(operation.tuples, operation.inner)
    sums = np.zeros(operation.results[0].size, updates.dtype)
    places = _offsets(indices, operation.lookups)[:, None] + np.arange(operation.inner)
    (np.logical_or if updates.dtype == np.bool_ else np.add).at(sums, places, updates)
    return sums


@executes(ir.OneHot)
def one_hot(operation: ir.OneHot, arrays: Arrays) -> Any:
    """One of two values by the index: [outer,depth,inner]."""
    indices, on, off = arrays
    each = indices.reshape(operation.outer, 1, operation.inner)
    is_on = each == np.arange(operation.depth).reshape(1, -1, 1)
    assert prod(is_on.shape) == operation.results[0].size
    return np.where(is_on, on.reshape(()), off.reshape(()))
