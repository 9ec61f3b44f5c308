# SPDX-License-Identifier: Apache-2.0
"""Sparse constants as dense arrays. Source: TFLite's schema.fbs, SparsityParameters."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from opwest.importers.models.graph.faults import Damaged
from opwest.importers.models.graph.types import Tensor

_MOST_ELEMENTS = 1 << 28


def dense(table: Any, values: Any, tensor: Tensor) -> Any:
    """Return the dense array, in the order of the tensor's dimensions. Raises Damaged."""
    order = [int(table.TraversalOrder(i)) for i in range(table.TraversalOrderLength())]
    blocks = [int(table.BlockMap(i)) for i in range(table.BlockMapLength())]
    levels = [table.DimMetadata(i) for i in range(table.DimMetadataLength())]
    rank = len(tensor.shape)
    if len(order) != rank + len(blocks) or sorted(order) != list(range(len(order))) or len(levels) != len(order):
        raise Damaged(f"the sparse tensor '{tensor.name}' has contradictory dimensions")
    if any(not 0 <= one < rank for one in blocks):
        raise Damaged(f"the sparse tensor '{tensor.name}' has a block in an absent dimension")
    sizes = _block_sizes(tensor, blocks, order, levels)
    # The coordinates of stored elements, level by level: one row for each path through the levels.
    paths = np.zeros((1, 0), np.int64)
    position = np.zeros(1, np.int64)
    for level, axis in zip(levels, order, strict=True):
        size = sizes[axis]
        if level.Format() == 0:
            at = np.arange(size)
            parent = np.repeat(np.arange(len(paths)), size)
            own = np.tile(at, len(paths))
            position = np.repeat(position, size) * size + own
        else:
            segments, indices = (_numbers(level, part, tensor) for part in ("ArraySegments", "ArrayIndices"))
            if len(segments) <= position.max(initial=0):
                raise Damaged(f"the sparse tensor '{tensor.name}' has too few segments")
            first, last = segments[position], segments[position + 1] if len(segments) > 1 else segments[position]
            counts = last - first
            if (counts < 0).any() or (first < 0).any() or last.max(initial=0) > len(indices):
                raise Damaged(f"the sparse tensor '{tensor.name}' has segments outside of its indices")
            parent = np.repeat(np.arange(len(paths)), counts)
            start = np.repeat(first - np.concatenate([[0], np.cumsum(counts)[:-1]]), counts)
            position = start + np.arange(counts.sum())
            own = indices[position]
            if ((own < 0) | (own >= size)).any():
                raise Damaged(f"the sparse tensor '{tensor.name}' has an index outside of its dimension")
        if len(parent) > _MOST_ELEMENTS:
            raise Damaged(f"the sparse tensor '{tensor.name}' has too many elements")
        paths = np.concatenate([paths[parent], own[:, None]], axis=1)
    if len(paths) > len(values):
        raise Damaged(f"the sparse tensor '{tensor.name}' has {len(values)} elements, {len(paths)} are required")
    places = {axis: paths[:, level] for level, axis in enumerate(order)}
    full = [places[axis] for axis in range(rank)]
    for number, axis in enumerate(blocks):
        full[axis] = full[axis] * sizes[rank + number] + places[rank + number]
    if any((at >= size).any() for at, size in zip(full, tensor.shape, strict=True)):
        raise Damaged(f"the sparse tensor '{tensor.name}' has an element outside of its shape")
    result = np.zeros(tensor.shape, values.dtype)
    result[tuple(full)] = values[: len(paths)]
    return result


def _block_sizes(tensor: Tensor, blocks: list[int], order: list[int], levels: list[Any]) -> list[int]:
    """Return the sizes of all dimensions: those of the tensor in blocks, then those of a block."""
    sizes = list(tensor.shape)
    inner = []
    for number, axis in enumerate(blocks):
        level = levels[order.index(len(tensor.shape) + number)]
        size = int(level.DenseSize())
        if level.Format() != 0 or size < 1 or sizes[axis] % size:
            raise Damaged(f"the sparse tensor '{tensor.name}' has a block of {size} elements")
        sizes[axis] //= size
        inner.append(size)
    if math.prod([*sizes, *inner]) > _MOST_ELEMENTS:
        raise Damaged(f"the sparse tensor '{tensor.name}' has too many elements")
    return [*sizes, *inner]


def _numbers(level: Any, part: str, tensor: Tensor) -> Any:
    """Return the vector of a union SparseIndexVector: Int32Vector, Uint16Vector or Uint8Vector."""
    import tflite

    kinds = {1: tflite.Int32Vector, 2: tflite.Uint16Vector, 3: tflite.Uint8Vector}
    found = kinds.get(getattr(level, f"{part}Type")())
    table = getattr(level, part)()
    if found is None or table is None:
        raise Damaged(f"the sparse tensor '{tensor.name}' has no indices")
    vector = found()
    vector.Init(table.Bytes, table.Pos)
    return vector.ValuesAsNumpy().astype(np.int64) if vector.ValuesLength() else np.zeros(0, np.int64)
