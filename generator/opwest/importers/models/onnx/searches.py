# SPDX-License-Identifier: Apache-2.0
"""Running sums, the greatest elements and their indices."""

from __future__ import annotations

from typing import Any

import numpy as np

from opwest.importers.models.graph.faults import Unsupported
from opwest.importers.models.graph.types import Tensor
from opwest.importers.models.onnx.movement import numbers
from opwest.importers.models.onnx.registry import translates
from opwest.importers.models.onnx.translation import Translation, permuted
from opwest.importers.models.onnx.values import Op


@translates("CumSum")
def running(op: Op, t: Translation) -> None:
    """Sums along one dimension."""
    data = op.input(0)
    axis = op.numbers(1)
    assert axis is not None
    order = t.anywhere(data).order
    source = t.tensor(data, order)
    index = numbers(t, order.index(axis[0] % data.rank), "axis")
    options: dict[str, Any] = {"exclusive": bool(op.get("exclusive", 0)), "reverse": bool(op.get("reverse", 0))}
    t.put(op.output, t.emit("CUMSUM", [source, index], source.shape, source.dtype, **options), order)


@translates("TopK")
def top(op: Op, t: Translation) -> None:
    """The greatest elements of one dimension, sorted."""
    data = op.input(0)
    count = op.numbers(1, "k")
    axis = int(op.get("axis", -1)) % data.rank
    if not op.get("largest", 1) or not op.get("sorted", 1):
        raise Unsupported("TopK with largest=0 or sorted=0", "1")
    assert count is not None
    order = (*(one for one in t.anywhere(data).order if one != axis), axis)
    source = t.tensor(data, order)
    shape = (*source.shape[:-1], count[0])
    values, index = Tensor("values", source.dtype, shape), Tensor("index", "int32", shape)
    t.append("TOPK_V2", [source, numbers(t, count[0], "count")], [values, index], {})
    for item, tensor in zip(op.outputs, (values, index), strict=False):
        if item is not None:
            if tensor is index:
                tensor = t.emit("CAST", [index], shape, "int64")
            t.put(item, tensor, order)


@translates("ArgMax", "ArgMin")
def arg(op: Op, t: Translation) -> None:
    """The first of equal elements; the scale of integers does not matter."""
    data, result = op.input(0), op.output
    if op.get("select_last_index", 0):
        raise Unsupported(f"{op.kind} with select_last_index=1", "0")
    axis = int(op.get("axis", 0)) % data.rank
    order = t.anywhere(data).order
    keep = op.get("keepdims", 1) == 1
    held = t.real.get(data) or t.eight.get(data)
    source = t.tensor(data, order) if held is None else held.tensor
    left = [one for one in order if one != axis]
    shape = tuple(data.known[one] for one in left)
    kind = "ARG_MAX" if op.kind == "ArgMax" else "ARG_MIN"
    index = t.constant(np.asarray(order.index(axis), np.int32), "axis")
    found = t.emit(kind, [source, index], shape, result.dtype, output_type=result.dtype)
    if keep:
        t.put(result, t.reshape(found, permuted(result.known, order)), order)
        return
    ranks = {one: number for number, one in enumerate(sorted(left))}
    t.put(result, found, tuple(ranks[one] for one in left))
