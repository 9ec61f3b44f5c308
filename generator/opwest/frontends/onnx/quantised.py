# SPDX-License-Identifier: Apache-2.0
"""QuantizeLinear, DequantizeLinear and integer layers whose scale is computed when the model runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from opwest.compiler.graph.types import Quantization, Tensor, Unsupported
from opwest.frontends.onnx.elements import arithmetic
from opwest.frontends.onnx.translation import (
    Constant,
    StoredTensor,
    Translation,
    channels_last,
    identity,
    int8_of,
    parameters,
    permuted,
    translates,
)
from opwest.frontends.onnx.values import Op
from opwest.frontends.onnx.windows import image_padding, planar, planes, stretched

Expand = Callable[["Expansion"], None]
_EXPANSIONS: dict[str, Expand] = {}


class Expansion:
    """The nodes that replace one node."""

    def __init__(self, node: Any, number: int) -> None:
        self.node = node
        self.inputs = list(node.input)
        self.nodes: list[Any] = []
        self._prefix = f"{node.output[0]}/{number}"

    def name(self, number: int) -> str:
        """Return an input; empty if it is absent."""
        return self.inputs[number] if number < len(self.inputs) else ""

    def add(self, kind: str, inputs: list[str], output: str | None = None, **attributes: Any) -> str:
        """Add a node of the domain ai.onnx; return its result."""
        import onnx

        output = output or f"{self._prefix}/{len(self.nodes)}"
        made = onnx.helper.make_node(kind, inputs, [output], name=self.node.name, **attributes)
        self.nodes.append(made)
        return output

    def real(self, at: int, axis: int = 1) -> str:
        """Return the real values of three inputs: integers, scale, zero point."""
        given = [one for one in (self.name(at), self.name(at + 1), self.name(at + 2)) if one]
        return self.add("DequantizeLinear", given, axis=axis)

    def finish(self, real: str, at: int) -> None:
        """Quantise the result with the scale and the zero point of two inputs."""
        given = [one for one in (real, self.name(at), self.name(at + 1)) if one]
        self.add("QuantizeLinear", given, self.node.output[0])

    def kept(self, kind: str, inputs: list[str], *without: str) -> str:
        """Add the float operator with the attributes of the node."""
        result = self.add(kind, inputs)
        self.nodes[-1].attribute.extend(attribute for attribute in self.node.attribute if attribute.name not in without)
        return result

    def bias(self, at: int) -> list[str]:
        """Return the real values of a bias: its scale is the product of those of data and weights."""
        if not self.name(at):
            return []
        scale = self.add("Mul", [self.name(1), self.name(4)])
        return [self.add("DequantizeLinear", [self.name(at), scale], axis=0)]

    def attribute(self, name: str, default: Any) -> Any:
        """Return an attribute of the node."""
        import onnx

        proto = next((attribute for attribute in self.node.attribute if attribute.name == name), None)
        return default if proto is None else onnx.helper.get_attribute_value(proto)


def expand(node: Any, number: int) -> Iterator[Any]:
    """Yield the nodes that replace a quantised node, or the node itself."""
    function = _EXPANSIONS.get(node.op_type)
    if function is None or not node.output or not node.output[0]:
        yield node
        return
    expansion = Expansion(node, number)
    function(expansion)
    yield from expansion.nodes


def _expands(*kinds: str) -> Callable[[Expand], Expand]:
    def register(function: Expand) -> Expand:
        _EXPANSIONS.update((kind, function) for kind in kinds)
        return function

    return register


@_expands("QLinearConv")
def _convolution(e: Expansion) -> None:
    data, weights = e.real(0), e.real(3, axis=0)
    e.finish(e.kept("Conv", [data, weights, *e.bias(8)]), 6)


@_expands("QLinearMatMul")
def _product(e: Expansion) -> None:
    e.finish(e.add("MatMul", [e.real(0), e.real(3, axis=-1)]), 6)


@_expands("QGemm")
def _gemm(e: Expansion) -> None:
    weights = e.real(3, axis=0 if e.attribute("transB", 0) else 1)
    data = e.real(0)
    result = e.kept("Gemm", [data, weights, *e.bias(6)])
    if e.name(7):
        e.finish(result, 7)
    else:
        e.nodes[-1].output[0] = e.node.output[0]


@_expands("QLinearAdd", "QLinearMul")
def _binary(e: Expansion) -> None:
    e.finish(e.add(e.node.op_type.removeprefix("QLinear"), [e.real(0), e.real(3)]), 6)


@_expands(
    *("QLinearSigmoid", "QLinearLeakyRelu", "QLinearSoftmax"),
    *("QLinearReduceMean", "QLinearAveragePool", "QLinearGlobalAveragePool"),
)
def _one(e: Expansion) -> None:
    if e.attribute("channels_last", 0):
        e.nodes.append(e.node)
        return
    e.finish(e.kept(e.node.op_type.removeprefix("QLinear"), [e.real(0)], "channels_last", "opset"), 3)


@_expands("QLinearConcat")
def _concatenation(e: Expansion) -> None:
    parts = [e.real(at) for at in range(2, len(e.inputs), 3)]
    e.finish(e.kept("Concat", parts), 0)


@_expands("QLinearWhere")
def _where(e: Expansion) -> None:
    e.finish(e.add("Where", [e.name(0), e.real(1), e.real(4)]), 7)


@translates("DequantizeLinear")
def dequantise(op: Op, t: Translation) -> None:
    """8-bit data with one scale remains int8; constants remain integers; other data becomes float32 here."""
    data, result = op.input(0), op.output
    constants = parameters(op)
    if constants is None:
        raise Unsupported("a scale or a zero point that is computed when the model runs, or block_size", "constants")
    scales, zeros = constants
    axis = None
    if len(scales) > 1:
        axis = int(op.get("axis", 1))
        if data.rank == 1 and not -1 <= axis < 1:
            axis = 0
        if not -data.rank <= axis < data.rank or data.known[axis] != len(scales):
            raise Unsupported(f"{len(scales)} scales along dimension {axis} of {list(data.known)}")
        axis %= data.rank
    if data.content is not None:
        t.fixed[result] = Constant(data.content, scales, zeros, axis)
        return
    quantization = int8_of(op)
    if quantization is not None:
        t.real[result] = t.as_int8(data, quantization)
        if data in t.columns:
            t.columns[result] = t.columns[data]
        return
    held = t.stored(data)
    shape = [1] * data.rank
    if axis is not None:
        shape[axis] = -1
    wide = held.tensor.shape
    real = t.emit("CAST", [held.tensor], wide)
    if zeros.any():
        zero = np.transpose(zeros.astype(np.float32).reshape(shape), held.order)
        real = arithmetic(t, "SUB", real, t.constant(zero, "zero"))
    t.put(
        result,
        arithmetic(t, "MUL", real, t.constant(np.transpose(scales.reshape(shape), held.order), "scale")),
        held.order,
    )


@translates("QuantizeLinear")
def quantise(op: Op, t: Translation) -> None:
    """From int8 with another scale by a table; from float32 rounded half to even."""
    data, result = op.input(0), op.output
    quantization = int8_of(op)
    if quantization is None:
        constants = parameters(op)
        if constants is None or len(constants[0]) != 1 or result.dtype != "int16":
            raise Unsupported(
                f"QuantizeLinear to {result.dtype} with {op.input(1).size} scales", "8 bits and one scale"
            )
        quantization = Quantization((float(constants[0][0]),), (int(constants[1][0]),))
        held = t.stored(data)
        t.put(result, t.emit("ONNX_QUANTIZE", [held.tensor], held.tensor.shape, "int16", quantization), held.order)
        return
    if data in t.columns:
        t.columns[result] = t.columns[data]
    if data in t.real:
        held = t.real[data]
        t.eight[result] = StoredTensor(t.requantised(held.tensor, quantization), held.order)
        return
    held = t.stored(data)
    t.eight[result] = StoredTensor(
        t.emit("ONNX_QUANTIZE", [held.tensor], held.tensor.shape, "int8", quantization, result.name), held.order
    )


@translates("DynamicQuantizeLinear")
def dynamic(op: Op, t: Translation) -> None:
    """Only integer layers read the integers: they get them without the zero point, as int16."""
    data = op.input(0)
    values, scale, zero = op.outputs[0], op.outputs[1], op.outputs[2]
    for item in (values, zero):
        readers = t.readers.get(item, []) if item is not None else []
        if item in t.outputs or any(reader.kind not in ("MatMulInteger", "ConvInteger") for reader in readers):
            raise Unsupported("an operator other than MatMulInteger and ConvInteger reads the result")
    assert values is not None and scale is not None
    held = t.stored(data)
    centred = Tensor(values.name, "int16", held.tensor.shape)
    factor = Tensor(scale.name, "float32", ())
    t.append("ONNX_DYNAMIC_QUANTIZE", [held.tensor], [centred, factor], {})
    t.centred[values] = StoredTensor(centred, held.order)
    t.put(scale, factor)


def centred_weights(content: Any, zeros: Any, axis: int) -> tuple[Any, int]:
    """Return weights and their zero point: int8, or int16 without zero points if they differ along `axis`."""
    zeros = np.asarray(zeros).reshape(-1).astype(np.int64)
    if len(set(zeros.tolist())) == 1:
        move = 128 if content.dtype == np.uint8 else 0
        return (content.astype(np.int16) - move).astype(np.int8), int(zeros[0]) - move
    shape = [1] * content.ndim
    shape[axis] = -1
    return (content.astype(np.int64) - zeros.reshape(shape)).astype(np.int16), 0


def _operands(op: Op, t: Translation, axis: int) -> tuple[StoredTensor, Any, int]:
    """Return data without or with a constant zero point, weights with results along `axis`, their zero point."""
    data, item, zero = op.input(0), op.input(1), op.optional(2)
    if item.content is None:
        raise Unsupported(f"the weights '{item.name}' are computed when the model runs", "constants")
    offsets = op.constant(3)
    content, weight_zero = centred_weights(item.content, 0 if offsets is None else offsets, axis)
    if data in t.centred:
        return t.centred[data], content, weight_zero
    if zero is not None and (zero.content is None or zero.size != 1):
        raise Unsupported(f"the zero point '{zero.name}' is computed when the model runs", "a constant")
    value = 0 if zero is None else int(np.asarray(zero.content).reshape(-1)[0])
    quantization = Quantization((1.0,), (value - (128 if data.dtype == "uint8" else 0),))
    return t.as_int8(data, quantization), content, weight_zero


@translates("MatMulInteger")
def integer_product(op: Op, t: Translation) -> None:
    """int32 sums."""
    held, content, zero = _operands(op, t, 1 if op.input(1).rank > 1 else 0)
    if op.input(0).rank < 2:
        raise Unsupported(f"data {list(op.input(0).known)}", "data [...,k]")
    source = t.ordered(held, identity(op.input(0).rank))
    content = content.reshape(len(content), -1)
    weights = t.constant(content.T, "weights", Quantization((1.0,), (zero,)))
    sums = t.emit("ONNX_DENSE_INTEGER", [source, weights], (*source.shape[:-1], content.shape[1]), "int32")
    t.put(op.output, t.reshape(sums, op.output.known))


@translates("ConvInteger")
def integer_convolution(op: Op, t: Translation) -> None:
    """int32 sums; padding is the zero point of the data."""
    held, content, zero = _operands(op, t, 0)
    data = op.input(0)
    if data.rank not in (3, 4, 5) or content.ndim != data.rank:
        raise Unsupported(f"data {list(data.known)}, weights {list(content.shape)}", "3 to 5 dimensions each")
    order = channels_last(data.rank)
    image, source = data.known[2:], op
    if data.rank == 5:
        flat = planar(op, data.known, content)
        source, content, order, image = flat.op, flat.content, flat.order, flat.image[1:3]
    options = image_padding(source, image, content.shape[2:])
    options.pop("ceil")
    kernel = content if content.ndim == 4 else content[:, :, None, :]
    kernel = np.transpose(kernel, (0, 2, 3, 1))
    out = permuted(op.output.known, order)
    shape = {3: (out[0], 1, *out[1:]), 4: out}.get(data.rank) or planes(out, order)
    weights = t.constant(kernel, "weights", Quantization((1.0,), (zero,)))
    given = t.ordered(held, order)
    given = t.reshape(given, flat.image) if data.rank == 5 else stretched(t, given)
    sums = t.emit("ONNX_CONV_INTEGER", [given, weights], shape, "int32", **options)
    t.put(op.output, t.reshape(sums, out), order)
