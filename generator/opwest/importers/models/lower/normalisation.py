# SPDX-License-Identifier: Apache-2.0
"""Softmax and its relatives."""

from __future__ import annotations

from opwest.importers.models.graph.types import Node
from opwest.importers.models.ir.normalisation import (
    LogSoftmaxFloat,
    LogSoftmaxTable,
    Softmax16,
    SoftmaxFloat,
    SoftmaxTable,
    UnitLength,
)
from opwest.importers.models.ir.program import Value
from opwest.importers.models.lower.builder import Builder, lowers
from opwest.importers.models.operators.fixed_point import one_quantization
from opwest.importers.models.operators.normalisation import exponentials, log_softmax_numbers, softmax16_numbers


def _operands(node: Node, build: Builder) -> tuple[tuple[Value], tuple[Value]]:
    return (build.value(node.input(0)),), (build.value(node.output),)


@lowers("SOFTMAX")
def softmax(node: Node, build: Builder) -> None:
    """With a table for 8 bits, two tables for 16 bits."""
    operands, dtype = _operands(node, build), node.input(0).dtype
    if dtype == "float32":
        build.add(SoftmaxFloat(node.label, *operands, node.options["beta"]))
    elif dtype == "int16":
        build.add(Softmax16(node.label, *operands, softmax16_numbers(node)))
    else:
        build.add(SoftmaxTable(node.label, *operands, exponentials(node)))


@lowers("LOG_SOFTMAX")
def log_softmax(node: Node, build: Builder) -> None:
    """With tables for 8 bits."""
    operands = _operands(node, build)
    if node.output.dtype == "float32":
        build.add(LogSoftmaxFloat(node.label, *operands))
    else:
        build.add(LogSoftmaxTable(node.label, *operands, log_softmax_numbers(node)))


@lowers("L2_NORMALIZATION")
def l2_normalisation(node: Node, build: Builder) -> None:
    """As it is."""
    zero = 0 if node.output.dtype == "float32" else one_quantization(node.input(0)).zero
    build.add(UnitLength(node.label, *_operands(node, build), zero))
