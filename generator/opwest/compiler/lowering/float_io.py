# SPDX-License-Identifier: Apache-2.0
"""float32 inputs and outputs for a model with quantised ones: TFLite's QUANTIZE and DEQUANTIZE at its ends."""

from __future__ import annotations

import dataclasses

from opwest.compiler.graph.types import Converters, Graph, Node, Tensor
from opwest.compiler.semantics.movement import QUANTISED


def with_float_io(graph: Graph) -> Graph:
    """Return a graph whose quantised inputs and outputs are float32, without a scale; the same one without such."""
    before = tuple(_quantise(one) if _is_quantised(one) else None for one in graph.inputs)
    after = tuple(_dequantise(one) if _is_quantised(one) else None for one in graph.outputs)
    if not any((*before, *after)):
        return graph
    return dataclasses.replace(
        graph,
        inputs=tuple(one if node is None else node.input(0) for one, node in zip(graph.inputs, before, strict=True)),
        outputs=tuple(one if node is None else node.output for one, node in zip(graph.outputs, after, strict=True)),
        nodes=(
            *(one for one in before if one is not None),
            *graph.nodes,
            *(one for one in after if one is not None),
        ),
        converters=Converters(before, after),
    )


def _is_quantised(tensor: Tensor) -> bool:
    found = tensor.quantization
    return tensor.dtype in QUANTISED and found is not None and len(found.scales) == 1


def _quantise(tensor: Tensor) -> Node:
    outer = Tensor(tensor.name, "float32", tensor.shape)
    return Node("QUANTIZE", (outer,), (tensor,), {}, f"--float-io (QUANTIZE), input '{tensor.name}'")


def _dequantise(tensor: Tensor) -> Node:
    outer = Tensor(tensor.name, "float32", tensor.shape)
    return Node("DEQUANTIZE", (tensor,), (outer,), {}, f"--float-io (DEQUANTIZE), output '{tensor.name}'")
