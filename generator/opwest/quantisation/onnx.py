# SPDX-License-Identifier: Apache-2.0
"""The quantisation of a float ONNX file by onnxruntime's quantiser: QDQ, int8, a scale for each channel of weights.

Ranges are those of calibration.py, so that the methods have one meaning for all formats. onnxruntime measures, and runs
each operator as the file has it. Source: onnxruntime/python/tools/quantization.
"""

from __future__ import annotations

import functools
import logging
import tempfile
from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from opwest.base import commands
from opwest.base.diagnostics import Diagnostics
from opwest.compiler.child import Progress
from opwest.compiler.faults import fault, require_packages
from opwest.compiler.graph.check import check_graph
from opwest.compiler.graph.types import Graph
from opwest.compiler.lowering.control import resolve_control
from opwest.compiler.lowering.simplify import Folding
from opwest.frontends.read import read_model
from opwest.quantisation import flow
from opwest.quantisation.calibration import Collector, ranges_of
from opwest.quantisation.flow import Loss, Outputs
from opwest.quantisation.layers import CASES
from opwest.quantisation.measure import ratio_db, relative, squares
from opwest.quantisation.onnx_files import prepared, quantised_operator, with_integer_interface, with_results
from opwest.quantisation.request import Layer, Made, Options
from opwest.quantisation.samples import Samples, port_of, read_samples


def quantise(path: Path, content: bytes, options: Options, progress: Progress) -> Made:
    """Return a quantised file and what it loses. Raises OpwestError."""
    place = str(path)
    graph = _float_graph(content, place)
    install = commands.pip_install("opwest[quantise]")
    require_packages([("onnx", "onnx"), ("onnxruntime", "onnxruntime")], "quantised ONNX files", install)
    logging.getLogger().setLevel(logging.ERROR)
    samples = read_samples(options, *([port_of(tensor) for tensor in side] for side in (graph.inputs, graph.outputs)))
    with tempfile.TemporaryDirectory(prefix="opwest-") as work:
        backend = _Backend(content, graph, samples, options, Path(work), place)
        return flow.run(backend, len(content), samples, options, place, progress)


def _float_graph(content: bytes, place: str) -> Graph:
    """Return the graph of a float model that can be imported. Raises OpwestError with all faults."""
    [graph] = map(resolve_control, read_model(content, place))
    import onnx

    kind = quantised_operator(onnx.load_from_string(content))
    if kind is not None:
        text = f"the model is quantised already: it has the operator {kind}"
        raise fault(text, place, "a float32 model", "quantise the float model that it was made from")
    faults = Diagnostics()
    check_graph(graph, place, faults, Folding(graph.rules))
    faults.raise_if_errors()
    return graph


def _layers(nodes: Sequence[Any], kinds: Container[str]) -> dict[str, list[str]]:
    """Return the names of operators with an integer form, each with the activation that is computed with it."""
    parts: dict[str, list[str]] = {}
    activations: set[str] = set()
    for node in nodes:
        if node.op_type not in kinds or node.name in activations:
            continue
        parts[node.name] = [node.name]
        readers = [other for other in nodes if node.output[0] in other.input]
        if len(readers) == 1 and readers[0].op_type in ("Relu", "Clip") and node.op_type in ("Conv", "Gemm"):
            parts[node.name].append(readers[0].name)
            activations.add(readers[0].name)
    return parts


class _Session:
    """onnxruntime with operators as the file has them, in one thread."""

    def __init__(self, content: bytes) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4
        self._session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])

    def run(self, names: Sequence[str] | None, inputs: Mapping[str, Any]) -> list[Any]:
        """Return outputs by name, all for None."""
        return [np.asarray(array) for array in self._session.run(None if names is None else list(names), dict(inputs))]


class _Backend(flow.Backend[str]):
    """An ONNX file: layers are names of operators."""

    format = "onnx"
    keep = "float"
    remarks: Sequence[str] = ()

    def __init__(
        self, content: bytes, graph: Graph, samples: Samples, options: Options, folder: Path, place: str
    ) -> None:
        from onnxruntime.quantization.registry import QDQRegistry, QLinearOpsRegistry

        self.folder, self.place, self.float_io = folder, place, options.float_io
        self.model = prepared(content, graph, folder)
        self.cases = [
            {tensor.name: array for tensor, array in zip(graph.inputs, case, strict=True)} for case in samples.cases
        ]
        self.wanted = [tensor.name for tensor in graph.outputs]
        kinds = {*QDQRegistry, *QLinearOpsRegistry}
        self.nodes = {node.name: node for node in self.model.graph.node}
        self.parts = _layers(list(self.model.graph.node), kinds)
        self.layers = list(self.parts)
        if not self.layers:
            raise fault("onnxruntime's quantiser has no integer form of any operator", place)
        ends = [node for node in self.model.graph.node if self.wanted[0] in node.output]
        self.is_classifier = any(node.op_type in ("Softmax", "LogSoftmax") for node in ends)
        self._collector: Collector[str] = Collector(len(self.cases))
        self._ranges_of = functools.cache(lambda method: ranges_of(self._collector.statistics(), method))
        self._model_of = functools.lru_cache(maxsize=2)(self._quantised)

    def calibrate(self) -> Outputs:
        """Run the float model."""
        names = [name for node in self.model.graph.node for name in node.output if name]
        session = _Session(with_results(self.model, names))
        every = list(dict.fromkeys((*self.wanted, *names)))
        outputs = []
        for case in self.cases:
            arrays = dict(zip(every, session.run(every, case), strict=True))
            outputs.append([arrays[name] for name in self.wanted])
            for name, array in (*case.items(), *arrays.items()):
                if array.dtype == np.float32:
                    self._collector.add(name, array.reshape(-1))
        return outputs

    def _quantised(self, method: str, layers: frozenset[str]) -> Any:
        """Return the model with these layers quantised."""
        import onnx
        from onnxruntime.quantization import QuantFormat, QuantType, quantize_static

        overrides = {
            name: [{"rmin": np.float32(low), "rmax": np.float32(high)}]
            for name, (low, high) in self._ranges_of(method).items()
            if high > low
        }
        target = self.folder / "quantised.onnx"
        quantize_static(
            self.folder / "prepared.onnx",
            target,
            _Reader(self.cases[:1]),
            quant_format=QuantFormat.QDQ,
            op_types_to_quantize=sorted({self.nodes[part].op_type for parts in self.parts.values() for part in parts}),
            per_channel=True,
            activation_type=QuantType.QInt8,
            weight_type=QuantType.QInt8,
            nodes_to_quantize=[part for name in sorted(layers) for part in self.parts[name]],
            extra_options={"TensorQuantOverrides": overrides},
        )
        return onnx.load(target)

    def _without(self, method: str, kept: frozenset[str]) -> Any:
        """Return the model with all layers quantised but the kept ones; the float model without such layers."""
        layers = frozenset(self.layers) - kept
        return self._model_of(method, layers) if layers else self.model

    def outputs(self, method: str, kept: frozenset[str], most: int | None) -> Outputs:
        """Run the quantised model."""
        session = _Session(self._without(method, kept).SerializeToString())
        return [session.run(self.wanted, case) for case in self.cases[:most]]

    def losses(self, method: str, kept: frozenset[str]) -> Mapping[str, Loss]:
        """Return the loss of each layer: a model for each, in which it alone is quantised."""
        results = [str(self.nodes[self.parts[name][-1]].output[0]) for name in self.layers]
        every = list(dict.fromkeys((*self.wanted, *results)))
        cases = self.cases[:CASES]
        floats = _arrays(self.model, every, cases)
        whole = _arrays(self._without(method, kept), every, cases)
        found = {}
        for name, result in zip(self.layers, results, strict=True):
            alone = _arrays(self._quantised(method, frozenset((name,))), [*self.wanted, result], cases)
            own = _squares([result], alone, floats)
            together = _squares([result], whole, floats)
            found[name] = Loss(ratio_db(*own), ratio_db(*together), relative(*_squares(self.wanted, alone, floats)))
        return found

    def can_keep(self, layer: str) -> bool:
        """Every layer can remain float32."""
        return True

    def rows(self, losses: Mapping[str, Loss], method: str, kept: frozenset[str]) -> tuple[Layer, ...]:
        """Return the layers in the order of the file."""
        scales = _scales(self._without(method, kept))
        results = {name: str(self.nodes[parts[-1]].output[0]) for name, parts in self.parts.items()}
        return tuple(
            Layer(
                name,
                results[name],
                "float" if name in kept else "int8",
                loss.own_db,
                loss.total_db,
                loss.output_error,
                *scales.get(results[name], (None, None)),
                name in kept,
            )
            for name, loss in losses.items()
        )

    def warnings(self) -> Sequence[str]:
        """Return a warning about operators without an integer form."""
        known = {part for parts in self.parts.values() for part in parts}
        kinds = sorted({node.op_type for name, node in self.nodes.items() if name not in known} - _WITHOUT_DATA)
        return [f"no integer form, computed in float32: {', '.join(kinds)}"] if kinds else []

    def content(self, method: str, kept: frozenset[str]) -> bytes:
        """Return the file, which can be imported."""
        model = self._without(method, kept)
        written = bytes((model if self.float_io else with_integer_interface(model)).SerializeToString())
        faults = Diagnostics()
        [graph] = map(resolve_control, read_model(written, self.place))
        check_graph(graph, self.place, faults, Folding(graph.rules))
        faults.raise_if_errors()
        return written


_WITHOUT_DATA = frozenset(("Constant", "Shape", "Cast", "Identity", "ConstantOfShape", "Range"))
"""Operators that usually compute no data."""


class _Reader:
    """The calibration data of quantize_static, whose ranges are replaced. Source: CalibrationDataReader."""

    def __init__(self, cases: Iterable[Mapping[str, Any]]) -> None:
        self._cases = iter(cases)

    def get_next(self) -> Mapping[str, Any] | None:
        """Return the next inputs."""
        return next(self._cases, None)


def _arrays(model: Any, names: Sequence[str], cases: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Return the arrays of results by name, then by case: after their conversion in a quantised model."""
    made = {name for node in model.graph.node for name in node.output}
    read = {name: f"{name}_DequantizeLinear_Output" for name in names}
    read = {name: one if one in made else name for name, one in read.items()}
    session = _Session(with_results(model, read.values()))
    runs = [session.run(list(read.values()), case) for case in cases]
    return {name: [run[number] for run in runs] for number, name in enumerate(read)}


def _squares(
    names: Sequence[str], found: Mapping[str, list[Any]], floats: Mapping[str, list[Any]]
) -> tuple[float, float]:
    """Return the sums of squared differences and of squared values of results."""
    return squares(pair for name in names for pair in zip(found[name], floats[name], strict=True))


def _scales(model: Any) -> dict[str, tuple[float | None, int | None]]:
    """Return the scale and the zero point of each tensor with a conversion of its own."""
    from onnx import numpy_helper

    constants = {initial.name: initial for initial in model.graph.initializer}
    found: dict[str, tuple[float | None, int | None]] = {}
    for node in model.graph.node:
        if node.op_type == "QuantizeLinear" and node.input[1] in constants and node.input[2] in constants:
            scale, zero = (numpy_helper.to_array(constants[name]) for name in node.input[1:3])
            if scale.size == 1:
                found[node.input[0]] = (float(scale.reshape(-1)[0]), int(zero.reshape(-1)[0]))
    return found
