# SPDX-License-Identifier: Apache-2.0
"""The runtimes of the formats as references: LiteRT's reference kernels, onnxruntime."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from typing import Any

import numpy as np

from opwest.importers.models.graph.types import Graph, Node, Tensor
from opwest.importers.models.interpret.run import run_node
from opwest.importers.models.operators.hybrid import has_faulty_reference
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
    try:
        given = _converted(graph, inputs)
        found = _litert(graph, content, given, sequence) if is_tflite else _onnxruntime(content, given)
        outputs = [_outputs(graph, case) for case in found]
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
    is_wrong_sum = node.kind == "SUM" and node.input(0).dtype in ("int8", "int16")
    return is_wrong_sum or has_faulty_reference(node) or _is_unsafe(node)


def _is_unsafe(node: Node) -> bool:
    """Whether LiteRT's kernel destroys memory: SVDF writes int16 elements into an int8 state."""
    return node.kind == "SVDF" and node.input(4).dtype == "int8"


def _litert(graph: Graph, content: bytes, inputs: Cases, sequence: bool) -> Cases:
    runtime = _LiteRt(graph, content)
    outputs = []
    for case in inputs:
        if not sequence:
            runtime.interpreter.reset_all_variables()
        outputs.append(runtime.run(case))
    return outputs


class _LiteRt:
    """LiteRT with reference kernels. The first subgraph is run by the interpreter, others by a runner of signatures.

    All tensors have memory of their own: LiteRT 2.3 otherwise lets RESHAPE and ADD share a tensor that is read later.
    """

    def __init__(self, graph: Graph, content: bytes) -> None:
        from ai_edge_litert.interpreter import Interpreter, OpResolverType

        self.interpreter = Interpreter(
            model_content=content,
            experimental_op_resolver_type=OpResolverType.BUILTIN_REF,
            experimental_preserve_all_tensors=True,
            num_threads=1,
        )
        self._subgraph = graph.subgraph
        self._signature = graph.signature
        self._runner = None
        if graph.subgraph:
            if graph.signature is None or not all((*graph.signature.inputs, *graph.signature.outputs)):
                raise ValueError("the signature does not name all inputs and outputs of its subgraph")
            self._runner = self.interpreter.get_signature_runner(graph.signature.key)
        else:
            self.interpreter.allocate_tensors()

    def run(self, case: Sequence[Any]) -> list[Any]:
        """Return the outputs for the inputs of one case."""
        if self._runner is not None:
            assert self._signature is not None
            named = dict(zip(self._signature.inputs, map(np.asarray, case), strict=True))
            found = self._runner(**named)
            return [np.array(found[name]) for name in self._signature.outputs]
        for place, array in zip(self.interpreter.get_input_details(), case, strict=True):
            self.interpreter.set_tensor(place["index"], np.asarray(array))
        self.interpreter.invoke()
        return [self.tensor(one["index"]) for one in self.interpreter.get_output_details()]

    def tensor(self, number: int) -> Any:
        """Return the content of a tensor."""
        return self.interpreter.get_tensor(number, self._subgraph).copy()


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
    given = _converted(graph, inputs)
    if content[4:8] != MAGIC:
        outputs = [_outputs(graph, one) for one in _onnxruntime(content, given)]
        return [dict(zip(graph.outputs, one, strict=True)) for one in outputs]
    if any(map(_is_unsafe, graph.nodes)):
        raise ValueError("LiteRT has no SVDF with an int8 state")
    runtime = _LiteRt(graph, content)
    tensors = {one for node in graph.nodes for one in node.outputs if one.number is not None}
    found = []
    has_state = any(one is not None and one.is_state for node in graph.nodes for one in node.inputs)
    for number, case in enumerate(given):
        if has_state and number:  # reset_all_variables() leaves resources as they are
            runtime = _LiteRt(graph, content)
        outputs = _outputs(graph, runtime.run(case))
        arrays = {one: runtime.tensor(one.number) for one in tensors if one.number is not None}
        arrays |= dict(zip(graph.outputs, outputs, strict=True))
        found.append({one: array for one, array in arrays.items() if array.shape == one.shape})
    return found


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
