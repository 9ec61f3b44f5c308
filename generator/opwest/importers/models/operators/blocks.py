# SPDX-License-Identifier: Apache-2.0
"""Operators that exchange blocks of the image for channels or batches.

Sources in TFLite: kernels/space_to_depth.cc, depth_to_space.cc, space_to_batch_nd.cc, batch_to_space_nd.cc.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from opwest.importers.models.graph.faults import Unsupported
from opwest.importers.models.graph.spec import Operator, Result, specify
from opwest.importers.models.graph.types import Node
from opwest.importers.models.operators.movement import INDEX, MOVED, integers

MOST_PLACES = 1 << 10
"""The most elements of a block: each is a copy of its own."""


def _block(node: Node) -> int:
    block = int(node.options["block_size"])
    if len(node.input(0).shape) != 4 or block < 1:
        raise Unsupported(f"blocks of {block} in shape {list(node.input(0).shape)}", "4 dimensions, positive blocks")
    return block


def _space_to_depth(node: Node) -> Sequence[Result]:
    block = _block(node)
    n, height, width, depth = node.input(0).shape
    if height % block or width % block:
        raise Unsupported(f"blocks of {block} in {height} rows and {width} columns")
    return [(node.input(0).dtype, (n, height // block, width // block, depth * block * block))]


def _depth_to_space(node: Node) -> Sequence[Result]:
    block = _block(node)
    n, height, width, depth = node.input(0).shape
    if depth % (block * block):
        raise Unsupported(f"blocks of {block} from {depth} channels")
    return [(node.input(0).dtype, (n, height * block, width * block, depth // (block * block)))]


def block_shape(node: Node) -> tuple[list[int], list[tuple[int, int]]]:
    """Return the blocks of SPACE_TO_BATCH_ND or BATCH_TO_SPACE_ND and the paddings or crops. Raises Unsupported."""
    rank, blocks, edges = len(node.input(0).shape), integers(node, 1), integers(node, 2)
    if not 3 <= rank <= 4 or len(blocks) != rank - 2 or len(edges) != 2 * len(blocks):
        raise Unsupported(
            f"blocks {blocks}, edges {edges} for shape {list(node.input(0).shape)}", "3 or 4 dimensions, 1 or 2 blocks"
        )
    if min(blocks) < 1 or min(edges) < 0 or prod(blocks) > MOST_PLACES:
        raise Unsupported(
            f"blocks {blocks}, edges {edges}", f"blocks of 1 to {MOST_PLACES} elements, edges of at least 0"
        )
    return blocks, list(zip(edges[::2], edges[1::2], strict=True))


def _space_to_batch(node: Node) -> Sequence[Result]:
    blocks, paddings = block_shape(node)
    batch, *space, depth = node.input(0).shape
    padded = [n + sum(pair) for n, pair in zip(space, paddings, strict=True)]
    if any(n % block for n, block in zip(padded, blocks, strict=True)):
        raise Unsupported(f"blocks {blocks} in a padded image of {padded}")
    counts = [n // block for n, block in zip(padded, blocks, strict=True)]
    return [(node.input(0).dtype, (batch * prod(blocks), *counts, depth))]


def _batch_to_space(node: Node) -> Sequence[Result]:
    blocks, crops = block_shape(node)
    batch, *space, depth = node.input(0).shape
    if batch % prod(blocks):
        raise Unsupported(f"blocks {blocks} from {batch} images")
    counts = [n * block - sum(pair) for n, block, pair in zip(space, blocks, crops, strict=True)]
    return [(node.input(0).dtype, (batch // prod(blocks), *counts, depth))]


specify(
    Operator("SPACE_TO_DEPTH", _space_to_depth, (MOVED,), {"block_size": 0}),
    Operator("DEPTH_TO_SPACE", _depth_to_space, (MOVED,), {"block_size": 0}),
    Operator("SPACE_TO_BATCH_ND", _space_to_batch, (f"{MOVED} {INDEX} {INDEX}",), known=(1, 2)),
    Operator("BATCH_TO_SPACE_ND", _batch_to_space, (f"{MOVED} {INDEX} {INDEX}",), known=(1, 2)),
)
