# SPDX-License-Identifier: Apache-2.0
"""Operators that change the shape or the order of elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from opwest.importers.models.graph.types import Node, Rules
from opwest.importers.models.interpret.registry import Arrays, interprets
from opwest.importers.models.operators import blocks, movement


@interprets("RESHAPE", "SQUEEZE", "EXPAND_DIMS")
def reshape(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """The same elements."""
    return arrays[0]


@interprets("TRANSPOSE")
def transpose(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """The dimensions in another order."""
    return np.transpose(arrays[0], movement.permutation(node))


@interprets("TILE")
def tile(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """Repeated along each dimension."""
    return np.tile(arrays[0], movement.multiples(node))


@interprets("BROADCAST_TO")
def broadcast(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """Under numpy's rule."""
    return np.broadcast_to(arrays[0], node.output.shape)


@interprets("REVERSE_V2")
def reverse(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """Some dimensions from the back."""
    return np.flip(arrays[0], tuple(movement.reversed_axes(node)))


@interprets("SPACE_TO_DEPTH")
def space_to_depth(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """Blocks become channels, row by row."""
    n, rows, columns, depth = node.output.shape
    block = node.options["block_size"]
    split = arrays[0].reshape(n, rows, block, columns, block, depth // block**2)
    return split.transpose(0, 1, 3, 2, 4, 5)


@interprets("DEPTH_TO_SPACE")
def depth_to_space(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """Channels become blocks."""
    n, rows, columns, depth = node.input(0).shape
    block = node.options["block_size"]
    split = arrays[0].reshape(n, rows, columns, block, block, depth // block**2)
    return split.transpose(0, 1, 3, 2, 4, 5)


@interprets("SPACE_TO_BATCH_ND")
def space_to_batch(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """Elements at the same place of all blocks become an image."""
    steps, paddings = blocks.block_shape(node)
    found = node.output.quantization
    is_quantised = found is not None and node.output.dtype in ("int8", "uint8", "int16")
    fill = found.zeros[0] if is_quantised and found is not None else 0
    padded = np.pad(arrays[0], ((0, 0), *paddings, (0, 0)), constant_values=fill)
    parts = [
        padded[(slice(None), *(slice(at, None, step) for at, step in zip(place, steps, strict=True)))]
        for place in np.ndindex(*steps)
    ]
    return np.concatenate(parts, axis=0)


@interprets("BATCH_TO_SPACE_ND")
def batch_to_space(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """The reverse, without the cropped edges."""
    steps, crops = blocks.block_shape(node)
    data = arrays[0]
    batch = data.shape[0] // int(np.prod(steps))
    whole = np.zeros((batch, *(n * s for n, s in zip(data.shape[1:], steps, strict=False)), data.shape[-1]), data.dtype)
    for number, place in enumerate(np.ndindex(*steps)):
        index = (slice(None), *(slice(at, None, step) for at, step in zip(place, steps, strict=True)))
        whole[index] = data[number * batch : (number + 1) * batch]
    inner = (slice(before, n - after) for (before, after), n in zip(crops, whole.shape[1:], strict=False))
    return whole[(slice(None), *inner)]
