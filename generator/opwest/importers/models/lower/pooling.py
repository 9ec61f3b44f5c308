# SPDX-License-Identifier: Apache-2.0
"""Pools."""

from __future__ import annotations

from opwest.importers.models.graph.types import Node
from opwest.importers.models.ir.operations import Pool
from opwest.importers.models.lower.builder import Builder, lowers
from opwest.importers.models.operators import pooling
from opwest.importers.models.operators.fixed_point import activation_range, limits_of

_KINDS = {"AVERAGE_POOL_2D": "average", "MAX_POOL_2D": "maximum", "L2_POOL_2D": "l2"}


@lowers(*_KINDS)
def pool(node: Node, build: Builder) -> None:
    """As it is."""
    low: int | float | None
    high: int | float | None
    if node.output.dtype == "float32":
        low, high = limits_of(node.options["fused_activation_function"])
    else:
        low, high = activation_range(node.options["fused_activation_function"], node.output)
    operands = (build.value(node.input(0)),), (build.value(node.output),)
    build.add(Pool(node.label, *operands, _KINDS[node.kind], pooling.window(node), low, high))
