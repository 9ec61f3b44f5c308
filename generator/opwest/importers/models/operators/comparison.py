# SPDX-License-Identifier: Apache-2.0
"""Comparisons, logic, selection.

Sources in TFLite: kernels/comparisons.cc, logical.cc, select.cc, internal/reference/comparisons.h.
"""

from __future__ import annotations

from collections.abc import Sequence

from opwest.importers.models.graph.faults import Unsupported
from opwest.importers.models.graph.spec import Operator, Result, broadcast, same, specify
from opwest.importers.models.graph.types import Node
from opwest.importers.models.operators.fixed_point import Multiplier, one_quantization, quantize_multiplier
from opwest.records import dataclass

COMPARISONS = {
    "EQUAL": "==",
    "NOT_EQUAL": "!=",
    "GREATER": ">",
    "GREATER_EQUAL": ">=",
    "LESS": "<",
    "LESS_EQUAL": "<=",
}
"""The operators of C."""
LEFT_SHIFT = 8
"""The places that quantised inputs are shifted to the left before their multiplications."""


def _compare(node: Node) -> Sequence[Result]:
    one, other = node.input(0), node.input(1)
    return [("bool", broadcast((one.shape, other.shape)))]


def _select(node: Node) -> Sequence[Result]:
    """The condition has the shape of the others, is one element, or one element for each slice of dimension 0."""
    condition, one, other = (node.input(i).shape for i in range(3))
    if one != other:
        raise Unsupported(f"shapes {list(one)} and {list(other)}", "equal shapes")
    if condition not in (one, ()) and condition != one[:1]:
        raise Unsupported(f"condition {list(condition)} for {list(one)}", f"{list(one)}, [] or {list(one[:1])}")
    return [(node.input(1).dtype, one)]


def _select_broadcast(node: Node) -> Sequence[Result]:
    return [(node.input(1).dtype, broadcast([node.input(i).shape for i in range(3)]))]


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
    one, other = node.input(0), node.input(1)
    is_order = node.kind not in ("EQUAL", "NOT_EQUAL")
    if one.dtype not in ("int8", "uint8", "int16") or (
        one.dtype == "int16" and (is_order or one.quantization is None or other.quantization is None)
    ):
        return None
    first, second = one_quantization(one), one_quantization(other)
    return CompareNumbers(
        (first.zero, second.zero), (quantize_multiplier(first.scale), quantize_multiplier(second.scale))
    )


def condition_shape(node: Node) -> tuple[int, ...]:
    """Return the shape of SELECT's condition for broadcasting: one element per slice of dimension 0."""
    condition, values = node.input(0).shape, node.input(1).shape
    if condition == values or not condition:
        return condition
    return (*condition, *(1,) * (len(values) - 1))
