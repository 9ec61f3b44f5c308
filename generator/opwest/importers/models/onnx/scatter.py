# SPDX-License-Identifier: Apache-2.0
"""Operators with an index for each element: with constant indices each is one GATHER."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from opwest.importers.models.graph.faults import Unsupported
from opwest.importers.models.graph.types import Tensor
from opwest.importers.models.onnx.movement import keep, numbers, same
from opwest.importers.models.onnx.registry import translates
from opwest.importers.models.onnx.translation import Translation, identity
from opwest.importers.models.onnx.values import Op


def _index(op: Op, number: int) -> Any:
    item = op.input(number)
    if item.content is None:
        raise Unsupported(f"the indices '{item.name}' are computed when the model runs", "a constant")
    return np.asarray(item.content).astype(np.int64)


def _along(op: Op, index: Any) -> tuple[Any, ...]:
    """Return the indices of all dimensions for those along one."""
    shape = op.input(0).known
    axis = int(op.get("axis", 0))
    if not -len(shape) <= axis < len(shape) or index.ndim != len(shape):
        raise Unsupported(f"axis {axis} of {len(shape)} dimensions, indices {list(index.shape)}")
    found = list(np.indices(index.shape))
    found[axis % len(shape)] = index
    return tuple(found)


def _flat(op: Op, places: tuple[Any, ...]) -> Any:
    """Return indices of the flattened data. Raises Unsupported for those outside."""
    shape = op.input(0).known
    total: Any = np.zeros((), np.int64)
    for one, n in zip(places, shape, strict=True):
        if ((one < -n) | (one >= n)).any():
            raise Unsupported(f"an index outside of {n} elements")
        total = total * n + one % n
    return total


@translates("GatherElements")
def gather_elements(op: Op, t: Translation) -> None:
    """An element for each index."""
    data, shape = op.input(0), op.output.known
    held = t.anywhere(data)
    source = t.reshape(t.ordered(held, identity(data.rank)), (data.size,))
    where = _flat(op, _along(op, _index(op, 1))).reshape(-1)
    found = same(t, "GATHER", [source, numbers(t, where, "index")], where.shape, axis=0, batch_dims=0)
    keep(op, t, data, t.reshape(found, shape), identity(len(shape)))


@translates("ScatterND", "ScatterElements", "Scatter")
def scatter(op: Op, t: Translation) -> None:
    """The data with some elements replaced; the last of equal indices counts, as in onnxruntime with one thread."""
    if op.get("reduction", "none") != "none":
        raise Unsupported(f"reduction {op.get('reduction', 'none')}", "none")
    data, updates, result = op.input(0), op.input(2), op.output
    index = _index(op, 1)
    if op.kind == "ScatterND":
        depth = index.shape[-1] if index.ndim else 0
        if not 1 <= depth <= data.rank:
            raise Unsupported(f"indices {list(index.shape)} for {data.rank} dimensions")
        rest = np.indices(data.known[depth:]).reshape(data.rank - depth, prod(data.known[depth:]))
        first = [index[..., axis].reshape(-1, 1) for axis in range(depth)]
        places = tuple(np.broadcast_arrays(*first, *(one[None, :] for one in rest)))
    else:
        places = _along(op, index)
    where = np.arange(data.size)
    flat = _flat(op, places).reshape(-1)
    if flat.size != updates.size:
        raise Unsupported(f"{updates.size} elements for {flat.size} indices")
    for number, at in enumerate(flat.tolist()):
        where[at] = data.size + number
    both: list[Tensor] = [t.reshape(t.tensor(item), (item.size,)) for item in (data, updates)]
    options: dict[str, Any] = {"axis": 0, "fused_activation_function": "NONE"}
    joined = t.emit("CONCATENATION", both, (data.size + updates.size,), result.dtype, **options)
    found = same(t, "GATHER", [joined, numbers(t, where, "index")], where.shape, axis=0, batch_dims=0)
    t.put(result, t.reshape(found, result.known))
