# SPDX-License-Identifier: Apache-2.0
"""Quantised operators as a float operator between DequantizeLinear and QuantizeLinear, so that one form remains.

Source: onnxruntime's docs/ContribOperators.md (com.microsoft) and onnx/docs/Operators.md (QLinearConv, QLinearMatMul).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

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
        self.nodes[-1].attribute.extend(one for one in self.node.attribute if one.name not in without)
        return result

    def attribute(self, name: str, default: Any) -> Any:
        """Return an attribute of the node."""
        import onnx

        found = next((one for one in self.node.attribute if one.name == name), None)
        return default if found is None else onnx.helper.get_attribute_value(found)


def expand(node: Any, number: int) -> Iterator[Any]:
    """Yield the nodes that replace a quantised node, or the node itself."""
    found = _EXPANSIONS.get(node.op_type)
    if found is None or not node.output or not node.output[0]:
        yield node
        return
    expansion = Expansion(node, number)
    found(expansion)
    yield from expansion.nodes


def _expands(*kinds: str) -> Callable[[Expand], Expand]:
    def register(function: Expand) -> Expand:
        _EXPANSIONS.update((kind, function) for kind in kinds)
        return function

    return register


@_expands("QLinearConv")
def _convolution(e: Expansion) -> None:
    data, weights = e.real(0), e.real(3, axis=0)
    bias = []
    if e.name(8):
        scale = e.add("Mul", [e.name(1), e.name(4)])
        bias = [e.add("DequantizeLinear", [e.name(8), scale], axis=0)]
    e.finish(e.kept("Conv", [data, weights, *bias]), 6)


@_expands("QLinearMatMul")
def _product(e: Expansion) -> None:
    e.finish(e.add("MatMul", [e.real(0), e.real(3, axis=-1)]), 6)


@_expands("QGemm")
def _gemm(e: Expansion) -> None:
    weights = e.real(3, axis=0 if e.attribute("transB", 0) else 1)
    data = e.real(0)
    bias = []
    if e.name(6):
        scale = e.add("Mul", [e.name(1), e.name(4)])
        bias = [e.add("DequantizeLinear", [e.name(6), scale], axis=0)]
    result = e.kept("Gemm", [data, weights, *bias])
    if e.name(7):
        e.finish(result, 7)
    else:
        e.nodes[-1].output[0] = e.node.output[0]


@_expands("QLinearAdd", "QLinearMul")
def _binary(e: Expansion) -> None:
    e.finish(e.add(e.node.op_type.removeprefix("QLinear"), [e.real(0), e.real(3)]), 6)


@_expands("QLinearSigmoid", "QLinearLeakyRelu", "QLinearSoftmax", "QLinearAveragePool", "QLinearGlobalAveragePool")
def _one(e: Expansion) -> None:
    if e.attribute("channels_last", 0):
        e.nodes.append(e.node)
        return
    e.finish(e.kept(e.node.op_type.removeprefix("QLinear"), [e.real(0)], "channels_last", "opset"), 3)


@_expands("QLinearReduceMean")
def _mean(e: Expansion) -> None:
    e.finish(e.kept("ReduceMean", [e.real(0)]), 3)


@_expands("QLinearConcat")
def _concatenation(e: Expansion) -> None:
    parts = [e.real(at) for at in range(2, len(e.inputs), 3)]
    e.finish(e.kept("Concat", parts), 0)


@_expands("QLinearWhere")
def _where(e: Expansion) -> None:
    e.finish(e.add("Where", [e.name(0), e.real(1), e.real(4)]), 7)
