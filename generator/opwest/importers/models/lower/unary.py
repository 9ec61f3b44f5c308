# SPDX-License-Identifier: Apache-2.0
"""Functions of one element."""

from __future__ import annotations

from typing import Any

import numpy as np

from opwest.importers.models.graph.types import Node
from opwest.importers.models.ir.elements import (
    Clamped,
    Interpolated,
    Lookup,
    Plain,
    Rescaled,
    Root,
    Sigmoid,
)
from opwest.importers.models.lower.arithmetic import elementwise
from opwest.importers.models.lower.builder import Builder, lowers
from opwest.importers.models.operators import tables
from opwest.importers.models.operators.fixed_point import RANGES, one_quantization
from opwest.importers.models.operators.rescale import RELU_LIMITS, rescale_of
from opwest.importers.models.operators.unary import PLAIN, SAMPLED


@lowers("HARD_SWISH", "LEAKY_RELU", "ELU", "LOGISTIC", "TANH", "SQRT", "ABS", *RELU_LIMITS, *SAMPLED, *PLAIN)
def unary(node: Node, build: Builder) -> None:
    """A table for 8 bits; for 16 bits samples or fixed-point numbers; otherwise C's functions."""
    dtype = node.output.dtype
    is_plain = node.kind in PLAIN or (dtype == "int16" and node.kind == "ABS" and node.input(0).quantization is None)
    if is_plain or dtype not in ("int8", "uint8", "int16"):
        options = node.options
        elementwise(node, build, Plain(node.kind, options.get("alpha", 0.0), options.get("approximate", False)))
    elif dtype != "int16":
        lookup(node, build, tables.byte_table(node))
    elif node.kind in SAMPLED:
        elementwise(node, build, Interpolated(node.kind, tables.sample_table(node)))
    elif node.kind in ("LOGISTIC", "TANH"):
        elementwise(node, build, Sigmoid(node.kind, tables.sigmoid_numbers(node)))
    elif node.kind == "SQRT":
        source, target = one_quantization(node.input(0)), one_quantization(node.output)
        elementwise(node, build, Root(source.scale, target.scale))
    else:
        elementwise(node, build, Rescaled(node.kind, rescale_of(node)))


def lookup(node: Node, build: Builder, table: Any) -> None:
    """Add a function of 8-bit values by its table, without the table if it only clamps."""
    dtype = node.input(0).dtype
    low, high = RANGES[dtype]
    values = np.arange(low, high + 1)
    least, greatest = int(table.min()), int(table.max())
    if dtype == node.output.dtype and np.array_equal(table, values):
        build.view(node.output, build.value(node.input(0)))
    elif dtype == node.output.dtype and np.array_equal(table, np.clip(values, least, greatest)):
        elementwise(node, build, Clamped(least, greatest))
    else:
        elementwise(node, build, Lookup(node.kind, table))
