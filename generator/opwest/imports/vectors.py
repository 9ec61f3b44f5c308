# SPDX-License-Identifier: Apache-2.0
"""Golden vectors: inputs, and the outputs of the format's runtime or of the interpreter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.graph.types import Damaged, Graph, Node, Tensor, Unsupported
from opwest.compiler.graph.user import KIND
from opwest.compiler.output.manifest import Vectors
from opwest.compiler.reference.distances import distance, largest, made_inputs
from opwest.compiler.reference.run import Values, outputs_of, run_graph, run_node
from opwest.compiler.reference.runtimes import Call, Cases, Found, TerminatedError, UnavailableError, name_of, run
from opwest.compiler.semantics.layers import has_faulty_reference
from opwest.frontends.formats import ONNX, TFLITE, TORCH
from opwest.frontends.read import format_of


def reference(graph: Graph, content: bytes, inputs: Cases, sequence: bool = False) -> tuple[str, Cases]:
    """Return the name of the format's runtime and its outputs.

    With `sequence` the cases are one sequence of runs of a model with state. Raises UnavailableError, TerminatedError.
    """
    name, is_tflite = name_of(format_of(content, "").name), format_of(content, "") is TFLITE
    if is_tflite and (wrong := [node.kind for node in graph.nodes if _is_faulty(node)]):
        raise UnavailableError(f"the reference kernel of {name} for {wrong[0]} is wrong")
    answer = _run(graph, content, inputs, state="keep" if sequence else "reset")
    outputs = [_outputs(graph, case) for case in answer.outputs]
    wanted = [(output.dtype, output.shape) for output in graph.outputs]
    if any([(str(a.dtype), a.shape) for a in case] != wanted for case in outputs):
        raise UnavailableError(f"the results of {name} have other dtypes or shapes")
    return name + _KERNELS[format_of(content, "").name], outputs


_KERNELS = {"tflite": ", reference kernels", "onnx": " without optimisations", "torch": ""}
"""How the runtime of a format runs the operators."""


def _run(graph: Graph, content: bytes, inputs: Cases, **more: Any) -> Found:
    """Run the model as the file has it.

    Integer weights of ONNX become uint8, so that no product saturates. PyTorch gets no pickle of sample inputs.
    """
    given = _converted(graph, inputs)
    if _is_onnx(content):
        from opwest.frontends.onnx.file import with_unsigned_weights

        return run(Call("onnx"), with_unsigned_weights(content), given)
    if format_of(content, "") is TORCH:
        from opwest.frontends.torch.trusted import for_runtime

        try:
            trusted = for_runtime(content)
        except (Damaged, Unsupported) as reason:
            raise UnavailableError(f"PyTorch does not get the program: {reason}") from None
        return run(Call("torch", **more), trusted, given)
    call = Call("tflite", graph.subgraph, **more)
    if graph.signature is not None:
        named = graph.signature
        call = replace(call, signature=named.key, inputs=named.inputs, outputs=named.outputs)
    return run(call, content, given)


def _is_onnx(content: bytes) -> bool:
    return format_of(content, "") is ONNX


def _is_faulty(node: Node) -> bool:
    """Whether LiteRT's reference kernel is wrong: SUM of int8 and int16 reads the elements as uint8."""
    is_wrong_sum = node.kind == "SUM" and node.input(0).dtype in ("int8", "int16")
    return is_wrong_sum or has_faulty_reference(node) or _is_unsafe(node)


def _is_unsafe(node: Node) -> bool:
    """Whether LiteRT's kernel destroys memory: SVDF writes int16 elements into an int8 state."""
    return node.kind == "SVDF" and node.input(4).dtype == "int8"


def all_tensors(graph: Graph, content: bytes, inputs: Cases) -> list[dict[Tensor, Any]]:
    """Return the arrays of all tensors of LiteRT's reference kernels for each case; of others only the outputs.

    Raises UnavailableError, TerminatedError.
    """
    if format_of(content, "") is not TFLITE:
        outputs = [_outputs(graph, output) for output in _run(graph, content, inputs, state="reset").outputs]
        return [dict(zip(graph.outputs, output, strict=True)) for output in outputs]
    name_of("tflite")
    if any(map(_is_unsafe, graph.nodes)):
        raise UnavailableError("LiteRT has no SVDF with an int8 state")
    tensors = {output: output.number for node in graph.nodes for output in node.outputs if output.number is not None}
    has_state = any(tensor is not None and tensor.is_state for node in graph.nodes for tensor in node.inputs)
    answer = _run(graph, content, inputs, state="new" if has_state else "keep", tensors=sorted({*tensors.values()}))
    made = []
    for outputs, numbers in zip(answer.outputs, answer.tensors, strict=True):
        arrays = {tensor: numbers[number] for tensor, number in tensors.items()}
        arrays |= dict(zip(graph.outputs, _outputs(graph, outputs), strict=True))
        made.append({tensor: array for tensor, array in arrays.items() if array.shape == tensor.shape})
    return made


def _converted(graph: Graph, inputs: Cases) -> Cases:
    """Return the inputs of the file."""
    if graph.converters is None:
        return inputs
    nodes = graph.converters.inputs
    return [[_by(node, array, graph) for node, array in zip(nodes, case, strict=True)] for case in inputs]


def _outputs(graph: Graph, case: Sequence[Any]) -> list[Any]:
    """Return the outputs of the graph for those of the file."""
    if graph.converters is None:
        return list(case)
    return [_by(node, array, graph) for node, array in zip(graph.converters.outputs, case, strict=True)]


def _by(node: Node | None, array: Any, graph: Graph) -> Any:
    """Return the result of a node with one input; the input without a node."""
    return array if node is None else run_node(node, [array], graph.rules)[0]


_ABSENT = "there are no golden vectors:"
_ATTEMPTS = 4
_TRIES = 8
"""The cases that are drawn for each one that must run."""


@dataclass(frozen=True)
class Results:
    """The outputs of a reference."""

    name: str
    outputs: Cases
    remarks: tuple[str, ...] = ()
    """Remarks for the user."""


def make_vectors(
    graph: Graph, content: bytes, count: int, changed: bool = False
) -> tuple[Vectors | None, tuple[str, ...]]:
    """Return vectors from the format's runtime if it runs the model, else from the interpreter; and remarks.

    Indices can be outside of their dimensions, and divisors 0: then only cases that run are taken, or whole inputs of
    int32 and int64 are 0 or 1; None if that does not run either.
    `changed`: the graph computes other results than the file, so that the runtime is no reference.
    The interpreter does not run operators of the user.
    """
    inputs = make_inputs(graph, count)
    if any(node.kind == KIND for node in graph.nodes):
        return _of_users(graph, content, inputs, changed)
    reason = ""
    for attempt in range(_ATTEMPTS):
        cases = _attempt(graph, inputs, attempt)
        try:
            if cases:
                outcome = results(graph, content, cases, changed)
                return _vectors(graph, cases, outcome), outcome.remarks
        except ValueError as error:
            reason = str(error)
    return None, (f"{_ABSENT} each input that was tried fails: {reason}",)


def _of_users(graph: Graph, content: bytes, inputs: Cases, changed: bool) -> tuple[Vectors | None, tuple[str, ...]]:
    """Return vectors of a model with operators of the user, and remarks: only the runtime can give results."""
    if changed:
        return None, (f"{_ABSENT} --dequantise-weights changes the results of the file",)
    try:
        return _vectors(graph, inputs, Results(*reference(graph, content, inputs, sequence=True))), ()
    except TerminatedError as error:
        return None, (f"{_ABSENT} {error}",)
    except UnavailableError:
        return None, (f"{_ABSENT} no runtime of the format runs the operators of --operator",)


def _attempt(graph: Graph, inputs: Cases, number: int) -> Cases:
    """Return the inputs of an attempt: as they are, those that run, with integers of 0, with integers of 1."""
    if number == 1:
        return _that_run(graph, len(inputs))
    if number == 0:
        return inputs
    value = number - 2
    return [[np.full_like(a, value) if a.dtype in (np.int32, np.int64) else a for a in case] for case in inputs]


def _that_run(graph: Graph, count: int) -> Cases:
    """Return at most `count` random cases without an error code; none for models with a state."""
    if any(tensor is not None and tensor.is_state for node in graph.nodes for tensor in node.inputs):
        return []
    cases: Cases = []
    for case in make_inputs(graph, count * _TRIES):
        try:
            run_graph(graph, case)
        except ValueError:
            continue
        cases.append(case)
        if len(cases) == count:
            break
    return cases


def _vectors(graph: Graph, inputs: Cases, outcome: Results) -> Vectors:
    tolerances = tuple(_tolerance(graph, outcome.outputs, i) for i in range(len(graph.outputs)))
    return Vectors(inputs, outcome.outputs, tolerances, f"The outputs in vectors.npz are from {outcome.name}.")


def results(graph: Graph, content: bytes, inputs: Cases, changed: bool = False) -> Results:
    """Return the outputs of a reference."""
    outcome, reason = None, "--dequantise-weights changes the results"
    remarks: tuple[str, ...] = ()
    if not changed:
        try:
            outcome = Results(*reference(graph, content, inputs, sequence=True))
        except UnavailableError as error:
            reason = str(error).rstrip(".")
            if isinstance(error, TerminatedError):
                remarks = (f"{reason}: the golden vectors are from opwest's own interpreter of the model",)
    if outcome is not None and not _has_quantised(graph, content) and not graph.rules.dense_rounds_twice:
        return outcome
    state: Values = {}  # the cases of a model with state are a sequence
    outputs = [outputs_of(graph, run_graph(graph, case, state)) for case in inputs]
    if outcome is not None:
        return _agreed(graph, outcome, outputs)
    return Results(f"opwest's own interpreter of the model, because {reason}", outputs, remarks)


def _has_quantised(graph: Graph, content: bytes) -> bool:
    """Return whether int8 results can differ from the runtime by one step per operator: those of ONNX and PyTorch."""
    return format_of(content, "") is not TFLITE and any(
        output.dtype == "int8" for node in graph.nodes for output in node.outputs
    )


def _agreed(graph: Graph, outcome: Results, own: Cases) -> Results:
    """Return the runtime's outputs if the interpreter has the same, else those of the interpreter."""
    outputs = outcome.outputs
    greatest, same = 0.0, True
    for number in range(len(graph.outputs)):
        limits = _tolerance(graph, outputs, number)
        for one, other in zip(outputs, own, strict=True):
            apart = distance(one[number], other[number])
            greatest = max(greatest, float(apart.max(initial=0)))
            size = np.abs(np.asarray(one[number], np.float64))
            allowed = limits.get("absolute", 0.0) + limits.get("relative", 0.0) * np.where(np.isfinite(size), size, 0)
            same = same and bool((apart <= allowed).all())
    if same:
        return outcome
    return Results(
        f"opwest's own interpreter of the model; those of {outcome.name} differ by at most {greatest:g}", own
    )


def make_inputs(graph: Graph, count: int, seed: int = 0) -> Cases:
    """Return inputs: zeros, the ends of the range, a ramp, and then random ones.

    An input that is converted to integers takes numbers near to those that the integers represent.
    """
    nodes = (None,) * len(graph.inputs) if graph.converters is None else graph.converters.inputs
    inner = [tensor if node is None else node.output for tensor, node in zip(graph.inputs, nodes, strict=True)]
    random = np.random.default_rng(seed + 1000)

    def outer(node: Node | None, array: Any) -> Any:
        quantization = None if node is None else node.output.quantization
        if quantization is None:
            return array
        between = random.uniform(-0.5, 0.5, array.shape)
        return ((array.astype(np.float64) - quantization.zero + between) * quantization.scale).astype(np.float32)

    return [list(map(outer, nodes, case)) for case in made_inputs(inner, count, ("int8", "uint8", "int16"), seed)]


def _tolerance(graph: Graph, outputs: Cases, index: int) -> dict[str, float]:
    """Return the tolerance of an output: integers are exact, float results depend on the C library."""
    is_converted = graph.converters is not None and graph.converters.outputs[index] is not None
    if graph.outputs[index].dtype != "float32" or is_converted:  # one multiplication of an exact integer
        return {}
    return {"absolute": 1e-5 * max(largest(case[index] for case in outputs), 1e-3), "relative": 1e-4}
