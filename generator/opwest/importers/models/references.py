# SPDX-License-Identifier: Apache-2.0
"""The runtimes of the formats as references: LiteRT's reference kernels, onnxruntime."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from typing import Any

import numpy as np

from opwest.importers.models.graph.types import Graph, Node, Tensor
from opwest.importers.models.read import MAGIC

Cases = list[list[Any]]
"""Arrays by case, then by input or output."""


def reference(graph: Graph, content: bytes, inputs: Cases, sequence: bool = False) -> tuple[str, Cases] | None:
    """Return the name of the format's runtime and its outputs; None if it is absent or cannot run the model.

    With `sequence` the cases are one sequence of runs of a model with state.
    """
    is_tflite = content[4:8] == MAGIC
    package = "ai_edge_litert" if is_tflite else "onnxruntime"
    if importlib.util.find_spec(package) is None or (is_tflite and any(map(_is_faulty, graph.nodes))):
        return None
    if is_tflite and graph.subgraph:  # the interpreter of LiteRT runs the first one
        return None
    try:
        outputs = _litert(content, inputs, sequence) if is_tflite else _onnxruntime(content, inputs)
    except Exception:  # it can lack an operator, or refuse a file that tflite-micro runs
        return None
    wanted = [(one.dtype, one.shape) for one in graph.outputs]
    if any([(str(a.dtype), a.shape) for a in case] != wanted for case in outputs):
        return None
    from importlib.metadata import version

    if is_tflite:
        return f"LiteRT {version('ai-edge-litert')}, reference kernels", outputs
    return f"onnxruntime {version('onnxruntime')} without optimisations", outputs


def _is_faulty(node: Node) -> bool:
    """Whether LiteRT's reference kernel is wrong: SUM of int8 and int16 reads the elements as uint8."""
    return node.kind == "SUM" and node.input(0).dtype in ("int8", "int16")


def _litert(content: bytes, inputs: Cases, sequence: bool) -> Cases:
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    kernels = OpResolverType.BUILTIN_REF
    interpreter = Interpreter(model_content=content, experimental_op_resolver_type=kernels, num_threads=1)
    interpreter.allocate_tensors()
    outputs = []
    for case in inputs:
        if not sequence:
            interpreter.reset_all_variables()
        _set(interpreter, case)
        interpreter.invoke()
        outputs.append([interpreter.get_tensor(one["index"]).copy() for one in interpreter.get_output_details()])
    return outputs


def _onnxruntime(content: bytes, inputs: Cases) -> Cases:
    """Run every operator as the file has it, in one thread; integer weights are uint8, so that no product saturates."""
    import onnxruntime

    from opwest.importers.models.onnx.unsigned import with_unsigned_weights

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    precise = with_unsigned_weights(content)
    session = onnxruntime.InferenceSession(precise, options, providers=["CPUExecutionProvider"])
    names = [one.name for one in session.get_inputs()]
    return [[np.asarray(one) for one in session.run(None, dict(zip(names, case, strict=True)))] for case in inputs]


def all_tensors(graph: Graph, content: bytes, inputs: Cases) -> list[dict[Tensor, Any]]:
    """Return the arrays of all tensors of LiteRT's reference kernels for each case; of onnxruntime only the outputs.

    Raises any exception of the runtimes.
    """
    if content[4:8] != MAGIC:
        return [dict(zip(graph.outputs, one, strict=True)) for one in _onnxruntime(content, inputs)]
    if graph.subgraph:
        raise ValueError("LiteRT gives access to the tensors of the first signature only")
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    interpreter = Interpreter(
        model_content=content,
        experimental_op_resolver_type=OpResolverType.BUILTIN_REF,
        experimental_preserve_all_tensors=True,
        num_threads=1,
    )
    interpreter.allocate_tensors()
    tensors = {one for node in graph.nodes for one in node.outputs if one.number is not None}
    found = []
    for case in inputs:
        interpreter.reset_all_variables()
        _set(interpreter, case)
        interpreter.invoke()
        arrays = {one: interpreter.get_tensor(one.number).copy() for one in tensors}
        found.append({one: array for one, array in arrays.items() if array.shape == one.shape})
    return found


def _set(interpreter: Any, case: Sequence[Any]) -> None:
    for place, array in zip(interpreter.get_input_details(), case, strict=True):
        interpreter.set_tensor(place["index"], np.asarray(array))
