# SPDX-License-Identifier: Apache-2.0
"""Operators that select by indices, and interpolation. Constant indices become strided copies."""

from __future__ import annotations

from math import prod

import numpy as np

from opwest.importers.models.graph.types import Node
from opwest.importers.models.ir.movement import (
    GatherSlices,
    Interpolate,
    Lookup,
    Move,
    OneHot,
    ScatterSlices,
    UpdateSlice,
)
from opwest.importers.models.lower.builder import Builder, lowers
from opwest.importers.models.lower.regions import region
from opwest.importers.models.operators import indexing, resizing
from opwest.importers.models.operators.movement import strides_of


@lowers("GATHER")
def gather(node: Node, build: Builder) -> None:
    """By one index along an axis."""
    data, indices = node.input(0), node.input(1)
    axis, batches = indexing.gather_axes(node)
    batch, outer = prod(data.shape[:batches]), prod(data.shape[batches:axis])
    limit, inner = data.shape[axis], prod(data.shape[axis + 1 :])
    count = prod(indices.shape[batches:])
    operands = (build.value(data), build.value(indices)), (build.value(node.output),)
    if indices.is_constant and batches == 0:
        offsets = tuple(int(i) * inner for i in indices.content.reshape(-1))
        steps, places = (limit * inner, offsets, 1), strides_of((outer, count, inner))
        build.add(Move(node.label, operands[0][:1], operands[1], (region(0, (outer, count, inner), steps, places),)))
        return
    lookup = (Lookup(limit, inner),)
    strides = (outer * limit * inner, limit * inner)
    build.add(GatherSlices(node.label, *operands, lookup, batch, strides[0], outer, strides[1], count, inner))


@lowers("GATHER_ND")
def gather_nd(node: Node, build: Builder) -> None:
    """By tuples of indices."""
    data, indices = node.input(0), node.input(1)
    depth = indices.shape[-1]
    lookups = _lookups(data.shape, depth)
    inner, count = prod(data.shape[depth:]), indices.size // depth
    operands = (build.value(data), build.value(indices)), (build.value(node.output),)
    if indices.is_constant:
        weights = np.asarray([one.stride for one in lookups])
        offsets = tuple(int(n) for n in indices.content.reshape(-1, depth).astype(np.int64) @ weights)
        moved = region(0, (count, inner), (offsets, 1), (inner, 1))
        build.add(Move(node.label, operands[0][:1], operands[1], (moved,)))
        return
    build.add(GatherSlices(node.label, *operands, lookups, 1, 0, 1, 0, count, inner))


def _lookups(shape: tuple[int, ...], depth: int) -> tuple[Lookup, ...]:
    return tuple(Lookup(n, step) for n, step in zip(shape[:depth], strides_of(shape), strict=False))


@lowers("EMBEDDING_LOOKUP")
def embedding(node: Node, build: Builder) -> None:
    """Rows by one index."""
    indices, data = node.input(0), node.input(1)
    inner = prod(data.shape[1:])
    scales = None
    if indexing.is_hybrid(node):
        assert data.quantization is not None
        scales = np.asarray(data.quantization.scales, np.float32)
    operands = (build.value(data), build.value(indices)), (build.value(node.output),)
    lookup = (Lookup(data.shape[0], inner),)
    build.add(GatherSlices(node.label, *operands, lookup, 1, 0, 1, 0, indices.size, inner, scales))


@lowers("SCATTER_ND")
def scatter(node: Node, build: Builder) -> None:
    """Additions at tuples of indices."""
    indices, updates = node.input(0), node.input(1)
    depth, shape = indices.shape[-1], node.output.shape
    operands = (build.value(indices), build.value(updates)), (build.value(node.output),)
    inner = prod(shape[depth:])
    build.add(ScatterSlices(node.label, *operands, _lookups(shape, depth), indices.size // depth, inner))


@lowers("DYNAMIC_UPDATE_SLICE")
def update(node: Node, build: Builder) -> None:
    """A view of the update if it replaces all data."""
    if node.input(1).shape == node.output.shape:
        build.view(node.output, build.value(node.input(1)))
        return
    values = tuple(build.value(node.input(i)) for i in range(3))
    build.add(UpdateSlice(node.label, values, (build.value(node.output),)))


@lowers("ONE_HOT")
def one_hot(node: Node, build: Builder) -> None:
    """As it is."""
    indices = node.input(0)
    axis = indexing.one_hot_axis(node)
    values = tuple(build.value(node.input(i)) for i in (0, 2, 3))
    outer, inner = prod(indices.shape[:axis]), prod(indices.shape[axis:])
    build.add(OneHot(node.label, values, (build.value(node.output),), outer, node.output.shape[axis], inner))


@lowers("RESIZE_BILINEAR")
def bilinear(node: Node, build: Builder) -> None:
    """As it is."""
    operands = (build.value(node.input(0)),), (build.value(node.output),)
    build.add(Interpolate(node.label, *operands, resizing.line(node, 1), resizing.line(node, 2)))
