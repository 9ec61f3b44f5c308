# SPDX-License-Identifier: Apache-2.0
"""QuantizeLinear, DequantizeLinear and integer layers whose scale is computed when the model runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from opwest.base.result import counted
from opwest.compiler.graph.types import Quantization, Tensor, Unsupported
from opwest.frontends.onnx.elements import arithmetic
from opwest.frontends.onnx.file import attributes_of
from opwest.frontends.onnx.translation import (
    Constant,
    StoredTensor,
    Translation,
    as_signed,
    identity,
    int8_of,
    parameters,
    permuted,
    translates,
)
from opwest.frontends.onnx.values import Op
from opwest.frontends.onnx.windows import planar


class _Expansion:
    """The nodes that replace one node."""

    def __init__(self, node: Any, number: int) -> None:
        self.node = node
        self.nodes: list[Any] = []
        self._prefix = f"{node.output[0]}/{number}"

    def names(self, first: int, count: int) -> list[str]:
        """Return the inputs from a place on that are not absent."""
        return [name for name in self.node.input[first : first + count] if name]

    def add(self, kind: str, inputs: list[str], output: str | None = None, **attributes: Any) -> str:
        """Add a node of the domain ai.onnx; return its result."""
        import onnx

        output = output or f"{self._prefix}/{len(self.nodes)}"
        made = onnx.helper.make_node(kind, inputs, [output], name=self.node.name, **attributes)
        self.nodes.append(made)
        return output

    def real(self, first: int, axis: int = 1) -> str:
        """Return the real values of three inputs: integers, scale, zero point."""
        return self.add("DequantizeLinear", self.names(first, 3), axis=axis)

    def bias(self, place: int) -> list[str]:
        """Return the real values of a bias: its scale is the product of those of data and weights."""
        if not self.names(place, 1):
            return []
        scale = self.add("Mul", [self.node.input[1], self.node.input[4]])
        return [self.add("DequantizeLinear", [self.node.input[place], scale], axis=0)]

    def finish(self, kind: str, inputs: list[str], place: int) -> None:
        """Add the float operator with the attributes of the node; the scale of the result is the input at `place`."""
        parameters = self.names(place, 2)
        is_float = kind == "Gemm" and not parameters
        real = self.add(kind, inputs, self.node.output[0] if is_float else None)
        kept = (attribute for attribute in self.node.attribute if attribute.name not in ("channels_last", "opset"))
        self.nodes[-1].attribute.extend(kept)
        if not is_float:
            self.add("QuantizeLinear", [real, *parameters], self.node.output[0])


_ONE, _TWO = ((0, 1),), ((0, 1), (3, 1))
_EXPANDED = {
    "QLinearConv": (((0, 1), (3, 0)), 8, 6),
    "QLinearMatMul": (((0, 1), (3, -1)), None, 6),
    "QLinearAdd": (_TWO, None, 6),
    "QLinearMul": (_TWO, None, 6),
    "QLinearSigmoid": (_ONE, None, 3),
    "QLinearLeakyRelu": (_ONE, None, 3),
    "QLinearSoftmax": (_ONE, None, 3),
    "QLinearReduceMean": (_ONE, None, 3),
    "QLinearAveragePool": (_ONE, None, 3),
    "QLinearGlobalAveragePool": (_ONE, None, 3),
}
"""The first inputs of the operands and the axes of their scales, the bias, the scale of the result."""


def expand(node: Any, number: int) -> Iterator[Any]:
    """Yield the nodes that replace a quantised node, or the node itself."""
    is_known = node.op_type in (*_EXPANDED, "QGemm", "QLinearConcat", "QLinearWhere")
    attributes = attributes_of(node) if is_known else {}
    if not is_known or not node.output or not node.output[0] or attributes.get("channels_last", 0):
        yield node
        return
    expansion = _Expansion(node, number)
    real = expansion.real
    if node.op_type == "QGemm":
        weights = real(3, 0 if attributes.get("transB", 0) else 1)
        expansion.finish("Gemm", [real(0), weights, *expansion.bias(6)], 7)
    elif node.op_type == "QLinearConcat":
        expansion.finish("Concat", [real(first) for first in range(2, len(node.input), 3)], 0)
    elif node.op_type == "QLinearWhere":
        expansion.finish("Where", [*expansion.names(0, 1), real(1), real(4)], 7)
    else:
        operands, bias, result = _EXPANDED[node.op_type]
        inputs = [real(first, axis) for first, axis in operands]
        inputs += [] if bias is None else expansion.bias(bias)
        expansion.finish(node.op_type.removeprefix("QLinear"), inputs, result)
    yield from expansion.nodes


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
            raise Unsupported(f"{counted(len(scales), 'scale')} along dimension {axis} of {list(data.known)}")
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
    real = t.emit("CAST", [held.tensor], held.tensor.shape)
    if zeros.any():
        zero = np.transpose(zeros.astype(np.float32).reshape(shape), held.order)
        real = arithmetic(t, "SUB", real, t.constant(zero, "zero"))
    scale = t.constant(np.transpose(scales.reshape(shape), held.order), "scale")
    t.put(result, arithmetic(t, "MUL", real, scale), held.order)


@translates("QuantizeLinear")
def quantise(op: Op, t: Translation) -> None:
    """From int8 with another scale by a table; from float32 rounded half to even."""
    data, result = op.input(0), op.output
    quantization = int8_of(op)
    if quantization is None:
        constants = parameters(op)
        if constants is None or len(constants[0]) != 1 or result.dtype != "int16":
            raise Unsupported(
                f"QuantizeLinear to {result.dtype} with {counted(op.input(1).size, 'scale')}", "8 bits and one scale"
            )
        quantization = Quantization((float(constants[0][0]),), (int(constants[1][0]),))
        held = t.stored(data)
        t.put(result, t.rounded(held.tensor, "int16", quantization), held.order)
        return
    if data in t.columns:
        t.columns[result] = t.columns[data]
    if data in t.real:
        held = t.real[data]
        tensor = t.requantised(held.tensor, quantization)
    else:
        held = t.stored(data)
        tensor = t.rounded(held.tensor, "int8", quantization, result.name)
    t.eight[result] = StoredTensor(tensor, held.order)


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
        content, zeros = as_signed(content, zeros)
        return content, int(zeros[0])
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
    form = planar(op, content)
    out = permuted(op.output.known, form.order)
    weights = t.constant(np.transpose(form.kernel, (0, 2, 3, 1)), "weights", Quantization((1.0,), (zero,)))
    source = t.reshape(t.ordered(held, form.order), form.image)
    sums = t.emit("ONNX_CONV_INTEGER", [source, weights], form.planes(out), "int32", **form.options)
    t.put(op.output, t.reshape(sums, out), form.order)
