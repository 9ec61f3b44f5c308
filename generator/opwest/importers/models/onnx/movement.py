# SPDX-License-Identifier: Apache-2.0
"""Operators that move elements: the numbers stay as they are stored, so they are the same for int8 and float32."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opwest.importers.models.graph.faults import Unsupported
from opwest.importers.models.graph.types import Tensor
from opwest.importers.models.onnx.elements import operand, quantise_constants, raised, settle_float
from opwest.importers.models.onnx.registry import translates
from opwest.importers.models.onnx.translation import Fixed, Held, Order, Translation, channels_last, identity, permuted
from opwest.importers.models.onnx.values import Item, Op


def of_integers(op: Op, t: Translation, change: Callable[[Any], Any], axis: Callable[[int], int] | None = None) -> bool:
    """Apply a function of numpy to the integers of a constant; return whether the input is one."""
    fixed = t.fixed.get(op.input(0))
    if fixed is None:
        return False
    if fixed.axis is not None and axis is None:
        t.held.setdefault(op.output, [Held(t.constant(change(fixed.real())), identity(op.output.rank))])
        return True
    where = None if fixed.axis is None or axis is None else axis(fixed.axis)
    t.fixed[op.output] = Fixed(change(fixed.content), fixed.scales, fixed.zeros, where)
    return True


def keep(op: Op, t: Translation, item: Item, tensor: Tensor, order: Order) -> None:
    """Store a result in the same way as an input."""
    t.home(item)[op.output] = Held(tensor, order)


def same(t: Translation, kind: str, inputs: Sequence[Tensor | None], shape: Any, **options: Any) -> Tensor:
    """Append a node whose result has the dtype and the scale of the first input."""
    first = inputs[0]
    assert first is not None
    return t.emit(kind, inputs, shape, first.dtype, first.quantization, **options)


def numbers(t: Translation, values: Any, name: str) -> Tensor:
    """Return an int32 constant."""
    return t.constant(np.asarray(values, np.int32), name)


@translates("Identity", "Dropout")
def alias(op: Op, t: Translation) -> None:
    """The same tensor."""
    data = op.input(0)
    result, *others = op.outputs
    if op.kind == "Dropout":
        training = op.optional(2)
        if any(others) or (training is not None and (training.content is None or bool(np.any(training.content)))):
            raise Unsupported("Dropout in training mode", hint="export the model for inference")
    assert result is not None
    if data in t.fixed:
        t.fixed[result] = t.fixed[data]
        return
    if data in t.columns:
        t.columns[result] = t.columns[data]
    for table in (t.real, t.eight):
        if data in table:
            table[result] = table[data]
    if data in t.held or data.content is not None:
        t.held[result] = [t.stored(data)]


@translates("Transpose")
def transpose(op: Op, t: Translation) -> None:
    """The same elements in another order: nothing moves here."""
    data = op.input(0)
    wanted = [int(n) for n in op.get("perm", list(range(data.rank))[::-1])]
    if sorted(wanted) != list(range(data.rank)):
        raise Unsupported(f"perm {wanted} of {data.rank} dimensions")
    if of_integers(op, t, lambda x: np.transpose(x, wanted), wanted.index):
        return
    held = t.anywhere(data)
    keep(op, t, data, held.tensor, tuple(wanted.index(axis) for axis in held.order))


@translates("Reshape", "Flatten")
def reshape(op: Op, t: Translation) -> None:
    """In the order of the file, unless only matrix products read it: they permute their weights instead."""
    data, result = op.input(0), op.output
    if of_integers(op, t, lambda x: np.reshape(x, result.known)):
        return
    held = t.anywhere(data)
    plain = t.ordered(held, identity(data.rank)) if held.tensor.is_constant else None
    is_flat = plain is None and result.rank == 2 and result.known[0] == data.known[0] and held.order[0] == 0
    if is_flat and _is_moved(held) and _feeds_products(t, result):
        index = np.arange(data.size // data.known[0]).reshape(data.known[1:])
        t.columns[result] = np.transpose(index, [axis - 1 for axis in held.order[1:]]).reshape(-1)
        keep(op, t, data, t.reshape(held.tensor, result.known), identity(2))
        return
    order = _joined(data.known, held.order, result.known)
    if order is not None:
        keep(op, t, data, t.reshape(held.tensor, permuted(result.known, order)), order)
        return
    tensor = t.ordered(held, identity(data.rank)) if data in t.real or data in t.eight else t.tensor(data)
    keep(op, t, data, t.reshape(tensor, result.known), identity(result.rank))


def _is_moved(held: Held) -> bool:
    """Return whether the elements are in another order than in the file."""
    shape = held.tensor.shape
    real = [axis for number, axis in enumerate(held.order) if shape[number] != 1]
    return real != sorted(real)


def _joined(source: Any, order: Order, result: Any) -> Order | None:
    """Return the order of a result with the same dimensions, apart from ones; None if others are joined or split."""
    kept = [axis for axis in order if source[axis] != 1]
    if [n for n in source if n != 1] != [n for n in result if n != 1]:
        return None
    numbers_of = {axis: number for number, axis in enumerate(sorted(kept))}
    places = [axis for axis, n in enumerate(result) if n != 1]
    moved = [places[numbers_of[axis]] for axis in kept]
    if moved == sorted(moved):
        return identity(len(result))
    ones = [axis for axis, n in enumerate(result) if n == 1]
    return (*ones, *moved)


_PASSING = frozenset(
    ("Relu", "Clip", "LeakyRelu", "Sigmoid", "Tanh", "Identity", "Dropout", "QuantizeLinear", "DequantizeLinear")
)


def _feeds_products(t: Translation, item: Item, depth: int = 0) -> bool:
    """Return whether all readers are products with constant matrices."""
    readers = t.readers.get(item, [])
    if not readers or item in t.outputs or depth > 8:
        return False
    for op in readers:
        first = op.inputs[0] if op.inputs else None
        if op.kind in ("Gemm", "MatMul") and first is item and not op.get("transA", 0):
            other = op.optional(1)
            bias = op.optional(2)
            known = all(one is None or t.values_of(one) is not None or _is_constant(one, t) for one in (other, bias))
            if other is None or not known or other.rank != 2:
                return False
        elif op.kind in ("DequantizeLinear", "QuantizeLinear") and first is item:
            if op.input(1).size != 1 or not _feeds_products(t, op.output, depth + 1):
                return False
        else:
            return False
    return True


def _is_constant(item: Item, t: Translation) -> bool:
    return item.content is not None or item in t.fixed or item in t.later_fixed


@translates("Squeeze", "Unsqueeze")
def squeeze(op: Op, t: Translation) -> None:
    """Dimensions of one element come and go: the others keep their order."""
    reshape(op, t)


@translates("Concat")
def concat(op: Op, t: Translation) -> None:
    """Quantised parts get the scale of the result first."""
    items = [op.input(i) for i in range(len(op.inputs))]
    result = op.output
    axis = int(op.get("axis", 0)) % result.rank
    order = next(
        (t.anywhere(i).order for i in items if t.values_of(i) is None and t.anywhere(i).order != identity(i.rank)),
        identity(result.rank),
    )
    shape = permuted(result.known, order)
    options: dict[str, Any] = {"axis": order.index(axis), "fused_activation_function": "NONE"}
    end = t.end(op, False)
    quantise_constants(t, items)
    if all(item in t.real for item in items):
        scales = [t.real[item].tensor.quantization for item in items]
        wanted = end.target.quantization if end.target is not None else scales[0]
        assert wanted is not None
        if end.target is not None or all(one == wanted for one in scales):
            parts = [t.requantised(t.ordered(t.real[item], order), wanted) for item in items]
            tensor = t.emit("CONCATENATION", parts, shape, "int8", wanted, result.name, **options)
            if end.target is not None:
                t.settle(end, tensor, order)
            else:
                t.real[result] = Held(tensor, order)
            return
    tensors = [operand(t, item, result.rank, order) for item in items]
    tensors = [t.reshape(one, permuted(item.known, order)) for one, item in zip(tensors, items, strict=True)]
    tensor = t.emit("CONCATENATION", tensors, shape, result.dtype, name=result.name, **options)
    settle_float(t, end, tensor, order)


@translates("Split")
def split(op: Op, t: Translation) -> None:
    """Parts along one dimension."""
    data = op.input(0)
    axis = int(op.get("axis", 0)) % data.rank
    held = t.anywhere(data)
    sizes = [one.known[axis] if one is not None else 0 for one in op.outputs]
    if sum(sizes) != data.known[axis] or 0 in sizes:
        raise Unsupported(f"parts {sizes} of {data.known[axis]} elements")
    where = held.order.index(axis)
    results = []
    for one in op.outputs:
        assert one is not None
        shape = permuted(one.known, held.order)
        results.append(Tensor(one.name, held.tensor.dtype, shape, held.tensor.quantization))
    inputs = [held.tensor, numbers(t, sizes, "sizes"), numbers(t, where, "axis")]
    t.append("SPLIT_V", inputs, results, {"num_splits": len(sizes)})
    home = t.home(data)
    for one, tensor in zip(op.outputs, results, strict=True):
        assert one is not None
        home[one] = Held(tensor, held.order)


@translates("Slice")
def part(op: Op, t: Translation) -> None:
    """SLICE, or STRIDED_SLICE for steps."""
    data = op.input(0)
    starts, ends = op.numbers(1, "starts"), op.numbers(2, "ends")
    axes, steps = op.numbers(3, "axes"), op.numbers(4)
    assert starts is not None and ends is not None
    axes = axes if axes is not None else tuple(range(len(starts)))
    steps = steps if steps is not None else (1,) * len(starts)
    if not len(starts) == len(ends) == len(axes) == len(steps) or 0 in steps:
        raise Unsupported(f"starts {list(starts)}, ends {list(ends)}, axes {list(axes)}, steps {list(steps)}")
    cut = [slice(None)] * data.rank
    for start, stop, axis, step in zip(starts, ends, axes, steps, strict=True):
        if not -data.rank <= axis < data.rank:
            raise Unsupported(f"axes {list(axes)} of {data.rank} dimensions")
        low = start if start >= 0 or step > 0 or start >= -data.known[axis] else None
        last = None if step < 0 and stop < -data.known[axis] else stop
        cut[axis % data.rank] = slice(low, last, step)
    if of_integers(op, t, lambda x: x[tuple(cut)]):
        return
    held = t.anywhere(data)
    ranges = [range(n)[one] for n, one in zip(data.known, cut, strict=True)]
    ranges = [ranges[axis] for axis in held.order]
    shape = tuple(len(one) for one in ranges)
    if 0 in shape:
        raise Unsupported(f"a part of {list(data.known)} without elements")
    begin = [one.start for one in ranges]
    if all(one.step == 1 or len(one) == 1 for one in ranges):
        if shape == held.tensor.shape:
            keep(op, t, data, held.tensor, held.order)
            return
        found = same(t, "SLICE", [held.tensor, numbers(t, begin, "begin"), numbers(t, shape, "size")], shape)
    else:
        stops = [one[0] + len(one) * one.step for one in ranges]
        mask = sum(1 << i for i, one in enumerate(stops) if one < 0)
        inputs = [
            held.tensor,
            numbers(t, begin, "begin"),
            numbers(t, [max(one, 0) for one in stops], "end"),
            numbers(t, [one.step for one in ranges], "strides"),
        ]
        masks = {"begin_mask": 0, "end_mask": mask, "ellipsis_mask": 0, "new_axis_mask": 0, "shrink_axis_mask": 0}
        found = same(t, "STRIDED_SLICE", inputs, shape, **masks)
    keep(op, t, data, found, held.order)


@translates("Gather")
def gather(op: Op, t: Translation) -> None:
    """Along one dimension; negative constant indices count from the end."""
    data, index = op.input(0), op.input(1)
    axis = int(op.get("axis", 0)) % data.rank
    if index.content is not None and of_integers(op, t, lambda x: np.take(x, index.content, axis)):
        return
    if data in t.fixed:
        quantise_constants(t, [data])
    held = t.anywhere(data)
    if held.order != identity(data.rank) and index.rank > 1:
        held = Held(t.ordered(held, identity(data.rank)), identity(data.rank))
    if index.content is not None:
        values = index.content.astype(np.int64)
        if ((values < -data.known[axis]) | (values >= data.known[axis])).any():
            raise Unsupported(f"an index outside of {data.known[axis]} elements")
        where = numbers(t, values % data.known[axis], index.name)
    else:
        where = t.tensor(index)
    place = held.order.index(axis)
    shape = (*held.tensor.shape[:place], *index.known, *held.tensor.shape[place + 1 :])
    found = same(t, "GATHER", [held.tensor, where], shape, axis=place, batch_dims=0)
    order = held.order
    if index.rank == 0:
        order = tuple(one - (one > axis) for one in order if one != axis)
    elif index.rank > 1:
        order = identity(len(shape))
    keep(op, t, data, found, order)


@translates("GatherND")
def gather_nd(op: Op, t: Translation) -> None:
    """Of the first dimensions."""
    if op.get("batch_dims", 0):
        raise Unsupported("GatherND with batch_dims", "0")
    data, index = op.input(0), op.input(1)
    held = t.anywhere(data)
    source = t.ordered(held, identity(data.rank))
    if index.content is not None:
        limits = np.asarray(data.known[: index.known[-1]])
        where = numbers(t, np.where(index.content < 0, index.content + limits, index.content), index.name)
    else:
        where = t.tensor(index)
    keep(op, t, data, same(t, "GATHER_ND", [source, where], op.output.known), identity(op.output.rank))


@translates("Pad")
def pad(op: Op, t: Translation) -> None:
    """With a constant, or mirrored; `edge` repeats the outer elements."""
    data = op.input(0)
    mode = op.get("mode", "constant")
    given = op.numbers(1, "pads")
    axes = op.numbers(3) or tuple(range(data.rank))
    if given is None or len(given) != 2 * len(axes):
        raise Unsupported(f"pads {given}", f"{2 * len(axes)} numbers")
    pairs = [[0, 0] for _ in range(data.rank)]
    for number, axis in enumerate(axes):
        pairs[axis % data.rank] = [given[number], given[number + len(axes)]]
    held = t.anywhere(data)
    source = held.tensor
    stored = [pairs[axis] for axis in held.order]
    if min(min(one) for one in stored) < 0:
        source, stored = _cropped(t, source, stored)
    shape = tuple(n + a + b for n, (a, b) in zip(source.shape, stored, strict=True))
    value = op.constant(2) if len(op.inputs) > 2 else op.attributes.get("value", None)
    amount = 0.0 if value is None else float(np.asarray(value).reshape(-1)[0])
    if shape == source.shape:
        found = source
    elif mode == "constant":
        found = _padded(t, data, source, stored, amount, shape)
    elif mode == "reflect":
        found = same(t, "MIRROR_PAD", [source, numbers(t, stored, "pads")], shape, mode="REFLECT")
    elif mode in ("edge", "wrap"):
        found = source
        for axis, (before, after) in enumerate(stored):
            if before or after:
                n = found.shape[axis]
                index = np.arange(-before, n + after)
                index = np.clip(index, 0, n - 1) if mode == "edge" else index % n
                wide = (*found.shape[:axis], len(index), *found.shape[axis + 1 :])
                found = same(t, "GATHER", [found, numbers(t, index, "index")], wide, axis=axis, batch_dims=0)
    else:
        raise Unsupported(f"mode {mode}", "constant, reflect, edge or wrap")
    keep(op, t, data, found, held.order)


def _cropped(t: Translation, source: Tensor, pads: list[list[int]]) -> tuple[Tensor, list[list[int]]]:
    """Cut off what negative pads remove; return the tensor and the other pads."""
    begin = [max(0, -one[0]) for one in pads]
    size = [n - max(0, -a) - max(0, -b) for n, (a, b) in zip(source.shape, pads, strict=True)]
    if min(size) < 1:
        raise Unsupported(f"pads {pads} of {list(source.shape)}")
    found = same(t, "SLICE", [source, numbers(t, begin, "begin"), numbers(t, size, "size")], tuple(size))
    return found, [[max(0, a), max(0, b)] for a, b in pads]


def _padded(t: Translation, data: Item, source: Tensor, pads: Any, amount: float, shape: Any) -> Tensor:
    where = numbers(t, pads, "pads")
    scale = source.quantization
    if data in t.real:
        assert scale is not None
        stored = np.rint(np.float64(np.float32(amount) / np.float32(scale.scale))) + scale.zero
        whole = int(np.clip(stored, -128, 127))
        if whole == scale.zero:
            return same(t, "PAD", [source, where], shape)
    elif data in t.eight:
        whole = int(amount) - (128 if data.dtype == "uint8" else 0)
    elif amount == 0:
        return same(t, "PAD", [source, where], shape)
    else:
        return same(t, "PADV2", [source, where, t.constant(np.asarray(amount, source.dtype), "value")], shape)
    return same(t, "PADV2", [source, where, t.constant(np.asarray(whole, np.int8), "value", scale)], shape)


@translates("Expand")
def expand(op: Op, t: Translation) -> None:
    """Repeat dimensions of one element."""
    data, result = op.input(0), op.output
    held = t.anywhere(data)
    rank = result.rank
    order = held.order if data.rank == rank else identity(rank)
    source = held.tensor if data.rank == rank else raised(t, t.ordered(held, identity(data.rank)), rank, order)
    shape = permuted(result.known, order)
    found = source if source.shape == shape else same(t, "BROADCAST_TO", [source, numbers(t, shape, "shape")], shape)
    keep(op, t, data, found, order)


@translates("Tile")
def tile(op: Op, t: Translation) -> None:
    """Repeat whole dimensions."""
    data = op.input(0)
    repeats = op.numbers(1)
    assert repeats is not None
    held = t.anywhere(data)
    stored = [repeats[axis] for axis in held.order]
    shape = permuted(op.output.known, held.order)
    keep(op, t, data, same(t, "TILE", [held.tensor, numbers(t, stored, "repeats")], shape), held.order)


@translates("DepthToSpace", "SpaceToDepth")
def blocks(op: Op, t: Translation) -> None:
    """TFLite's operators in NHWC; mode CRD reorders the channels first."""
    data = op.input(0)
    size = int(op.get("blocksize", 0))
    if data.rank != 4 or size < 1:
        raise Unsupported(f"blocksize {size}, data {list(data.known)}")
    order = channels_last(4)
    held = t.anywhere(data)
    source = t.ordered(held, order)
    if op.kind == "DepthToSpace" and op.get("mode", "DCR") == "CRD":
        depth = data.known[1]
        index = np.arange(depth).reshape(depth // (size * size), size * size).T.reshape(-1)
        source = same(t, "GATHER", [source, numbers(t, index, "index")], source.shape, axis=3, batch_dims=0)
    kind = "DEPTH_TO_SPACE" if op.kind == "DepthToSpace" else "SPACE_TO_DEPTH"
    found = same(t, kind, [source], permuted(op.output.known, order), block_size=size)
    keep(op, t, data, found, order)


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
