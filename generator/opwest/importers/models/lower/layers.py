# SPDX-License-Identifier: Apache-2.0
"""Convolutions and fully connected layers."""

from __future__ import annotations

from typing import Any

import numpy as np

from opwest.importers.models.graph.faults import Unsupported
from opwest.importers.models.graph.types import Node
from opwest.importers.models.ir.operations import Convolution, Depthwise, Finish
from opwest.importers.models.lower.builder import Builder, lowers
from opwest.importers.models.lower.hybrid import lower_hybrid
from opwest.importers.models.lower.products import computed_convolution, computed_dense, finish_of
from opwest.importers.models.operators import layers
from opwest.importers.models.operators.hybrid import is_hybrid
from opwest.importers.models.operators.windows import Window

_MOST_BIAS = 1 << 32


def _is_computed(node: Node) -> bool:
    """Whether weights or bias are computed when the model runs."""
    bias = node.optional(2)
    return not node.input(1).is_constant or (bias is not None and not bias.is_constant)


def _constants(node: Node) -> tuple[Any, Any]:
    """Return weights and bias."""
    bias = node.optional(2)
    return node.input(1).content, None if bias is None else bias.content.reshape(-1)


def _finish(node: Node, build: Builder) -> tuple[int, int, Finish]:
    """Return the zero points of data and weights, and the end of the layer."""
    (zero, weight_zero), finish = finish_of(node, node.input(0), node.input(1), build)
    return zero, weight_zero, finish


@lowers("CONV_2D")
def convolution(node: Node, build: Builder) -> None:
    """As it is, unless weights are computed."""
    if is_hybrid(node):
        lower_hybrid(node, build)
        return
    if _is_computed(node):
        computed_convolution(node, build)
        return
    weights, bias = _constants(node)
    zero, weight_zero, finish = _finish(node, build)
    groups = node.input(0).shape[3] // weights.shape[3]
    operands = (build.value(node.input(0)),), (build.value(node.output),)
    build.add(Convolution(node.label, *operands, layers.window(node), groups, weights, bias, zero, weight_zero, finish))


@lowers("DEPTHWISE_CONV_2D")
def depthwise(node: Node, build: Builder) -> None:
    """As it is, unless weights are computed."""
    if is_hybrid(node):
        lower_hybrid(node, build)
        return
    if _is_computed(node):
        computed_convolution(node, build)
        return
    weights, bias = _constants(node)
    zero, weight_zero, finish = _finish(node, build)
    operands = (build.value(node.input(0)),), (build.value(node.output),)
    build.add(Depthwise(node.label, *operands, layers.window(node), weights[0], bias, zero, weight_zero, finish))


@lowers("FULLY_CONNECTED")
def dense(node: Node, build: Builder) -> None:
    """A convolution of one element per row, unless weights are computed."""
    if is_hybrid(node):
        lower_hybrid(node, build)
        return
    if _is_computed(node):
        computed_dense(node, build)
        return
    weights, bias = _constants(node)
    if bias is not None and bias.dtype == np.int64 and np.abs(bias).max() >= _MOST_BIAS:
        # A sum times a multiplier of 31 bits has 64.
        raise Unsupported(f"the bias '{node.input(2).name}' has the value {bias[np.abs(bias).argmax()]}", "below 2**32")
    zero, weight_zero, finish = _finish(node, build)
    results, length = weights.shape
    rows = node.input(0).size // length
    window = Window((1, 1), (1, 1), (1, 1), (0, 0), (1, 1))
    data = build.part(build.value(node.input(0)), (rows, 1, 1, length))
    shaped = np.reshape(weights, (results, 1, 1, length))
    result = build.value(node.output)
    build.add(Convolution(node.label, (data,), (result,), window, 1, shaped, bias, zero, weight_zero, finish))
