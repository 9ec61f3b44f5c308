# SPDX-License-Identifier: Apache-2.0
"""Matrix products, transposed convolutions, and layers whose weights are computed when the model runs."""

from __future__ import annotations

from opwest.importers.models.graph.types import Node, Tensor
from opwest.importers.models.ir.operations import Clamp, Finish, Sums
from opwest.importers.models.ir.products import DirectConvolution, MatrixProduct
from opwest.importers.models.ir.program import Value
from opwest.importers.models.lower.builder import Builder, lowers
from opwest.importers.models.lower.hybrid import lower_hybrid
from opwest.importers.models.operators import layers
from opwest.importers.models.operators.fixed_point import limits_of, one_quantization
from opwest.importers.models.operators.hybrid import is_hybrid
from opwest.importers.models.operators.products import check_depth, has_plain_sums
from opwest.importers.models.operators.transposed import transposed_window


def finish_of(node: Node, data: Tensor, weights: Tensor, build: Builder) -> tuple[tuple[int, int], Finish]:
    """Return the zero points of data and weights, and the end of the layer."""
    if data.dtype == "float32":
        return (0, 0), Clamp(*limits_of(str(node.options.get("fused_activation_function", "NONE"))))
    offsets = weights.quantization
    finish = layers.requantisation_of(node, data, weights, build.rules)
    assert offsets is not None
    return (one_quantization(data).zero, offsets.zeros[0]), finish


def _inputs(build: Builder, *tensors: Tensor | None) -> tuple[Value, ...]:
    return tuple(build.value(one) for one in tensors if one is not None)


@lowers("BATCH_MATMUL")
def product(node: Node, build: Builder) -> None:
    """As it is."""
    if is_hybrid(node):
        lower_hybrid(node, build)
        return
    one, other = node.input(0), node.input(1)
    zeros, finish = ((0, 0), Sums()) if has_plain_sums(node) else finish_of(node, one, other, build)
    swaps = bool(node.options["adj_x"]), bool(node.options["adj_y"])
    build.add(MatrixProduct(node.label, _inputs(build, one, other), (build.value(node.output),), swaps, zeros, finish))


@lowers("TRANSPOSE_CONV")
def transposed(node: Node, build: Builder) -> None:
    """As it is."""
    if is_hybrid(node):
        lower_hybrid(node, build)
        return
    weights, data = node.input(1), node.input(2)
    zeros, finish = finish_of(node, data, weights, build)
    inputs, window = _inputs(build, data, weights, node.optional(3)), transposed_window(node)
    build.add(DirectConvolution(node.label, inputs, (build.value(node.output),), window, True, 1, zeros, finish))


def computed_convolution(node: Node, build: Builder) -> None:
    """Add CONV_2D or DEPTHWISE_CONV_2D with weights or bias that are computed when the model runs."""
    data, weights = node.input(0), node.input(1)
    is_depthwise = node.kind == "DEPTHWISE_CONV_2D"
    check_depth(data.dtype, weights.dtype, weights.size // weights.shape[3 if is_depthwise else 0])
    zeros, finish = finish_of(node, data, weights, build)
    inputs = _inputs(build, data, weights, node.optional(2))
    groups = 0 if is_depthwise else data.shape[3] // weights.shape[3]
    operands = (inputs, (build.value(node.output),), layers.window(node))
    build.add(DirectConvolution(node.label, *operands, False, groups, zeros, finish))


def computed_dense(node: Node, build: Builder) -> None:
    """Add FULLY_CONNECTED with weights or bias that are computed when the model runs."""
    data, weights = node.input(0), node.input(1)
    length = weights.shape[1]
    check_depth(data.dtype, weights.dtype, length)
    zeros, finish = finish_of(node, data, weights, build)
    rows = build.part(build.value(data), (data.size // length, length))
    inputs = (rows, *_inputs(build, weights, node.optional(2)))
    build.add(MatrixProduct(node.label, inputs, (build.value(node.output),), (False, True), zeros, finish))
