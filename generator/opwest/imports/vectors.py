# SPDX-License-Identifier: Apache-2.0
"""Golden vectors: inputs, and the outputs of the format's runtime or of the interpreter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.graph.types import Graph, Node, Tensor
from opwest.compiler.graph.user import uses_of
from opwest.compiler.output.manifest import Vectors
from opwest.compiler.reference.distances import distance, largest
from opwest.compiler.reference.run import Values, outputs_of, run_graph
from opwest.compiler.reference.runtimes import Cases, TerminatedError, UnavailableError
from opwest.frontends.read import MAGIC
from opwest.imports.references import reference

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
    if any(uses_of(graph.nodes)):
        return _of_users(graph, content, inputs, changed)
    reason = ""
    for attempt in range(_ATTEMPTS):
        cases = _attempt(graph, inputs, attempt)
        try:
            if cases:
                found = results(graph, content, cases, changed)
                return _vectors(graph, cases, found), found.remarks
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
    return inputs if number == 0 else _filled(inputs, number - 2)


def _that_run(graph: Graph, count: int) -> Cases:
    """Return at most `count` random cases without an error code; none for models with a state."""
    if any(one is not None and one.is_state for node in graph.nodes for one in node.inputs):
        return []
    found: Cases = []
    for case in make_inputs(graph, count * _TRIES):
        try:
            run_graph(graph, case)
        except ValueError:
            continue
        found.append(case)
        if len(found) == count:
            break
    return found


def _filled(cases: Cases, value: int) -> Cases:
    """Return inputs whose int32 and int64 elements have one value."""
    return [[np.full_like(one, value) if one.dtype in (np.int32, np.int64) else one for one in case] for case in cases]


def _vectors(graph: Graph, inputs: Cases, found: Results) -> Vectors:
    tolerances = tuple(_tolerance(graph, found.outputs, i) for i in range(len(graph.outputs)))
    return Vectors(inputs, found.outputs, tolerances, f"The outputs in vectors.npz are from {found.name}.")


def results(graph: Graph, content: bytes, inputs: Cases, changed: bool = False) -> Results:
    """Return the outputs of a reference."""
    found, reason = None, "--dequantise-weights changes the results"
    remarks: tuple[str, ...] = ()
    if not changed:
        try:
            found = Results(*reference(graph, content, inputs, sequence=True))
        except UnavailableError as error:
            reason = str(error)
            if isinstance(error, TerminatedError):
                remarks = (f"{reason}: the golden vectors are from opwest's own interpreter of the model",)
    if found is not None and not _has_quantised(graph, content) and not graph.rules.dense_rounds_twice:
        return found
    state: Values = {}  # the cases of a model with state are a sequence
    outputs = [outputs_of(graph, run_graph(graph, case, state)) for case in inputs]
    if found is not None:
        return _agreed(graph, found, outputs)
    return Results(f"opwest's own interpreter of the model, because {reason}", outputs, remarks)


def _has_quantised(graph: Graph, content: bytes) -> bool:
    """Return whether a model of ONNX has int8 results, which can differ from the runtime by one step per operator."""
    return content[4:8] != MAGIC and any(one.dtype == "int8" for node in graph.nodes for one in node.outputs)


def _agreed(graph: Graph, found: Results, own: Cases) -> Results:
    """Return the runtime's outputs if the interpreter has the same, else those of the interpreter."""
    outputs = found.outputs
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
        return found
    return Results(f"opwest's own interpreter of the model; those of {found.name} differ by at most {greatest:g}", own)


def make_inputs(graph: Graph, count: int, seed: int = 0) -> Cases:
    """Return inputs: zeros, the ends of the range, a ramp, and then random ones.

    An input that is converted to integers takes numbers near to those that the integers represent.
    """
    nodes = (None,) * len(graph.inputs) if graph.converters is None else graph.converters.inputs
    inner = [one if node is None else node.output for one, node in zip(graph.inputs, nodes, strict=True)]
    random = np.random.default_rng(seed + 1000)

    def outer(node: Node | None, array: Any) -> Any:
        found = None if node is None else node.output.quantization
        if found is None:
            return array
        between = random.uniform(-0.5, 0.5, array.shape)
        return ((array.astype(np.float64) - found.zero + between) * found.scale).astype(np.float32)

    return [list(map(outer, nodes, case)) for case in _arrays(inner, count, seed)]


def _arrays(tensors: Sequence[Tensor], count: int, seed: int) -> Cases:
    random = np.random.default_rng(seed)

    def one(tensor: Tensor, case: int) -> Any:
        size = tensor.size
        values: Any
        if tensor.dtype == "bool":
            values = random.integers(0, 2, size)
        elif tensor.dtype in ("int8", "uint8", "int16"):
            limits = np.iinfo(tensor.dtype)
            low, high = int(limits.min), int(limits.max)
            values = random.integers(low, high + 1, size)
            if case < 4:
                ramp = low + np.arange(size) % (high - low + 1)
                values = (np.zeros(size), np.full(size, low), np.full(size, high), ramp)[case]
        elif tensor.dtype != "float32":
            values = random.integers(0, 2, size)  # often an index
        elif case < 4:
            values = (np.zeros(size), np.full(size, -1.0), np.ones(size), np.linspace(-1, 1, size))[case]
        else:
            values = random.standard_normal(size)
        return np.asarray(values).astype(tensor.dtype).reshape(tensor.shape)

    return [[one(tensor, case) for tensor in tensors] for case in range(count)]


def _tolerance(graph: Graph, outputs: Cases, index: int) -> dict[str, float]:
    """Return the tolerance of an output: integers are exact, float results depend on the C library."""
    is_converted = graph.converters is not None and graph.converters.outputs[index] is not None
    if graph.outputs[index].dtype != "float32" or is_converted:  # one multiplication of an exact integer
        return {}
    return {"absolute": 1e-5 * max(largest(case[index] for case in outputs), 1e-3), "relative": 1e-4}
