# SPDX-License-Identifier: Apache-2.0
"""Operators that change the shape or the order of elements: views and strided copies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from opwest.importers.models.graph.types import Node
from opwest.importers.models.ir.movement import Axis, Region
from opwest.importers.models.lower.builder import Builder, lowers
from opwest.importers.models.lower.regions import box, move, region
from opwest.importers.models.operators import blocks, movement, resizing
from opwest.importers.models.operators.movement import strides_of


@lowers("RESHAPE", "SQUEEZE", "EXPAND_DIMS")
def reshape(node: Node, build: Builder) -> None:
    """A view."""
    build.view(node.output, build.value(node.input(0)))


def _whole(node: Node, steps: Sequence[int | tuple[int, ...]], start: int = 0) -> Region:
    """Return the region of the whole result with these steps in the first input."""
    shape = node.output.shape
    return box(0, shape, [0] * len(shape), shape, steps, start)


@lowers("TRANSPOSE")
def transpose(node: Node, build: Builder) -> None:
    """The steps in another order."""
    strides = strides_of(node.input(0).shape)
    move(node, build, [_whole(node, [strides[axis] for axis in movement.permutation(node)])])


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
    move(node, build, [_whole(node, [0] * (rank - len(shape)) + steps)])


@lowers("REVERSE_V2")
def reverse(node: Node, build: Builder) -> None:
    """Negative steps."""
    shape = node.input(0).shape
    steps, start = strides_of(shape), 0
    for axis in movement.reversed_axes(node):
        start += (shape[axis] - 1) * steps[axis]
        steps[axis] = -steps[axis]
    move(node, build, [_whole(node, steps, start)])


@lowers("RESIZE_NEAREST_NEIGHBOR")
def nearest(node: Node, build: Builder) -> None:
    """Steps of 0 for whole factors, else tables of rows and columns."""
    n, height, width, depth = node.input(0).shape
    steps = strides_of((n, height, width, depth))
    counts: list[int] = []
    sources: list[int | tuple[int, ...]] = []
    places: list[int] = []
    for axis, place in enumerate(strides_of(node.output.shape)):
        taken = resizing.nearest(node, axis) if axis in (1, 2) else tuple(range(node.output.shape[axis]))
        factor = _repetition(taken)
        # A whole factor is two loops: the elements, and their repetitions.
        counts += [len(taken) // factor, factor]
        sources += [tuple(steps[axis] * at for at in taken[::factor]), 0]
        places += [place * factor, place]
    move(node, build, [region(0, counts, sources, places)])


def _repetition(taken: Sequence[int]) -> int:
    """Return how many times each element is repeated, 1 if the times differ."""
    counts = set(Counter(taken).values())
    return counts.pop() if len(counts) == 1 else 1


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
    ordered = [[one[i] for i in order] for one in (counts, steps, places)]
    move(node, build, [region(0, ordered[0], ordered[1], ordered[2])])


@lowers("SPACE_TO_BATCH_ND", "BATCH_TO_SPACE_ND")
def batch_blocks(node: Node, build: Builder) -> None:
    """One copy for each place in a block; the padding is filled first."""
    is_inverse = node.kind == "BATCH_TO_SPACE_ND"
    steps, edges = blocks.block_shape(node)
    many, one = (node.input(0).shape, node.output.shape)[:: 1 if is_inverse else -1]
    batch, depth = one[0], one[-1]
    regions: list[Region] = []
    if not is_inverse and any(sum(pair) for pair in edges):
        found = node.output.quantization
        is_quantised = found is not None and node.output.dtype in ("int8", "uint8", "int16")
        fill = found.zeros[0] if is_quantised and found is not None else 0
        regions.append(box(None, many, [0] * len(many), many, [0] * len(many), fill=fill))
    many_steps, one_steps = strides_of(many), strides_of(one)
    rows, columns = steps[0], steps[1] if len(steps) > 1 else 1
    for number in range(rows * columns):
        place = divmod(number, columns)[: len(steps)] if len(steps) > 1 else (number,)
        counts, firsts = [], []
        for at, step, (before, _), n, total in zip(place, steps, edges, many[1:], one[1:], strict=False):
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
