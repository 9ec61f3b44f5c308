# SPDX-License-Identifier: Apache-2.0
"""Operators that take tensors apart and join them: views where elements follow each other, else strided copies."""

from __future__ import annotations

from math import prod

import numpy as np

from opwest.compiler.graph.types import Node, Tensor
from opwest.compiler.ir.movement import GatherSlices, Interpolate, Lookup, Move, OneHot, ScatterSlices, UpdateSlice
from opwest.compiler.ir.program import Value
from opwest.compiler.lowering.builder import LOWERINGS, Builder, box, is_contiguous, lowers, region
from opwest.compiler.semantics import slices, windows
from opwest.compiler.semantics.movement import strides_of


@lowers("SLICE", "STRIDED_SLICE")
def cut(node: Node, build: Builder) -> None:
    """A part of each dimension."""
    parts = slices.cuts(node)
    shape = tuple(part.size for part in parts)
    starts, steps, counts = ([getattr(part, name) for part in parts] for name in ("start", "step", "count"))
    _part(node.output, node.label, build, build.value(node.input(0)), (shape, starts, steps, counts))


Geometry = tuple[tuple[int, ...], list[int], list[int], list[int]]


def _part(tensor: Tensor, label: str, build: Builder, data: Value, geometry: Geometry) -> None:
    """Add one part of the data: its shape, first elements, steps, counts."""
    shape, starts, steps, counts = geometry
    offset = is_contiguous(*geometry)
    if offset is not None:
        build.view(tensor, data, offset)
        return
    strides = strides_of(shape)
    start = sum(at * stride for at, stride in zip(starts, strides, strict=True))
    jumps = [step * stride for step, stride in zip(steps, strides, strict=True)]
    moved = region(0, counts, jumps, strides_of(tuple(counts)), start)
    build.add(Move(label, (data,), (build.value(tensor),), (moved,)))


@lowers("SPLIT", "SPLIT_V", "UNPACK")
def split(node: Node, build: Builder) -> None:
    """One part for each result."""
    axis, sizes = slices.parts(node)
    tensor = node.input(1 if node.kind == "SPLIT" else 0)
    rank, first = len(tensor.shape), 0
    data = build.value(tensor)
    for output, size in zip(node.outputs, sizes, strict=True):
        starts = [first if i == axis else 0 for i in range(rank)]
        counts = [size if i == axis else n for i, n in enumerate(tensor.shape)]
        _part(output, node.label, build, data, (tensor.shape, starts, [1] * rank, counts))
        first += size


@lowers("CONCATENATION", "PACK")
def join(node: Node, build: Builder) -> None:
    """Along an outermost dimension the inputs are written in place where possible."""
    axis, shape = slices.joined(node)
    # Converters write constants without elements as operands.
    operands = [node.input(i) for i in range(len(node.inputs))]
    tensors = [tensor for tensor in operands if tensor.size or not tensor.is_constant]
    inner = prod(shape[axis + 1 :])
    lengths = [1 if node.kind == "PACK" or not tensor.shape else tensor.shape[axis] for tensor in tensors]
    tables = [slices.rescaling(tensor, node.output) for tensor in tensors]
    firsts = [sum(lengths[:i]) for i in range(len(lengths))]
    result = build.value(node.output)
    is_placed = [
        prod(shape[:axis]) == 1
        and table is None
        and tensors.count(tensor) == 1
        and build.place(tensor, result, first * inner)
        for tensor, table, first in zip(tensors, tables, firsts, strict=True)
    ]
    outer = prod(shape[:axis])
    flat = (outer, shape[axis] * inner)
    parts = zip(tensors, tables, firsts, lengths, is_placed, strict=True)
    if not any(is_placed):
        inputs = list(dict.fromkeys(build.value(tensor) for tensor in tensors))
        regions = []
        for tensor, table, first, n, _ in parts:
            source, counts = inputs.index(build.value(tensor)), (outer, n * inner)
            regions.append(box(source, flat, (0, first * inner), counts, (n * inner, 1), table=table))
        build.lower(Move, node, inputs, tuple(regions))
        return
    for tensor, table, first, n, done in parts:
        if not done:
            part = build.part(result, (n * inner,), first * inner)
            copied = region(0, (n * inner,), (1,), (1,), table=table)
            build.add(Move(node.label, (build.value(tensor),), (part,), (copied,)))


@lowers("GATHER")
def gather(node: Node, build: Builder) -> None:
    """By one index along an axis."""
    data, indices = node.input(0), node.input(1)
    axis, batches = slices.gather_axes(node)
    batch, outer = prod(data.shape[:batches]), prod(data.shape[batches:axis])
    limit, inner = data.shape[axis], prod(data.shape[axis + 1 :])
    count = prod(indices.shape[batches:])
    if indices.is_constant and batches == 0:
        offsets = tuple(int(i) * inner for i in indices.content.reshape(-1))
        steps, places = (limit * inner, offsets, 1), strides_of((outer, count, inner))
        build.lower(Move, node, (data,), (region(0, (outer, count, inner), steps, places),))
        return
    lookup = (Lookup(limit, inner),)
    strides = (outer * limit * inner, limit * inner)
    build.lower(GatherSlices, node, (data, indices), lookup, batch, strides[0], outer, strides[1], count, inner)


@lowers("GATHER_ND")
def gather_nd(node: Node, build: Builder) -> None:
    """By tuples of indices."""
    data, indices = node.input(0), node.input(1)
    depth = indices.shape[-1]
    lookups = _lookups(data.shape, depth)
    inner, count = prod(data.shape[depth:]), indices.size // depth
    if indices.is_constant:
        weights = np.asarray([lookup.stride for lookup in lookups])
        offsets = tuple(int(n) for n in indices.content.reshape(-1, depth).astype(np.int64) @ weights)
        build.lower(Move, node, (data,), (region(0, (count, inner), (offsets, 1), (inner, 1)),))
        return
    build.lower(GatherSlices, node, (data, indices), lookups, 1, 0, 1, 0, count, inner)


def _lookups(shape: tuple[int, ...], depth: int) -> tuple[Lookup, ...]:
    return tuple(Lookup(n, step) for n, step in zip(shape[:depth], strides_of(shape), strict=False))


@lowers("EMBEDDING_LOOKUP")
def embedding(node: Node, build: Builder) -> None:
    """Rows by one index."""
    indices, data = node.input(0), node.input(1)
    inner = prod(data.shape[1:])
    scales = None
    if slices.is_hybrid(node):
        assert data.quantization is not None
        scales = np.asarray(data.quantization.scales, np.float32)
    lookup = (Lookup(data.shape[0], inner),)
    build.lower(GatherSlices, node, (data, indices), lookup, 1, 0, 1, 0, indices.size, inner, scales)


@lowers("SCATTER_ND")
def scatter(node: Node, build: Builder) -> None:
    """Additions at tuples of indices."""
    indices, updates = node.input(0), node.input(1)
    depth, shape = indices.shape[-1], node.output.shape
    inner = prod(shape[depth:])
    build.lower(ScatterSlices, node, (indices, updates), _lookups(shape, depth), indices.size // depth, inner)


@lowers("DYNAMIC_UPDATE_SLICE")
def update(node: Node, build: Builder) -> None:
    """A view of the update if it replaces all data."""
    if node.input(1).shape == node.output.shape:
        build.view(node.output, build.value(node.input(1)))
        return
    build.lower(UpdateSlice, node, node.inputs[:3])


@lowers("ONE_HOT")
def one_hot(node: Node, build: Builder) -> None:
    """One of two values by the index."""
    indices, axis = node.input(0), slices.one_hot_axis(node)
    outer, inner = prod(indices.shape[:axis]), prod(indices.shape[axis:])
    build.lower(OneHot, node, (indices, *node.inputs[2:4]), outer, node.output.shape[axis], inner)


LOWERINGS["RESIZE_BILINEAR"] = lambda node, build: build.lower(
    Interpolate, node, node.inputs[:1], windows.line(node, 1), windows.line(node, 2)
)
