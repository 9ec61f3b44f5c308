# SPDX-License-Identifier: Apache-2.0
"""Layers with float32 data and int8 weights: the data are quantised, then a convolution has float32 results."""

from __future__ import annotations

from typing import Any

import numpy as np

from opwest.importers.models.graph.types import Node, Shape
from opwest.importers.models.ir.hybrid import HybridConvolution, HybridProduct, QuantiseRows
from opwest.importers.models.ir.movement import Move
from opwest.importers.models.ir.operations import Clamp
from opwest.importers.models.ir.program import Value
from opwest.importers.models.lower.builder import Builder
from opwest.importers.models.lower.regions import box
from opwest.importers.models.operators import hybrid, layers
from opwest.importers.models.operators.fixed_point import limits_of
from opwest.importers.models.operators.movement import strides_of
from opwest.importers.models.operators.transposed import transposed_window
from opwest.importers.models.operators.windows import Window


def lower_hybrid(node: Node, build: Builder) -> None:
    """Add the operations of a node with float32 data and int8 weights."""
    data, weights, bias = hybrid.data_of(node), node.input(1).content, hybrid.bias_of(node)
    is_depthwise, is_transposed = node.kind == "DEPTHWISE_CONV_2D", node.kind == "TRANSPOSE_CONV"
    groups, value = 1, build.value(data)
    if node.kind == "BATCH_MATMUL":
        weights = weights if node.options["adj_y"] else np.ascontiguousarray(np.swapaxes(weights, -1, -2))
        value = _transposed(node, value, build) if node.options["adj_x"] else value
        if hybrid.is_batched(node):
            _batches(node, build, value, weights)
            return
        weights = weights.reshape(weights.shape[-2:])
    if node.kind in ("FULLY_CONNECTED", "BATCH_MATMUL"):
        results, length = weights.shape
        shape: tuple[int, ...] = (data.size // length, 1, 1, length)
        weights, window = weights.reshape(results, 1, 1, length), Window((1, 1), (1, 1), (1, 1), (0, 0), (1, 1))
    else:
        shape, window = data.shape, transposed_window(node) if is_transposed else layers.window(node)
        results = weights.shape[3 if is_depthwise else 0]
        weights = weights[0] if is_depthwise else weights
        groups = 1 if is_depthwise else shape[3] // weights.shape[3]
    values = _quantised(node, build, value, shape)
    build.add(
        HybridConvolution(
            node.label,
            values,
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


def _quantised(node: Node, build: Builder, data: Value, shape: Shape) -> tuple[Value, ...]:
    """Return the quantised rows of data, their scales and perhaps their zero points."""
    values = [
        build.intermediate("quantised", "int8", shape),
        build.intermediate("scales", "float32", (shape[0],)),
    ]
    if hybrid.is_asymmetric(node):
        values.append(build.intermediate("zeros", "int32", (shape[0],)))
    build.add(QuantiseRows(node.label, (build.part(data, shape),), tuple(values)))
    return tuple(values)


def _transposed(node: Node, data: Value, build: Builder) -> Value:
    """Return data with the last two dimensions swapped."""
    shape = (*data.shape[:-2], data.shape[-1], data.shape[-2])
    found, strides = build.intermediate("transposed", data.dtype, shape), strides_of(data.shape)
    steps = [*strides[:-2], strides[-1], strides[-2]]
    build.add(Move(node.label, (data,), (found,), (box(0, shape, [0] * len(shape), shape, steps),)))
    return found


def _batches(node: Node, build: Builder, data: Value, weights: Any) -> None:
    """Add the product with several matrices."""
    rows = data.size // data.shape[-1]
    values = _quantised(node, build, data, (rows, 1, 1, data.shape[-1]))
    [scale] = hybrid.scales_of(node, 1)
    build.add(HybridProduct(node.label, values, (build.value(node.output),), data.shape, weights, scale))
