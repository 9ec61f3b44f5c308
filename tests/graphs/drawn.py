# SPDX-License-Identifier: Apache-2.0
"""Random TFLite graphs: chains and directed graphs of 5 to 40 operators, each drawn from one seed."""

import numpy as np
from graphs import drawn_elements as elements
from graphs import drawn_layers as layers
from graphs import drawn_moves as moves
from graphs.drawing import MODES, Drawing, attempt

OPERATORS = {
    layers.convolution: 16, layers.depthwise: 10, layers.dense: 5, layers.pool: 6, elements.binary: 14,
    elements.requantise: 4, moves.concatenation: 9, moves.padding: 5, moves.cut: 5, moves.split: 4, moves.rearranged: 7,
    elements.reduction: 5, elements.unary: 7, elements.softmax: 1, elements.prelu: 1, moves.resize: 3,
    moves.depth_blocks: 2, moves.gather: 2, moves.indexed: 2, layers.padded: 5, moves.packing: 3, layers.product: 2,
    layers.transposed: 1, elements.shared_activation: 2, layers.ghost: 3, layers.inverted: 3, layers.excitation: 2,
    layers.cell: 2,
}  # fmt: skip
"""The functions that append operators, and how often."""

_FUNCTIONS = list(OPERATORS)
_SHARES = np.asarray(list(OPERATORS.values()), float) / sum(OPERATORS.values())


def drawn(seed, mode=None):
    """Return the graph of a seed, and its mode: the given one or a random one."""
    random = np.random.default_rng([seed, 1])
    draw = Drawing(random, mode or MODES[int(random.choice(len(MODES), p=[0.3, 0.15, 0.13, 0.12, 0.12, 0.18]))])
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
        attempt(draw.random.choice(_FUNCTIONS, p=_SHARES), draw)
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
