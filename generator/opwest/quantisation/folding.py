# SPDX-License-Identifier: Apache-2.0
"""Rewrites of a float graph before it is quantised: batch normalisations and activations become parts of layers.

Each one changes float results by roundings only.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from opwest.compiler.graph.types import Graph, Node, Tensor
from opwest.compiler.lowering.simplify import Net, absorb_activation, remove_identity

_LAYERS = {"CONV_2D": 0, "DEPTHWISE_CONV_2D": 3, "FULLY_CONNECTED": 0}
"""The dimension of the weights that counts the channels."""
_SCALINGS = ("MUL", "ADD", "SUB", "DIV")


def folded(graph: Graph) -> Graph:
    """Return a graph without operators whose results are known, with fewer activations, sums and products."""
    net = Net(Net(graph).finish())
    for rewrite in (remove_identity, invert_divisor, fold_scaling, absorb_activation, average_globally):
        for node in net.nodes:
            if net.has(node):
                rewrite(node, net)
    return net.finish()


def invert_divisor(node: Node, net: Net) -> None:
    """Multiply by the inverse of a constant divisor: quotients have no exact integer form."""
    divisor = node.optional(1)
    if node.kind != "DIV" or node.output.dtype != "float32" or divisor is None or not divisor.is_constant:
        return
    if (divisor.content == 0).any():
        return
    inverse = constant(f"{divisor.name}/inverse", np.float32(1) / divisor.content)
    options = {"fused_activation_function": node.options["fused_activation_function"]}
    net.replace(node, kind="MUL", inputs=(node.inputs[0], inverse), options=options)


def fold_scaling(node: Node, net: Net) -> None:
    """Let a layer scale its weights and bias, instead of a product or a sum with a number for each channel."""
    if node.kind not in _SCALINGS or node.kind == "DIV" or node.output.dtype != "float32":
        return
    operands = [tensor for tensor in node.inputs if tensor is not None]
    numbers = [i for i, tensor in enumerate(operands) if tensor.is_constant]
    if len(operands) != 2 or len(numbers) != 1 or (node.kind == "SUB" and numbers == [0]):
        return
    data, factor = operands[1 - numbers[0]], operands[numbers[0]]
    layer = net.producer(data)
    if layer is None or layer.kind not in _LAYERS or net.only_user(data) is not node:
        return
    weights, bias = layer.input(1), layer.optional(2)
    if layer.options["fused_activation_function"] != "NONE" or not weights.is_constant:
        return
    if weights.dtype != "float32" or (bias is not None and not bias.is_constant):
        return
    axis = _LAYERS[layer.kind]
    channels = weights.shape[axis]
    each = _by_channel(factor, data, channels)
    if each is None:
        return
    old = np.zeros(channels, np.float32) if bias is None else bias.content.reshape(-1)
    if node.kind == "MUL":
        wide = tuple(channels if i == axis else 1 for i in range(len(weights.shape)))
        weights = constant(weights.name, weights.content * each.reshape(wide))
        old = old * each
    else:
        old = old + each if node.kind == "ADD" else old - each
    bias = constant(f"{weights.name}/bias" if bias is None else bias.name, old)
    activation = node.options["fused_activation_function"]
    net.remove(node)
    net.replace(
        layer,
        inputs=(layer.inputs[0], weights, bias),
        outputs=node.outputs,
        options={**layer.options, "fused_activation_function": activation},
    )


def average_globally(node: Node, net: Net) -> None:
    """Compute the average of whole images as MEAN: its result has a scale of its own, that of a pool has not."""
    if node.kind != "AVERAGE_POOL_2D" or node.options["fused_activation_function"] != "NONE":
        return
    data = node.input(0)
    if len(data.shape) != 4 or node.output.shape[1:3] != (1, 1) or node.options["padding"] != "VALID":
        return
    if (node.options["filter_height"], node.options["filter_width"]) != data.shape[1:3] or data.shape[1:3] == (1, 1):
        return
    axes = Tensor(f"{node.output.name}/axes", "int32", (2,), None, np.array([1, 2], np.int32))
    net.replace(node, kind="MEAN", inputs=(data, axes), options={"keep_dims": True})


def _by_channel(factor: Tensor, data: Tensor, channels: int) -> Any:
    """Return a number for each channel, the last dimension of the data; None if the constant is not constant in it."""
    shape = factor.shape
    if len(shape) > len(data.shape) or any(n != 1 for n in shape[:-1]) or (shape and shape[-1] not in (1, channels)):
        return None
    return np.broadcast_to(np.asarray(factor.content, np.float32).reshape(-1), channels)


def constant(name: str, content: Any) -> Tensor:
    """Return a float32 constant."""
    array = np.ascontiguousarray(content, np.float32)
    return Tensor(name, "float32", array.shape, None, array)
