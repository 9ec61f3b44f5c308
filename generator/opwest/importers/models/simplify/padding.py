# SPDX-License-Identifier: Apache-2.0
"""PAD before an operator with windows becomes its padding."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from opwest.importers.models.graph.types import Node
from opwest.importers.models.operators import layers, pooling
from opwest.importers.models.operators.fixed_point import RANGES, activation_range, limits_of
from opwest.importers.models.operators.padding import QUANTISED, amounts, fill_of
from opwest.importers.models.operators.windows import Window
from opwest.importers.models.simplify.activations import PRODUCERS
from opwest.importers.models.simplify.net import Net, with_options

WINDOWS: Mapping[str, Callable[[Node], Window]] = {
    "CONV_2D": layers.window,
    "DEPTHWISE_CONV_2D": layers.window,
    "MAX_POOL_2D": pooling.window,
}


def absorb_padding(node: Node, net: Net) -> None:
    """Let the only reader of a PAD or PADV2 pad, if its padding has the same value."""
    if node.kind not in ("PAD", "PADV2"):
        return
    data, padded = node.input(0), node.output
    user = net.only_user(padded)
    if user is None or user.kind not in WINDOWS or user.inputs[0] is not padded:
        return
    fill = fill_of(node)
    edges = amounts(node)
    if fill is None or len(edges) != 4 or edges[0] != (0, 0) or edges[3] != (0, 0):
        return
    if data.is_state or data.quantization != padded.quantization:
        return
    window = WINDOWS[user.kind](user)
    before = [window.before[axis] + edges[axis + 1][0] for axis in range(2)]
    if user.kind == "MAX_POOL_2D":
        moved = replace(window, before=(before[0], before[1]))
        if window.dilation != (1, 1) or fill > _least(node, net) or not moved.has_data((data.shape[1], data.shape[2])):
            return
    elif fill != _zero(node):
        return
    after = [
        (window.result[axis] - 1) * window.stride[axis]
        + (window.size[axis] - 1) * window.dilation[axis]
        + 1
        - data.shape[axis + 1]
        - before[axis]
        for axis in range(2)
    ]
    net.remove(node)
    net.replace(user, inputs=(data, *user.inputs[1:]), options=with_options(user, padding=(*before, *after)))


def _zero(node: Node) -> int | float:
    """Return the value of the padding of a convolution: real zero."""
    found = node.output.quantization
    return found.zeros[0] if node.output.dtype in QUANTISED and found is not None else 0


def _least(node: Node, net: Net) -> int | float:
    """Return a number below or equal to all elements that are padded."""
    data = node.input(0)
    producer = net.producer(data)
    activation = "NONE"
    if producer is not None and producer.kind in PRODUCERS:
        activation = producer.options["fused_activation_function"]
    if data.dtype == "float32":
        low = limits_of(activation)[0]
        return float("-inf") if low is None else low
    return activation_range(activation, data)[0] if activation != "NONE" else RANGES[data.dtype][0]
