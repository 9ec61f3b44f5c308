# SPDX-License-Identifier: Apache-2.0
"""Where a quantised graph loses: each layer alone, and all layers together, against the float graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from opwest.compiler.graph.types import Graph, Node, Tensor
from opwest.compiler.reference.run import Values, run_graph, run_node
from opwest.quantisation.assign import QuantisedGraph
from opwest.quantisation.constants import dequantised_array, quantised_array
from opwest.quantisation.flow import Loss
from opwest.quantisation.measure import ratio_db, relative, squares
from opwest.quantisation.rules import rule_of

CASES = 16
"""The most samples for the loss of layers."""


def layers_of(graph: Graph) -> list[Node]:
    """Return the layers of a float graph that can be quantised: operators that do more than moving elements."""
    return [node for node in graph.nodes if (rule := rule_of(node)) is not None and rule.is_layer]


def run_quantised(quantised: QuantisedGraph, case: Sequence[Any]) -> Values:
    """Return the arrays of all tensors for float32 inputs."""
    inputs = [
        array if tensor.quantization is None else quantised_array(array, tensor.quantization, tensor.dtype)
        for tensor, array in zip(quantised.graph.inputs, case, strict=True)
    ]
    return run_graph(quantised.graph, inputs)


def float_outputs(quantised: QuantisedGraph, values: Mapping[Tensor, Any]) -> list[Any]:
    """Return the outputs of a run as float32 numbers."""
    return [dequantised_array(values[tensor], tensor.quantization) for tensor in quantised.graph.outputs]


def losses_of(
    graph: Graph, quantised: QuantisedGraph, cases: Sequence[Sequence[Any]], layers: Sequence[Node]
) -> dict[Node, Loss]:
    """Return the loss of each layer on some cases."""
    sums = {node: np.zeros(5) for node in layers}
    for case in cases[:CASES]:
        values = run_graph(graph, case)
        whole = run_quantised(quantised, case)
        _, square = squares((values[tensor], values[tensor]) for tensor in graph.outputs)
        for node in layers:
            results = _alone(quantised.nodes[node], node, values, graph)
            own = _squares(node.outputs, results, values)
            together = _squares(
                node.outputs,
                {
                    tensor: dequantised_array(whole[home], home.quantization)
                    for tensor in node.outputs
                    if (home := quantised.homes.get(tensor)) is not None
                },
                values,
            )
            after = _downstream(graph, values, results)
            errors = _squares(
                graph.outputs, {tensor: after.get(tensor, values[tensor]) for tensor in graph.outputs}, values
            )
            sums[node] += (own[0], together[0], own[1], errors[0], square)
    return {
        node: Loss(ratio_db(own, signal), ratio_db(together, signal), relative(error, square))
        for node, (own, together, signal, error, square) in sums.items()
    }


def _squares(
    tensors: Sequence[Tensor], found: Mapping[Tensor, Any], values: Mapping[Tensor, Any]
) -> tuple[float, float]:
    """Return the sums of squared differences and of squared values of float32 tensors."""
    return squares((found[t], values[t]) for t in tensors if t.dtype == "float32" and t in found)


def _alone(new: Node, node: Node, values: Values, graph: Graph) -> dict[Tensor, Any]:
    """Return the results of one quantised layer whose inputs are those of the float graph."""
    arrays: list[Any] = []
    for tensor, own in zip(new.inputs, node.inputs, strict=True):
        if tensor is None or own is None:
            arrays.append(None)
        elif tensor.is_constant:
            arrays.append(tensor.content)
        elif tensor.quantization is None or own.dtype != "float32":
            arrays.append(values[own])
        else:
            arrays.append(quantised_array(values[own], tensor.quantization, tensor.dtype))
    results = run_node(new, arrays, graph.rules)
    return {
        tensor: dequantised_array(array, made.quantization)
        for tensor, made, array in zip(node.outputs, new.outputs, results, strict=True)
    }


def _downstream(graph: Graph, values: Values, changed: Mapping[Tensor, Any]) -> dict[Tensor, Any]:
    """Return the tensors of the float graph that change with some of them."""
    found: dict[Tensor, Any] = dict(changed)
    for node in graph.nodes:
        if any(tensor in changed for tensor in node.outputs):
            continue
        if any(tensor is not None and tensor in found for tensor in node.inputs):
            arrays = [
                None if t is None else found.get(t, t.content if t.is_constant else values.get(t)) for t in node.inputs
            ]
            found.update(zip(node.outputs, run_node(node, arrays, graph.rules), strict=True))
    return found
