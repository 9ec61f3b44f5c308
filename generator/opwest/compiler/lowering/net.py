# SPDX-License-Identifier: Apache-2.0
"""A graph while it is rewritten: producers and users of tensors."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from opwest.compiler.graph.types import Graph, Node, Tensor


class Net:
    """The nodes of a graph. Each rewrite keeps their order."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.changes = 0
        """How often a node was replaced or removed."""
        self._nodes: dict[Node, None] = dict.fromkeys(graph.nodes)
        self._producers: dict[Tensor, Node] = {}
        self._users: dict[Tensor, list[Node]] = defaultdict(list)
        self._outputs = frozenset((*graph.outputs, *graph.updates.values()))
        for node in graph.nodes:
            self._enter(node)

    def _enter(self, node: Node) -> None:
        for tensor in node.outputs:
            self._producers[tensor] = node
        for tensor in {one for one in node.inputs if one is not None}:
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

    def is_output(self, tensor: Tensor) -> bool:
        """Whether a tensor is an output of the graph, or the new content of a state."""
        return tensor in self._outputs

    def only_user(self, tensor: Tensor) -> Node | None:
        """Return the only node that reads a tensor, once; None for outputs of the graph and new contents of states."""
        users = self._users[tensor]
        if len(users) != 1 or tensor in self._outputs or users[0].inputs.count(tensor) != 1:
            return None
        return users[0]

    def replace(self, node: Node, **changes: Any) -> Node:
        """Replace a node by one with other inputs, results or options, at the same place."""
        new = dataclasses.replace(node, **changes)
        self._leave(node)
        self._nodes = {new if one is node else one: None for one in self._nodes}
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
        for tensor in {one for one in node.inputs if one is not None}:
            self._users[tensor].remove(node)

    def substitute(self, old: Tensor, new: Tensor) -> None:
        """Let all readers of a tensor read another one."""
        for user in list(self._users[old]):
            self.replace(user, inputs=tuple(new if one is old else one for one in user.inputs))

    def finish(self) -> Graph:
        """Return the graph without nodes whose results nothing reads."""
        live = set(self._outputs)
        kept: list[Node] = []
        for node in reversed(self._nodes):
            if has_effects(node) or any(one in live and not one.is_constant for one in node.outputs):
                kept.append(node)
                live.update(one for one in node.inputs if one is not None)
        return dataclasses.replace(self.graph, nodes=tuple(reversed(kept)))


def has_effects(node: Node) -> bool:
    """Whether a node can do more than computing its results: it writes a state."""
    if all(one.is_constant for one in node.outputs):
        return not node.outputs
    return any(one is not None and one.is_state for one in node.inputs)


def with_options(node: Node, **changes: Any) -> Mapping[str, Any]:
    """Return the options of a node with changes."""
    return {**node.options, **changes}
