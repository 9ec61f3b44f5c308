# SPDX-License-Identifier: Apache-2.0
"""Operators that change nothing."""

from __future__ import annotations

from opwest.importers.models.graph.types import Node
from opwest.importers.models.simplify.net import Net


def remove_identity(node: Node, net: Net) -> None:
    """Remove a QUANTIZE to the dtype, the scale and the zero point of its input."""
    if node.kind != "QUANTIZE" or net.is_output(node.output):
        return
    data, result = node.input(0), node.output
    if data.is_state:
        return
    if data.dtype == result.dtype and data.shape == result.shape and data.quantization == result.quantization:
        net.remove(node)
        net.substitute(result, data)
