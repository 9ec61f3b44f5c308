# SPDX-License-Identifier: Apache-2.0
"""A TFLite file as graphs: one for each signature, or one for the only subgraph."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import opwest.importers.models.operators  # noqa: F401 - fills the table of operators
from opwest.importers.models.graph.faults import Damaged
from opwest.importers.models.graph.spec import OPERATORS
from opwest.importers.models.graph.types import Graph, Node, Tensor
from opwest.importers.models.tflite.metadata import labels_of
from opwest.importers.models.tflite.options import names_of, read_options
from opwest.importers.models.tflite.tensors import DTYPES, read_tensor

_CUSTOM = "CUSTOM"
"""The name of operators with a code of their own."""


def read_tflite(content: bytes) -> tuple[Graph, ...]:
    """Return the models of a file. Raises Damaged, for a damaged file also any error of the flatbuffers package."""
    import tflite

    file = tflite.Model.GetRootAsModel(content, 0)
    lengths = (file.SubgraphsLength(), file.OperatorCodesLength(), file.BuffersLength(), file.SignatureDefsLength())
    if max(lengths) * 4 > len(content):
        raise Damaged("more table entries than bytes")
    if not file.SubgraphsLength():
        raise Damaged("no subgraph")
    signatures = list(_signatures(file))
    if not signatures:
        graph = _graph(file, 0, content)
        return (graph,)
    return tuple(_signed(file, one, content, len(signatures)) for one in signatures)


def _signatures(file: Any) -> Iterator[Any]:
    for number in range(file.SignatureDefsLength()):
        yield file.SignatureDefs(number)


def _signed(file: Any, signature: Any, content: bytes, count: int) -> Graph:
    """Return the graph of a signature, with the names and the order of its inputs and outputs in the subgraph."""
    key = (signature.SignatureKey() or b"").decode("utf-8", "replace")
    number = signature.SubgraphIndex()
    if not 0 <= number < file.SubgraphsLength():
        raise Damaged(f"signature '{key}' refers to subgraph {number} of {file.SubgraphsLength()}")
    names: dict[int, str] = {}
    for part in ("Inputs", "Outputs"):
        length = getattr(signature, f"{part}Length")()
        if length * 4 > len(content):
            raise Damaged("more table entries than bytes")
        for i in range(length):
            entry = getattr(signature, part)(i)
            names[int(entry.TensorIndex())] = (entry.Name() or b"").decode("utf-8", "replace")
    return _graph(file, number, content, key if count > 1 else "", names)


_SUBGRAPHS = {
    "IF": ("then_subgraph_index", "else_subgraph_index"),
    "WHILE": ("cond_subgraph_index", "body_subgraph_index"),
    "CALL_ONCE": ("init_subgraph_index",),
}
"""The options of control flow that are numbers of subgraphs."""
_CONTROL = {"VAR_HANDLE": {"container": "", "shared_name": ""}, "READ_VARIABLE": {}, "ASSIGN_VARIABLE": {}}
_MOST_INTERMEDIATES = 8
"""The most intermediate tensors that are read; only their quantisation counts."""
_MOST_NESTED = 16
"""The most levels of subgraphs."""


def _graph(
    file: Any, number: int, content: bytes, name: str = "", names: dict[int, str] | None = None, level: int = 0
) -> Graph:
    """Return a subgraph, and those that it calls as options of its nodes."""
    size = len(content)
    if level > _MOST_NESTED:
        raise Damaged(f"subgraph {number} is called by itself, or by more than {_MOST_NESTED} levels of subgraphs")
    table = file.Subgraphs(number)
    lengths = (table.TensorsLength(), table.OperatorsLength(), table.InputsLength(), table.OutputsLength())
    if max(lengths) * 4 > size:
        raise Damaged("more table entries than bytes")
    dtypes = {value: DTYPES[one] for value, one in names_of("TensorType").items()}
    tensors = [read_tensor(file, table.Tensors(i), i, dtypes) for i in range(table.TensorsLength())]
    inputs = [_tensor(tensors, int(table.Inputs(i)), "the interface") for i in range(table.InputsLength())]
    outputs = [_tensor(tensors, int(table.Outputs(i)), "the interface") for i in range(table.OutputsLength())]
    if not outputs and level == 0:
        raise Damaged("no output")
    for index, text in (names or {}).items():
        if text and 0 <= index < len(tensors):
            tensors[index].name = text
    nodes = tuple(_node(file, table.Operators(i), i, tensors, content, level) for i in range(table.OperatorsLength()))
    remarks = tuple(_dynamic(table, tensors))
    labels = labels_of(file, content, number)
    return Graph(name, tuple(inputs), tuple(outputs), nodes, labels=labels, subgraph=number, remarks=remarks)


def _tensor(tensors: list[Tensor], index: int, place: str) -> Tensor:
    if not 0 <= index < len(tensors):
        raise Damaged(f"{place} refers to tensor {index} of {len(tensors)}")
    return tensors[index]


def _node(file: Any, table: Any, number: int, tensors: list[Tensor], content: bytes, level: int) -> Node:
    """Return an operator."""
    if max(table.InputsLength(), table.OutputsLength()) * 4 > len(content):
        raise Damaged("more table entries than bytes")
    kind = _kind(file, table, number)
    where = f"operator {number} ({kind})"
    inputs = [int(table.Inputs(i)) for i in range(table.InputsLength())]
    outputs = [_tensor(tensors, int(table.Outputs(i)), where) for i in range(table.OutputsLength())]
    label = f"{number} ({kind})" + (f", result '{outputs[0].name}'" if outputs else "")
    row = OPERATORS.get(kind)
    options: dict[str, Any]
    if kind in _SUBGRAPHS:
        found = read_options(table, dict.fromkeys(_SUBGRAPHS[kind], 0), label)
        options = {"graphs": tuple(_called(file, int(i), content, label, level) for i in found.values())}
    else:
        wanted = _CONTROL.get(kind) if row is None else row.options
        options = read_options(table, wanted, label) if wanted is not None else {}
    if row is not None and "intermediates" in row.options:
        count = min(table.IntermediatesLength(), _MOST_INTERMEDIATES)
        inner = (_tensor(tensors, int(table.Intermediates(i)), where) for i in range(count))
        options |= {"intermediates": tuple(one.quantization for one in inner)}
    given = [None if i == -1 else _tensor(tensors, i, where) for i in inputs]
    return Node(kind, tuple(given), tuple(outputs), options, label)


def _called(file: Any, number: int, content: bytes, label: str, level: int) -> Graph:
    """Return a subgraph that an operator calls."""
    if not 0 <= number < file.SubgraphsLength():
        raise Damaged(f"operator {label} refers to subgraph {number} of {file.SubgraphsLength()}")
    return _graph(file, number, content, level=level + 1)


def _kind(file: Any, table: Any, number: int) -> str:
    """Return the name of an operator; for a custom one, that of its code."""
    index = table.OpcodeIndex()
    if not 0 <= index < file.OperatorCodesLength():
        raise Damaged(f"operator {number} has the undefined code {index}")
    code = file.OperatorCodes(index)
    # Files of older converters have only the deprecated field. Source: TFLite's schema_utils.cc, GetBuiltinCode.
    builtin = max(code.BuiltinCode(), code.DeprecatedBuiltinCode())
    kind = names_of("BuiltinOperator").get(builtin, f"operator code {builtin}")
    if kind == _CUSTOM:
        return (code.CustomCode() or b"CUSTOM").decode("utf-8", "replace")
    return kind


def _dynamic(table: Any, tensors: list[Tensor]) -> Iterator[str]:
    """Yield a remark for each input with unknown dimensions, which is imported with the shape in the file."""
    for i in range(table.InputsLength()):
        index = int(table.Inputs(i))
        one = table.Tensors(index)
        signature = [int(one.ShapeSignature(k)) for k in range(min(one.ShapeSignatureLength(), 8))]
        if any(n < 0 for n in signature):
            yield f"input '{tensors[index].name}' of shape {signature} is imported as {list(tensors[index].shape)}"
