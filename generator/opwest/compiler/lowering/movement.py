# SPDX-License-Identifier: Apache-2.0
"""Operators that change the shape or the order of elements: views and strided copies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import prod

from opwest.compiler.graph.types import Node
from opwest.compiler.ir.movement import RESULT, Axis, Move, Region
from opwest.compiler.lowering.builder import LOWERINGS, Builder, box, is_contiguous, lowers, move, region, whole
from opwest.compiler.reference.run import run_node
from opwest.compiler.semantics import movement, windows
from opwest.compiler.semantics.movement import strides_of

LOWERINGS.update(
    {
        **dict.fromkeys(
            ("RESHAPE", "SQUEEZE", "EXPAND_DIMS"),
            lambda node, build: build.view(node.output, build.value(node.input(0))),
        ),
        "ZEROS_LIKE": lambda node, build: build.lower(Move, node, (), (whole(None, node.output.shape),)),
    }
)


@lowers("TRANSPOSE")
def transpose(node: Node, build: Builder) -> None:
    """The steps in another order."""
    strides = strides_of(node.input(0).shape)
    move(node, build, [whole(0, node.output.shape, [strides[axis] for axis in movement.permutation(node)])])


@lowers("TILE")
def tile(node: Node, build: Builder) -> None:
    """Each dimension is two loops: the repetitions, and the elements."""
    shape = node.input(0).shape
    sources, places = strides_of(shape), strides_of(node.output.shape)
    axes: list[Axis] = []
    for n, times, source, place in zip(shape, movement.multiples(node), sources, places, strict=True):
        axes += [Axis(times, 0, n * place), Axis(n, source, place)]
    move(node, build, [Region(0, tuple(axes))])


@lowers("BROADCAST_TO")
def broadcast(node: Node, build: Builder) -> None:
    """Steps of 0."""
    shape, rank = node.input(0).shape, len(node.output.shape)
    steps = [0 if n == 1 else step for n, step in zip(shape, strides_of(shape), strict=True)]
    move(node, build, [whole(0, node.output.shape, [0] * (rank - len(shape)) + steps)])


@lowers("REVERSE_V2")
def reverse(node: Node, build: Builder) -> None:
    """Negative steps."""
    shape = node.input(0).shape
    steps, start = strides_of(shape), 0
    for axis in movement.reversed_axes(node):
        start += (shape[axis] - 1) * steps[axis]
        steps[axis] = -steps[axis]
    move(node, build, [whole(0, node.output.shape, steps, start)])


@lowers("RESIZE_NEAREST_NEIGHBOR")
def nearest(node: Node, build: Builder) -> None:
    """Steps of 0 for whole factors, else tables of rows and columns."""
    n, height, width, depth = node.input(0).shape
    steps = strides_of((n, height, width, depth))
    counts: list[int] = []
    sources: list[int | tuple[int, ...]] = []
    places: list[int] = []
    for axis, place in enumerate(strides_of(node.output.shape)):
        taken = windows.nearest(node, axis) if axis in (1, 2) else tuple(range(node.output.shape[axis]))
        # A whole factor is two loops: the elements, and their repetitions.
        times = set(Counter(taken).values())
        factor = times.pop() if len(times) == 1 else 1
        counts += [len(taken) // factor, factor]
        sources += [tuple(steps[axis] * at for at in taken[::factor]), 0]
        places += [place * factor, place]
    move(node, build, [region(0, counts, sources, places)])


@lowers("SPACE_TO_DEPTH", "DEPTH_TO_SPACE")
def depth_blocks(node: Node, build: Builder) -> None:
    """Six loops: images, rows, columns, rows and columns of a block, channels."""
    block = node.options["block_size"]
    is_inverse = node.kind == "DEPTH_TO_SPACE"
    deep, wide = (node.input(0).shape, node.output.shape)[:: 1 if is_inverse else -1]
    n, rows, columns, _ = deep
    channels = wide[3]
    flat = strides_of((n, rows, columns, block, block, channels))
    a, b, c, d = strides_of(wide)
    spread = [a, block * b, block * c, b, c, d]
    counts = [n, rows, columns, block, block, channels]
    order = [0, 1, 3, 2, 4, 5] if is_inverse else [0, 1, 2, 3, 4, 5]
    steps, places = (flat, spread) if is_inverse else (spread, flat)
    counts, steps, places = ([some[i] for i in order] for some in (counts, steps, places))
    move(node, build, [region(0, counts, steps, places)])


@lowers("SPACE_TO_BATCH_ND", "BATCH_TO_SPACE_ND")
def batch_blocks(node: Node, build: Builder) -> None:
    """One copy for each place in a block; the padding is filled first."""
    is_inverse = node.kind == "BATCH_TO_SPACE_ND"
    steps, edges = movement.block_shape(node)
    many, single = (node.input(0).shape, node.output.shape)[:: 1 if is_inverse else -1]
    batch, depth = single[0], single[-1]
    regions: list[Region] = []
    if not is_inverse and any(sum(pair) for pair in edges):
        regions.append(whole(None, many, fill=movement.zero_of(node.output)))
    many_steps, one_steps = strides_of(many), strides_of(single)
    rows, columns = steps[0], steps[1] if len(steps) > 1 else 1
    for number in range(rows * columns):
        place = divmod(number, columns)[: len(steps)] if len(steps) > 1 else (number,)
        counts, firsts = [], []
        for at, step, (before, _), n, total in zip(place, steps, edges, many[1:], single[1:], strict=False):
            # Element k of the image in the batch is element k * step + at - before of the whole one.
            low = max(0, -(-(before - at) // step))
            high = min(n, -(-(total + before - at) // step))
            counts.append(high - low)
            firsts.append((low, low * step + at - before))
        if min(counts) < 1:
            continue
        in_many = number * batch * many_steps[0] + sum(f * s for (f, _), s in zip(firsts, many_steps[1:], strict=False))
        in_one = sum(f * s for (_, f), s in zip(firsts, one_steps[1:], strict=False))
        spread = [one_steps[0], *(s * step for s, step in zip(one_steps[1:], steps, strict=False)), 1]
        all_counts = [batch, *counts, depth]
        if is_inverse:
            regions.append(region(0, all_counts, many_steps, spread, in_many, in_one))
        else:
            regions.append(region(0, all_counts, spread, many_steps, in_one, in_many))
    move(node, build, regions)


@lowers("PAD", "PADV2")
def pad(node: Node, build: Builder) -> None:
    """The data, then the edges of each dimension. The operator before writes contiguous data in place if possible."""
    data, shape = node.input(0).shape, node.output.shape
    amounts = movement.amounts(node)
    fill = movement.fill_of(node)
    before = [first for first, _ in amounts]
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
    amounts = movement.amounts(node)
    less = movement.mirror_offset(node)
    before = [first for first, _ in amounts]
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
    if value.is_constant:
        build.lower(Move, node, (), (whole(None, shape, fill=value.content.reshape(-1)[0].item()),))
    else:
        build.lower(Move, node, (value,), (whole(0, shape),))


@lowers("SHAPE", "RANK", "RANGE", "BROADCAST_ARGS", "WHERE")
def known(node: Node, build: Builder) -> None:
    """Numbers that are known at import: usually folded before."""
    [content] = run_node(node, [None if tensor is None else tensor.content for tensor in node.inputs], build.rules)
    shape = node.output.shape
    build.lower(Move, node, (build.constant(node.output.name, content),), (whole(0, shape, strides_of(shape)),))
