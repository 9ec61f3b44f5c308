# SPDX-License-Identifier: Apache-2.0
"""ONNX files before and after onnxruntime's quantiser: shapes, names, results as outputs, integer interfaces."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from opwest.compiler.graph.types import Graph

QUANTISED = frozenset(
    (
        *("QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "QLinearConv", "QLinearMatMul"),
        *("ConvInteger", "MatMulInteger", "QGemm", "QLinearAdd", "QLinearMul", "DynamicQuantizeLSTM"),
    )
)
"""Operators of quantised models."""


def quantised_operator(model: Any) -> str | None:
    """Return the first operator that shows that a model is quantised already; None for a float model."""
    return next((node.op_type for node in model.graph.node if node.op_type in QUANTISED), None)


def prepared(content: bytes, graph: Graph, folder: Path) -> Any:
    """Return a model for the quantiser: shapes of `graph`, names for all operators, batch normalisations in layers."""
    import onnx
    from onnxruntime.quantization.shape_inference import quant_pre_process

    model = onnx.load_from_string(content)
    shapes = {tensor.name: tensor.shape for tensor in (*graph.inputs, *graph.outputs)}
    for value in (*model.graph.input, *model.graph.output):
        if value.name in shapes:
            dims = value.type.tensor_type.shape
            del dims.dim[:]
            for size in shapes[value.name]:
                dims.dim.add().dim_value = size
    del model.graph.value_info[:]
    before, after = folder / "float.onnx", folder / "prepared.onnx"
    onnx.save(model, before)
    quant_pre_process(before, after, skip_symbolic_shape=True)
    model = onnx.load(after)
    names: set[str] = set()
    for number, node in enumerate(model.graph.node):
        if not node.name or node.name in names:
            node.name = f"{number} ({node.op_type})"
        names.add(node.name)
    onnx.save(model, after)
    return model


def with_results(model: Any, names: Iterable[str]) -> bytes:
    """Return a model with more outputs."""
    import onnx

    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    known = {value.name for value in copy.graph.output}
    copy.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names if name not in known)
    return bytes(copy.SerializeToString())


def with_integer_interface(model: Any) -> Any:
    """Return a QDQ model whose inputs and outputs are int8, where only a conversion reads or writes them as float32."""
    import onnx

    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    graph = copy.graph
    kinds = {initial.name: initial.data_type for initial in graph.initializer}
    for value in graph.input:
        readers = [node for node in graph.node if value.name in node.input]
        zeros = {_zero(node) for node in readers}
        if readers and all(node.op_type == "QuantizeLinear" for node in readers) and len(zeros) == 1:
            value.type.tensor_type.elem_type = kinds[zeros.pop()]
            _rename(graph.node, {node.output[0]: value.name for node in readers})
            _remove(graph, readers)
    for value in graph.output:
        makers = [node for node in graph.node if value.name in node.output]
        is_read = any(value.name in node.input for node in graph.node)
        if len(makers) == 1 and makers[0].op_type == "DequantizeLinear" and not is_read:
            source = makers[0].input[0]
            value.type.tensor_type.elem_type = kinds[_zero(makers[0])]
            _remove(graph, makers)
            for node in graph.node:
                node.output[:] = [value.name if name == source else name for name in node.output]
            _rename(graph.node, {source: value.name})
    return copy


def _zero(node: Any) -> str:
    """Return the name of the zero point, which determines the dtype."""
    return str(node.input[2])


def _rename(nodes: Sequence[Any], names: dict[str, str]) -> None:
    for node in nodes:
        node.input[:] = [names.get(name, name) for name in node.input]


def _remove(graph: Any, nodes: Sequence[Any]) -> None:
    for node in nodes:
        graph.node.remove(node)
