# SPDX-License-Identifier: Apache-2.0
"""float32 inputs and outputs for a model with quantised ones: TFLite's QUANTIZE and DEQUANTIZE at its ends."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from opwest.compiler.graph.types import Converters, Graph, Node, Tensor
from opwest.compiler.semantics.layers import is_hybrid
from opwest.compiler.semantics.movement import QUANTISED


def with_float_io(graph: Graph) -> Graph:
    """Return a graph whose quantised inputs and outputs are float32, without a scale; the same one without such."""
    before = tuple(
        _converter("QUANTIZE", tensor, "input") if _is_quantised(tensor) else None for tensor in graph.inputs
    )
    after = tuple(
        _converter("DEQUANTIZE", output, "output") if _is_quantised(output) else None for output in graph.outputs
    )
    if not any((*before, *after)):
        return graph
    return dataclasses.replace(
        graph,
        inputs=tuple(
            tensor if node is None else node.input(0) for tensor, node in zip(graph.inputs, before, strict=True)
        ),
        outputs=tuple(
            tensor if node is None else node.output for tensor, node in zip(graph.outputs, after, strict=True)
        ),
        nodes=(
            *(node for node in before if node is not None),
            *graph.nodes,
            *(node for node in after if node is not None),
        ),
        converters=Converters(before, after),
    )


def _is_quantised(tensor: Tensor) -> bool:
    quantization = tensor.quantization
    return tensor.dtype in QUANTISED and quantization is not None and len(quantization.scales) == 1


def _converter(kind: str, tensor: Tensor, role: str) -> Node:
    """Return the node between a quantised input or output and a float32 one."""
    outer = Tensor(tensor.name, "float32", tensor.shape)
    data, result = (outer, tensor) if role == "input" else (tensor, outer)
    return Node(kind, (data,), (result,), {}, f"--float-io ({kind}), {role} '{tensor.name}'")


_LAYERS = {"ONNX_DENSE_INTEGER": "FULLY_CONNECTED", "ONNX_CONV_INTEGER": "CONV_2D"}
"""The float operators of integer layers."""
_MOVES = ("RESHAPE", "TRANSPOSE")
"""Operators between the data, the layer and its float32 result, which keep the dtype."""
_RECURRENT = ("SVDF", "UNIDIRECTIONAL_SEQUENCE_LSTM")


def dequantise_weights(graph: Graph) -> Graph:
    """Return a graph with float32 weights; the same one if it has no layer with float32 data and int8 weights.

    Weights without a scale are left to the check of the graph.
    """
    done: dict[Tensor, Tensor] = {}
    for node in graph.nodes:
        if _has_bytes(node):
            node.inputs = tuple(
                _plain(tensor, done) if tensor is not None and tensor.dtype == "int8" else tensor
                for tensor in node.inputs
            )
    readers: dict[Tensor, list[Node]] = defaultdict(list)
    for node in graph.nodes:
        for tensor in {tensor for tensor in node.inputs if tensor is not None}:
            readers[tensor].append(node)
    removed = [node for node in graph.nodes if node.kind == "ONNX_DYNAMIC_QUANTIZE" and _remove(node, readers, graph)]
    if not done and not removed:
        return graph
    return dataclasses.replace(graph, nodes=tuple(node for node in graph.nodes if node not in removed))


def _has_bytes(node: Node) -> bool:
    """Whether a layer has float32 data and int8 weights, which can be damaged."""
    if node.kind in _RECURRENT:
        return bool(node.inputs) and node.inputs[0] is not None and node.inputs[0].dtype == "float32"
    needed = 3 if node.kind == "TRANSPOSE_CONV" else 2
    return len(node.inputs) >= needed and None not in node.inputs[:needed] and is_hybrid(node)


def _plain(tensor: Tensor, done: dict[Tensor, Tensor]) -> Tensor:
    """Return a constant as float32."""
    numbers = tensor.quantization
    if numbers is None or not tensor.is_constant:
        return tensor
    if tensor not in done:
        shape = [1] * len(tensor.shape)
        if numbers.axis is not None:
            shape[numbers.axis] = -1
        scales, zeros = (np.asarray(values).reshape(shape) for values in (numbers.scales, numbers.zeros))
        content = ((tensor.content.astype(np.float64) - zeros) * scales).astype(np.float32)
        done[tensor] = Tensor(tensor.name, "float32", tensor.shape, None, content)
    return done[tensor]


def _remove(node: Node, readers: dict[Tensor, list[Node]], graph: Graph) -> bool:
    """Let the layers that read data of 8 bits read the float32 data; return whether they can.

    ONNX's DynamicQuantizeLinear has integers and a factor as results. The integers become the data, the factor 1; what
    reads the sums multiplies them with the scale of the weights.
    """
    data, (centred, factor) = node.input(0), node.outputs
    before = _followed(centred, readers)
    layers = [reader for reader in before if reader.kind not in _MOVES]
    after = [end for layer in layers for end in _followed(layer.output, readers)]
    fits = all(layer.kind in _LAYERS and layer.input(1).is_constant for layer in layers)
    if not fits or any(reader.kind not in ("CAST", *_MOVES) for reader in after) or not layers:
        return False
    moves = [reader for reader in (*before, *after) if reader.kind in _MOVES]
    inner = {reader.output for reader in (*moves, *layers)}
    if inner & {*graph.outputs} or any(not readers[tensor] for tensor in inner):
        return False
    for tensor in inner:
        tensor.dtype = "float32"
    for layer in layers:
        layer.inputs = (layer.input(0), _plain(layer.input(1), {}), None)
        if layer.kind == "ONNX_DENSE_INTEGER":
            layer.options = {"keep_num_dims": True}
        layer.kind = _LAYERS[layer.kind]
    for reader in readers[centred]:
        reader.inputs = tuple(data if tensor is centred else tensor for tensor in reader.inputs)
    factor.content = np.ones(factor.shape, np.float32)
    return True


def _followed(tensor: Tensor, readers: dict[Tensor, list[Node]]) -> Sequence[Node]:
    """Return the operators that read a tensor, moves of elements and what reads their results."""
    nodes: list[Node] = []
    for node in readers[tensor]:
        nodes.append(node)
        if node.kind in _MOVES:
            nodes.extend(_followed(node.output, readers))
    return nodes
