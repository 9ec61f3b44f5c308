# SPDX-License-Identifier: Apache-2.0
"""Functions of one element: the rows. Quantised ones on 8 bits are tables of 256 results, computed at import.

Sources in TFLite: kernels/activations.cc, elementwise.cc, exp.cc, neg.cc, sign.cc, floor.cc, ceil.cc, round.cc. The
numbers are in `tables.py` and `rescale.py`. LiteRT's reference kernels have no ELU, CEIL and ROUND; its optimised ones
are the reference.
"""

from __future__ import annotations

from collections.abc import Sequence

from opwest.importers.models.graph.faults import Unsupported
from opwest.importers.models.graph.spec import Operator, Result, same, specify
from opwest.importers.models.graph.types import Node
from opwest.importers.models.operators.fixed_point import one_quantization


def _fixed_scale(node: Node) -> Sequence[Result]:
    """LOGISTIC and int16 TANH have results of one scale."""
    data, result = node.input(0), node.output
    scales = {"int8": (1 / 256, -128), "uint8": (1 / 256, 0), "int16": (1 / 32768, 0)}
    if data.dtype in scales and result.dtype == data.dtype and (node.kind == "LOGISTIC" or data.dtype == "int16"):
        scale, zero = scales[data.dtype]
        found = one_quantization(result)
        if found.scale != scale or (data.dtype == "int16" and found.zero != zero):
            raise Unsupported(
                f"'{result.name}' has the scale {found.scale:g} and the zero point {found.zero}",
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
    Operator("FLOOR", same, ("float32",)),
    Operator("CEIL", same, ("float32",)),
    Operator("ROUND", same, ("float32",)),
    Operator("SIN", same, ("float32",)),
    Operator("COS", same, ("float32",)),
)
SAMPLED = frozenset(("EXP", "LOG", "RSQRT", "GELU"))
"""The int16 functions with a table of samples."""
PLAIN = frozenset(("NEG", "SIGN", "SQUARE", "FLOOR", "CEIL", "ROUND", "SIN", "COS"))
"""The functions that never look at scales."""
