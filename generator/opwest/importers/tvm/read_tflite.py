# SPDX-License-Identifier: Apache-2.0
"""TFLite files: what is wrong with one is said operator by operator, before TVM's reader gives up on the whole."""

from __future__ import annotations

import contextlib
import io
import math
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from opwest.diagnostics import Diagnostic, Location, OpwestError
from opwest.importers.tvm.faults import fault, last_line
from opwest.importers.tvm.integer import left_in_float, use_integers
from opwest.importers.tvm.source import Port, Source

_EMULATED = (
    "quantised operators of these kinds are emulated in float: {}; they may differ from TFLite's by a step, and have "
    "neither the speed nor the memory of int8"
)


def read_tflite(path: Path, content: bytes) -> Source:
    """Return the model in a TFLite file."""
    import tflite

    place = str(path)
    if content[4:8] != b"TFL3":
        raise fault("this is not a TFLite model", place, "a flatbuffer whose bytes 4 to 7 are TFL3")
    try:
        model = tflite.Model.GetRootAsModel(content, 0)
        graph = _main_graph(model, len(content))
        inputs, outputs, remarks = _interface(graph)
    except Exception as error:
        raise _corrupt(place, error) from None
    nodes: dict[str, str] = {}
    module = use_integers(_convert(model, place, nodes))
    emulated = left_in_float(module)
    if emulated:
        remarks.append(_EMULATED.format(", ".join(emulated)))
    return Source("tflite", place, content, module, inputs, outputs, _listed(nodes), tuple(remarks))


def _corrupt(place: str, error: Exception) -> OpwestError:
    return fault(
        f"the file is damaged: it can't be read as a TFLite model ({last_line(error)})",
        place,
        hint="fetch or convert the model again",
    )


def _main_graph(model: Any, size: int) -> Any:
    """Return the first graph after a look at all that it names. Raises anything where the file is damaged."""
    if model.SubgraphsLength() < 1:
        raise ValueError("it has no graph")
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
        raise ValueError("it counts more entries than it has bytes")
    for index in range(graph.TensorsLength()):
        tensor = graph.Tensors(index)
        tensor.Name().decode()
        if not 0 <= tensor.Buffer() < model.BuffersLength():
            raise ValueError(f"tensor {index} names buffer {tensor.Buffer()} of {model.BuffersLength()}")
        if tensor.ShapeLength() > 16:
            raise ValueError(f"tensor {index} has {tensor.ShapeLength()} dimensions")
        found = tensor.Quantization()
        scales = [] if found is None or not found.ScaleLength() else found.ScaleAsNumpy().tolist()
        if not all(math.isfinite(scale) and scale > 0 for scale in scales):
            raise ValueError(f"tensor {index} has a scale that is no positive number")
        if model.Buffers(tensor.Buffer()).DataLength() > size:
            raise ValueError(f"tensor {index} is larger than the file")
    used = [*_indices(graph, "Inputs"), *_indices(graph, "Outputs")]
    for index in range(graph.OperatorsLength()):
        operator = graph.Operators(index)
        if not 0 <= operator.OpcodeIndex() < model.OperatorCodesLength():
            raise ValueError(f"operator {index} is of a kind that is not listed")
        used += [*(i for i in _indices(operator, "Inputs") if i != -1), *_indices(operator, "Outputs")]
    if any(not 0 <= i < graph.TensorsLength() for i in used):
        raise ValueError("it names a tensor that is not there")
    if not graph.OutputsLength():
        raise ValueError("it has no output")
    return graph


def _indices(table: Any, what: str) -> list[int]:
    count = getattr(table, f"{what}Length")()
    if count > 10_000:
        raise ValueError("an operator has more tensors than makes sense")
    return [int(getattr(table, what)(i)) for i in range(count)]


def _interface(graph: Any) -> tuple[tuple[Port, ...], tuple[Port, ...], list[str]]:
    remarks = []
    for index in _indices(graph, "Inputs"):
        tensor = graph.Tensors(index)
        signature = [int(tensor.ShapeSignature(i)) for i in range(tensor.ShapeSignatureLength())]
        if any(n < 0 for n in signature):
            shape = [int(tensor.Shape(i)) for i in range(tensor.ShapeLength())]
            remarks.append(f"input {tensor.Name().decode()!r} of shape {signature} is imported as {shape}")
    inputs = tuple(_port(graph.Tensors(i)) for i in _indices(graph, "Inputs"))
    outputs = tuple(_port(graph.Tensors(i)) for i in _indices(graph, "Outputs"))
    return inputs, outputs, remarks


def _port(tensor: Any) -> Port:
    found = tensor.Quantization()
    one = found is not None and found.ScaleLength() == 1 and found.ZeroPointLength() == 1
    quantization = (float(found.Scale(0)), int(found.ZeroPoint(0))) if one else None
    return Port(tensor.Name().decode(), quantization)


def _listed(nodes: dict[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple((kind, words) for words, kind in nodes.items())


def _convert(model: Any, place: str, nodes: dict[str, str]) -> Any:
    """Return the Relax module, and in `nodes` the kind of each operator; a fault names the operator and its result."""
    from tvm.relax.frontend.tflite import from_tflite
    from tvm.relax.frontend.tflite.tflite_frontend import OperatorConverter

    at: list[Any] = []

    class Converter(OperatorConverter):  # type: ignore[misc]
        """TVM's converter, which says where it is."""

        def check_unsupported_ops(self) -> None:
            """Report every operator that can't be converted."""
            found = [Diagnostic("error", text, Location(place), None, hint) for text, hint in _unsupported(self)]
            if found:
                raise OpwestError(found)

        def get_op_code_str(self, op: Any) -> str:
            """Remember which operator is being converted."""
            at[:] = [self, op]
            kind = str(super().get_op_code_str(op))
            nodes[_words(self, op)] = kind
            return kind

    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            return from_tflite(model, op_converter=Converter)
    except OpwestError:
        raise
    except Exception as error:
        where = f"operator {_words(*at)}" if at else "the model"
        hint = "an unusual attribute, or a damaged file" if at else None
        raise fault(f"{where} can't be converted: {last_line(error)}", place, hint=hint) from None


def _unsupported(converter: Any) -> Iterator[tuple[str, str | None]]:
    """Yield why operators can't be converted, as TVM's own check finds it, but for each one."""
    graph = converter.subgraph
    for index in range(graph.OperatorsLength()):
        operator = graph.Operators(index)
        where = _words(converter, operator)
        try:
            kind = converter.get_op_code_str(operator)
        except Exception as error:  # a custom operator, or one that this TVM does not know
            yield f"operator {where} can't be imported: {last_line(error)}", None
            continue
        if kind not in converter.convert_map:
            yield f"operator {where} has no lowering in TVM", None
            continue
        inputs, outputs = converter.get_input_tensors(operator), converter.get_output_tensors(operator)
        data = any(t.qnn_params is not None for t in [*inputs[:1], *outputs])
        weights = any(t.qnn_params is not None for t in inputs[1:])
        if weights and not data:
            yield (
                f"operator {where} has quantised weights and float data (dynamic-range quantisation), which can't be "
                "imported",
                "convert the model with full integer quantisation, or without any",
            )
        elif (data or weights) and kind not in converter._SUPPORTED_QUANTIZED_OPS:
            yield f"operator {where} is quantised, and TVM lowers it in float only", None


def _words(converter: Any, operator: Any) -> str:
    """Return which operator it is: its number, its kind, what it writes."""
    graph = converter.subgraph
    number = next((i for i in range(graph.OperatorsLength()) if graph.Operators(i)._tab.Pos == operator._tab.Pos), 0)
    code = converter.model.OperatorCodes(operator.OpcodeIndex())
    known = converter.builtin_op_code
    kind = known.get(max(code.DeprecatedBuiltinCode(), code.BuiltinCode()), f"number {code.BuiltinCode()}")
    custom = code.CustomCode()
    if custom:
        kind = f"{kind} {custom.decode(errors='replace')!r}"
    writes = [graph.Tensors(i).Name().decode() for i in _indices(operator, "Outputs")]
    return f"{number} ({kind}{', which writes ' + ', '.join(map(repr, writes)) if writes else ''})"
