# SPDX-License-Identifier: Apache-2.0
"""TFLite files that tests make: tensors by Python objects, operators by name."""

from dataclasses import dataclass, field

import numpy as np
from requirements_support import need

need("tflite")

import flatbuffers  # noqa: E402
import tflite  # noqa: E402
from flatbuffers import flexbuffers  # noqa: E402

TYPES = {
    name: getattr(tflite.TensorType, name.upper())
    for name in (
        "float16 float32 float64 int4 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool string resource"
    ).split()
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
        self.subgraphs, self.current = [Subgraph()], None
        self.data_after = False
        """Whether constants are stored after the flatbuffer."""
        self.signatures = []
        """(key, {name: tensor} of the inputs, of the outputs, subgraph)."""
        self.metadata = {}
        self.description = None

    @property
    def graph(self):
        return self.current or self.subgraphs[-1]

    def subgraph(self):
        self.subgraphs.append(Subgraph())

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

    def inner(self, dtype, scale, zero=0):
        return self._tensor(dtype, (), scale, zero)

    def operator(self, kind, inputs, *results, **options):
        """Add an operator; `results` are (dtype, scale, zero) or tensors. Options have the names of the schema."""
        outputs = [one if isinstance(one, Made) else self._tensor(one[0], (), *one[1:]) for one in results]
        self.graph.operators.append((kind, list(inputs), outputs, options))
        return outputs[0] if len(outputs) == 1 else outputs

    def output(self, *tensors):
        self.graph.outputs.extend(tensors)
        return self

    def ending_with(self, kind, inputs, *results, **options):
        """Add an operator whose results are outputs; return the model."""
        found = self.operator(kind, inputs, *results, **options)
        return self.output(*(found if len(results) > 1 else [found]))

    def build(self):
        if not self.data_after:
            return _Writer(self).write()
        # The size of the tables does not depend on the offsets.
        writer = _Writer(self, after=len(_Writer(self, after=16).write()))
        return writer.write() + b"".join(writer.buffers)

    def save(self, path):
        path.write_bytes(self.build())
        return path


def of_one(kind, inputs, *results, **options):
    """Return a model of one operator; inputs are (dtype, shape, scale, zero), or (array, scale, zero) of constants."""
    model = Model()
    inputs = [
        one if one is None else (model.input if isinstance(one[0], str) else model.constant)(*one) for one in inputs
    ]
    return model.ending_with(kind, inputs, *results, **options)


def flex(**values):
    """Return custom options as TFLite's converter writes them."""
    builder = flexbuffers.Builder()
    with builder.Map():
        for name, value in values.items():
            if isinstance(value, list):
                builder.VectorFromElements(name, value)
            elif isinstance(value, bool):
                builder.Bool(name, value)
            else:
                builder.Float(name, value) if isinstance(value, float) else builder.Int(name, value)
    return bytes(builder.Finish())


class _Writer:
    """`after`: the position of the buffers behind the tables; None: they are parts of the tables."""

    def __init__(self, model, after=None):
        self.model, self.after = model, after
        self.b = flatbuffers.Builder(1024)
        self.buffers = [b""]
        self.codes = []

    def write(self):
        model = self.model
        graphs = [self.subgraph(one) for one in model.subgraphs]
        metadata = []
        for name, content in model.metadata.items():
            self.buffers.append(content)
            metadata.append(self.table("Metadata", Name=self.text(name), Buffer=len(self.buffers) - 1))
        buffers = []
        place = self.after
        for content in self.buffers:
            if content and place is not None:
                buffers.append(self.table("Buffer", Offset=place, Size=len(content)))
                place += len(content)
            else:
                buffers.append(self.table("Buffer", Data=self.aligned(content) if content else None))
        signatures = [self.signature(*one) for one in model.signatures]
        codes = [self.code(*one) for one in self.codes]
        graphs, codes, buffers, *ends = map(self.vector, (graphs, codes, buffers, metadata, signatures))
        metadata, signatures = ends[0] if metadata else None, ends[1] if signatures else None
        found = self.table(
            "Model", Version=3, Subgraphs=graphs, OperatorCodes=codes, Buffers=buffers,
            Description=self.text(model.description), Metadata=metadata, SignatureDefs=signatures,
        )  # fmt: skip
        self.b.Finish(found, b"TFL3")
        return bytes(self.b.Output())

    def table(self, kind, **fields):
        """Write a table, without the fields that are None."""
        getattr(tflite, f"{kind}Start")(self.b)
        for name, value in fields.items():
            if value is not None:
                getattr(tflite, f"{kind}Add{name}")(self.b, value)
        return getattr(tflite, f"{kind}End")(self.b)

    def vector(self, items):
        self.b.StartVector(4, len(items), 4)
        for one in reversed(items):
            self.b.PrependUOffsetTRelative(one)
        return self.b.EndVector()

    def aligned(self, content):
        self.b.StartVector(1, len(content), 16)
        self.b.head -= len(content)
        self.b.Bytes[self.b.head : self.b.head + len(content)] = content
        return self.b.EndVector()

    def numbers(self, values, dtype=np.int32):
        return None if values is None else self.b.CreateNumpyVector(np.asarray(values, dtype))

    def text(self, words):
        return None if words is None else self.b.CreateString(words)

    def code(self, kind, version):
        number = getattr(tflite.BuiltinOperator, kind, None)
        custom = self.text(kind if number is None else None)
        number = tflite.BuiltinOperator.CUSTOM if number is None else number
        return self.table(
            "OperatorCode", DeprecatedBuiltinCode=min(number, 127), BuiltinCode=number, Version=version,
            CustomCode=custom,
        )  # fmt: skip

    def signature(self, key, inputs, outputs, number):
        tensors = self.model.subgraphs[number].tensors
        ends = []
        for given in (inputs, outputs):
            maps = [
                self.table("TensorMap", Name=self.text(name), TensorIndex=tensors.index(tensor))
                for name, tensor in given.items()
            ]
            ends.append(self.vector(maps))
        key = self.text(key)
        return self.table("SignatureDef", Inputs=ends[0], Outputs=ends[1], SignatureKey=key, SubgraphIndex=number)

    def subgraph(self, graph):
        tensors = self.vector([self.tensor(one) for one in graph.tensors])
        operators = self.vector([self.operator(graph, *one) for one in graph.operators])
        ends = [self.numbers([graph.tensors.index(t) for t in some]) for some in (graph.inputs, graph.outputs)]
        return self.table("SubGraph", Tensors=tensors, Operators=operators, Inputs=ends[0], Outputs=ends[1])

    def tensor(self, made):
        index = 0
        if made.raw is not None or made.content is not None:
            self.buffers.append(made.raw if made.raw is not None else np.ascontiguousarray(made.content).tobytes())
            index = len(self.buffers) - 1
        quantization = None
        if made.scale is not None:
            each = np.atleast_1d(np.asarray(made.scale, np.float32))
            zeros = np.broadcast_to(np.asarray(made.zero, np.int64), each.shape)
            scales, zeros = self.numbers(each, np.float32), self.numbers(zeros, np.int64)
            quantization = self.table(
                "QuantizationParameters", Scale=scales, ZeroPoint=zeros, QuantizedDimension=made.axis
            )
        return self.table(
            "Tensor", Name=self.text(made.name), Shape=self.numbers(made.shape), Type=TYPES[made.dtype], Buffer=index,
            IsVariable=made.variable, ShapeSignature=self.numbers(made.signature), Quantization=quantization,
        )  # fmt: skip

    def operator(self, graph, kind, inputs, outputs, options):
        options = dict(options)
        table = options.pop("options", None) or options_table(kind)
        key = (kind, options.pop("version", 1))
        custom = options.pop("custom", None)
        inner = options.pop("intermediates", None)
        if key not in self.codes:
            self.codes.append(key)
        built = {}
        if table is not None:
            fields = {
                "".join(part[:1].upper() + part[1:] for part in name.split("_")): self.option(name, value)
                for name, value in options.items()
            }
            union = "BuiltinOptions" if hasattr(tflite.BuiltinOptions, table) else "BuiltinOptions2"
            built = {f"{union}Type": getattr(getattr(tflite, union), table), union: self.table(table, **fields)}
        reads, writes, kept = (
            some if some is None else self.numbers([-1 if t is None else graph.tensors.index(t) for t in some])
            for some in (inputs, outputs, inner)
        )
        data = self.b.CreateByteVector(custom) if custom else None
        return self.table(
            "Operator", OpcodeIndex=self.codes.index(key), Inputs=reads, Outputs=writes, Intermediates=kept, **built,
            CustomOptions=data,
        )  # fmt: skip

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
            return TYPES[value] if value in TYPES else self.text(value)
        if isinstance(value, (list, tuple)):
            return self.numbers(value)
        return self.b.CreateByteVector(value) if isinstance(value, bytes) else value


_TABLES = {
    **dict.fromkeys(("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D"), "Pool2DOptions"),
    **dict.fromkeys(("MEAN", "SUM"), "ReducerOptions"),
    **dict.fromkeys((f"REDUCE_{what}" for what in ("MAX", "MIN", "PROD", "ANY", "ALL")), "ReducerOptions"),
    **dict.fromkeys(("MINIMUM", "MAXIMUM"), "MaximumMinimumOptions"),
    "L2_NORMALIZATION": "L2NormOptions",
}
_OTHERS = {name.lower(): name for name in map(str, vars(tflite)) if f"{name}Start" in vars(tflite)}


def options_table(kind):
    """Return the name of the options table of an operator; None if it has none."""
    return _TABLES.get(kind) or _OTHERS.get(f"{kind.replace('_', '')}options".lower())
