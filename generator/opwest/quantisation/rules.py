# SPDX-License-Identifier: Apache-2.0
"""Which operators have integer forms, and where the scales of their results come from: one row for each kind.

Source: TFLite's quantisation specification (int8 activations with a zero point, int16 ones without; weights of int8
from -127 to 127 without a zero point), and the dtypes of the rows in compiler/semantics/.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.graph.types import Node

Precision = Literal["int8", "int16x8", "float"]
"""The arithmetic of a layer: int8; int16 data with int8 weights; float32."""
DTYPES: Mapping[Precision, str] = {"int8": "int8", "int16x8": "int16", "float": "float32"}
"""The dtype of the data of a layer."""
BITS: Mapping[str, int] = {"int8": 8, "int16": 16}


@dataclass(frozen=True)
class Rule:
    """What a kind of operators requires of its integer form."""

    scales: Literal["own", "equal", "fixed", "none"]
    """own: the result has a scale of its range; equal: data and results have one scale; fixed: that of the kind; none:
    no result is quantised."""
    dtypes: tuple[str, ...] = ("int8", "int16")
    """The dtypes of data with an integer form."""
    is_layer: bool = True
    """False: the operator moves elements, and has the arithmetic of what it reads."""
    fixed: Mapping[str, tuple[float, int]] = field(default_factory=dict)
    """The scale and the zero point of results, by dtype."""
    weights: int | None = None
    """The input with constant weights, with a scale for each channel."""
    bias: int | None = None


_BYTES = ("int8",)
_UNIT = {"int8": (1 / 256, -128), "int16": (1 / 32768, 0)}
RULES: Mapping[str, Rule] = {
    **dict.fromkeys(("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"), Rule("own", weights=1, bias=2)),
    "TRANSPOSE_CONV": Rule("own", weights=1, bias=3),
    **dict.fromkeys(("ADD", "SUB", "MUL", "MEAN", "SUM", "BATCH_MATMUL"), Rule("own")),
    **dict.fromkeys(("RELU", "RELU6", "LEAKY_RELU", "GELU", "ABS"), Rule("own")),
    **dict.fromkeys(
        ("RELU_N1_TO_1", "RELU_0_TO_1", "HARD_SWISH", "ELU", "PRELU", "SQUARED_DIFFERENCE"), Rule("own", _BYTES)
    ),
    # LiteRT rejects arguments of SQRT, RSQRT and LOG that are not positive, and quotients lose most of their bits.
    "LOGISTIC": Rule("fixed", fixed=_UNIT),
    "TANH": Rule("fixed", fixed={"int8": (1 / 128, 0), "int16": (1 / 32768, 0)}),
    "SOFTMAX": Rule("fixed", fixed=_UNIT),
    "LOG_SOFTMAX": Rule("fixed", _BYTES, fixed={"int8": (1 / 16, 127)}),
    "L2_NORMALIZATION": Rule("fixed", _BYTES, fixed={"int8": (1 / 128, 0)}),
    **dict.fromkeys(("AVERAGE_POOL_2D", "MAX_POOL_2D", "MINIMUM", "MAXIMUM"), Rule("equal")),
    **dict.fromkeys(("REDUCE_MAX", "REDUCE_MIN", "RESIZE_BILINEAR"), Rule("equal")),
    **dict.fromkeys(("ARG_MAX", "ARG_MIN"), Rule("none", _BYTES)),
    **dict.fromkeys(
        (
            *("RESHAPE", "SQUEEZE", "EXPAND_DIMS", "TRANSPOSE", "SLICE", "STRIDED_SLICE", "SPLIT", "SPLIT_V"),
            *("CONCATENATION", "PACK", "UNPACK", "GATHER", "GATHER_ND", "TILE", "BROADCAST_TO", "REVERSE_V2"),
            *("PAD", "PADV2", "MIRROR_PAD", "SPACE_TO_BATCH_ND"),
            *("BATCH_TO_SPACE_ND", "RESIZE_NEAREST_NEIGHBOR", "SELECT", "SELECT_V2", "DYNAMIC_UPDATE_SLICE"),
        ),
        Rule("equal", is_layer=False),
    ),
    **dict.fromkeys(("SPACE_TO_DEPTH", "DEPTH_TO_SPACE"), Rule("equal", _BYTES, is_layer=False)),
}
"""By kind. Operators of other kinds, and layers whose weights are not constant, remain float32."""


def rule_of(node: Node) -> Rule | None:
    """Return the rule of an operator with float32 data; None if it has no integer form."""
    rule = RULES.get(node.kind)
    if rule is None or not is_float(node):
        return None
    if rule.weights is not None and not node.input(rule.weights).is_constant:
        return None
    if rule.bias is not None:
        bias = node.optional(rule.bias)
        if bias is not None and not bias.is_constant:
            return None
    if node.kind == "PRELU" and not node.input(1).is_constant:
        return None
    if node.kind in ("BATCH_MATMUL", "ADD", "SUB", "MUL", "SQUARED_DIFFERENCE") and not _has_computed(node):
        return None
    return rule


def _has_computed(node: Node) -> bool:
    return any(tensor is not None and not tensor.is_constant for tensor in node.inputs)


def is_float(node: Node) -> bool:
    """Whether an operator reads or computes float32 numbers."""
    return any(tensor is not None and tensor.dtype == "float32" for tensor in (*node.inputs, *node.outputs))


def data_of(node: Node, rule: Rule) -> list[int]:
    """Return the numbers of the inputs with float32 data: all but weights, biases and the slopes of PRELU."""
    others = (rule.weights, rule.bias, 1 if node.kind == "PRELU" else None)
    return [
        number
        for number, tensor in enumerate(node.inputs)
        if tensor is not None and tensor.dtype == "float32" and number not in others
    ]


def permitted(node: Node, wanted: Precision) -> Precision:
    """Return the arithmetic of an operator nearest to the wanted one: int8 where int16 does not exist, or float."""
    rule = rule_of(node)
    if rule is None or wanted == "float":
        return "float"
    return wanted if DTYPES[wanted] in rule.dtypes else "int8"
