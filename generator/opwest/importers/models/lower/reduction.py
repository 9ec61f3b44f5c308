# SPDX-License-Identifier: Apache-2.0
"""Reductions and searches."""

from __future__ import annotations

from opwest.importers.models.graph.types import Node
from opwest.importers.models.ir.program import Value
from opwest.importers.models.ir.reduction import Greatest, Position, Reduce, RunningSum
from opwest.importers.models.lower.builder import Builder, lowers
from opwest.importers.models.operators import reduction
from opwest.importers.models.operators.fixed_point import one_quantization

_KINDS = {
    "MEAN": "mean",
    "SUM": "sum",
    "REDUCE_PROD": "product",
    "REDUCE_MAX": "maximum",
    "REDUCE_MIN": "minimum",
    "REDUCE_ANY": "any",
    "REDUCE_ALL": "all",
}


def _operands(node: Node, build: Builder) -> tuple[tuple[Value], tuple[Value]]:
    return (build.value(node.input(0)),), (build.value(node.output),)


@lowers(*_KINDS)
def reduce(node: Node, build: Builder) -> None:
    """Sums, means and products of quantised elements are requantised."""
    data, kind, finish, zero = node.input(0), _KINDS[node.kind], None, 0
    if data.dtype in reduction.QUANTISED:
        if kind in ("mean", "sum"):
            finish = reduction.sum_numbers(node)
        elif kind == "product" and data.quantization is not None:
            finish = reduction.product_numbers(node)
        zero = one_quantization(data).zero if finish is not None else 0
    build.add(Reduce(node.label, *_operands(node, build), kind, reduction.axes_of(node), zero, finish))


@lowers("ARG_MAX", "ARG_MIN")
def position(node: Node, build: Builder) -> None:
    """As it is."""
    build.add(
        Position(node.label, *_operands(node, build), reduction.position_axis(node), is_greatest=node.kind == "ARG_MAX")
    )


@lowers("TOPK_V2")
def greatest(node: Node, build: Builder) -> None:
    """As it is."""
    data, results = build.value(node.input(0)), tuple(build.value(one) for one in node.outputs)
    build.add(Greatest(node.label, (data,), results, reduction.greatest_count(node)))


@lowers("CUMSUM")
def running_sum(node: Node, build: Builder) -> None:
    """int8 sums are requantised."""
    axis = reduction.position_axis(node)
    options = bool(node.options["exclusive"]), bool(node.options["reverse"])
    is_byte = node.input(0).dtype == "int8"
    finish = reduction.running_sum_numbers(node) if is_byte else None
    zero = one_quantization(node.input(0)).zero if is_byte else 0
    build.add(RunningSum(node.label, *_operands(node, build), axis, *options, zero, finish))
