# SPDX-License-Identifier: Apache-2.0
"""Layers with float32 data and int8 weights: the data are quantised, then a convolution has float32 results."""

from __future__ import annotations

import numpy as np

from opwest.importers.models.graph.types import Node
from opwest.importers.models.ir.hybrid import HybridConvolution, QuantiseRows
from opwest.importers.models.ir.operations import Clamp
from opwest.importers.models.lower.builder import Builder
from opwest.importers.models.operators import hybrid, layers
from opwest.importers.models.operators.fixed_point import limits_of
from opwest.importers.models.operators.transposed import transposed_window
from opwest.importers.models.operators.windows import Window


def lower_hybrid(node: Node, build: Builder) -> None:
    """Add the operations of a node with float32 data and int8 weights."""
    data, weights, bias = hybrid.data_of(node), node.input(1).content, hybrid.bias_of(node)
    is_depthwise, is_transposed = node.kind == "DEPTHWISE_CONV_2D", node.kind == "TRANSPOSE_CONV"
    groups = 1
    if node.kind in ("FULLY_CONNECTED", "BATCH_MATMUL"):
        if node.kind == "BATCH_MATMUL":
            weights = weights.reshape(weights.shape[-2:])
            weights = weights if node.options["adj_y"] else np.ascontiguousarray(weights.T)
        results, length = weights.shape
        shape: tuple[int, ...] = (data.size // length, 1, 1, length)
        weights, window = weights.reshape(results, 1, 1, length), Window((1, 1), (1, 1), (1, 1), (0, 0), (1, 1))
    else:
        shape, window = data.shape, transposed_window(node) if is_transposed else layers.window(node)
        results = weights.shape[3 if is_depthwise else 0]
        weights = weights[0] if is_depthwise else weights
        groups = 1 if is_depthwise else shape[3] // weights.shape[3]
    values = [
        build.intermediate("quantised", "int8", shape),
        build.intermediate("scales", "float32", (shape[0],)),
    ]
    if hybrid.is_asymmetric(node):
        values.append(build.intermediate("zeros", "int32", (shape[0],)))
    build.add(QuantiseRows(node.label, (build.part(build.value(data), shape),), tuple(values)))
    build.add(
        HybridConvolution(
            node.label,
            tuple(values),
            (build.value(node.output),),
            window,
            groups,
            is_depthwise,
            weights,
            np.asarray(hybrid.scales_of(node, results), np.float32),
            None if bias is None else bias.content.reshape(-1),
            Clamp(*limits_of(str(node.options.get("fused_activation_function", "NONE")))),
            is_transposed,
        )
    )
