# SPDX-License-Identifier: Apache-2.0
"""Operators that make tensors from shapes and numbers. Sources in TFLite: the file of each operator's name."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from opwest.importers.models.graph.faults import Unsupported
from opwest.importers.models.graph.spec import Operator, Result, broadcast, same, specify
from opwest.importers.models.graph.types import Node
from opwest.importers.models.operators.movement import INDEX, MOVED, integers

FROM_SHAPES = ("SHAPE", "RANK", "ZEROS_LIKE")
"""Operators whose result depends on the shape of the input only."""


def _fill(node: Node) -> Sequence[Result]:
    value = node.input(1)
    if value.size != 1:
        raise Unsupported(f"a value of shape {list(value.shape)}", "one element")
    return [(value.dtype, tuple(integers(node, 0)))]


def _shape(node: Node) -> Sequence[Result]:
    return [(node.options["out_type"], (len(node.input(0).shape),))]


def _rank(node: Node) -> Sequence[Result]:
    return [("int32", ())]


def _range(node: Node) -> Sequence[Result]:
    if any(node.input(i).size != 1 for i in range(3)):
        raise Unsupported("start, limit or delta of several elements", "one element each")
    start, limit, delta = (node.input(i).content.reshape(-1)[0] for i in range(3))
    if not delta or (delta > 0 and start > limit) or (delta < 0 and start < limit):
        raise Unsupported(f"a range from {start} to {limit} in steps of {delta}")
    dtype = node.input(0).dtype
    # In the arithmetic of the dtype. Source: kernels/range.cc, GetSize.
    if dtype == "float32":
        return [(dtype, (math.ceil(abs((limit - start) / delta)),))]
    return [(dtype, (-(-abs(int(limit) - int(start)) // abs(int(delta))),))]


def _arguments(node: Node) -> Sequence[Result]:
    wanted = broadcast((tuple(integers(node, 0)), tuple(integers(node, 1))))
    return [(node.input(0).dtype, (len(wanted),))]


def _where(node: Node) -> Sequence[Result]:
    condition = node.input(0)
    return [("int64", (int(np.count_nonzero(condition.content)), len(condition.shape)))]


specify(
    Operator("BROADCAST_ARGS", _arguments, tuple(f"{d} {d}" for d in ("int32", "int64")), known=(0, 1)),
    Operator("WHERE", _where, (MOVED,), known=(0,)),
    Operator("FILL", _fill, (f"{INDEX} {MOVED}",), known=(0,)),
    Operator("ZEROS_LIKE", same, (MOVED,)),
    Operator("SHAPE", _shape, (), {"out_type": "int32"}),
    Operator("RANK", _rank),
    Operator("RANGE", _range, tuple(f"{d} {d} {d}" for d in ("int32", "int64", "float32")), known=(0, 1, 2)),
)
