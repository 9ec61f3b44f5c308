# SPDX-License-Identifier: Apache-2.0
"""Operators of the user: a function of all inputs, which stands for the unknown one in the proof of an import."""

from __future__ import annotations

from typing import Any

from opwest.importers.models.graph.types import Node, Rules
from opwest.importers.models.graph.user import KIND, bind, opaque_results
from opwest.importers.models.interpret.registry import Arrays, interprets


@interprets(KIND)
def user_operator(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """States that the operator changes get results, too."""
    bound = bind(node)
    given = [array for array in arrays if array is not None]
    tensors = [one for one, tensor in bound.reads if not one.is_option]
    states = [array for one, array in zip(tensors, given, strict=True) if one.direction == "inout"]
    kinds = [(str(array.dtype), array.shape) for array in states]
    kinds += [(tensor.dtype, shape) for _, tensor, shape in bound.writes]
    found = opaque_results(node.options["use"].operator.name, given, kinds)
    for state, content in zip(states, found, strict=False):
        state[...] = content
    return found[len(states) :]
