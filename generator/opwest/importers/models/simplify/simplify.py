# SPDX-License-Identifier: Apache-2.0
"""The rewrites of a checked graph. Each one keeps all outputs bit for bit."""

from __future__ import annotations

from opwest.importers.models.graph.types import Graph
from opwest.importers.models.simplify.activations import absorb_activation
from opwest.importers.models.simplify.identities import remove_identity
from opwest.importers.models.simplify.net import Net
from opwest.importers.models.simplify.padding import absorb_padding


def simplify(graph: Graph) -> Graph:
    """Return an equal graph with fewer nodes."""
    net = Net(graph)
    for rewrite in (remove_identity, absorb_activation, absorb_padding):
        for node in net.nodes:
            if net.has(node):
                rewrite(node, net)
    return net.finish()
