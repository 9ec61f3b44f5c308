# SPDX-License-Identifier: Apache-2.0
"""Operators that select by indices. Computed indices outside of their dimension raise ValueError."""

from __future__ import annotations

from typing import Any

import numpy as np

from opwest.importers.models.graph.types import Node, Rules
from opwest.importers.models.interpret.registry import Arrays, interprets
from opwest.importers.models.operators import indexing


def _checked(indices: Any, limit: int) -> Any:
    """Return indices that are inside of their dimension."""
    if indices.size and not 0 <= indices.min() <= indices.max() < limit:
        raise ValueError(f"an index is outside of 0 to {limit - 1}")
    return indices.astype(np.int64)


@interprets("GATHER")
def gather(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """Slices along an axis; batches have indices of their own."""
    data, indices = arrays
    axis, batches = indexing.gather_axes(node)
    taken = _checked(indices, data.shape[axis])
    if not batches:
        return np.take(data, taken, axis=axis)
    found = np.zeros(node.output.shape, data.dtype)
    for place in np.ndindex(*data.shape[:batches]):
        found[place] = np.take(data[place], taken[place], axis=axis - batches)
    return found


def _places(indices: Any, shape: tuple[int, ...]) -> tuple[Any, ...]:
    return tuple(_checked(indices[..., i], shape[i]) for i in range(indices.shape[-1]))


@interprets("GATHER_ND")
def gather_nd(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """Slices at tuples of indices."""
    data, indices = arrays
    return data[_places(indices, data.shape)]


@interprets("EMBEDDING_LOOKUP")
def embedding(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """Rows, of int8 also as float32."""
    indices, data = arrays
    taken = _checked(indices, data.shape[0])
    if not indexing.is_hybrid(node):
        return data[taken]
    quantization = node.input(1).quantization
    assert quantization is not None
    scales = np.asarray(quantization.scales, np.float32)
    factors = scales[taken] if quantization.axis == 0 else np.repeat(scales, len(taken))
    return data[taken].astype(np.float32) * factors.reshape(-1, *[1] * (data.ndim - 1))


@interprets("SCATTER_ND")
def scatter(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """Zeros plus the updates at their places; equal places add up, and integers wrap."""
    indices, updates = arrays[:2]
    found = np.zeros(node.output.shape, updates.dtype)
    places = _places(indices, found.shape)
    (np.logical_or if updates.dtype == np.bool_ else np.add).at(found, places, updates)
    return found


@interprets("DYNAMIC_UPDATE_SLICE")
def update(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """The data with an update; its start is clamped."""
    data, part, starts = arrays
    limits = np.asarray(data.shape) - np.asarray(part.shape)
    first = np.clip(starts.astype(np.int64), 0, limits)
    found = data.copy()
    found[tuple(slice(int(a), int(a) + n) for a, n in zip(first, part.shape, strict=True))] = part
    return found


@interprets("ONE_HOT")
def one_hot(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """One of two values by the index."""
    indices, _, on, off = arrays
    axis = indexing.one_hot_axis(node)
    depth = node.output.shape[axis]
    is_on = np.expand_dims(indices, axis) == np.arange(depth).reshape(-1, *[1] * (indices.ndim - axis))
    return np.where(is_on, on.reshape(()), off.reshape(()))
