# SPDX-License-Identifier: Apache-2.0
"""The rewrites of a checked graph. Each one keeps all outputs bit for bit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from opwest.importers.models.graph.types import Graph, Node
from opwest.importers.models.simplify.activations import absorb_activation
from opwest.importers.models.simplify.identities import remove_identity
from opwest.importers.models.simplify.net import Net
from opwest.importers.models.simplify.padding import absorb_padding

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
