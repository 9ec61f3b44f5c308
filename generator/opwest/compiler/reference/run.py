# SPDX-License-Identifier: Apache-2.0
"""Run a graph, or one node, with the functions of operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from opwest.compiler.graph.spec import registrar
from opwest.compiler.graph.types import Graph, Node, Rules, Tensor

Arrays = Sequence[Any]
"""numpy arrays by input or result; None: an absent optional input."""
Function = Callable[[Node, Arrays, Rules], Any]
"""From a node and the arrays of its inputs to the array of its result, or a tuple of arrays, in any dtype and shape."""
Values = dict[Tensor, Any]

FUNCTIONS: dict[str, Function] = {}
"""By kind. Importing the package fills it."""
interprets = registrar(FUNCTIONS)


def run_node(node: Node, arrays: Arrays, rules: Rules) -> tuple[Any, ...]:
    """Return the results of a node, in the dtypes and shapes of its tensors."""
    with np.errstate(all="ignore"):
        results = FUNCTIONS[node.kind](node, arrays, rules)
    return converted(results, node.outputs)


def converted(results: Any, tensors: Sequence[Any]) -> tuple[Any, ...]:
    """Return an array, or a tuple of them, in the dtypes and shapes of tensors or values."""
    arrays = results if isinstance(results, tuple) else (results,)
    return tuple(
        np.asarray(array).astype(tensor.dtype).reshape(tensor.shape)
        for array, tensor in zip(arrays, tensors, strict=True)
    )


def run_graph(graph: Graph, inputs: Sequence[Any], state: Values | None = None) -> Values:
    """Return the arrays of all tensors after one run. `state` has the content of states, and is updated."""
    values: Values = dict(zip(graph.inputs, inputs, strict=True))
    state = {} if state is None else state
    read = (tensor for node in graph.nodes for tensor in node.inputs)
    for tensor in dict.fromkeys((*read, *graph.outputs, *graph.updates)):
        if tensor is None or not tensor.is_state:
            continue
        if tensor not in state:
            state[tensor] = initial_content(tensor)
        values[tensor] = state[tensor]
    for node in graph.nodes:
        arrays = [_array(tensor, values) for tensor in node.inputs]
        values.update(zip(node.outputs, run_node(node, arrays, graph.rules), strict=True))
    for tensor in graph.outputs:
        values.setdefault(tensor, tensor.content)
    state.update({tensor: np.array(_array(after, values)) for tensor, after in graph.updates.items()})
    return values


def initial_content(tensor: Any) -> Any:
    """Return the content of a state, a tensor or a value, before the first run."""
    return np.zeros(tensor.shape, tensor.dtype) if tensor.content is None else np.array(tensor.content)


def outputs_of(graph: Graph, values: Mapping[Tensor, Any]) -> list[Any]:
    """Return the outputs of a run."""
    return [values[tensor] for tensor in graph.outputs]


def _array(tensor: Tensor | None, values: Values) -> Any:
    if tensor is None:
        return None
    return tensor.content if tensor.is_constant else values[tensor]
