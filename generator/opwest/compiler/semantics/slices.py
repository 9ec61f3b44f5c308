# SPDX-License-Identifier: Apache-2.0
"""Operators that take tensors apart and join them.

Sources in TFLite: kernels/slice.cc, strided_slice.cc (BuildStridedSliceParams), split.cc, split_v.cc, pack.cc,
unpack.cc, concatenation.cc, internal/reference/concatenation.h (ConcatenationWithScaling).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.base.result import counted
from opwest.compiler.graph.spec import Operator, Result, specify
from opwest.compiler.graph.types import Node, Shape, Tensor, Unsupported
from opwest.compiler.semantics.fixed_point import one_quantization, rounded_away
from opwest.compiler.semantics.movement import INDEX, MOVED, axis_of, integers, one_integer


@dataclass(frozen=True)
class Cut:
    """The part of one dimension."""

    start: int
    step: int
    count: int
    size: int
    """The elements of the dimension."""
    is_dropped: bool = False
    """Whether the result lacks the dimension."""


def cuts(node: Node) -> tuple[Cut, ...]:
    """Return the parts of the dimensions of a SLICE or STRIDED_SLICE, including new ones. Raises Unsupported."""
    return _slice_cuts(node) if node.kind == "SLICE" else _strided_cuts(node)


def _slice_cuts(node: Node) -> tuple[Cut, ...]:
    shape, starts, sizes = node.input(0).shape, integers(node, 1), integers(node, 2)
    if not len(shape) == len(starts) == len(sizes):
        raise Unsupported(f"begin {starts}, size {sizes} for shape {list(shape)}", "a number for each dimension")
    counts = [n - start if size == -1 else size for n, start, size in zip(shape, starts, sizes, strict=True)]
    if any(start < 0 or count < 0 or start + count > n for n, start, count in zip(shape, starts, counts, strict=True)):
        raise Unsupported(f"begin {starts}, size {sizes} for shape {list(shape)}", "a part of the data")
    return tuple(Cut(start, 1, count, n) for n, start, count in zip(shape, starts, counts, strict=True))


def _strided_cuts(node: Node) -> tuple[Cut, ...]:
    shape, options = node.input(0).shape, node.options
    starts, ends, steps = (integers(node, number) for number in (1, 2, 3))
    if not len(starts) == len(ends) == len(steps) <= 31:
        raise Unsupported(f"begin {starts}, end {ends}, strides {steps}", "as many numbers each, at most 31")
    if not all(steps):
        raise Unsupported(f"strides {steps}", "numbers other than 0")

    def has(mask: str, place: int) -> bool:
        return bool(options[f"{mask}_mask"] >> place & 1)

    places = range(len(starts))
    ellipses = [i for i in places if has("ellipsis", i)]
    if len(ellipses) > 1:
        raise Unsupported(f"{len(ellipses)} ellipses", "at most one")
    new = [i for i in places if has("new_axis", i) and i not in ellipses]
    free = len(shape) - (len(starts) - len(new) - len(ellipses))
    if free < 0:
        raise Unsupported(f"{len(starts)} indices for shape {list(shape)}", "at most one for each dimension")
    parts: list[Cut] = []
    rest = iter(shape)
    for i in places:
        if i in ellipses:
            parts.extend(Cut(0, 1, n, n) for n in (next(rest) for _ in range(free)))
        elif i in new:
            parts.append(Cut(0, 1, 1, 1))
        else:
            masks = (has("begin", i), has("end", i), has("shrink_axis", i))
            parts.append(_cut(next(rest), starts[i], ends[i], steps[i], masks, bool(options["offset"])))
    return (*parts, *(Cut(0, 1, n, n) for n in rest))


def _cut(size: int, start: int, end: int, step: int, masks: tuple[bool, bool, bool], is_offset: bool) -> Cut:
    """Return the part of one dimension. Source: reference/strided_slice.h, StartForAxis and EndForAxis."""
    has_begin_mask, has_end_mask, shrinks = masks
    low, high = (0, size) if step > 0 else (-1, size - 1)
    first = min(max(start + size if start < 0 else start, low), high)
    if has_begin_mask:
        first = 0 if step > 0 else size - 1
    if shrinks:
        if not 0 <= first < size:
            raise Unsupported(f"index {start} of {counted(size, 'element')}", "an index inside of the dimension")
        return Cut(first, 1, 1, size, True)
    end = end + first if is_offset else end
    last = min(max(end + size if end < 0 else end, low), high)
    if has_end_mask:
        last = size if step > 0 else -1
    return Cut(first, step, max(0, -((first - last) // step)), size)


def _sliced(node: Node) -> Sequence[Result]:
    return [(node.input(0).dtype, tuple(cut.count for cut in cuts(node) if not cut.is_dropped))]


def parts(node: Node) -> tuple[int, list[int]]:
    """Return the axis of a SPLIT, SPLIT_V or UNPACK, and the elements of each part along it. Raises Unsupported."""
    if node.kind == "UNPACK":
        data = node.input(0)
        axis = axis_of(node.options["axis"], len(data.shape))
        if not data.shape[axis] == node.options["num"] == len(node.outputs):
            raise Unsupported(
                f"{counted(len(node.outputs), 'result')} along {data.shape[axis]} elements", "as many results"
            )
        return axis, [1] * data.shape[axis]
    data = node.input(1 if node.kind == "SPLIT" else 0)
    axis = axis_of(one_integer(node, 0 if node.kind == "SPLIT" else 2), len(data.shape))
    size, count = data.shape[axis], node.options["num_splits"]
    if node.kind == "SPLIT":
        if count < 1 or count != len(node.outputs) or size % count:
            raise Unsupported(f"{counted(size, 'element')} cannot be split into {count} equal parts")
        return axis, [size // count] * count
    sizes = integers(node, 1)
    if sizes.count(-1) == 1:
        sizes[sizes.index(-1)] = size - sum(sizes) - 1
    if len(sizes) != count or any(n < 0 for n in sizes) or sum(sizes) != size:
        raise Unsupported(f"{counted(size, 'element')} cannot be split into {integers(node, 1)}")
    return axis, sizes


def _split(node: Node) -> Sequence[Result]:
    data = node.input(1 if node.kind == "SPLIT" else 0)
    axis, sizes = parts(node)
    return [(data.dtype, (*data.shape[:axis], size, *data.shape[axis + 1 :])) for size in sizes]


def _unpack(node: Node) -> Sequence[Result]:
    data = node.input(0)
    axis, sizes = parts(node)
    return [(data.dtype, (*data.shape[:axis], *data.shape[axis + 1 :]))] * len(sizes)


def joined(node: Node) -> tuple[int, Shape]:
    """Return the axis of a CONCATENATION or PACK and the shape of the result. Raises Unsupported."""
    shapes = [node.input(i).shape for i in range(len(node.inputs))]
    if not shapes:
        raise Unsupported("no input")
    first = shapes[0]
    if node.kind == "PACK":
        axis = axis_of(node.options["axis"], len(first) + 1)
        if any(shape != first for shape in shapes):
            raise Unsupported(f"inputs of shapes {', '.join(str(list(s)) for s in shapes)}", "equal shapes")
        return axis, (*first[:axis], len(shapes), *first[axis:])
    # Constants of one element can be joined. Source: concatenation.cc, Prepare.
    if not first and all(not shape for shape in shapes):
        return 0, (len(shapes),)
    axis = axis_of(node.options["axis"], len(first))
    rests = {(shape[:axis], shape[axis + 1 :]) for shape in shapes}
    if len(rests) != 1 or any(len(shape) != len(first) for shape in shapes):
        shown = ", ".join(str(list(s)) for s in shapes)
        raise Unsupported(f"inputs of shapes {shown}", f"shapes that differ in dimension {axis} only")
    return axis, (*first[:axis], sum(shape[axis] for shape in shapes), *first[axis + 1 :])


def _join(node: Node) -> Sequence[Result]:
    dtype = node.input(0).dtype
    if any(tensor is None or tensor.dtype != dtype for tensor in node.inputs):
        dtypes = ", ".join("none" if tensor is None else tensor.dtype for tensor in node.inputs)
        raise Unsupported(f"inputs of dtypes {dtypes}", "equal dtypes")
    if node.kind == "CONCATENATION":
        activation = node.options["fused_activation_function"]
        if activation != "NONE":
            raise Unsupported(f"fused activation {activation}", "NONE")
        if dtype == "int8":
            _check_scales(node)
    return [(dtype, joined(node)[1])]


def _check_scales(node: Node) -> None:
    """Refuse int8 inputs with other scales than the result: TFLite does not rescale them."""
    wanted = _pair(node.output)
    for tensor in node.inputs:
        assert tensor is not None
        if _pair(tensor) != wanted:
            raise Unsupported(
                f"input '{tensor.name}' has another scale or zero point than the result",
                "equal ones for int8",
                "convert the model again: converters make them equal",
            )


def _pair(tensor: Tensor) -> tuple[tuple[float, ...], tuple[int, ...]]:
    quantization = tensor.quantization
    return ((0.0,), (0,)) if quantization is None else (quantization.scales, quantization.zeros)


def rescaling(tensor: Tensor, result: Tensor) -> tuple[int, ...] | None:
    """Return the results for the values 0 to 255 of a uint8 input of CONCATENATION; None: the same values.

    Source: reference/concatenation.h, ConcatenationWithScaling: float32 arithmetic.
    """
    if tensor.dtype != "uint8" or _pair(tensor) == _pair(result):
        return None
    source, target = one_quantization(tensor), one_quantization(result)
    scale = np.float32(source.scale) * (np.float32(1.0) / np.float32(target.scale))
    bias = np.float32(-source.zero) * scale
    real = np.arange(256).astype(np.float32) * scale + bias
    return tuple(int(v) for v in np.clip(rounded_away(real).astype(np.int64) + target.zero, 0, 255))


_MASKS = {f"{name}_mask": 0 for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")}
specify(
    Operator("SLICE", _sliced, (f"{MOVED} {INDEX} {INDEX}",), known=(1, 2)),
    Operator("STRIDED_SLICE", _sliced, (f"{MOVED} int32 int32 int32",), {**_MASKS, "offset": False}, known=(1, 2, 3)),
    Operator("SPLIT", _split, (f"int32 {MOVED}",), {"num_splits": 0}, known=(0,)),
    Operator("SPLIT_V", _split, (f"{MOVED} {INDEX} int32",), {"num_splits": 0}, known=(1, 2)),
    Operator("UNPACK", _unpack, (MOVED,), {"num": 0, "axis": 0}),
    Operator("PACK", _join, (f"{MOVED}...",), {"values_count": 0, "axis": 0}),
    Operator("CONCATENATION", _join, (f"{MOVED}...",), {"axis": 0, "fused_activation_function": "NONE"}),
)


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
    quantization = data.quantization
    if quantization is None or any(quantization.zeros) or quantization.axis not in (None, 0):
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
