# SPDX-License-Identifier: Apache-2.0
"""Comparisons, logic, selection."""

from __future__ import annotations

from opwest.importers.models.graph.types import Node
from opwest.importers.models.ir.elements import Compared, Logic, Selected
from opwest.importers.models.ir.operations import Elementwise
from opwest.importers.models.lower.arithmetic import elementwise
from opwest.importers.models.lower.builder import Builder, lowers
from opwest.importers.models.operators.comparison import COMPARISONS, compare_numbers, condition_shape


@lowers(*COMPARISONS)
def compare(node: Node, build: Builder) -> None:
    """An operator of C."""
    elementwise(node, build, Compared(COMPARISONS[node.kind], compare_numbers(node)))


@lowers("LOGICAL_AND", "LOGICAL_OR", "LOGICAL_NOT")
def logic(node: Node, build: Builder) -> None:
    """An operator of C."""
    elementwise(node, build, Logic(node.kind))


@lowers("SELECT")
def select(node: Node, build: Builder) -> None:
    """The condition's only dimension is the first one of the values."""
    condition = build.part(build.value(node.input(0)), condition_shape(node))
    inputs = (condition, build.value(node.input(1)), build.value(node.input(2)))
    build.add(Elementwise(node.label, inputs, (build.value(node.output),), Selected()))


@lowers("SELECT_V2")
def select_broadcast(node: Node, build: Builder) -> None:
    """All inputs are broadcast."""
    elementwise(node, build, Selected())
