# SPDX-License-Identifier: Apache-2.0
"""A TFLite file from a graph: the inverse of the reader, for graphs whose operators TFLite has.

Source: TFLite's schema.fbs. Versions of operators are those of tools/versioning/op_version.cc for float32, int8 and
int16 data; runtimes refuse versions above those that they know.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import flatbuffers
import numpy as np

from opwest.compiler.graph.spec import OPERATORS
from opwest.compiler.graph.types import Graph, Node, Quantization, Tensor
from opwest.frontends.tflite.read import ENUMERATIONS, metadata_of
from opwest.frontends.tflite.tensors import DTYPES

_TABLES = {
    **dict.fromkeys(("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D"), "Pool2DOptions"),
    **dict.fromkeys(("MEAN", "SUM"), "ReducerOptions"),
    **dict.fromkeys((f"REDUCE_{what}" for what in ("MAX", "MIN", "PROD", "ANY", "ALL")), "ReducerOptions"),
    **dict.fromkeys(("MINIMUM", "MAXIMUM"), "MaximumMinimumOptions"),
    "L2_NORMALIZATION": "L2NormOptions",
}
"""The tables of options whose names are not those of the operators."""
_OWN_FIELDS = frozenset(("intermediates",))
"""Options of graphs that are no fields of a table."""
_VERSIONS: Mapping[str, Mapping[str, int]] = {
    "float32": {},
    "int8": {"CONV_2D": 3, "DEPTHWISE_CONV_2D": 3, "FULLY_CONNECTED": 4, "RESHAPE": 1, "QUANTIZE": 2},
    "int16": {"CONV_2D": 4, "DEPTHWISE_CONV_2D": 5, "FULLY_CONNECTED": 7, "MUL": 4, "SUB": 5, "RESHAPE": 1},
}
_USUAL = {"int8": 2, "int16": 3}
"""The version of operators that _VERSIONS does not list."""
_LAST = {
    **dict.fromkeys(
        ("HARD_SWISH", "PRELU", "RELU_N1_TO_1", "RELU_0_TO_1", "ELU", "SQUEEZE", "EXPAND_DIMS", "DEPTH_TO_SPACE"), 1
    ),
    **dict.fromkeys(("LEAKY_RELU", "TILE", "GELU", "SPACE_TO_DEPTH", "SQUARED_DIFFERENCE"), 2),
}
"""The last version of an operator."""
_ALIGNMENT = 16
"""Of constants in the file, in bytes."""


def write_tflite(graph: Graph, origin: bytes) -> bytes:
    """Return a file with one subgraph; metadata and associated files are those of another file.

    Raises ValueError for operators and updates of states that a file cannot express.
    """
    if graph.updates:
        raise ValueError("states with updates")
    return _Writer(graph, origin).write() + _associated_files(origin)


def options_table(kind: str) -> str | None:
    """Return the name of the table with the options of an operator; None if it has none."""
    import tflite

    if kind in _TABLES:
        return _TABLES[kind]
    wanted = f"{kind.replace('_', '')}options".lower()
    return next((name for name in vars(tflite) if name.lower() == wanted and f"{name}Start" in vars(tflite)), None)


def _associated_files(origin: bytes) -> bytes:
    """Return the archive at the end of a file, which its metadata names; empty without a readable one."""
    try:
        with zipfile.ZipFile(io.BytesIO(origin)) as archive:
            first = min((entry.header_offset for entry in archive.infolist()), default=len(origin))
            return origin[first:]
    except (zipfile.BadZipFile, OSError, ValueError):
        return b""


class _Writer:
    def __init__(self, graph: Graph, origin: bytes) -> None:
        self.graph, self.origin = graph, origin
        self.builder = flatbuffers.Builder(1 << 16)
        self.buffers: list[bytes] = [b""]
        self.codes: dict[tuple[str, int], int] = {}
        self.tensors: dict[Tensor, int] = {}
        for tensor in (
            *graph.inputs,
            *(one for node in graph.nodes for one in (*node.inputs, *node.outputs) if one is not None),
            *graph.outputs,
        ):
            self.tensors.setdefault(tensor, len(self.tensors))

    def write(self) -> bytes:
        """Return the flatbuffer."""
        subgraph = self._subgraph()
        metadata = self._metadata()
        signatures = [self._signature()] if self.graph.signature is not None else []
        buffers = [self._table("Buffer", Data=self._bytes(content)) for content in self.buffers]
        codes = [self._code(*key) for key in self.codes]
        parts = [subgraph], codes, buffers, metadata, signatures
        subgraphs, operator_codes, *others = (self._vector(part) if part else None for part in parts)
        description = self.builder.CreateString("quantised by opwest")
        model = self._table(
            "Model",
            Version=3,
            OperatorCodes=operator_codes,
            Subgraphs=subgraphs,
            Description=description,
            Buffers=others[0],
            Metadata=others[1],
            SignatureDefs=others[2],
        )
        self.builder.Finish(model, b"TFL3")
        return bytes(self.builder.Output())

    def _table(self, kind: str, **fields: Any) -> int:
        """Write a table without the fields that are None; return its offset."""
        import tflite

        getattr(tflite, f"{kind}Start")(self.builder)
        for name, value in fields.items():
            if value is not None:
                getattr(tflite, f"{kind}Add{name}")(self.builder, value)
        return int(getattr(tflite, f"{kind}End")(self.builder))

    def _vector(self, offsets: Sequence[int]) -> int:
        self.builder.StartVector(4, len(offsets), 4)
        for offset in reversed(offsets):
            self.builder.PrependUOffsetTRelative(offset)
        return int(self.builder.EndVector())

    def _numbers(self, values: Iterable[Any], dtype: Any = np.int32) -> int:
        return int(self.builder.CreateNumpyVector(np.asarray(list(values), dtype)))

    def _bytes(self, content: bytes) -> int | None:
        if not content:
            return None
        self.builder.StartVector(1, len(content), _ALIGNMENT)
        self.builder.head -= len(content)
        self.builder.Bytes[self.builder.head : self.builder.head + len(content)] = content
        return int(self.builder.EndVector())

    def _buffer(self, content: bytes) -> int:
        self.buffers.append(content)
        return len(self.buffers) - 1

    def _metadata(self) -> list[int]:
        """Return the metadata of the other file."""
        import tflite

        file = tflite.Model.GetRootAsModel(self.origin, 0)
        names = [bytes(file.Metadata(i).Name() or b"") for i in range(file.MetadataLength())]
        contents = {name: next(metadata_of(file, self.origin, name), b"") for name in dict.fromkeys(names)}
        return [
            self._table("Metadata", Name=self.builder.CreateString(name), Buffer=self._buffer(content))
            for name, content in contents.items()
        ]

    def _signature(self) -> int:
        signature = self.graph.signature
        assert signature is not None
        ports = ((signature.inputs, self.graph.inputs), (signature.outputs, self.graph.outputs))
        vectors = [
            self._vector(
                [
                    self._table("TensorMap", Name=self.builder.CreateString(name), TensorIndex=self.tensors[tensor])
                    for name, tensor in zip(names, tensors, strict=True)
                    if name
                ]
            )
            for names, tensors in ports
        ]
        key = self.builder.CreateString(signature.key)
        return self._table("SignatureDef", Inputs=vectors[0], Outputs=vectors[1], SignatureKey=key, SubgraphIndex=0)

    def _code(self, kind: str, version: int) -> int:
        import tflite

        number = getattr(tflite.BuiltinOperator, kind, None)
        if number is None:
            raise ValueError(f"operator {kind}")
        return self._table("OperatorCode", DeprecatedBuiltinCode=min(number, 127), BuiltinCode=number, Version=version)

    def _subgraph(self) -> int:
        tensors = self._vector([self._tensor(tensor) for tensor in self.tensors])
        operators = self._vector([self._operator(node) for node in self.graph.nodes])
        ports = [self._numbers(map(self.tensors.__getitem__, port)) for port in (self.graph.inputs, self.graph.outputs)]
        return self._table("SubGraph", Tensors=tensors, Inputs=ports[0], Outputs=ports[1], Operators=operators)

    def _tensor(self, tensor: Tensor) -> int:
        buffer = 0
        if tensor.is_constant:
            array = np.asarray(tensor.content)
            buffer = self._buffer(array.astype(array.dtype.newbyteorder("<"), order="C").tobytes())
        name = self.builder.CreateString(tensor.name)
        shape = self._numbers(tensor.shape)
        quantization = None if tensor.quantization is None else self._quantization(tensor.quantization)
        return self._table(
            "Tensor",
            Shape=shape,
            Type=_type(tensor.dtype),
            Buffer=buffer,
            Name=name,
            Quantization=quantization,
            IsVariable=tensor.is_state or None,
        )

    def _quantization(self, quantization: Quantization) -> int:
        scales, zeros = self._numbers(quantization.scales, np.float32), self._numbers(quantization.zeros, np.int64)
        return self._table(
            "QuantizationParameters", Scale=scales, ZeroPoint=zeros, QuantizedDimension=quantization.axis or 0
        )

    def _operator(self, node: Node) -> int:
        import tflite

        code = self.codes.setdefault((node.kind, _version(node)), len(self.codes))
        table, options = options_table(node.kind), {}
        if table is not None:
            fields = {
                re.sub(r"(?:^|_)(\w)", lambda match: match[1].upper(), name): self._option(name, value)
                for name, value in node.options.items()
                if name in OPERATORS[node.kind].options and name not in _OWN_FIELDS
            }
            known = {name: value for name, value in fields.items() if hasattr(tflite, f"{table}Add{name}")}
            union = "BuiltinOptions" if hasattr(tflite.BuiltinOptions, table) else "BuiltinOptions2"
            options = {f"{union}Type": getattr(getattr(tflite, union), table), union: self._table(table, **known)}
        inputs = self._numbers(-1 if tensor is None else self.tensors[tensor] for tensor in node.inputs)
        outputs = self._numbers(self.tensors[tensor] for tensor in node.outputs)
        return self._table("Operator", OpcodeIndex=code, Inputs=inputs, Outputs=outputs, **options)

    def _option(self, name: str, value: Any) -> Any:
        import tflite

        enumeration = ENUMERATIONS.get(name)
        if enumeration == "TensorType":
            return _type(value)
        if enumeration is not None:
            return getattr(getattr(tflite, enumeration), value)
        if isinstance(value, str):
            return self.builder.CreateString(value)
        return self._numbers(value) if isinstance(value, (list, tuple)) else value


def _type(dtype: str) -> int:
    """Return the number of TensorType."""
    import tflite

    name = next(name for name, own in DTYPES.items() if own == dtype)
    return int(getattr(tflite.TensorType, name))


def _version(node: Node) -> int:
    """Return the version of an operator by the dtypes of its tensors."""
    dtypes = {tensor.dtype for tensor in (*node.inputs, *node.outputs) if tensor is not None and tensor.quantization}
    dtype = next((one for one in ("int16", "int8") if one in dtypes), "float32")
    version = _VERSIONS[dtype].get(node.kind, _USUAL.get(dtype, 1))
    return min(version, _LAST.get(node.kind, version))
