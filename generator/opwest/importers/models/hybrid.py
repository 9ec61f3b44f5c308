# SPDX-License-Identifier: Apache-2.0
"""Convert int8 weights of layers with float32 data to float32: larger and exact, instead of TFLite's hybrid kernels."""

from __future__ import annotations

import numpy as np

from opwest.importers.models.graph.types import Graph, Node, Tensor
from opwest.importers.models.operators.hybrid import is_hybrid

_RECURRENT = ("SVDF", "UNIDIRECTIONAL_SEQUENCE_LSTM")


def dequantise_weights(graph: Graph) -> None:
    """Replace the weights of the graph's nodes. Weights without a scale are left to the check of the graph."""
    done: dict[Tensor, Tensor] = {}
    for node in graph.nodes:
        if _has_bytes(node):
            node.inputs = tuple(
                _plain(one, done) if one is not None and one.dtype == "int8" else one for one in node.inputs
            )


def _has_bytes(node: Node) -> bool:
    """Whether a layer has float32 data and int8 weights, which can be damaged."""
    if node.kind in _RECURRENT:
        return bool(node.inputs) and node.inputs[0] is not None and node.inputs[0].dtype == "float32"
    needed = 3 if node.kind == "TRANSPOSE_CONV" else 2
    return len(node.inputs) >= needed and None not in node.inputs[:needed] and is_hybrid(node)


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
