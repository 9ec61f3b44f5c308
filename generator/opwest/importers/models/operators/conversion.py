# SPDX-License-Identifier: Apache-2.0
"""Conversions between dtypes.

Sources in TFLite: kernels/quantize.cc, dequantize.cc, cast.cc, internal/reference/quantize.h.
QUANTIZE of float32 clamps every number; LiteRT's result is undefined where number / scale does not fit in int32.
"""

from __future__ import annotations

from collections.abc import Sequence

from opwest.importers.models.graph.faults import Unsupported
from opwest.importers.models.graph.spec import Operator, Result, specify
from opwest.importers.models.graph.types import Node
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
    return [(result.dtype, data.shape)]


def _dequantize(node: Node) -> Sequence[Result]:
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
