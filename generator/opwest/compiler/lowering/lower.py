# SPDX-License-Identifier: Apache-2.0
"""Lower a checked graph to a program."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import opwest.compiler.lowering  # noqa: F401 - fills the table of lowerings
from opwest.base.diagnostics import Diagnostics
from opwest.compiler.graph.check import report
from opwest.compiler.graph.types import Graph, Node, Unsupported
from opwest.compiler.ir.program import Program
from opwest.compiler.lowering.builder import LOWERINGS, Builder
from opwest.compiler.lowering.passes import fuse_sums, remove_unused_channels


def check_lowering(graph: Graph, nodes: Sequence[Node], place: str, faults: Diagnostics) -> None:
    """Report the nodes that cannot be lowered, for a graph that has other faults."""
    builder = Builder(graph)
    for node in nodes:
        try:
            LOWERINGS[node.kind](node, builder)
        except Unsupported as reason:
            report(faults, place, node, reason)
        except Exception:
            continue


def lower_graph(graph: Graph, place: str, faults: Diagnostics) -> Program:
    """Return the program before all passes; report every node without a lowering."""
    builder = Builder(graph)
    for node in graph.nodes:
        try:
            LOWERINGS[node.kind](node, builder)
        except Unsupported as reason:
            report(faults, place, node, reason)
    faults.raise_if_errors()
    return builder.finish()


Pass = Callable[[Program], Program]
PASSES: tuple[Pass, ...] = (remove_unused_channels, fuse_sums)
"""The passes for all processors, in order."""


def with_passes(program: Program, passes: Sequence[Pass] = PASSES) -> Program:
    """Return the program after some passes."""
    for pass_ in passes:
        program = pass_(program)
    return program
