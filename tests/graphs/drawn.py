# SPDX-License-Identifier: Apache-2.0
"""Random TFLite graphs: chains and directed graphs of 5 to 40 operators, each drawn from one seed."""

import numpy as np
from graphs.drawing import MODES, Drawing
from graphs.drawn_elements import binary, prelu, reduction, requantise, shared_activation, softmax, unary
from graphs.drawn_layers import (
    cell,
    convolution,
    dense,
    depthwise,
    excitation,
    ghost,
    inverted,
    padded,
    pool,
    product,
    transposed,
)
from graphs.drawn_moves import (
    concatenation,
    cut,
    depth_blocks,
    gather,
    indexed,
    packing,
    padding,
    rearranged,
    resize,
    split,
)

OPERATORS = {
    convolution: 16,
    depthwise: 10,
    dense: 5,
    pool: 6,
    binary: 14,
    requantise: 4,
    concatenation: 9,
    padding: 5,
    cut: 5,
    split: 4,
    rearranged: 7,
    reduction: 5,
    unary: 7,
    softmax: 1,
    prelu: 1,
    resize: 3,
    depth_blocks: 2,
    gather: 2,
    indexed: 2,
    padded: 5,
    packing: 3,
    product: 2,
    transposed: 1,
    shared_activation: 2,
    ghost: 3,
    inverted: 3,
    excitation: 2,
    cell: 2,
}
"""The functions that append operators, and how often."""

_FUNCTIONS = list(OPERATORS)
_SHARES = np.asarray(list(OPERATORS.values()), float) / sum(OPERATORS.values())


def drawn(seed):
    """Return the graph of a seed, and its mode."""
    random = np.random.default_rng([seed, 1])
    draw = Drawing(random, MODES[int(random.choice(len(MODES), p=[0.3, 0.15, 0.13, 0.12, 0.12, 0.18]))])
    batch = draw.choice([1, 1, 1, 1, 2, 3])
    for _ in range(draw.choice([1, 1, 1, 2, 3])):
        if draw.chance(0.85):
            shape = (batch, draw.number(1, 12), draw.number(1, 12), draw.number(1, 8))
        else:
            shape = (batch, draw.number(1, 40))
        draw.input(shape)
    wanted = draw.number(5, 12) if draw.chance(0.7) else draw.number(12, 40)
    tries = 0
    while len(draw.model.graph.operators) < wanted and tries < 10 * wanted:
        tries += 1
        draw.random.choice(_FUNCTIONS, p=_SHARES)(draw)
    _outputs(draw)
    return draw.model, draw.mode


def _outputs(draw):
    """Choose outputs: results that nothing reads, most of them, and some intermediate ones."""
    results = [one for one in draw.tensors if one not in draw.model.graph.inputs]
    ends = [one for one in results if id(one) not in draw.used]
    kept = [one for one in ends if draw.chance(0.85)] or ends[-1:] or results[-1:]
    kept += [one for one in results if id(one) in draw.used and draw.chance(0.06)]
    if not kept:
        kept = [draw.model.graph.inputs[0]]
    draw.model.output(*{id(one): one for one in kept[-6:]}.values())
