# SPDX-License-Identifier: Apache-2.0
"""Operators that only readers of ONNX make: what TFLite lacks, or rounds in another way.

Sources: onnx/docs/Operators.md; onnxruntime's core/util/qmath.h (GetQuantizationParameter) and
core/mlas/lib/quantize.cpp (MlasQuantizeLinear).
"""

from __future__ import annotations

from collections.abc import Sequence

from opwest.compiler.graph.spec import Operator, Result, specify
from opwest.compiler.graph.types import Node, Unsupported
from opwest.compiler.graph.user import KIND, bind
from opwest.compiler.semantics.layers import window


def _quantize(node: Node) -> Sequence[Result]:
    result = node.output
    if result.dtype not in ("int8", "int16"):
        raise Unsupported(f"result of dtype {result.dtype}", "int8 or int16")
    return [(result.dtype, node.input(0).shape)]


def _lookup(node: Node) -> Sequence[Result]:
    data, table = node.input(0), node.input(1)
    if table.shape != (256,):
        raise Unsupported(f"a table of shape {list(table.shape)}", "[256]")
    return [(table.dtype, data.shape)]


def _convolution(node: Node) -> Sequence[Result]:
    data, weights = node.input(0).shape, node.input(1).shape
    if len(data) != 4 or len(weights) != 4 or data[3] % weights[3] or weights[0] % (data[3] // weights[3]):
        raise Unsupported(f"weights {list(weights)} for data {list(data)}")
    return [("int32", (data[0], *window(node).result, weights[0]))]


def _dense(node: Node) -> Sequence[Result]:
    data, weights = node.input(0).shape, node.input(1).shape
    if len(weights) != 2 or data[-1] != weights[1]:
        raise Unsupported(f"weights {list(weights)} for data {list(data)}")
    return [("int32", (*data[:-1], weights[0]))]


_WINDOW = {"padding": "VALID", "stride_w": 1, "stride_h": 1, "dilation_w_factor": 1, "dilation_h_factor": 1}
specify(
    Operator("ONNX_QUANTIZE", _quantize, ("float32",)),
    Operator("ONNX_LOOKUP", _lookup, ("int8|uint8 int8|uint8",), known=(1,)),
    Operator("ONNX_DYNAMIC_QUANTIZE", lambda node: [("int16", node.input(0).shape), ("float32", ())], ("float32",)),
    Operator("ONNX_CONV_INTEGER", _convolution, ("int8|int16 int8|int16",), _WINDOW, known=(1,)),
    Operator("ONNX_DENSE_INTEGER", _dense, ("int8|int16 int8|int16",), known=(1,)),
)


def zeros_of(node: Node) -> tuple[int, int]:
    """Return the zero points of the data and the weights of an integer layer."""
    data, weights = node.input(0).quantization, node.input(1).quantization
    return (0 if data is None or node.input(0).dtype == "int16" else data.zero, 0 if weights is None else weights.zero)


specify(
    Operator(
        KIND, lambda node: [(argument.dtype, shape) for argument, _, shape in bind(node).writes], options={"use": None}
    )
)
