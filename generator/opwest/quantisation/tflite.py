# SPDX-License-Identifier: Apache-2.0
"""The quantisation of a float TFLite file by the typed graph: calibrate, choose scales, keep layers, write, read back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
from opwest.quantisation.assign import Plan, QuantisedGraph, quantised_graph
from opwest.quantisation.calibration import METHODS, Range, Recorder, ranges_of
from opwest.quantisation.folding import folded
from opwest.quantisation.layers import Loss, float_outputs, layers_of, losses_of, run_quantised
from opwest.quantisation.measure import quality
from opwest.quantisation.request import PERCENT, POINTS, Layer, Made, Options, Quality, Quantised, loss_of
from opwest.quantisation.rules import Precision, is_float, permitted, rule_of
from opwest.quantisation.samples import Samples, read_samples
from opwest.quantisation.search import Search

TRIED = 256
"""The most samples for the choice of a calibration."""


def quantise(path: Path, content: bytes, options: Options, progress: Progress) -> Made:
    """Return a quantised file and what it loses. Raises OpwestError."""
    from opwest.frontends.tflite.write import write_tflite

    place = str(path)
    graph, remarks = float_graph(content, place)
    samples = read_samples(options, *([_port(tensor) for tensor in side] for side in (graph.inputs, graph.outputs)))
    flow = _Flow(graph, samples, options, place, progress)
    made = flow.run()
    written = write_tflite(flow.chosen.graph, content)
    _check_written(written, flow.chosen, samples.cases[0], place)
    return Made(written, made(len(content), len(written), remarks))


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
    remarks = ("the weights are int8 already (dynamic range): what that has lost is not counted",)
    check_graph(graph, place, faults, Folding(graph.rules))
    faults.raise_if_errors()
    _check_float(graph, place)
    return folded(graph), remarks if graph is not graphs[0] else ()


def _check_float(graph: Graph, place: str) -> None:
    """Raise OpwestError for models that are not plain float models."""
    float_hint = "quantise the float model that it was made from"
    if graph.updates:
        hint = "quantise a form of the model without state"
        raise fault("the model has state (variables), which is not quantised", place, "a model without state", hint)
    tensors = (*graph.inputs, *(tensor for node in graph.nodes for tensor in node.outputs))
    quantised = [t for t in tensors if t.quantization is not None and t.dtype in ("int8", "uint8", "int16")]
    if quantised:
        text = f"the model is quantised already: tensor '{quantised[0].name}' is {quantised[0].dtype} with a scale"
        raise fault(text, place, "a float32 model", float_hint)
    if not layers_of(graph):
        kinds = ", ".join(sorted({node.kind for node in graph.nodes})) or "none"
        raise fault("no operator has an integer form", place, hint=f"the operators of the model: {kinds}")


def _port(tensor: Tensor) -> dict[str, Any]:
    return {"name": tensor.name, "dtype": tensor.dtype, "shape": list(tensor.shape)}


class _Flow:
    """One quantisation."""

    def __init__(self, graph: Graph, samples: Samples, options: Options, place: str, progress: Progress) -> None:
        self.graph, self.samples, self.options = graph, samples, options
        self.place, self.progress = place, progress
        self.base: Precision = "int16x8" if options.dtype == "int16x8" else "int8"
        self.keep: Precision = "float" if "float" in (options.keep, *_default_keep(options)) else "int16x8"
        self.chosen: QuantisedGraph
        self.floats: list[list[Any]] = []
        self.means: dict[Tensor, Any] = {}

    def run(self) -> Any:
        """Choose the graph; return a function from the sizes of the files to the result."""
        self.progress(f"calibrating with {len(self.samples.cases)} samples")
        recorder = Recorder(self.graph, len(self.samples.cases))
        for case in self.samples.cases:
            recorder.add(case)
        self.floats, self.means = recorder.outputs, recorder.means()
        before = self._quality(self.floats)
        method, ranges, losses = self._calibrated(recorder)
        plain = self._quantised(ranges, ())
        layers = layers_of(self.graph)
        self.progress(f"measuring {len(layers)} layers")
        alone = losses_of(self.graph, plain, self.samples.cases, layers)
        kept, evaluations = self._kept(ranges, alone, before)
        self.chosen = self._quantised(ranges, kept)
        after = self._measured(self.chosen)
        totals = losses_of(self.graph, self.chosen, self.samples.cases, layers) if kept else alone
        rows = tuple(_row(node, self.chosen, alone[node], totals[node], is_kept=node in kept) for node in layers)
        unit = PERCENT if before.accuracy is None else POINTS
        warnings = (*self.samples.warnings, *self._warnings())
        return lambda size, new_size, remarks: Quantised(
            "tflite",
            self.options.dtype,
            method,
            self.keep,
            len(self.samples.cases),
            before,
            after,
            rows,
            losses,
            size,
            new_size,
            self.options.keep_accuracy,
            unit,
            evaluations,
            remarks,
            warnings,
        )

    def _calibrated(self, recorder: Recorder) -> tuple[str, dict[Tensor, Range], dict[str, float]]:
        """Return the method with the least loss, its ranges, and the loss of each method."""
        statistics = recorder.statistics()
        methods = METHODS if self.options.calibration is None else (self.options.calibration,)
        ranges = {method: ranges_of(statistics, method) for method in methods}
        found = {}
        for method in methods:
            self.progress(f"measuring the calibration {method}")
            found[method] = self._measured(self._quantised(ranges[method], ()), TRIED)
        before = self._quality(self.floats[:TRIED])
        # Equal losses of accuracy are decided by the error.
        best = min(found, key=lambda method: (round(loss_of(before, found[method]), 6), found[method].error))
        return best, ranges[best], {method: loss_of(before, one) for method, one in found.items()}

    def _quantised(self, ranges: Mapping[Tensor, Range], kept: Iterable[Node]) -> QuantisedGraph:
        plan = Plan(self.base, self.options.float_io, dict.fromkeys(kept, self.keep), self.means)
        return quantised_graph(self.graph, ranges, plan)

    def _measured(self, quantised: QuantisedGraph, most: int | None = None) -> Quality:
        outputs = [float_outputs(quantised, run_quantised(quantised, case)) for case in self.samples.cases[:most]]
        return self._quality(outputs)

    def _quality(self, outputs: list[list[Any]]) -> Quality:
        classes = self.samples.classes
        if classes is not None:
            classes = (classes[0], classes[1][: len(outputs)])
        return quality(outputs, self.floats[: len(outputs)], classes)

    def _kept(
        self, ranges: Mapping[Tensor, Range], alone: Mapping[Node, Loss], before: Quality
    ) -> tuple[frozenset[Node], int]:
        """Return the layers to keep, and the number of measurements. Raises OpwestError."""
        bound = self.options.keep_accuracy
        if bound is None:
            return frozenset(), 0
        candidates = [node for node in alone if permitted(node, self.keep) == self.keep != self.base]
        order = sorted(candidates, key=lambda node: -alone[node].output_error)

        def loss(kept: frozenset[Node]) -> float:
            found = loss_of(before, self._measured(self._quantised(ranges, kept)))
            self.progress(f"{len(kept)} layers kept in {self.keep}: a loss of {found:.3g}")
            return found

        search = Search(loss, bound)
        kept = search.fewest(order)
        if kept is None:
            unit = PERCENT if before.accuracy is None else POINTS
            best = min(search.losses.values())
            hint = "raise the bound, or add samples" if self.keep == "float" else "use --keep float, or raise the bound"
            text = f"the bound of {bound:g} {unit} does not hold: {best:.3g} with all layers kept in {self.keep}"
            raise fault(text, self.place, hint=hint)
        return frozenset(kept), len(search.losses)

    def _warnings(self) -> list[str]:
        """Return warnings about operators that remain float32, and do not by request."""
        chosen = self.chosen
        kinds: dict[str, int] = {}
        for node in self.graph.nodes:
            if is_float(node) and rule_of(node) is None:
                kinds[node.kind] = kinds.get(node.kind, 0) + 1
        words = [f"{kind} ({count})" if count > 1 else kind for kind, count in sorted(kinds.items())]
        texts = [f"no integer form, computed in float32: {', '.join(words)}"] if words else []
        return texts + [f"operator {node.label} is computed in float32: {why}" for node, why in chosen.refused.items()]


def _default_keep(options: Options) -> tuple[str, ...]:
    """Return the arithmetic of kept layers without --keep: above int8 there is int16x8, above that float32."""
    return ("float",) if options.keep is None and options.dtype == "int16x8" else ()


def _row(node: Node, chosen: QuantisedGraph, alone: Loss, total: Loss, *, is_kept: bool) -> Layer:
    home = chosen.homes.get(node.outputs[0])
    scale = None if home is None else home.quantization
    return Layer(
        node.label.split(",")[0],
        node.outputs[0].name,
        chosen.precisions[node],
        alone.own_db,
        total.total_db,
        alone.output_error,
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
        if all(map(np.array_equal, found, outputs_of(quantised.graph, values))):
            return
        faults.error("internal error: the written file computes other results", Location(place), hint=REPORT)
    faults.raise_if_errors()
