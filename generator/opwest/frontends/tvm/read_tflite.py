# SPDX-License-Identifier: Apache-2.0
"""Read TFLite files; report errors for each operator before TVM's reader rejects the file."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from opwest.base.diagnostics import Diagnostic, Location, OpwestError
from opwest.frontends.tvm.convert_tflite import convert_tflite, indices_of
from opwest.frontends.tvm.layouts import channels_first
from opwest.frontends.tvm.read import Port, Source, fault, last_line


def read_tflite(path: Path, content: bytes) -> Source:
    """Return the model in a TFLite file."""
    import tflite

    place = str(path)
    if content[4:8] != b"TFL3":
        raise fault("not a TFLite model", place, "a flatbuffer whose bytes 4 to 7 are TFL3")
    try:
        model = tflite.Model.GetRootAsModel(content, 0)
        graph = _main_graph(model, len(content))
        inputs, outputs, remarks = _interface(graph)
    except Exception as error:
        raise _corrupt(place, error) from None
    dynamic = list(_dynamic(graph))
    if dynamic:
        hint = "set a fixed input shape before converting the model"
        raise OpwestError(Diagnostic("error", text, Location(place), None, hint) for text in dynamic)
    nodes: dict[str, str] = {}
    module = convert_tflite(model, place, nodes)
    return Source("tflite", place, content, channels_first(module), inputs, outputs, _listed(nodes), tuple(remarks))


def _corrupt(place: str, error: Exception) -> OpwestError:
    return fault(
        f"the file is damaged: cannot read it as a TFLite model ({last_line(error)})",
        place,
        hint="fetch or convert the model again",
    )


def _main_graph(model: Any, size: int) -> Any:
    """Return the first graph after access to all of its parts. Can raise any exception for a damaged file."""
    if model.SubgraphsLength() < 1:
        raise ValueError("no graph")
    graph = model.Subgraphs(0)
    lengths = (
        model.SubgraphsLength(),
        model.OperatorCodesLength(),
        model.BuffersLength(),
        graph.TensorsLength(),
        graph.OperatorsLength(),
        graph.InputsLength(),
        graph.OutputsLength(),
    )
    if max(lengths) * 4 > size:
        raise ValueError("more table entries than bytes")
    for index in range(graph.TensorsLength()):
        tensor = graph.Tensors(index)
        tensor.Name().decode()
        if not 0 <= tensor.Buffer() < model.BuffersLength():
            raise ValueError(f"tensor {index} refers to buffer {tensor.Buffer()} of {model.BuffersLength()}")
        if tensor.ShapeLength() > 16:
            raise ValueError(f"tensor {index} has {tensor.ShapeLength()} dimensions")
        found = tensor.Quantization()
        scales = [] if found is None or not found.ScaleLength() else found.ScaleAsNumpy().tolist()
        if not all(math.isfinite(scale) and scale > 0 for scale in scales):
            raise ValueError(f"tensor {index} has a scale that is not a positive number")
        if model.Buffers(tensor.Buffer()).DataLength() > size:
            raise ValueError(f"tensor {index} is larger than the file")
    used = [*indices_of(graph, "Inputs"), *indices_of(graph, "Outputs")]
    for index in range(graph.OperatorsLength()):
        operator = graph.Operators(index)
        if not 0 <= operator.OpcodeIndex() < model.OperatorCodesLength():
            raise ValueError(f"operator {index} has an undefined operator code")
        used += [*(i for i in indices_of(operator, "Inputs") if i != -1), *indices_of(operator, "Outputs")]
    if any(not 0 <= i < graph.TensorsLength() for i in used):
        raise ValueError("undefined tensor index")
    if not graph.OutputsLength():
        raise ValueError("no output")
    return graph


def _interface(graph: Any) -> tuple[tuple[Port, ...], tuple[Port, ...], list[str]]:
    remarks = []
    for index in indices_of(graph, "Inputs"):
        tensor = graph.Tensors(index)
        signature = [int(tensor.ShapeSignature(i)) for i in range(tensor.ShapeSignatureLength())]
        if any(n < 0 for n in signature):
            shape = [int(tensor.Shape(i)) for i in range(tensor.ShapeLength())]
            remarks.append(f"input {tensor.Name().decode()!r} of shape {signature} is imported as {shape}")
    inputs = tuple(_port(graph.Tensors(i)) for i in indices_of(graph, "Inputs"))
    outputs = tuple(_port(graph.Tensors(i)) for i in indices_of(graph, "Outputs"))
    return inputs, outputs, remarks


def _dynamic(graph: Any) -> Iterator[str]:
    """Yield inputs with unknown dimensions other than the batch, which is imported as in the file."""
    for index in indices_of(graph, "Inputs"):
        tensor = graph.Tensors(index)
        signature = [int(tensor.ShapeSignature(i)) for i in range(tensor.ShapeSignatureLength())]
        if any(n < 0 for n in signature[1:]):
            yield f"input {tensor.Name().decode()!r} has a dynamic shape, {signature}"


def _port(tensor: Any) -> Port:
    found = tensor.Quantization()
    one = found is not None and found.ScaleLength() == 1 and found.ZeroPointLength() == 1
    quantization = (float(found.Scale(0)), int(found.ZeroPoint(0))) if one else None
    return Port(tensor.Name().decode(), quantization)


def _listed(nodes: dict[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple((kind, words) for words, kind in nodes.items())
