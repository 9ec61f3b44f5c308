# SPDX-License-Identifier: Apache-2.0
"""Conversions between dtypes.

Sources in TFLite: kernels/quantize.cc, dequantize.cc, cast.cc, internal/reference/quantize.h.
QUANTIZE of float32 clamps every number; LiteRT's result is undefined where number / scale does not fit in int32.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opwest.importers.models.graph.faults import Unsupported
from opwest.importers.models.graph.spec import Operator, Result, specify
from opwest.importers.models.graph.types import Node, Shape, Tensor
from opwest.importers.models.operators.fixed_point import RANGES, one_quantization
from opwest.records import dataclass

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
    found = node.output.quantization
    return found is not None and found.axis is not None


def each_of(tensor: Tensor, shape: Shape) -> tuple[Any, Any]:
    """Return scales and zero points of a tensor with one of each per slice, to be broadcast to its shape."""
    found = tensor.quantization
    assert found is not None and found.axis is not None
    if found.axis >= len(shape) or shape[found.axis] != len(found.scales):
        raise Unsupported(f"{len(found.scales)} scales along dimension {found.axis} of {list(shape)}")
    broadcast = tuple(n if i == found.axis else 1 for i, n in enumerate(shape))
    return np.asarray(found.scales, np.float32).reshape(broadcast), np.asarray(found.zeros, np.int32).reshape(broadcast)


def _dequantize(node: Node) -> Sequence[Result]:
    found = node.input(0).quantization
    if found is not None and found.axis is not None and node.input(0).dtype not in ("int8", "uint8"):
        raise Unsupported(f"'{node.input(0).name}' is {node.input(0).dtype} with several scales", "int8 or uint8")
    return [("float32", node.input(0).shape)]


def _cast(node: Node) -> Sequence[Result]:
    data, result = node.input(0), node.output
    if result.dtype not in CAST_DTYPES:
        raise Unsupported(f"{data.dtype} to {result.dtype}", f"{data.dtype} to {'/'.join(CAST_DTYPES)}")
    return [(result.dtype, data.shape)]


specify(
    Operator("QUANTIZE", _quantize, tuple(_TARGETS)),
    # float16 constants are float32 here.
    Operator("DEQUANTIZE", _dequantize, ("int8", "uint8", "int16", "float32")),
    Operator("CAST", _cast, CAST_DTYPES),
)


@dataclass(frozen=True)
class QuantizeNumbers:
    """The numbers of QUANTIZE with a float32 input."""

    scale: float
    zero: int
    low: int
    high: int


def quantize_numbers(node: Node) -> QuantizeNumbers:
    """Return the numbers: zero + number / scale, rounded to nearest with halves away from zero, clamped."""
    target = one_quantization(node.output)
    return QuantizeNumbers(target.scale, target.zero, *RANGES[node.output.dtype])
