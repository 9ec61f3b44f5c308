# SPDX-License-Identifier: Apache-2.0
"""TFLite files that tests make: tensors by Python objects, operators by name."""

import re
from dataclasses import dataclass, field

import flatbuffers
import numpy as np
import tflite

TYPES = {
    "float32": tflite.TensorType.FLOAT32,
    "float16": tflite.TensorType.FLOAT16,
    "float64": tflite.TensorType.FLOAT64,
    "int4": tflite.TensorType.INT4,
    "int8": tflite.TensorType.INT8,
    "int16": tflite.TensorType.INT16,
    "int32": tflite.TensorType.INT32,
    "int64": tflite.TensorType.INT64,
    "uint8": tflite.TensorType.UINT8,
    "uint16": tflite.TensorType.UINT16,
    "uint32": tflite.TensorType.UINT32,
    "bool": tflite.TensorType.BOOL,
    "string": tflite.TensorType.STRING,
    "resource": tflite.TensorType.RESOURCE,
}


@dataclass(eq=False)
class Made:
    """A tensor of a file. LiteRT and opwest infer the shapes of results."""

    dtype: str
    shape: tuple = ()
    scale: object = None
    zero: object = 0
    axis: int = 0
    content: object = None
    name: str | None = ""
    variable: bool = False
    signature: tuple | None = None
    raw: bytes | None = None
    """The bytes of a constant, instead of those of `content`."""


@dataclass
class Subgraph:
    tensors: list = field(default_factory=list)
    operators: list = field(default_factory=list)
    inputs: list = field(default_factory=list)
    outputs: list = field(default_factory=list)


class Model:
    """A file in the making: one subgraph, further ones with `subgraph()`."""

    def __init__(self):
        self.subgraphs = [Subgraph()]
        self.data_after = False
        """Whether constants are stored after the flatbuffer."""
        self.signatures = []
        """(key, {name: tensor} of the inputs, of the outputs, subgraph)."""
        self.metadata = {}
        self.description = None

    @property
    def graph(self):
        return self.subgraphs[-1]

    def subgraph(self):
        """Start another subgraph; return its number."""
        self.subgraphs.append(Subgraph())
        return len(self.subgraphs) - 1

    def _tensor(self, *args, **keys):
        made = Made(*args, **keys)
        if made.name == "":
            made.name = f"tensor_{len(self.graph.tensors)}"
        self.graph.tensors.append(made)
        return made

    def input(self, dtype, shape, scale=None, zero=0, **keys):
        made = self._tensor(dtype, tuple(shape), scale, zero, **keys)
        self.graph.inputs.append(made)
        return made

    def constant(self, array, scale=None, zero=0, axis=0, dtype=None, **keys):
        array = np.asarray(array)
        return self._tensor(dtype or str(array.dtype), array.shape, scale, zero, axis, array, **keys)

    def variable(self, dtype, shape, scale=None, zero=0, **keys):
        return self._tensor(dtype, tuple(shape), scale, zero, variable=True, **keys)

    def operator(self, kind, inputs, *results, **options):
        """Add an operator; `results` are (dtype, scale, zero) or tensors. Options have the names of the schema."""
        outputs = [one if isinstance(one, Made) else self._tensor(one[0], (), *one[1:]) for one in results]
        self.graph.operators.append((kind, list(inputs), outputs, options))
        return outputs[0] if len(outputs) == 1 else outputs

    def output(self, *tensors):
        self.graph.outputs.extend(tensors)

    def build(self):
        """Return the file."""
        if not self.data_after:
            return _Writer(self).write()
        # The size of the tables does not depend on the offsets.
        writer = _Writer(self, after=len(_Writer(self, after=16).write()))
        return writer.write() + b"".join(writer.buffers)

    def save(self, path):
        """Write the file; return its path."""
        path.write_bytes(self.build())
        return path


class _Writer:
    """`after`: the position of the buffers behind the tables; None: they are parts of the tables."""

    def __init__(self, model, after=None):
        self.model, self.after = model, after
        self.b = flatbuffers.Builder(1024)
        self.buffers = [b""]
        self.codes = []

    def write(self):
        b, m = self.b, self.model
        graphs = [self.subgraph(one) for one in m.subgraphs]
        metadata = []
        for name, content in m.metadata.items():
            self.buffers.append(content)
            text = b.CreateString(name)
            tflite.MetadataStart(b)
            tflite.MetadataAddName(b, text)
            tflite.MetadataAddBuffer(b, len(self.buffers) - 1)
            metadata.append(tflite.MetadataEnd(b))
        buffers = []
        place = self.after
        for content in self.buffers:
            data = None
            if content and place is not None:
                tflite.BufferStart(b)
                tflite.BufferAddOffset(b, place)
                tflite.BufferAddSize(b, len(content))
                buffers.append(tflite.BufferEnd(b))
                place += len(content)
                continue
            if content:
                b.StartVector(1, len(content), 16)
                b.head -= len(content)
                b.Bytes[b.head : b.head + len(content)] = content
                data = b.EndVector()
            tflite.BufferStart(b)
            if data is not None:
                tflite.BufferAddData(b, data)
            buffers.append(tflite.BufferEnd(b))
        signatures = [self.signature(*one) for one in m.signatures]
        codes = [self.code(one) for one in self.codes]
        vectors = [self.vector(one) for one in (graphs, codes, buffers, metadata, signatures)]
        description = b.CreateString(m.description) if m.description is not None else None
        tflite.ModelStart(b)
        tflite.ModelAddVersion(b, 3)
        tflite.ModelAddSubgraphs(b, vectors[0])
        tflite.ModelAddOperatorCodes(b, vectors[1])
        tflite.ModelAddBuffers(b, vectors[2])
        if description is not None:
            tflite.ModelAddDescription(b, description)
        if metadata:
            tflite.ModelAddMetadata(b, vectors[3])
        if signatures:
            tflite.ModelAddSignatureDefs(b, vectors[4])
        b.Finish(tflite.ModelEnd(b), b"TFL3")
        return bytes(b.Output())

    def vector(self, items):
        self.b.StartVector(4, len(items), 4)
        for one in reversed(items):
            self.b.PrependUOffsetTRelative(one)
        return self.b.EndVector()

    def numbers(self, values, dtype):
        return self.b.CreateNumpyVector(np.asarray(values, dtype))

    def code(self, key):
        kind, _ = key
        number = getattr(tflite.BuiltinOperator, kind, None)
        custom = self.b.CreateString(kind) if number is None else None
        number = tflite.BuiltinOperator.CUSTOM if number is None else number
        tflite.OperatorCodeStart(self.b)
        tflite.OperatorCodeAddDeprecatedBuiltinCode(self.b, min(number, 127))
        tflite.OperatorCodeAddBuiltinCode(self.b, number)
        tflite.OperatorCodeAddVersion(self.b, key[1])
        if custom is not None:
            tflite.OperatorCodeAddCustomCode(self.b, custom)
        return tflite.OperatorCodeEnd(self.b)

    def signature(self, key, inputs, outputs, number):
        b, graph, parts = self.b, self.model.subgraphs[number], []
        for given in (inputs, outputs):
            maps = []
            for name, tensor in given.items():
                text = b.CreateString(name)
                tflite.TensorMapStart(b)
                tflite.TensorMapAddName(b, text)
                tflite.TensorMapAddTensorIndex(b, graph.tensors.index(tensor))
                maps.append(tflite.TensorMapEnd(b))
            parts.append(self.vector(maps))
        text = b.CreateString(key)
        tflite.SignatureDefStart(b)
        tflite.SignatureDefAddInputs(b, parts[0])
        tflite.SignatureDefAddOutputs(b, parts[1])
        tflite.SignatureDefAddSignatureKey(b, text)
        tflite.SignatureDefAddSubgraphIndex(b, number)
        return tflite.SignatureDefEnd(b)

    def subgraph(self, graph):
        b = self.b
        tensors = self.vector([self.tensor(one) for one in graph.tensors])
        operators = self.vector([self.operator(graph, *one) for one in graph.operators])
        inputs = self.numbers([graph.tensors.index(t) for t in graph.inputs], np.int32)
        outputs = self.numbers([graph.tensors.index(t) for t in graph.outputs], np.int32)
        tflite.SubGraphStart(b)
        tflite.SubGraphAddTensors(b, tensors)
        tflite.SubGraphAddOperators(b, operators)
        tflite.SubGraphAddInputs(b, inputs)
        tflite.SubGraphAddOutputs(b, outputs)
        return tflite.SubGraphEnd(b)

    def tensor(self, made):
        b, index = self.b, 0
        if made.raw is not None or made.content is not None:
            self.buffers.append(made.raw if made.raw is not None else np.ascontiguousarray(made.content).tobytes())
            index = len(self.buffers) - 1
        quantization = None
        if made.scale is not None:
            each = np.atleast_1d(np.asarray(made.scale, np.float32))
            zeros = np.broadcast_to(np.asarray(made.zero, np.int64), each.shape)
            scales, zeros = self.numbers(each, np.float32), self.numbers(zeros, np.int64)
            tflite.QuantizationParametersStart(b)
            tflite.QuantizationParametersAddScale(b, scales)
            tflite.QuantizationParametersAddZeroPoint(b, zeros)
            tflite.QuantizationParametersAddQuantizedDimension(b, made.axis)
            quantization = tflite.QuantizationParametersEnd(b)
        text = b.CreateString(made.name) if made.name is not None else None
        shape = self.numbers(made.shape, np.int32)
        fixed = self.numbers(made.signature, np.int32) if made.signature is not None else None
        tflite.TensorStart(b)
        if text is not None:
            tflite.TensorAddName(b, text)
        tflite.TensorAddShape(b, shape)
        tflite.TensorAddType(b, TYPES[made.dtype])
        tflite.TensorAddBuffer(b, index)
        tflite.TensorAddIsVariable(b, made.variable)
        if fixed is not None:
            tflite.TensorAddShapeSignature(b, fixed)
        if quantization is not None:
            tflite.TensorAddQuantization(b, quantization)
        return tflite.TensorEnd(b)

    def operator(self, graph, kind, inputs, outputs, options):
        b = self.b
        options = dict(options)
        table = options.pop("options", None) or options_table(kind)
        key = (kind, options.pop("version", 1))
        custom = options.pop("custom", None)
        inner = options.pop("intermediates", None)
        if key not in self.codes:
            self.codes.append(key)
        built = None
        if table is not None:
            encoded = {name: self.option(name, value) for name, value in options.items()}
            getattr(tflite, f"{table}Start")(b)
            for name, value in encoded.items():
                camel = "".join(part[:1].upper() + part[1:] for part in name.split("_"))
                getattr(tflite, f"{table}Add{camel}")(b, value)
            built = getattr(tflite, f"{table}End")(b)
        reads = self.numbers([-1 if t is None else graph.tensors.index(t) for t in inputs], np.int32)
        writes = self.numbers([graph.tensors.index(t) for t in outputs], np.int32)
        kept = self.numbers([graph.tensors.index(t) for t in inner], np.int32) if inner is not None else None
        data = b.CreateByteVector(custom) if custom else None
        tflite.OperatorStart(b)
        tflite.OperatorAddOpcodeIndex(b, self.codes.index(key))
        tflite.OperatorAddInputs(b, reads)
        tflite.OperatorAddOutputs(b, writes)
        if kept is not None:
            tflite.OperatorAddIntermediates(b, kept)
        if built is not None:
            union = "BuiltinOptions" if hasattr(tflite.BuiltinOptions, table) else "BuiltinOptions2"
            getattr(tflite, f"OperatorAdd{union}Type")(b, getattr(getattr(tflite, union), table))
            getattr(tflite, f"OperatorAdd{union}")(b, built)
        if data is not None:
            tflite.OperatorAddCustomOptions(b, data)
        return tflite.OperatorEnd(b)

    def option(self, name, value):
        if isinstance(value, str):
            enumeration = {
                "fused_activation_function": "ActivationFunctionType",
                "padding": "Padding",
                "mode": "MirrorPadMode",
                "weights_format": "FullyConnectedOptionsWeightsFormat",
                "kernel_type": "LSTMKernelType",
            }.get(name)
            if enumeration is not None:
                return getattr(getattr(tflite, enumeration), value)
            if value in TYPES:
                return TYPES[value]
            return self.b.CreateString(value)
        if isinstance(value, (list, tuple)):
            return self.numbers(value, np.int32)
        return self.b.CreateByteVector(value) if isinstance(value, bytes) else value


_TABLES = {
    "CONV_2D": "Conv2DOptions",
    "DEPTHWISE_CONV_2D": "DepthwiseConv2DOptions",
    "AVERAGE_POOL_2D": "Pool2DOptions",
    "MAX_POOL_2D": "Pool2DOptions",
    "L2_POOL_2D": "Pool2DOptions",
    "L2_NORMALIZATION": "L2NormOptions",
    "MEAN": "ReducerOptions",
    "SUM": "ReducerOptions",
    "MINIMUM": "MaximumMinimumOptions",
    "MAXIMUM": "MaximumMinimumOptions",
    "BATCH_MATMUL": "BatchMatMulOptions",
    "UNIDIRECTIONAL_SEQUENCE_LSTM": "UnidirectionalSequenceLSTMOptions",
    "SVDF": "SVDFOptions",
    "SPACE_TO_BATCH_ND": "SpaceToBatchNDOptions",
    "BATCH_TO_SPACE_ND": "BatchToSpaceNDOptions",
    "TOPK_V2": "TopKV2Options",
    "PADV2": "PadV2Options",
    "SELECT_V2": "SelectV2Options",
    "REVERSE_V2": "ReverseV2Options",
    "SPLIT_V": "SplitVOptions",
    "STABLEHLO_COMPOSITE": "StableHLOCompositeOptions",
}
_OTHERS = re.compile(r"REDUCE_(MAX|MIN|PROD|ANY|ALL)")


def options_table(kind):
    """Return the name of the options table of an operator; None if it has none."""
    if kind in _TABLES:
        return _TABLES[kind]
    if _OTHERS.fullmatch(kind):
        return "ReducerOptions"
    name = "".join(part.capitalize() for part in kind.split("_")) + "Options"
    return name if hasattr(tflite, f"{name}Start") else None
