# SPDX-License-Identifier: Apache-2.0
"""Operators that take tensors apart and join them: views where elements follow each other, else strided copies."""

from __future__ import annotations

from math import prod

from opwest.importers.models.graph.types import Node, Tensor
from opwest.importers.models.ir.movement import Move
from opwest.importers.models.ir.program import Value
from opwest.importers.models.lower.builder import Builder, lowers
from opwest.importers.models.lower.regions import box, is_contiguous, region
from opwest.importers.models.operators import slices
from opwest.importers.models.operators.movement import strides_of


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
    tensors = [one for one in (node.input(i) for i in range(len(node.inputs))) if one.size or not one.is_constant]
    inner = prod(shape[axis + 1 :])
    lengths = [1 if node.kind == "PACK" or not one.shape else one.shape[axis] for one in tensors]
    tables = [slices.rescaling(one, node.output) for one in tensors]
    firsts = [sum(lengths[:i]) for i in range(len(lengths))]
    result = build.value(node.output)
    is_placed = [
        prod(shape[:axis]) == 1
        and table is None
        and tensors.count(one) == 1
        and build.place(one, result, first * inner)
        for one, table, first in zip(tensors, tables, firsts, strict=True)
    ]
    outer = prod(shape[:axis])
    flat = (outer, shape[axis] * inner)
    if not any(is_placed):
        inputs = list(dict.fromkeys(build.value(one) for one in tensors))
        regions = [
            box(
                inputs.index(build.value(one)),
                flat,
                (0, first * inner),
                (outer, n * inner),
                (n * inner, 1),
                table=table,
            )
            for one, table, first, n in zip(tensors, tables, firsts, lengths, strict=True)
        ]
        build.add(Move(node.label, tuple(inputs), (result,), tuple(regions)))
        return
    for one, table, first, n, done in zip(tensors, tables, firsts, lengths, is_placed, strict=True):
        if not done:
            part = build.part(result, (n * inner,), first * inner)
            build.add(
                Move(node.label, (build.value(one),), (part,), (region(0, (n * inner,), (1,), (1,), table=table),))
            )
