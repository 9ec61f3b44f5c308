# SPDX-License-Identifier: Apache-2.0
"""The runtimes of the formats as references: for which graphs, and their results in terms of a graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from opwest.compiler.graph.types import Graph, Node, Tensor
from opwest.compiler.reference.run import run_node
from opwest.compiler.reference.runtimes import Call, Cases, Found, UnavailableError, name_of, run
from opwest.compiler.semantics.layers import has_faulty_reference
from opwest.frontends.read import MAGIC


def reference(graph: Graph, content: bytes, inputs: Cases, sequence: bool = False) -> tuple[str, Cases]:
    """Return the name of the format's runtime and its outputs.

    With `sequence` the cases are one sequence of runs of a model with state. Raises UnavailableError, TerminatedError.
    """
    is_tflite = content[4:8] == MAGIC
    name = name_of("tflite" if is_tflite else "onnx")
    if is_tflite and (wrong := [node.kind for node in graph.nodes if _is_faulty(node)]):
        raise UnavailableError(f"the reference kernel of {name} for {wrong[0]} is wrong")
    found = _run(graph, content, inputs, state="keep" if sequence else "reset")
    outputs = [_outputs(graph, case) for case in found.outputs]
    wanted = [(one.dtype, one.shape) for one in graph.outputs]
    if any([(str(a.dtype), a.shape) for a in case] != wanted for case in outputs):
        raise UnavailableError(f"the results of {name} have other dtypes or shapes")
    return f"{name}, reference kernels" if is_tflite else f"{name} without optimisations", outputs


def _run(graph: Graph, content: bytes, inputs: Cases, **more: Any) -> Found:
    """Run the model as the file has it. Integer weights of ONNX become uint8, so that no product saturates."""
    given = _converted(graph, inputs)
    if content[4:8] != MAGIC:
        from opwest.frontends.onnx.file import with_unsigned_weights

        return run(Call("onnx"), with_unsigned_weights(content), given)
    call = Call("tflite", graph.subgraph, **more)
    if graph.signature is not None:
        named = graph.signature
        call = replace(call, signature=named.key, inputs=named.inputs, outputs=named.outputs)
    return run(call, content, given)


def _is_faulty(node: Node) -> bool:
    """Whether LiteRT's reference kernel is wrong: SUM of int8 and int16 reads the elements as uint8."""
    is_wrong_sum = node.kind == "SUM" and node.input(0).dtype in ("int8", "int16")
    return is_wrong_sum or has_faulty_reference(node) or _is_unsafe(node)


def _is_unsafe(node: Node) -> bool:
    """Whether LiteRT's kernel destroys memory: SVDF writes int16 elements into an int8 state."""
    return node.kind == "SVDF" and node.input(4).dtype == "int8"


def all_tensors(graph: Graph, content: bytes, inputs: Cases) -> list[dict[Tensor, Any]]:
    """Return the arrays of all tensors of LiteRT's reference kernels for each case; of onnxruntime only the outputs.

    Raises UnavailableError, TerminatedError.
    """
    if content[4:8] != MAGIC:
        outputs = [_outputs(graph, one) for one in _run(graph, content, inputs).outputs]
        return [dict(zip(graph.outputs, one, strict=True)) for one in outputs]
    name_of("tflite")
    if any(map(_is_unsafe, graph.nodes)):
        raise UnavailableError("LiteRT has no SVDF with an int8 state")
    tensors = {one: one.number for node in graph.nodes for one in node.outputs if one.number is not None}
    has_state = any(one is not None and one.is_state for node in graph.nodes for one in node.inputs)
    found = _run(graph, content, inputs, state="new" if has_state else "keep", tensors=sorted({*tensors.values()}))
    made = []
    for outputs, numbers in zip(found.outputs, found.tensors, strict=True):
        arrays = {one: numbers[number] for one, number in tensors.items()}
        arrays |= dict(zip(graph.outputs, _outputs(graph, outputs), strict=True))
        made.append({one: array for one, array in arrays.items() if array.shape == one.shape})
    return made


def _converted(graph: Graph, inputs: Cases) -> Cases:
    """Return the inputs of the file."""
    if graph.converters is None:
        return inputs
    nodes = graph.converters.inputs
    return [[_by(node, one, graph) for node, one in zip(nodes, case, strict=True)] for case in inputs]


def _outputs(graph: Graph, case: Sequence[Any]) -> list[Any]:
    """Return the outputs of the graph for those of the file."""
    if graph.converters is None:
        return list(case)
    return [_by(node, one, graph) for node, one in zip(graph.converters.outputs, case, strict=True)]


def _by(node: Node | None, array: Any, graph: Graph) -> Any:
    """Return the result of a node with one input; the input without a node."""
    return array if node is None else run_node(node, [array], graph.rules)[0]
