# SPDX-License-Identifier: Apache-2.0
"""A TFLite file as graphs: one for each signature, or one for the only subgraph."""

from __future__ import annotations

import dataclasses
import functools
import io
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from flatbuffers import number_types
from flatbuffers.table import Table

import opwest.compiler.semantics  # noqa: F401 - fills the table of operators
from opwest.base.result import counted
from opwest.compiler.graph.spec import OPERATORS, add_states
from opwest.compiler.graph.types import Damaged, Graph, Node, Rules, Signature, Tensor
from opwest.compiler.graph.user import KIND, Use, UserOperator
from opwest.compiler.semantics.signal import PREFIX
from opwest.frontends.tflite.signal_options import signal_options
from opwest.frontends.tflite.tensors import DTYPES, checked_index, read_tensor

ENUMERATIONS = {
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
    options = _options(operator, label, ("BuiltinOptions", "BuiltinOptions2"))
    values = dict(wanted)
    for name in wanted if options is not None else ():
        method = re.sub(r"(?:^|_)(\w)", lambda match: match[1].upper(), name)
        if hasattr(options, f"{method}Length"):
            length = getattr(options, f"{method}Length")()
            if length > _MAX_NUMBERS:
                raise Damaged(f"operator {label} has an option '{name}' of {counted(length, 'number')}")
            values[name] = tuple(int(getattr(options, method)(i)) for i in range(length))
        elif hasattr(options, method):
            values[name] = _value(name, getattr(options, method)(), label)
    return values


def _options(operator: Any, label: str, unions: Sequence[str]) -> Any:
    """Return the table with the options of an operator; None if it has none. Raises Damaged."""
    import tflite

    for union in unions:
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


def _all_options(operator: Any, label: str) -> dict[str, Any]:
    """Return all options of an operator as numbers and lists of numbers, for operators of the user."""
    try:
        options = _options(operator, label, ("BuiltinOptions",))
    except Damaged:  # of a newer schema
        return {}
    numbers: dict[str, Any] = {}
    for method in vars(type(options)) if options is not None else ():
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


def _custom_options(content: bytes) -> dict[str, Any]:
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
    enumeration = ENUMERATIONS.get(name)
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


_METADATA = b"TFLITE_METADATA"
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


def metadata_of(file: Any, content: bytes, name: bytes) -> Iterator[bytes]:
    """Yield the content of the metadata with a name."""
    for number in range(min(file.MetadataLength(), len(content))):
        entry = file.Metadata(number)
        if entry.Name() == name and 0 <= entry.Buffer() < file.BuffersLength():
            buffer = file.Buffers(entry.Buffer())
            yield bytes(buffer.DataAsNumpy()) if buffer.DataLength() else b""


def _labels(file: Any, content: bytes, subgraph: int) -> Iterator[tuple[int, tuple[str, ...]]]:
    for data in metadata_of(file, content, _METADATA):
        root = Table(bytearray(data), int.from_bytes(data[:4], "little"))
        graph = list(_tables(root, _SUBGRAPH_METADATA))[subgraph]
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for output, tensor in enumerate(_tables(graph, _OUTPUTS)):
                for table in _tables(tensor, _TENSOR_FILES):
                    if _type(table) in _LABELS:
                        yield output, _lines(archive, table)


def _tables(table: Table, field: int) -> Iterator[Table]:
    """Yield the tables of a vector."""
    offset = table.Offset(4 + 2 * field)
    if offset:
        start = table.Vector(offset)
        for i in range(min(table.VectorLen(offset), _MAX_ENTRIES)):
            yield Table(table.Bytes, table.Indirect(start + 4 * i))


def _type(table: Table) -> int:
    offset = table.Offset(4 + 2 * _FILE_TYPE)
    return int(table.Get(number_types.Int8Flags, offset + table.Pos)) if offset else 0


def _lines(archive: zipfile.ZipFile, table: Table) -> tuple[str, ...]:
    offset = table.Offset(4 + 2 * _FILE_NAME)
    name = bytes(table.String(offset + table.Pos)).decode() if offset else ""
    with archive.open(name) as stream:
        text = stream.read(_MAX_BYTES).decode()
    return tuple(line.strip() for line in text.splitlines() if line.strip())


_CUSTOM = "CUSTOM"
"""The name of operators with a code of their own."""
Users = Mapping[str, UserOperator]
"""The operators of the user by the name of the operator in the file."""


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


def read_tflite(content: bytes, rules: Rules | None = None, users: Users | None = None) -> tuple[Graph, ...]:
    """Return the models of a file. Raises Damaged, for a damaged file also any error of the flatbuffers package."""
    graphs = _Reader(content, users or {}).read()
    return tuple(dataclasses.replace(graph, rules=rules or graph.rules) for graph in graphs)


class _Reader:
    def __init__(self, content: bytes, users: Users) -> None:
        import tflite

        self.file = tflite.Model.GetRootAsModel(content, 0)
        self.content = content
        self.users = users
        self.states: dict[int, tuple[Tensor | None, ...]] = {}
        """The states that operators own, by the place of the operator in the file."""
        self.dtypes = {number: DTYPES[name] for number, name in names_of("TensorType").items()}

    def read(self) -> tuple[Graph, ...]:
        self._check_lengths(self.file, "Subgraphs", "OperatorCodes", "Buffers", "SignatureDefs")
        signatures = [self.file.SignatureDefs(i) for i in range(self.file.SignatureDefsLength())]
        if not self.file.SubgraphsLength():
            raise Damaged("no subgraph")
        if not signatures:
            return (self._graph(0),)
        return tuple(self._signed(signature, len(signatures)) for signature in signatures)

    def _check_lengths(self, table: Any, *parts: str) -> None:
        if max(getattr(table, f"{part}Length")() for part in parts) * 4 > len(self.content):
            raise Damaged("more table entries than bytes")

    def _vectors(self, table: Any, *parts: str) -> list[Iterator[Any]]:
        """Return the entries of vectors of a table. Raises Damaged."""
        self._check_lengths(table, *parts)
        return [map(getattr(table, part), range(getattr(table, f"{part}Length")())) for part in parts]

    def _signed(self, signature: Any, count: int) -> Graph:
        """Return the graph of a signature, with the names and the order of its inputs and outputs in the subgraph."""
        key = _text(signature.SignatureKey())
        number = checked_index(
            signature.SubgraphIndex(), self.file.SubgraphsLength(), f"signature '{key}' refers to subgraph"
        )
        inputs, outputs = (
            {int(entry.TensorIndex()): _text(entry.Name()) for entry in entries}
            for entries in self._vectors(signature, "Inputs", "Outputs")
        )
        graph = self._graph(number, key if count > 1 else "", inputs | outputs)
        of_inputs, of_outputs = (
            tuple(known.get(tensor.number if tensor.number is not None else -1, "") for tensor in tensors)
            for known, tensors in ((inputs, graph.inputs), (outputs, graph.outputs))
        )
        return dataclasses.replace(graph, signature=Signature(key, of_inputs, of_outputs))

    def _graph(self, number: int, name: str = "", names: Mapping[int, str] | None = None, level: int = 0) -> Graph:
        """Return a subgraph, and those that it calls as options of its nodes."""
        if level > _MAX_NESTED:
            raise Damaged(f"subgraph {number} is called by itself, or by more than {_MAX_NESTED} levels of subgraphs")
        subgraph = self.file.Subgraphs(number)
        tables, operators, *ports = self._vectors(subgraph, "Tensors", "Operators", "Inputs", "Outputs")
        tensors = [read_tensor(self.file, table, i, self.dtypes, self.content) for i, table in enumerate(tables)]
        inputs, outputs = ([_tensor(tensors, int(i), "the interface") for i in port] for port in ports)
        if not outputs and level == 0:
            raise Damaged("no output")
        for index, text in (names or {}).items():
            if text and 0 <= index < len(tensors):
                tensors[index].name = text
        nodes = tuple(self._node(operator, i, tensors, level) for i, operator in enumerate(list(operators)))
        called = [inner for node in nodes for inner in node.options.get("graphs", ())]
        return Graph(
            name,
            tuple(inputs),
            tuple(outputs),
            nodes,
            labels=labels_of(self.file, self.content, number),
            subgraph=number,
            names=frozenset(node.source for node in nodes).union(*(inner.names for inner in called)),
            remarks=tuple(_dynamic(subgraph, inputs)),
        )

    def _node(self, table: Any, number: int, tensors: list[Tensor], level: int) -> Node:
        """Return an operator."""
        input_numbers, output_numbers = self._vectors(table, "Inputs", "Outputs")
        kind = self._kind(table, number)
        where = f"operator {number} ({kind})"
        outputs = tuple(_tensor(tensors, int(i), where) for i in output_numbers)
        label = f"{number} ({kind})" + (f", result '{outputs[0].name}'" if outputs else "")
        inputs = tuple(None if i == -1 else _tensor(tensors, int(i), where) for i in input_numbers)
        row = OPERATORS.get(kind)
        options: dict[str, Any]
        if kind in self.users:
            custom = bytes(table.CustomOptionsAsNumpy()) if table.CustomOptionsLength() else None
            known = _all_options(table, label) if custom is None else _custom_options(custom)
            options = {"use": Use(self.users[kind], known, custom)}
            return Node(KIND, inputs, outputs, options, label, source=kind)
        refusal = None
        if row is not None and kind.startswith(PREFIX):
            custom = bytes(table.CustomOptionsAsNumpy()) if table.CustomOptionsLength() else b""
            options, refusal = signal_options(row, _custom_options(custom), self.dtypes)
        elif kind in _SUBGRAPHS:
            graphs = []
            for subgraph in read_options(table, dict.fromkeys(_SUBGRAPHS[kind], 0), label).values():
                checked_index(subgraph, self.file.SubgraphsLength(), f"operator {label} refers to subgraph")
                graphs.append(self._graph(subgraph, level=level + 1))
            options = {"graphs": tuple(graphs)}
        else:
            wanted = _CONTROL.get(kind) if row is None else row.options
            options = read_options(table, wanted, label) if wanted is not None else {}
        if row is not None and "intermediates" in row.options:
            count = min(table.IntermediatesLength(), _MAX_INTERMEDIATES)
            inner = (_tensor(tensors, int(table.Intermediates(i)), where) for i in range(count))
            options |= {"intermediates": tuple(tensor.quantization for tensor in inner)}
        node = Node(kind, inputs, outputs, options, label, refusal, kind)
        if row is not None and row.states is not None:
            key = table._tab.Pos
            if key not in self.states:
                add_states(node)
                self.states[key] = node.inputs[len(inputs) :]
            node.inputs = (*inputs, *self.states[key])
        return node

    def _kind(self, table: Any, number: int) -> str:
        """Return the name of an operator; for a custom one, that of its code."""
        index = table.OpcodeIndex()
        if not 0 <= index < self.file.OperatorCodesLength():
            raise Damaged(f"operator {number} has the undefined code {index}")
        code = self.file.OperatorCodes(index)
        # Files of older converters have only the deprecated field. Source: TFLite's schema_utils.cc, GetBuiltinCode.
        builtin = max(code.BuiltinCode(), code.DeprecatedBuiltinCode())
        kind = names_of("BuiltinOperator").get(builtin, f"operator code {builtin}")
        return _text(code.CustomCode() or b"CUSTOM") if kind == _CUSTOM else kind


def _text(value: bytes | None) -> str:
    return (value or b"").decode("utf-8", "replace")


def _tensor(tensors: list[Tensor], index: int, place: str) -> Tensor:
    return tensors[checked_index(index, len(tensors), f"{place} refers to tensor")]


def _dynamic(subgraph: Any, inputs: list[Tensor]) -> Iterator[str]:
    """Yield a remark for each input with unknown dimensions, which is imported with the shape in the file."""
    for tensor in inputs:
        table = subgraph.Tensors(tensor.number)
        signature = [int(table.ShapeSignature(k)) for k in range(min(table.ShapeSignatureLength(), 8))]
        if any(n < 0 for n in signature):
            yield f"input '{tensor.name}' of shape {signature} is imported as {list(tensor.shape)}"
