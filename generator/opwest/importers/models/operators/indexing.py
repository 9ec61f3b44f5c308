# SPDX-License-Identifier: Apache-2.0
"""Operators that select by indices.

Sources in TFLite: kernels/gather.cc, gather_nd.cc, embedding_lookup.cc, scatter_nd.cc, dynamic_update_slice.cc,
one_hot.cc. An index outside of its dimension ends the run with an error, as in TFLite; the starts of
DYNAMIC_UPDATE_SLICE are clamped, and ONE_HOT has no such place.
"""

from __future__ import annotations

from collections.abc import Sequence

from opwest.importers.models.graph.faults import Unsupported
from opwest.importers.models.graph.spec import Operator, Result, specify
from opwest.importers.models.graph.types import Node, Tensor
from opwest.importers.models.operators.movement import INDEX, MOVED, axis_of, integers, one_integer


def gather_axes(node: Node) -> tuple[int, int]:
    """Return the axis and the number of batch dimensions of a GATHER. Raises Unsupported."""
    data, indices = node.input(0).shape, node.input(1).shape
    axis = axis_of(node.options["axis"], len(data))
    batches = node.options["batch_dims"]
    batches += len(indices) if batches < 0 else 0
    if not 0 <= batches <= min(axis, len(indices)) or data[:batches] != indices[:batches]:
        raise Unsupported(f"{node.options['batch_dims']} batch dimensions of {list(data)} and {list(indices)}")
    return axis, batches


def _gather(node: Node) -> Sequence[Result]:
    data, indices = node.input(0), node.input(1)
    axis, batches = gather_axes(node)
    _check_indices(indices, data.shape[axis])
    return [(data.dtype, (*data.shape[:axis], *indices.shape[batches:], *data.shape[axis + 1 :]))]


def _check_indices(indices: Tensor, limit: int) -> None:
    """Check constant indices, and that computed ones have something to select."""
    if (
        indices.is_constant
        and indices.size
        and not 0 <= int(indices.content.min()) <= int(indices.content.max()) < limit
    ):
        wrong = next(int(n) for n in indices.content.reshape(-1) if not 0 <= n < limit)
        raise Unsupported(f"index {wrong} of {limit} elements", f"0 to {limit - 1}")


def _gather_nd(node: Node) -> Sequence[Result]:
    data, indices = node.input(0), node.input(1)
    if not indices.shape or not 1 <= indices.shape[-1] <= len(data.shape):
        raise Unsupported(f"indices {list(indices.shape)} for shape {list(data.shape)}")
    _check_tuples(indices, data.shape)
    return [(data.dtype, (*indices.shape[:-1], *data.shape[indices.shape[-1] :]))]


def _check_tuples(indices: Tensor, shape: Sequence[int]) -> None:
    if indices.is_constant:
        for place in range(indices.shape[-1]):
            column = Tensor(indices.name, indices.dtype, indices.shape[:-1], content=indices.content[..., place])
            _check_indices(column, shape[place])


def _embedding(node: Node) -> Sequence[Result]:
    indices, data = node.input(0), node.input(1)
    if len(indices.shape) != 1 or len(data.shape) < 2:
        raise Unsupported(f"indices {list(indices.shape)} for shape {list(data.shape)}", "1 and at least 2 dimensions")
    _check_indices(indices, data.shape[0])
    dtype = node.output.dtype if is_hybrid(node) else data.dtype
    return [(dtype, (*indices.shape, *data.shape[1:]))]


def is_hybrid(node: Node) -> bool:
    """Whether an EMBEDDING_LOOKUP makes float32 rows of int8 ones. Raises Unsupported."""
    data = node.input(1)
    if data.dtype != "int8" or node.output.dtype != "float32":
        return False
    found = data.quantization
    if found is None or any(found.zeros) or found.axis not in (None, 0):
        raise Unsupported(f"'{data.name}' is int8 with this quantisation", "scales by row or one scale, zero points 0")
    return True


def _scatter(node: Node) -> Sequence[Result]:
    indices, updates, shape = node.input(0), node.input(1), tuple(integers(node, 2))
    depth = indices.shape[-1] if indices.shape else 0
    if not 1 <= depth <= len(shape) or updates.shape != (*indices.shape[:-1], *shape[depth:]):
        raise Unsupported(f"indices {list(indices.shape)}, updates {list(updates.shape)} for shape {list(shape)}")
    _check_tuples(indices, shape)
    return [(updates.dtype, shape)]


def _update(node: Node) -> Sequence[Result]:
    data, update, starts = node.input(0), node.input(1), node.input(2)
    fits = len(data.shape) == len(update.shape) and all(m <= n for m, n in zip(update.shape, data.shape, strict=True))
    if not fits or starts.shape != (len(data.shape),) or data.dtype != update.dtype or not update.size:
        raise Unsupported(f"update {list(update.shape)} at {list(starts.shape)} for shape {list(data.shape)}")
    return [(data.dtype, data.shape)]


def one_hot_axis(node: Node) -> int:
    """Return the axis of a ONE_HOT. Raises Unsupported."""
    return axis_of(node.options["axis"], len(node.input(0).shape) + 1)


def _one_hot(node: Node) -> Sequence[Result]:
    indices, on, off = node.input(0), node.input(2), node.input(3)
    depth = one_integer(node, 1)
    if on.size != 1 or off.size != 1 or on.dtype != off.dtype or depth < 1:
        raise Unsupported(f"values of {on.dtype} and {off.dtype}, depth {depth}", "one element each, a positive depth")
    axis = one_hot_axis(node)
    return [(on.dtype, (*indices.shape[:axis], depth, *indices.shape[axis:]))]


specify(
    Operator("GATHER", _gather, (f"{MOVED} int16|{INDEX}",), {"axis": 0, "batch_dims": 0}),
    Operator("GATHER_ND", _gather_nd, (f"{MOVED} int16|{INDEX}",)),
    Operator("EMBEDDING_LOOKUP", _embedding, (f"int32 {MOVED}",)),
    Operator("SCATTER_ND", _scatter, ("int32 float32|int8|uint8|int32|int64|bool int32",), known=(2,)),
    Operator("DYNAMIC_UPDATE_SLICE", _update, (f"{MOVED} {MOVED} {INDEX}",)),
    Operator("ONE_HOT", _one_hot, (f"{INDEX} int32 {MOVED} {MOVED}",), {"axis": -1}, known=(1,)),
)
