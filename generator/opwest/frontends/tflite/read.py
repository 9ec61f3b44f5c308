# SPDX-License-Identifier: Apache-2.0
"""A TFLite file as graphs: one for each signature, or one for the only subgraph."""

from __future__ import annotations

import dataclasses
import functools
import io
import re
import zipfile
from collections.abc import Iterator, Mapping
from typing import Any

from flatbuffers import number_types
from flatbuffers.table import Table

import opwest.compiler.semantics  # noqa: F401 - fills the table of operators
from opwest.compiler.graph.spec import OPERATORS
from opwest.compiler.graph.types import Damaged, Graph, Node, Rules, Signature, Tensor
from opwest.compiler.graph.user import KIND, Use, UserOperator
from opwest.frontends.tflite.tensors import DTYPES, read_tensor

_ENUMERATIONS = {
    "fused_activation_function": "ActivationFunctionType",
    "padding": "Padding",
    "mode": "MirrorPadMode",
    "weights_format": "FullyConnectedOptionsWeightsFormat",
    "kernel_type": "LSTMKernelType",
    "output_type": "TensorType",
    "out_type": "TensorType",
    "in_data_type": "TensorType",
    "out_data_type": "TensorType",
    "quantized_bias_type": "TensorType",
}
"""The enumeration of an option, by the name of the option."""
_MAX_NUMBERS = 64
_MAX_ITEMS = 4096
"""The most numbers of a list in custom options."""


def read_options(operator: Any, wanted: Mapping[str, Any], label: str) -> dict[str, Any]:
    """Return the options with these names; without a table the default values of `wanted`. Raises Damaged."""
    options = _options(operator, label)
    if options is None:
        return dict(wanted)
    values = {}
    for name, default in wanted.items():
        method = re.sub(r"(?:^|_)(\w)", lambda match: match[1].upper(), name)
        if not hasattr(options, method):
            values[name] = default
            continue
        if hasattr(options, f"{method}Length"):
            length = getattr(options, f"{method}Length")()
            if length > _MAX_NUMBERS:
                raise Damaged(f"operator {label} has an option '{name}' of {length} numbers")
            values[name] = tuple(int(getattr(options, method)(i)) for i in range(length))
            continue
        values[name] = _value(name, getattr(options, method)(), label)
    return values


def _options(operator: Any, label: str) -> Any:
    """Return the table with the options of an operator; None if it has none. Raises Damaged."""
    import tflite

    for union in ("BuiltinOptions", "BuiltinOptions2"):
        number, table = getattr(operator, f"{union}Type")(), getattr(operator, union)()
        if number == 0 or table is None:
            continue
        kind = names_of(union).get(number)
        if kind is None:
            raise Damaged(f"operator {label} has options of the unknown kind {number}")
        options = getattr(tflite, kind)()
        options.Init(table.Bytes, table.Pos)
        return options
    return None


def all_options(operator: Any) -> dict[str, Any]:
    """Return all options of an operator as numbers and lists of numbers, for operators of the user."""
    import tflite

    number, table = operator.BuiltinOptionsType(), operator.BuiltinOptions()
    kind = names_of("BuiltinOptions").get(number)
    if number == 0 or table is None or kind is None:
        return {}
    options = getattr(tflite, kind)()
    options.Init(table.Bytes, table.Pos)
    numbers: dict[str, Any] = {}
    for method in vars(type(options)):
        if method.startswith(("_", "Init", "GetRootAs")) or not method[0].isupper():
            continue
        if method.endswith(("Length", "AsNumpy", "IsNone", "BufferHasIdentifier")):
            continue
        name = re.sub(r"(?<!^)(?=[A-Z])", "_", method).lower()
        if hasattr(options, f"{method}Length"):
            length = getattr(options, f"{method}Length")()
            numbers[name] = [getattr(options, method)(i) for i in range(min(length, _MAX_NUMBERS))]
            continue
        value = getattr(options, method)()
        if isinstance(value, (int, float)):
            numbers[name] = value
    return numbers


def custom_options(content: bytes) -> dict[str, Any]:
    """Return the numbers and lists of numbers of custom options that are a map of FlexBuffers; else nothing."""
    from flatbuffers import flexbuffers

    numbers: dict[str, Any] = {}
    try:
        root = flexbuffers.GetRoot(bytearray(content))
        if not root.IsMap:
            return {}
        entries = root.AsMap
        if len(entries) > _MAX_NUMBERS:
            return {}
        for key, value in zip(entries.Keys, entries.Values, strict=True):
            name = str(key.AsKey)
            if value.IsBool:
                numbers[name] = bool(value.AsBool)
            elif value.IsInt:
                numbers[name] = int(value.AsInt)
            elif value.IsFloat:
                numbers[name] = float(value.AsFloat)
            elif value.IsTypedVector or value.IsVector:
                items = value.AsTypedVector if value.IsTypedVector else value.AsVector
                if len(items) <= _MAX_ITEMS:
                    numbers[name] = [float(item.AsFloat) if item.IsFloat else int(item.AsInt) for item in items]
    except Exception:  # any bytes are custom options
        return {}
    return numbers


def _value(name: str, value: Any, label: str) -> Any:
    enumeration = _ENUMERATIONS.get(name)
    if enumeration is None:
        return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
    names = names_of(enumeration)
    if value not in names:
        raise Damaged(f"operator {label} has an option '{name}' of the unknown value {value}")
    return DTYPES[names[value]] if enumeration == "TensorType" else names[value]


@functools.cache
def names_of(enumeration: str) -> dict[int, str]:
    """Return the names of an enumeration of the schema by their numbers."""
    import tflite

    values = vars(getattr(tflite, enumeration))
    return {number: name for name, number in values.items() if isinstance(number, int)}


NAME = b"TFLITE_METADATA"
_MAX_BYTES = 1 << 20
_MAX_ENTRIES = 64
_SUBGRAPH_METADATA, _OUTPUTS, _TENSOR_FILES, _FILE_NAME, _FILE_TYPE = 3, 3, 6, 0, 2
"""Numbers of fields: subgraph_metadata, output_tensor_metadata, associated_files, name, type."""
_LABELS = (2, 3)
"""AssociatedFileType: TENSOR_AXIS_LABELS, TENSOR_VALUE_LABELS."""


def labels_of(file: Any, content: bytes, subgraph: int) -> Mapping[int, tuple[str, ...]]:
    """Return the class names by the number of the output; without readable metadata there are none."""
    try:
        return dict(_labels(file, content, subgraph))
    except Exception:  # metadata is not required to import a model
        return {}


def _labels(file: Any, content: bytes, subgraph: int) -> Iterator[tuple[int, tuple[str, ...]]]:
    for number in range(min(file.MetadataLength(), _MAX_ENTRIES)):
        entry = file.Metadata(number)
        if entry.Name() != NAME:
            continue
        data = bytes(file.Buffers(entry.Buffer()).DataAsNumpy())
        root = Table(bytearray(data), int.from_bytes(data[:4], "little"))
        graph = list(_tables(root, _SUBGRAPH_METADATA))[subgraph]
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for output, tensor in enumerate(_tables(graph, _OUTPUTS)):
                for table in _tables(tensor, _TENSOR_FILES):
                    if _type(table) in _LABELS:
                        yield output, _lines(archive, _name(table))


def _tables(table: Table, field: int) -> Iterator[Table]:
    """Yield the tables of a vector."""
    offset = table.Offset(4 + 2 * field)
    if offset:
        start = table.Vector(offset)
        for i in range(min(table.VectorLen(offset), _MAX_ENTRIES)):
            yield Table(table.Bytes, table.Indirect(start + 4 * i))


def _name(table: Table) -> str:
    offset = table.Offset(4 + 2 * _FILE_NAME)
    return bytes(table.String(offset + table.Pos)).decode() if offset else ""


def _type(table: Table) -> int:
    offset = table.Offset(4 + 2 * _FILE_TYPE)
    return int(table.Get(number_types.Int8Flags, offset + table.Pos)) if offset else 0


def _lines(archive: zipfile.ZipFile, name: str) -> tuple[str, ...]:
    with archive.open(name) as stream:
        text = stream.read(_MAX_BYTES).decode()
    return tuple(line.strip() for line in text.splitlines() if line.strip())


_CUSTOM = "CUSTOM"
"""The name of operators with a code of their own."""


Users = Mapping[str, UserOperator]
"""The operators of the user by the name of the operator in the file."""


def read_tflite(content: bytes, rules: Rules | None = None, users: Users | None = None) -> tuple[Graph, ...]:
    """Return the models of a file. Raises Damaged, for a damaged file also any error of the flatbuffers package."""
    import tflite

    file = tflite.Model.GetRootAsModel(content, 0)
    lengths = (file.SubgraphsLength(), file.OperatorCodesLength(), file.BuffersLength(), file.SignatureDefsLength())
    if max(lengths) * 4 > len(content):
        raise Damaged("more table entries than bytes")
    if not file.SubgraphsLength():
        raise Damaged("no subgraph")
    signatures = [file.SignatureDefs(number) for number in range(file.SignatureDefsLength())]
    if signatures:
        graphs = [_signed(file, signature, content, users or {}, len(signatures)) for signature in signatures]
    else:
        graphs = [_graph(file, 0, content, users or {})]
    return tuple(dataclasses.replace(graph, rules=rules or graph.rules) for graph in graphs)


def _signed(file: Any, signature: Any, content: bytes, users: Users, count: int) -> Graph:
    """Return the graph of a signature, with the names and the order of its inputs and outputs in the subgraph."""
    key = (signature.SignatureKey() or b"").decode("utf-8", "replace")
    number = signature.SubgraphIndex()
    if not 0 <= number < file.SubgraphsLength():
        raise Damaged(f"signature '{key}' refers to subgraph {number} of {file.SubgraphsLength()}")
    names: list[dict[int, str]] = []
    for part in ("Inputs", "Outputs"):
        length = getattr(signature, f"{part}Length")()
        if length * 4 > len(content):
            raise Damaged("more table entries than bytes")
        entries = [getattr(signature, part)(i) for i in range(length)]
        names.append({int(entry.TensorIndex()): (entry.Name() or b"").decode("utf-8", "replace") for entry in entries})
    graph = _graph(file, number, content, users, key if count > 1 else "", names[0] | names[1])
    of_inputs, of_outputs = (
        tuple(known.get(tensor.number if tensor.number is not None else -1, "") for tensor in tensors)
        for known, tensors in zip(names, (graph.inputs, graph.outputs), strict=True)
    )
    return dataclasses.replace(graph, signature=Signature(key, of_inputs, of_outputs))


_SUBGRAPHS = {
    "IF": ("then_subgraph_index", "else_subgraph_index"),
    "WHILE": ("cond_subgraph_index", "body_subgraph_index"),
    "CALL_ONCE": ("init_subgraph_index",),
    "STABLEHLO_COMPOSITE": ("decomposition_subgraph_index",),
}
"""The options of control flow that are numbers of subgraphs."""
_CONTROL = {"VAR_HANDLE": {"container": "", "shared_name": ""}, "READ_VARIABLE": {}, "ASSIGN_VARIABLE": {}}
_MAX_INTERMEDIATES = 8
"""The most intermediate tensors that are read; only their quantisation counts."""
_MAX_NESTED = 16
"""The most levels of subgraphs."""


def _graph(
    file: Any,
    number: int,
    content: bytes,
    users: Users,
    name: str = "",
    names: dict[int, str] | None = None,
    level: int = 0,
) -> Graph:
    """Return a subgraph, and those that it calls as options of its nodes."""
    size = len(content)
    if level > _MAX_NESTED:
        raise Damaged(f"subgraph {number} is called by itself, or by more than {_MAX_NESTED} levels of subgraphs")
    table = file.Subgraphs(number)
    lengths = (table.TensorsLength(), table.OperatorsLength(), table.InputsLength(), table.OutputsLength())
    if max(lengths) * 4 > size:
        raise Damaged("more table entries than bytes")
    dtypes = {value: DTYPES[one] for value, one in names_of("TensorType").items()}
    tensors = [read_tensor(file, table.Tensors(i), i, dtypes, content) for i in range(table.TensorsLength())]
    inputs = [_tensor(tensors, int(table.Inputs(i)), "the interface") for i in range(table.InputsLength())]
    outputs = [_tensor(tensors, int(table.Outputs(i)), "the interface") for i in range(table.OutputsLength())]
    if not outputs and level == 0:
        raise Damaged("no output")
    for index, text in (names or {}).items():
        if text and 0 <= index < len(tensors):
            tensors[index].name = text
    operators = [table.Operators(i) for i in range(table.OperatorsLength())]
    nodes = tuple(_node(file, operator, i, tensors, content, users, level) for i, operator in enumerate(operators))
    called = [inner for node in nodes for inner in node.options.get("graphs", ())]
    known = frozenset(node.source for node in nodes).union(*(subgraph.names for subgraph in called))
    remarks = tuple(_dynamic(table, tensors))
    labels = labels_of(file, content, number)
    return Graph(
        name, tuple(inputs), tuple(outputs), nodes, labels=labels, subgraph=number, names=known, remarks=remarks
    )


def _tensor(tensors: list[Tensor], index: int, place: str) -> Tensor:
    if not 0 <= index < len(tensors):
        raise Damaged(f"{place} refers to tensor {index} of {len(tensors)}")
    return tensors[index]


def _node(file: Any, table: Any, number: int, tensors: list[Tensor], content: bytes, users: Users, level: int) -> Node:
    """Return an operator."""
    if max(table.InputsLength(), table.OutputsLength()) * 4 > len(content):
        raise Damaged("more table entries than bytes")
    kind = _kind(file, table, number)
    where = f"operator {number} ({kind})"
    inputs = [int(table.Inputs(i)) for i in range(table.InputsLength())]
    outputs = [_tensor(tensors, int(table.Outputs(i)), where) for i in range(table.OutputsLength())]
    label = f"{number} ({kind})" + (f", result '{outputs[0].name}'" if outputs else "")
    given = [None if i == -1 else _tensor(tensors, i, where) for i in inputs]
    row = OPERATORS.get(kind)
    if kind in users:
        used = Use(users[kind], *_all_options(table))
        return Node(KIND, tuple(given), tuple(outputs), {"use": used}, label, source=kind)
    options: dict[str, Any]
    if kind in _SUBGRAPHS:
        numbers = read_options(table, dict.fromkeys(_SUBGRAPHS[kind], 0), label)
        options = {"graphs": tuple(_called(file, int(i), content, users, label, level) for i in numbers.values())}
    else:
        wanted = _CONTROL.get(kind) if row is None else row.options
        options = read_options(table, wanted, label) if wanted is not None else {}
    if row is not None and "intermediates" in row.options:
        count = min(table.IntermediatesLength(), _MAX_INTERMEDIATES)
        inner = (_tensor(tensors, int(table.Intermediates(i)), where) for i in range(count))
        options |= {"intermediates": tuple(tensor.quantization for tensor in inner)}
    return Node(kind, tuple(given), tuple(outputs), options, label, source=kind)


def _all_options(table: Any) -> tuple[dict[str, Any], bytes | None]:
    """Return the options of an operator of the user, and the bytes of custom options; None for other operators."""
    if not table.CustomOptionsLength():
        return all_options(table), None
    content = bytes(table.CustomOptionsAsNumpy())
    return custom_options(content), content


def _called(file: Any, number: int, content: bytes, users: Users, label: str, level: int) -> Graph:
    """Return a subgraph that an operator calls."""
    if not 0 <= number < file.SubgraphsLength():
        raise Damaged(f"operator {label} refers to subgraph {number} of {file.SubgraphsLength()}")
    return _graph(file, number, content, users, level=level + 1)


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
