# SPDX-License-Identifier: Apache-2.0
"""Padding and filling."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from opwest.importers.models.graph.types import Node
from opwest.importers.models.interpret.run import run_node
from opwest.importers.models.ir.movement import RESULT, Move, Region
from opwest.importers.models.lower.builder import Builder, lowers
from opwest.importers.models.lower.regions import box, is_contiguous, move, region
from opwest.importers.models.operators import padding
from opwest.importers.models.operators.movement import strides_of


@lowers("PAD", "PADV2")
def pad(node: Node, build: Builder) -> None:
    """The data, then the edges of each dimension. The operator before writes contiguous data in place if possible."""
    data, shape = node.input(0).shape, node.output.shape
    amounts = padding.amounts(node)
    fill = padding.fill_of(node)
    before = [one for one, _ in amounts]
    if fill is not None and _in_place(node, build, before, fill):
        return
    regions = [box(0, shape, before, data, strides_of(data))]
    for axis, (first, last) in enumerate(amounts):
        for low, count in ((0, first), (first + data[axis], last)):
            if count:
                lows = [*before[:axis], low, *[0] * (len(data) - axis - 1)]
                counts = [*data[:axis], count, *shape[axis + 1 :]]
                source, value = (None, fill) if fill is not None else (2, 0)
                regions.append(box(source, shape, lows, counts, [0] * len(data), fill=value))
    move(node, build, regions, 1 if fill is not None else 3)


def _in_place(node: Node, build: Builder, before: Sequence[int], fill: int | float) -> bool:
    """Fill the edges before and after data that is written in place; return whether it is."""
    data, shape, result = node.input(0), node.output.shape, build.value(node.output)
    if data.shape == shape:
        return False
    first = is_contiguous(shape, before, [1] * len(shape), data.shape)
    if first is None or not build.place(data, result, first):
        return False
    end = first + prod(data.shape)
    for low, high in ((0, first), (end, prod(shape))):
        if high > low:
            part = build.part(result, (high - low,), low)
            build.add(Move(node.label, (), (part,), (region(None, (high - low,), (0,), (1,), fill=fill),)))
    return True


@lowers("MIRROR_PAD")
def mirror(node: Node, build: Builder) -> None:
    """The data, then the edges of each dimension from the result itself, the innermost dimension first."""
    data, shape = node.input(0).shape, node.output.shape
    amounts = padding.amounts(node)
    less = padding.mirror_offset(node)
    before = [one for one, _ in amounts]
    regions: list[Region] = [box(0, shape, before, data, strides_of(data))]
    strides = strides_of(shape)
    for axis in reversed(range(len(data))):
        first, last = amounts[axis]
        end = first + data[axis]
        # The elements before and after, and the source of the first of them.
        for low, count, source in ((0, first, 2 * first - 1 + less), (end, last, end - 1 - less)):
            if count:
                lows = [*before[:axis], low, *[0] * (len(data) - axis - 1)]
                counts = [*data[:axis], count, *shape[axis + 1 :]]
                steps = [-step if i == axis else step for i, step in enumerate(strides)]
                lows_of_source = [source if i == axis else at for i, at in enumerate(lows)]
                start = sum(at * step for at, step in zip(lows_of_source, strides, strict=True))
                regions.append(box(RESULT, shape, lows, counts, steps, start))
    move(node, build, regions)


@lowers("FILL")
def fill(node: Node, build: Builder) -> None:
    """Of a constant, or of a computed element."""
    shape, value = node.output.shape, node.input(1)
    zeros = [0] * len(shape)
    if value.is_constant:
        one = box(None, shape, zeros, shape, zeros, fill=value.content.reshape(-1)[0].item())
        build.add(Move(node.label, (), (build.value(node.output),), (one,)))
        return
    copied = box(0, shape, zeros, shape, zeros)
    build.add(Move(node.label, (build.value(value),), (build.value(node.output),), (copied,)))


@lowers("ZEROS_LIKE")
def zeros(node: Node, build: Builder) -> None:
    """Zeros, if they are no constant."""
    shape = node.output.shape
    none = [0] * len(shape)
    build.add(Move(node.label, (), (build.value(node.output),), (box(None, shape, none, shape, none),)))


@lowers("SHAPE", "RANK", "RANGE", "BROADCAST_ARGS", "WHERE")
def known(node: Node, build: Builder) -> None:
    """Numbers that are known at import: usually folded before."""
    [content] = run_node(node, [None if one is None else one.content for one in node.inputs], build.rules)
    shape = node.output.shape
    constant = build.constant(node.output.name, content)
    copied = box(0, shape, [0] * len(shape), shape, strides_of(shape))
    build.add(Move(node.label, (constant,), (build.value(node.output),), (copied,)))
