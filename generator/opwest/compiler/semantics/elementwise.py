# SPDX-License-Identifier: Apache-2.0
"""Functions of one element: the rows. Quantised ones on 8 bits are tables of 256 results, computed at import.

Sources in TFLite: kernels/activations.cc, elementwise.cc, exp.cc, neg.cc, sign.cc, floor.cc, ceil.cc, round.cc. The
numbers are in `tables.py`. LiteRT's reference kernels have no ELU, CEIL and ROUND; its optimised ones
are the reference.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.base.result import counted
from opwest.compiler.graph.spec import Operator, Result, broadcast_inputs, same, specify
from opwest.compiler.graph.types import Node, Shape, Tensor, Unsupported
from opwest.compiler.semantics.fixed_point import RANGES, Multiplier, float32, one_quantization, quantize_multiplier


def _fixed_scale(node: Node) -> Sequence[Result]:
    """LOGISTIC and int16 TANH have results of one scale."""
    data, result = node.input(0), node.output
    scales = {"int8": (1 / 256, -128), "uint8": (1 / 256, 0), "int16": (1 / 32768, 0)}
    if data.dtype in scales and result.dtype == data.dtype and (node.kind == "LOGISTIC" or data.dtype == "int16"):
        scale, zero = scales[data.dtype]
        quantization = one_quantization(result)
        if quantization.scale != scale or (data.dtype == "int16" and quantization.zero != zero):
            raise Unsupported(
                f"'{result.name}' has the scale {quantization.scale:g} and the zero point {quantization.zero}",
                f"{scale:g} and {zero}",
            )
    return [(data.dtype, data.shape)]


_BYTES = ("int8", "uint8")
_QUANTISED = (*_BYTES, "int16")
specify(
    Operator("LOGISTIC", _fixed_scale, ("float32", *_QUANTISED)),
    Operator("TANH", _fixed_scale, ("float32", *_QUANTISED)),
    Operator("HARD_SWISH", same, ("float32", *_BYTES)),
    Operator("RELU", same, ("float32", *_QUANTISED)),
    Operator("RELU6", same, ("float32", *_QUANTISED)),
    Operator("RELU_N1_TO_1", same, ("float32", *_BYTES)),
    Operator("RELU_0_TO_1", same, ("float32", *_BYTES)),
    Operator("LEAKY_RELU", same, ("float32", *_QUANTISED), {"alpha": 0.0}),
    Operator("ELU", same, ("float32", "int8")),
    Operator("GELU", same, ("float32", *_QUANTISED), {"approximate": False}),
    Operator("EXP", same, ("float32", "int8", "int16")),
    Operator("LOG", same, ("float32", "int8", "int16")),
    Operator("SQRT", same, ("float32", "int8", "int16")),
    Operator("RSQRT", same, ("float32", "int8", "int16")),
    Operator("ABS", same, ("float32", "int8", "int16", "int32")),
    Operator("NEG", same, ("float32", "int8", "int16", "int32", "int64")),
    Operator("SIGN", same, ("float32", "int32")),
    Operator("SQUARE", same, ("float32",)),
)
SAMPLED = frozenset(("EXP", "LOG", "RSQRT", "GELU"))
"""The int16 functions with a table of samples."""
PLAIN = frozenset(("NEG", "SIGN", "SQUARE"))
"""The functions that never look at scales."""


COMPARISONS = {"EQUAL": "==", "NOT_EQUAL": "!=", "GREATER": ">", "GREATER_EQUAL": ">=", "LESS": "<", "LESS_EQUAL": "<="}
"""The operators of C."""
LEFT_SHIFT = 8
"""The places that quantised inputs are shifted to the left before their multiplications."""


def _compare(node: Node) -> Sequence[Result]:
    [(_, shape)] = broadcast_inputs(node)
    return [("bool", shape)]


def _select(node: Node) -> Sequence[Result]:
    """The condition has the shape of the others, is one element, or one element for each slice of dimension 0."""
    condition, one, other = (node.input(i).shape for i in range(3))
    if one != other:
        raise Unsupported(f"shapes {list(one)} and {list(other)}", "equal shapes")
    if condition not in (one, ()) and condition != one[:1]:
        raise Unsupported(f"condition {list(condition)} for {list(one)}", f"{list(one)}, [] or {list(one[:1])}")
    return [(node.input(1).dtype, one)]


def _select_broadcast(node: Node) -> Sequence[Result]:
    [(_, shape)] = broadcast_inputs(node)
    return [(node.input(1).dtype, shape)]


_NUMBERS = ("float32", "int8", "uint8", "int16", "int32", "int64")
_BOOL = {"EQUAL": ("bool",), "NOT_EQUAL": ("bool",)}
_VALUES = (*_NUMBERS, "uint16", "uint32", "bool")
specify(
    *(Operator(kind, _compare, tuple(f"{d} {d}" for d in (*_NUMBERS, *_BOOL.get(kind, ())))) for kind in COMPARISONS),
    Operator("LOGICAL_AND", _compare, ("bool bool",)),
    Operator("LOGICAL_OR", _compare, ("bool bool",)),
    Operator("LOGICAL_NOT", same, ("bool",)),
    Operator("SELECT", _select, tuple(f"bool {d} {d}" for d in _VALUES)),
    Operator("SELECT_V2", _select_broadcast, tuple(f"bool {d} {d}" for d in _VALUES)),
)


@dataclass(frozen=True)
class CompareNumbers:
    """The numbers of a comparison of quantised values: each is scaled with two roundings."""

    zeros: tuple[int, int]
    multipliers: tuple[Multiplier, Multiplier]


def compare_numbers(node: Node) -> CompareNumbers | None:
    """Return the numbers; None: the stored values are compared, as those of int16 in the comparisons of order."""
    tensor, other = node.input(0), node.input(1)
    is_order = node.kind not in ("EQUAL", "NOT_EQUAL")
    if tensor.dtype not in ("int8", "uint8", "int16") or (
        tensor.dtype == "int16" and (is_order or tensor.quantization is None or other.quantization is None)
    ):
        return None
    first, second = one_quantization(tensor), one_quantization(other)
    return CompareNumbers(
        (first.zero, second.zero), (quantize_multiplier(first.scale), quantize_multiplier(second.scale))
    )


def condition_shape(node: Node) -> tuple[int, ...]:
    """Return the shape of SELECT's condition for broadcasting: one element per slice of dimension 0."""
    condition, values = node.input(0).shape, node.input(1).shape
    if condition == values or not condition:
        return condition
    return (*condition, *(1,) * (len(values) - 1))


_TARGETS = {
    "float32": ("int8", "uint8", "int16"),
    "int8": ("int8", "uint8", "int16", "int32"),
    "uint8": ("int8", "uint8", "int16"),
    "int16": ("int8", "int16", "int32"),
    "int32": ("int8", "int16"),
}
"""The dtypes of results of QUANTIZE by those of inputs; int8 to int32 exists in tflite-micro only."""
CAST_DTYPES = (
    "float32", "float64", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "bool",
)  # fmt: skip


def _quantize(node: Node) -> Sequence[Result]:
    data, result = node.input(0), node.output
    targets = _TARGETS[data.dtype]
    if result.dtype not in targets:
        raise Unsupported(f"{data.dtype} to {result.dtype}", f"{data.dtype} to {'/'.join(targets)}")
    if is_quantised_each(node):
        if data.dtype != "float32":
            raise Unsupported(f"'{result.name}' has several scales, with {data.dtype} data", "float32 data")
        each_of(result, data.shape)
    return [(result.dtype, data.shape)]


def is_quantised_each(node: Node) -> bool:
    """Whether the result of QUANTIZE has a scale for each slice."""
    quantization = node.output.quantization
    return quantization is not None and quantization.axis is not None


def each_of(tensor: Tensor, shape: Shape) -> tuple[Any, Any]:
    """Return scales and zero points of a tensor with one of each per slice, to be broadcast to its shape."""
    quantization = tensor.quantization
    assert quantization is not None and quantization.axis is not None
    if quantization.axis >= len(shape) or shape[quantization.axis] != len(quantization.scales):
        raise Unsupported(
            f"{counted(len(quantization.scales), 'scale')} along dimension {quantization.axis} of {list(shape)}"
        )
    broadcast = tuple(n if i == quantization.axis else 1 for i, n in enumerate(shape))
    scales, zeros = np.asarray(quantization.scales, np.float32), np.asarray(quantization.zeros, np.int32)
    return scales.reshape(broadcast), zeros.reshape(broadcast)


def _dequantize(node: Node) -> Sequence[Result]:
    quantization = node.input(0).quantization
    if quantization is not None and quantization.axis is not None and node.input(0).dtype not in ("int8", "uint8"):
        raise Unsupported(f"'{node.input(0).name}' is {node.input(0).dtype} with several scales", "int8 or uint8")
    return [("float32", node.input(0).shape)]


def _cast(node: Node) -> Sequence[Result]:
    data, result = node.input(0), node.output
    if result.dtype not in CAST_DTYPES:
        raise Unsupported(f"{data.dtype} to {result.dtype}", f"{data.dtype} to {'/'.join(CAST_DTYPES)}")
    return [(result.dtype, data.shape)]


def _onnx_quantize(node: Node) -> Sequence[Result]:
    if node.output.dtype not in ("int8", "int16"):
        raise Unsupported(f"result of dtype {node.output.dtype}", "int8 or int16")
    return [(node.output.dtype, node.input(0).shape)]


def _onnx_lookup(node: Node) -> Sequence[Result]:
    data, table = node.input(0), node.input(1)
    if table.shape != (256,):
        raise Unsupported(f"a table of shape {list(table.shape)}", "[256]")
    return [(table.dtype, data.shape)]


specify(
    Operator("QUANTIZE", _quantize, tuple(_TARGETS)),
    # float16 constants are float32 here.
    Operator("DEQUANTIZE", _dequantize, ("int8", "uint8", "int16", "float32")),
    Operator("CAST", _cast, CAST_DTYPES),
    # Operators that only readers of ONNX make. Sources: onnx/docs/Operators.md; onnxruntime's core/util/qmath.h
    # (GetQuantizationParameter) and core/mlas/lib/quantize.cpp (MlasQuantizeLinear).
    Operator("ONNX_QUANTIZE", _onnx_quantize, ("float32",), {"by_inverse": False}),
    Operator("ONNX_LOOKUP", _onnx_lookup, ("int8|uint8 int8|uint8",), known=(1,)),
    Operator("ONNX_DYNAMIC_QUANTIZE", lambda node: [("int16", node.input(0).shape), ("float32", ())], ("float32",)),
)


@dataclass(frozen=True)
class QuantizeNumbers:
    """The numbers of QUANTIZE with a float32 input."""

    scale: float
    zero: int
    low: int
    high: int
    by_inverse: bool = False
    """PyTorch: a product with the inverse of the scale instead of a division."""

    @property
    def inverse(self) -> float:
        """The inverse of the scale as float32."""
        return float32(1 / self.scale)


def quantize_numbers(node: Node) -> QuantizeNumbers:
    """Return the numbers: zero + number / scale, rounded to nearest with halves away from zero, clamped."""
    target = one_quantization(node.output)
    by_inverse = bool(node.options.get("by_inverse", False))
    return QuantizeNumbers(target.scale, target.zero, *RANGES[node.output.dtype], by_inverse)
