# SPDX-License-Identifier: Apache-2.0
"""The quantisation of a float TFLite file by the typed graph: choose scales, run the graph, write, read back."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from opwest.base.diagnostics import Diagnostics, Location
from opwest.compiler.child import Progress
from opwest.compiler.faults import REPORT, fault
from opwest.compiler.graph.check import check_graph
from opwest.compiler.graph.types import Graph, Node, Tensor
from opwest.compiler.lowering.control import resolve_control
from opwest.compiler.lowering.conversions import dequantise_weights
from opwest.compiler.lowering.simplify import Folding
from opwest.compiler.reference.run import outputs_of, run_graph
from opwest.frontends.read import read_model
from opwest.quantisation import flow
from opwest.quantisation.assign import Plan, QuantisedGraph, quantised_graph
from opwest.quantisation.calibration import Recorder, Statistics, ranges_of
from opwest.quantisation.flow import Loss, Outputs
from opwest.quantisation.folding import folded
from opwest.quantisation.layers import float_outputs, layers_of, losses_of, run_quantised
from opwest.quantisation.request import Layer, Made, Options
from opwest.quantisation.rules import Precision, is_float, permitted, rule_of
from opwest.quantisation.samples import Samples, port_of, read_samples

_CLASSIFIERS = ("SOFTMAX", "LOG_SOFTMAX")


def quantise(path: Path, content: bytes, options: Options, progress: Progress) -> Made:
    """Return a quantised file and what it loses. Raises OpwestError."""
    place = str(path)
    graph, remarks = float_graph(content, place)
    samples = read_samples(options, *([port_of(tensor) for tensor in side] for side in (graph.inputs, graph.outputs)))
    backend = Backend(graph, content, samples, options, place, remarks)
    return flow.run(backend, len(content), samples, options, place, progress)


def float_graph(content: bytes, place: str) -> tuple[Graph, tuple[str, ...]]:
    """Return the float graph of a file with batch normalisations in its layers, and remarks. Raises OpwestError.

    Weights of dynamic-range models become float32.
    """
    graphs = tuple(map(resolve_control, read_model(content, place)))
    if len(graphs) != 1:
        names = ", ".join(graph.name for graph in graphs)
        raise fault(f"the model has {len(graphs)} signatures: {names}", place, "one signature", "export each one alone")
    faults = Diagnostics()
    graph = dequantise_weights(graphs[0])
    check_graph(graph, place, faults, Folding(graph.rules))
    faults.raise_if_errors()
    _check_float(graph, place)
    remark = "the weights are int8 already (dynamic range): what that has lost is not counted"
    return folded(graph), () if graph is graphs[0] else (remark,)


def _check_float(graph: Graph, place: str) -> None:
    """Raise OpwestError for models that are not plain float models."""
    if graph.updates:
        hint = "quantise a form of the model without state"
        raise fault("the model has state (variables), which is not quantised", place, "a model without state", hint)
    tensors = (*graph.inputs, *(tensor for node in graph.nodes for tensor in node.outputs))
    quantised = [t for t in tensors if t.quantization is not None and t.dtype in ("int8", "uint8", "int16")]
    if quantised:
        text = f"the model is quantised already: tensor '{quantised[0].name}' is {quantised[0].dtype} with a scale"
        raise fault(text, place, "a float32 model", "quantise the float model that it was made from")
    if not layers_of(graph):
        kinds = ", ".join(sorted({node.kind for node in graph.nodes})) or "none"
        raise fault("no operator has an integer form", place, hint=f"the operators of the model: {kinds}")


class Backend(flow.Backend[Node]):
    """A TFLite file: layers are nodes of the float graph."""

    format = "tflite"

    def __init__(
        self, graph: Graph, origin: bytes, samples: Samples, options: Options, place: str, remarks: Sequence[str]
    ) -> None:
        self.graph, self.origin, self.cases, self.place = graph, origin, samples.cases, place
        self.remarks = remarks
        self.base: Precision = "int16x8" if options.dtype == "int16x8" else "int8"
        self.keep: Precision = "float" if options.keep == "float" or self.base == "int16x8" else "int16x8"
        self.float_io = options.float_io
        self.is_classifier = any(node.kind in _CLASSIFIERS for node in graph.nodes if graph.outputs[0] in node.outputs)
        self._statistics: Mapping[Tensor, Statistics] = {}
        self._means: Mapping[Tensor, Any] = {}
        self.graph_of = functools.lru_cache(maxsize=2)(self._quantised)
        self._ranges_of = functools.cache(lambda method: ranges_of(self._statistics, method))
        self._last: QuantisedGraph | None = None

    def calibrate(self) -> Outputs:
        """Run the float graph."""
        recorder = Recorder(self.graph, len(self.cases))
        for case in self.cases:
            recorder.add(case)
        self._statistics, self._means = recorder.statistics(), recorder.means()
        return recorder.outputs

    def _quantised(self, method: str, kept: frozenset[Node]) -> QuantisedGraph:
        plan = Plan(self.base, self.float_io, dict.fromkeys(kept, self.keep), self._means)
        return quantised_graph(self.graph, self._ranges_of(method), plan)

    def outputs(self, method: str, kept: frozenset[Node], most: int | None) -> Outputs:
        """Run the quantised graph."""
        quantised = self.graph_of(method, kept)
        return [float_outputs(quantised, run_quantised(quantised, case)) for case in self.cases[:most]]

    def losses(self, method: str, kept: frozenset[Node]) -> Mapping[Node, Loss]:
        """Return the loss of each layer."""
        return losses_of(self.graph, self.graph_of(method, kept), self.cases, layers_of(self.graph))

    def can_keep(self, layer: Node) -> bool:
        """Whether the operator exists in the arithmetic of kept layers."""
        return permitted(layer, self.keep) == self.keep

    def rows(self, losses: Mapping[Node, Loss], method: str, kept: frozenset[Node]) -> tuple[Layer, ...]:
        """Return the layers in the order of the file."""
        chosen = self.graph_of(method, kept)
        return tuple(_row(node, chosen, loss, is_kept=node in kept) for node, loss in losses.items())

    def warnings(self) -> Sequence[str]:
        """Return warnings about operators that remain float32, and do not by request."""
        kinds: dict[str, int] = {}
        for node in self.graph.nodes:
            if is_float(node) and rule_of(node) is None:
                kinds[node.kind] = kinds.get(node.kind, 0) + 1
        words = [f"{kind} ({count})" if count > 1 else kind for kind, count in sorted(kinds.items())]
        texts = [f"no integer form, computed in float32: {', '.join(words)}"] if words else []
        refused = {} if self._last is None else self._last.refused
        return texts + [f"operator {node.label} is computed in float32: {why}" for node, why in refused.items()]

    def content(self, method: str, kept: frozenset[Node]) -> bytes:
        """Return the file, after a run of what is read from it."""
        from opwest.frontends.tflite.write import write_tflite

        self._last = self.graph_of(method, kept)
        written = write_tflite(self._last.graph, self.origin)
        _check_written(written, self._last, self.cases[0], self.place)
        return written


def _row(node: Node, chosen: QuantisedGraph, loss: Loss, *, is_kept: bool) -> Layer:
    home = chosen.homes.get(node.outputs[0])
    scale = None if home is None else home.quantization
    return Layer(
        node.label.split(",")[0],
        node.outputs[0].name,
        chosen.precisions[node],
        loss.own_db,
        loss.total_db,
        loss.output_error,
        None if scale is None else scale.scale,
        None if scale is None else scale.zero,
        is_kept,
    )


def _check_written(content: bytes, quantised: QuantisedGraph, case: Any, place: str) -> None:
    """Raise OpwestError if the file does not compute what the graph does: an internal error."""
    faults = Diagnostics()
    [graph] = read_model(content, place)
    check_graph(graph, place, faults, Folding(graph.rules))
    if not faults.has_errors:
        values = run_quantised(quantised, case)
        inputs = [values[tensor] for tensor in quantised.graph.inputs]
        found = outputs_of(graph, run_graph(graph, inputs))
        if all(map(_same, found, outputs_of(quantised.graph, values))):
            return
        faults.error("internal error: the written file computes other results", Location(place), hint=REPORT)
    faults.raise_if_errors()


def _same(one: Any, other: Any) -> bool:
    return bool(np.array_equal(one, other, equal_nan=one.dtype.kind == "f"))
