# SPDX-License-Identifier: Apache-2.0
"""Compute nodes whose inputs are known."""

from __future__ import annotations

import numpy as np

from opwest.importers.models.graph.types import Node, Rules
from opwest.importers.models.graph.user import KIND
from opwest.importers.models.interpret.registry import FUNCTIONS
from opwest.importers.models.interpret.run import run_node
from opwest.importers.models.operators.filling import FROM_SHAPES

MOST_BYTES = 1 << 28
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

    def __init__(self, rules: Rules, most_bytes: int = MOST_BYTES) -> None:
        self._rules = rules
        self._left = most_bytes

    def __call__(self, node: Node) -> None:
        """Fold a node that was checked, unless its results take too much memory."""
        if node.kind not in FUNCTIONS or node.kind in KEPT or not node.inputs:
            return
        tensors = [one for one in node.inputs if one is not None]
        is_known = node.kind in FROM_SHAPES or all(one.is_constant for one in tensors)
        if not is_known or any(one.is_state for one in node.outputs):
            return
        size = sum(one.size * np.dtype(one.dtype).itemsize for one in node.outputs)
        if size > self._left:
            return
        try:
            found = run_node(node, [None if one is None else one.content for one in node.inputs], self._rules)
        except (ValueError, ArithmeticError):  # the run will fail in the same way
            return
        self._left -= size
        for tensor, content in zip(node.outputs, found, strict=True):
            tensor.content = content
