# SPDX-License-Identifier: Apache-2.0
"""The rewrites of a checked graph. Each one keeps all outputs bit for bit."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from opwest.compiler.graph.types import Graph, Node, Rules, Tensor
from opwest.compiler.graph.user import KIND
from opwest.compiler.reference.run import FUNCTIONS, run_node
from opwest.compiler.semantics import layers, windows
from opwest.compiler.semantics.fixed_point import RANGES, activation_range, limits_of
from opwest.compiler.semantics.movement import FROM_SHAPES, amounts, fill_of, zero_of
from opwest.compiler.semantics.windows import Window


class Net:
    """The nodes of a graph. Each rewrite keeps their order."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.changes = 0
        """How often a node was replaced or removed."""
        self._nodes: dict[Node, None] = dict.fromkeys(graph.nodes)
        self._producers: dict[Tensor, Node] = {}
        self._users: dict[Tensor, list[Node]] = defaultdict(list)
        self.outputs = frozenset((*graph.outputs, *graph.updates.values()))
        """The outputs of the graph, and the new contents of states."""
        for node in graph.nodes:
            self._enter(node)

    def _enter(self, node: Node) -> None:
        for tensor in node.outputs:
            self._producers[tensor] = node
        for tensor in {tensor for tensor in node.inputs if tensor is not None}:
            self._users[tensor].append(node)

    @property
    def nodes(self) -> list[Node]:
        """The nodes in order."""
        return list(self._nodes)

    def has(self, node: Node) -> bool:
        """Whether a node has not been replaced."""
        return node in self._nodes

    def producer(self, tensor: Tensor) -> Node | None:
        """Return the node that computes a tensor; None for inputs, states and constants."""
        return None if tensor.is_constant else self._producers.get(tensor)

    def users(self, tensor: Tensor) -> list[Node]:
        """Return the nodes that read a tensor."""
        return list(self._users[tensor])

    def only_user(self, tensor: Tensor) -> Node | None:
        """Return the only node that reads a tensor, once; None for outputs of the graph and new contents of states."""
        users = self._users[tensor]
        if len(users) != 1 or tensor in self.outputs or users[0].inputs.count(tensor) != 1:
            return None
        return users[0]

    def replace(self, node: Node, **changes: Any) -> Node:
        """Replace a node by one with other inputs, results or options, at the same place."""
        new = dataclasses.replace(node, **changes)
        self._leave(node)
        self._nodes = {new if kept is node else kept: None for kept in self._nodes}
        self._enter(new)
        return new

    def remove(self, node: Node) -> None:
        """Remove a node."""
        self._leave(node)
        del self._nodes[node]

    def _leave(self, node: Node) -> None:
        self.changes += 1
        for tensor in node.outputs:
            if self._producers.get(tensor) is node:
                del self._producers[tensor]
        for tensor in {tensor for tensor in node.inputs if tensor is not None}:
            self._users[tensor].remove(node)

    def finish(self) -> Graph:
        """Return the graph without nodes whose results nothing reads."""
        live = set(self.outputs)
        kept: list[Node] = []
        for node in reversed(self._nodes):
            if has_effects(node) or any(output in live and not output.is_constant for output in node.outputs):
                kept.append(node)
                live.update(tensor for tensor in node.inputs if tensor is not None)
        return dataclasses.replace(self.graph, nodes=tuple(reversed(kept)))


def has_effects(node: Node) -> bool:
    """Whether a node can do more than computing its results: it writes a state."""
    if all(output.is_constant for output in node.outputs):
        return not node.outputs
    return any(tensor is not None and tensor.is_state for tensor in node.inputs)


def remove_identity(node: Node, net: Net) -> None:
    """Remove a QUANTIZE to the dtype, the scale and the zero point of its input."""
    if node.kind != "QUANTIZE":
        return
    data, result = node.input(0), node.output
    if data.is_state or result in net.outputs:
        return
    if data.dtype == result.dtype and data.shape == result.shape and data.quantization == result.quantization:
        net.remove(node)
        for user in net.users(result):
            net.replace(user, inputs=tuple(data if tensor is result else tensor for tensor in user.inputs))


ACTIVATIONS = ("RELU", "RELU6", "RELU_N1_TO_1")
PRODUCERS = frozenset(
    ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "ADD", "SUB", "MUL", "AVERAGE_POOL_2D", "MAX_POOL_2D")
)
"""Operators that clamp their results last."""


def absorb_activation(node: Node, net: Net) -> None:
    """Let the producer clamp, if its result is read here only and has the scale and zero point of this one.

    The activation is then a clamp to stored values, at the same limits. Source: kernels/activations.cc, QuantizedReluX.
    """
    if node.kind not in ACTIVATIONS:
        return
    data, result = node.input(0), node.output
    producer = net.producer(data)
    if producer is None or producer.kind not in PRODUCERS or net.only_user(data) is not node:
        return
    if data.dtype != result.dtype or data.quantization != result.quantization:
        return
    both = _both(producer.options["fused_activation_function"], node.kind)
    if both is not None:
        net.remove(node)
        net.replace(producer, outputs=(result,), options={**producer.options, "fused_activation_function": both})


def _both(first: str, second: str) -> str | None:
    """Return the activation that equals two in sequence; None if there is none."""
    low, high = zip(*(limits_of(kind) for kind in (first, second)), strict=True)
    lows, highs = [v for v in low if v is not None], [v for v in high if v is not None]
    wanted = (max(lows) if lows else None, min(highs) if highs else None)
    return next((kind for kind in ("NONE", *ACTIVATIONS) if limits_of(kind) == wanted), None)


WINDOWS: Mapping[str, Callable[[Node], Window]] = {
    "CONV_2D": layers.window,
    "DEPTHWISE_CONV_2D": layers.window,
    "MAX_POOL_2D": windows.window,
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
    elif fill != zero_of(padded):
        return
    after = [window.span(axis) - data.shape[axis + 1] - before[axis] for axis in range(2)]
    net.remove(node)
    net.replace(user, inputs=(data, *user.inputs[1:]), options={**user.options, "padding": (*before, *after)})


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


MAX_BYTES = 1 << 28
"""The most memory of all folded results."""
KEPT = frozenset(
    (
        "CONV_2D",
        "DEPTHWISE_CONV_2D",
        "TRANSPOSE_CONV",
        "FULLY_CONNECTED",
        "BATCH_MATMUL",
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        "SVDF",
        KIND,
    )
)
"""Operators whose work is not bounded by the sizes of their inputs and results, and those of the user."""


class Folding:
    """Sets the content of the results of nodes with known inputs."""

    def __init__(self, rules: Rules, most_bytes: int = MAX_BYTES) -> None:
        self._rules = rules
        self._left = most_bytes

    def __call__(self, node: Node) -> None:
        """Fold a node that was checked, unless its results take too much memory."""
        if node.kind not in FUNCTIONS or node.kind in KEPT or not node.inputs:
            return
        tensors = [tensor for tensor in node.inputs if tensor is not None]
        is_known = node.kind in FROM_SHAPES or all(tensor.is_constant for tensor in tensors)
        if not is_known or any(output.is_state for output in node.outputs):
            return
        size = sum(output.size * np.dtype(output.dtype).itemsize for output in node.outputs)
        if size > self._left:
            return
        try:
            contents = run_node(
                node, [None if tensor is None else tensor.content for tensor in node.inputs], self._rules
            )
        except (ValueError, ArithmeticError):  # the run will fail in the same way
            return
        self._left -= size
        for tensor, content in zip(node.outputs, contents, strict=True):
            tensor.content = content


REWRITES: Mapping[str, Callable[[Node, Net], None]] = {
    "identities": remove_identity,
    "activations": absorb_activation,
    "padding": absorb_padding,
}
"""By name, in order. Each one changes the graph around a node, or nothing."""


def simplify(graph: Graph) -> Graph:
    """Return an equal graph with fewer nodes."""
    net = Net(graph)
    for _ in rewritten(net):
        pass
    return net.finish()


def rewritten(net: Net) -> Iterator[tuple[str, Node]]:
    """Apply all rewrites; yield the name of each one that changed something, and its node."""
    for name, rewrite in REWRITES.items():
        for node in net.nodes:
            if net.has(node):
                before = net.changes
                rewrite(node, net)
                if net.changes != before:
                    yield name, node
