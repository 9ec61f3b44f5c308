# SPDX-License-Identifier: Apache-2.0
"""Regions of strided copies."""

from __future__ import annotations

from collections.abc import Sequence

from opwest.importers.models.graph.types import Node, Shape
from opwest.importers.models.ir.movement import Axis, Move, Region, is_copy
from opwest.importers.models.lower.builder import Builder
from opwest.importers.models.operators.movement import strides_of


def move(node: Node, build: Builder, regions: Sequence[Region], inputs: int = 1) -> None:
    """Add a copy of the first inputs; a view if nothing moves."""
    values = tuple(build.value(node.input(i)) for i in range(inputs))
    if values and values[0].size == node.output.size and is_copy(regions, node.output.size):
        build.view(node.output, values[0])
        return
    build.add(Move(node.label, values, (build.value(node.output),), tuple(regions)))


Steps = Sequence[int | tuple[int, ...]]


def region(
    source: int | None,
    counts: Sequence[int],
    steps: Steps,
    places: Sequence[int],
    start: int = 0,
    place: int = 0,
    fill: int | float = 0,
    table: tuple[int, ...] | None = None,
) -> Region:
    """Return a region from its counts, the steps in the source and those in the result."""
    axes = tuple(Axis(*one) for one in zip(counts, steps, places, strict=True))
    return Region(source, axes, start, place, fill, table)


def box(
    source: int | None,
    result: Shape,
    low: Sequence[int],
    counts: Sequence[int],
    steps: Steps,
    start: int = 0,
    fill: int | float = 0,
    table: tuple[int, ...] | None = None,
) -> Region:
    """Return the region of a box of the result: `counts` elements from `low` on."""
    places = strides_of(result)
    first = sum(at * step for at, step in zip(low, places, strict=True))
    return region(source, counts, steps, places, start, first, fill, table)


def is_contiguous(data: Shape, starts: Sequence[int], steps: Sequence[int], counts: Sequence[int]) -> int | None:
    """Return the offset of a part whose elements follow each other; None if they do not."""
    strides = strides_of(data)
    expected = 1
    for count, step, stride in reversed([*zip(counts, steps, strides, strict=True)]):
        if count > 1:
            if step * stride != expected:
                return None
            expected *= count
    return sum(start * stride for start, stride in zip(starts, strides, strict=True))
