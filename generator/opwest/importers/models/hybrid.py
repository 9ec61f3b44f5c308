# SPDX-License-Identifier: Apache-2.0
"""Convert int8 weights of layers with float32 data to float32: larger and exact, instead of TFLite's hybrid kernels."""

from __future__ import annotations

import numpy as np

from opwest.importers.models.graph.types import Graph, Tensor
from opwest.importers.models.operators.hybrid import is_hybrid


def dequantise_weights(graph: Graph) -> bool:
    """Replace the weights of the graph's nodes; return whether there are any.

    Weights without a scale are left to the check of the graph.
    """
    done: dict[Tensor, Tensor] = {}
    for node in graph.nodes:
        if len(node.inputs) > 1 and None not in node.inputs[:2] and is_hybrid(node):
            node.inputs = tuple(
                _plain(one, done) if number == 1 and one is not None else one for number, one in enumerate(node.inputs)
            )
    return bool(done)


def _plain(tensor: Tensor, done: dict[Tensor, Tensor]) -> Tensor:
    """Return a constant as float32."""
    numbers = tensor.quantization
    if numbers is None or not tensor.is_constant:
        return tensor
    if tensor not in done:
        shape = [1] * len(tensor.shape)
        if numbers.axis is not None:
            shape[numbers.axis] = -1
        scales, zeros = (np.asarray(one).reshape(shape) for one in (numbers.scales, numbers.zeros))
        content = ((tensor.content.astype(np.float64) - zeros) * scales).astype(np.float32)
        done[tensor] = Tensor(tensor.name, "float32", tensor.shape, None, content)
    return done[tensor]
