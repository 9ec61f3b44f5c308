# SPDX-License-Identifier: Apache-2.0
"""Functions of one element."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from opwest.importers.models.graph.types import Node, Rules
from opwest.importers.models.interpret.registry import Arrays, interprets
from opwest.importers.models.operators import tables
from opwest.importers.models.operators.fixed_point import RANGES, one_quantization
from opwest.importers.models.operators.rescale import RELU_LIMITS, rescale_of
from opwest.importers.models.operators.unary import PLAIN, SAMPLED

_ERFC = np.vectorize(math.erfc, otypes=[np.float64])
_ROOT = math.sqrt(2 / math.pi)
_FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "LOGISTIC": lambda x: 1 / (1 + np.exp(-x)),
    "TANH": np.tanh,
    "HARD_SWISH": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "RELU": lambda x: np.maximum(x, 0),
    "RELU6": lambda x: np.clip(x, 0, 6),
    "RELU_N1_TO_1": lambda x: np.clip(x, -1, 1),
    "RELU_0_TO_1": lambda x: np.clip(x, 0, 1),
    "ELU": lambda x: np.where(x < 0, np.expm1(x), x),
    "EXP": np.exp,
    "LOG": np.log,
    "SQRT": np.sqrt,
    "RSQRT": lambda x: 1 / np.sqrt(x),
    "ABS": np.abs,
    "NEG": np.negative,
    "SQUARE": np.square,
    "FLOOR": np.floor,
    "CEIL": np.ceil,
    "ROUND": np.rint,
    "SIN": np.sin,
    "COS": np.cos,
    "SIGN": np.sign,
}
"""Functions of float32, and those of integers that wrap."""


@interprets("HARD_SWISH", "LEAKY_RELU", "ELU", "LOGISTIC", "TANH", "SQRT", "ABS", *RELU_LIMITS, *SAMPLED, *PLAIN)
def unary(node: Node, arrays: Arrays, rules: Rules) -> Any:
    """Quantised: with the tables and the numbers of the operator."""
    [data] = arrays
    dtype = node.output.dtype
    is_plain = node.kind in PLAIN or (dtype == "int16" and node.kind == "ABS" and node.input(0).quantization is None)
    if is_plain or dtype not in RANGES or dtype == "int32":
        options = node.options
        return plain(node.kind, data, options.get("alpha", 0.0), options.get("approximate", False))
    if dtype != "int16":
        return by_table(node, data)
    if node.kind in SAMPLED:
        return tables.interpolated(data, tables.sample_table(node))
    if node.kind in ("LOGISTIC", "TANH"):
        return tables.sigmoid(node, data)
    if node.kind == "SQRT":
        source, target = one_quantization(node.input(0)), one_quantization(node.output)
        return root(data, source.scale, target.scale)
    return rescale_of(node).apply(data)


def root(data: Any, source: float, target: float) -> Any:
    """Return the roots of int16 values, for the scales of the data and the result."""
    real = np.sqrt(np.float32(source) * np.maximum(data, 0).astype(np.float32)) / np.float32(target)
    return np.minimum(np.trunc(real), 32767)


def by_table(node: Node, data: Any) -> Any:
    """Return the results of 8-bit values."""
    return tables.byte_table(node)[data.astype(np.int64) - RANGES[node.input(0).dtype][0]]


def plain(kind: str, data: Any, alpha: float, is_approximate: bool) -> Any:
    """Return the results of float32 numbers, or of integers without a scale."""
    if kind == "LEAKY_RELU":
        return np.where(data > 0, data, data * np.float32(alpha))
    if kind == "GELU":
        wide = data.astype(np.float64)
        if is_approximate:
            return 0.5 * wide * (1 + np.tanh(_ROOT * (wide + 0.044715 * wide**3)))
        return 0.5 * wide * _ERFC(wide * -math.sqrt(0.5))
    return _FUNCTIONS[kind](data)
