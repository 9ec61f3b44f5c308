# SPDX-License-Identifier: Apache-2.0
"""Operators that move elements: the numbers stay as they are stored, so they are the same for int8 and float32."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opwest.base.result import counted
from opwest.compiler.graph.types import Tensor, Unsupported
from opwest.frontends.onnx.elements import operand, order_of, quantise_constants
from opwest.frontends.onnx.translation import (
    Constant,
    Order,
    StoredTensor,
    Translation,
    identity,
    permuted,
    translates,
    without,
)
from opwest.frontends.onnx.values import Item, Op


def of_integers(op: Op, t: Translation, change: Callable[[Any], Any], axis: Callable[[int], int] | None = None) -> bool:
    """Apply a function of numpy to the integers of a constant; return whether the input is one."""
    fixed = t.fixed.get(op.input(0))
    if fixed is None:
        return False
    if fixed.axis is not None and axis is None:
        t.held.setdefault(op.output, [StoredTensor(t.constant(change(fixed.real())), identity(op.output.rank))])
        return True
    where = None if fixed.axis is None or axis is None else axis(fixed.axis)
    t.fixed[op.output] = Constant(change(fixed.content), fixed.scales, fixed.zeros, where)
    return True


def same(t: Translation, kind: str, inputs: Sequence[Tensor | None], shape: Any, **options: Any) -> Tensor:
    """Append a node whose result has the dtype and the scale of the first input."""
    first = inputs[0]
    assert first is not None
    return t.emit(kind, inputs, shape, first.dtype, first.quantization, **options)


def numbers(t: Translation, values: Any, name: str) -> Tensor:
    """Return an int32 constant."""
    return t.constant(np.asarray(values, np.int32), name)


def sliced(t: Translation, tensor: Tensor, begin: Sequence[int], shape: Sequence[int]) -> Tensor:
    """Return a part of each dimension."""
    inputs = [tensor, numbers(t, begin, "begin"), numbers(t, shape, "size")]
    return same(t, "SLICE", inputs, tuple(shape))


def gathered(t: Translation, tensor: Tensor, index: Any, axis: int, name: str = "index") -> Tensor:
    """Return the slices at constant indices along one dimension."""
    shape = (*tensor.shape[:axis], len(index), *tensor.shape[axis + 1 :])
    return same(t, "GATHER", [tensor, numbers(t, index, name)], shape, axis=axis)


@translates("Identity", "Dropout")
def alias(op: Op, t: Translation) -> None:
    """The same tensor."""
    data = op.input(0)
    result, *others = op.outputs
    if op.kind == "Dropout":
        training = op.optional(2)
        chosen = training is not None and (training.content is None or bool(np.any(training.content)))
        if any(others) or chosen or op.is_training:
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
    data, result = op.input(0), op.output
    wanted = [int(n) for n in op.get("perm", list(range(data.rank))[::-1])]
    if sorted(wanted) != list(range(data.rank)):
        raise Unsupported(f"perm {wanted} of {counted(data.rank, 'dimension')}")
    if of_integers(op, t, lambda x: np.transpose(x, wanted), wanted.index):
        return
    held = t.anywhere(data)
    t.put_like(data, result, held.tensor, tuple(wanted.index(axis) for axis in held.order))


@translates("Reshape", "Flatten", "Squeeze", "Unsqueeze")
def reshape(op: Op, t: Translation) -> None:
    """In the order of the file, unless only matrix products read it: they permute their weights instead."""
    data, result = op.input(0), op.output
    if of_integers(op, t, lambda x: np.reshape(x, result.known)):
        return
    held = t.anywhere(data)
    is_flat = result.rank == 2 and result.known[0] == data.known[0] and held.order[0] == 0
    if is_flat and not held.tensor.is_constant and _is_moved(held) and _feeds_products(t, result):
        index = np.arange(data.size // data.known[0]).reshape(data.known[1:])
        t.columns[result] = np.transpose(index, [axis - 1 for axis in held.order[1:]]).reshape(-1)
        t.put_like(data, result, t.reshape(held.tensor, result.known), identity(2))
        return
    order = _joined(data.known, held.order, result.known)
    if order is not None:
        t.put_like(data, result, t.reshape(held.tensor, permuted(result.known, order)), order)
        return
    tensor = t.as_stored(data, identity(data.rank))
    t.put_like(data, result, t.reshape(tensor, result.known), identity(result.rank))


def _is_moved(held: StoredTensor) -> bool:
    """Return whether the elements are in another order than in the file."""
    shape = held.tensor.shape
    real = [axis for number, axis in enumerate(held.order) if shape[number] != 1]
    return real != sorted(real)


def _joined(source: Any, order: Order, result: Any) -> Order | None:
    """Return the order of a result with the same dimensions, apart from ones; None if others are joined or split."""
    if [n for n in source if n != 1] != [n for n in result if n != 1]:
        return None
    places = [axis for axis, n in enumerate(result) if n != 1]
    moved = [places[axis] for axis in without(order, [axis for axis, n in enumerate(source) if n == 1])]
    if moved == sorted(moved):
        return identity(len(result))
    ones = [axis for axis, n in enumerate(result) if n == 1]
    return (*ones, *moved)


def _feeds_products(t: Translation, item: Item, depth: int = 0) -> bool:
    """Return whether all readers are products with constant matrices."""
    readers = t.readers.get(item, [])
    if not readers or item in t.outputs or depth > 8:
        return False
    for op in readers:
        first = op.inputs[0] if op.inputs else None
        if op.kind in ("Gemm", "MatMul") and first is item and not op.get("transA", 0):
            constants = [item for item in op.inputs[1:3] if item is not None]
            known = all(item.content is not None or item in t.fixed or item in t.later_fixed for item in constants)
            if op.optional(1) is None or not known or op.input(1).rank != 2:
                return False
        elif op.kind in ("DequantizeLinear", "QuantizeLinear") and first is item:
            if op.input(1).size != 1 or not _feeds_products(t, op.output, depth + 1):
                return False
        else:
            return False
    return True


@translates("Concat")
def concat(op: Op, t: Translation) -> None:
    """Quantised parts get the scale of the result first."""
    items = [op.input(i) for i in range(len(op.inputs))]
    result = op.output
    axis = int(op.get("axis", 0)) % result.rank
    order = order_of(t, items, result.rank)
    shape = permuted(result.known, order)
    place = order.index(axis)
    end = t.end(op, False)
    if quantise_constants(t, items):
        scales = [t.real[item].tensor.quantization for item in items]
        wanted = end.quantization or scales[0]
        assert wanted is not None
        if end.quantization is not None or all(scale == wanted for scale in scales):
            parts = [t.requantised(t.ordered(t.real[item], order), wanted) for item in items]
            tensor = t.emit("CONCATENATION", parts, shape, "int8", wanted, result.name, axis=place)
            if end.quantization is not None:
                t.settle(end, tensor, order)
            else:
                t.real[result] = StoredTensor(tensor, order)
            return
    tensors = [operand(t, item, result.rank, order) for item in items]
    tensors = [t.reshape(tensor, permuted(item.known, order)) for tensor, item in zip(tensors, items, strict=True)]
    tensor = t.emit("CONCATENATION", tensors, shape, result.dtype, name=result.name, axis=place)
    t.settle(end, tensor, order)


@translates("Split")
def split(op: Op, t: Translation) -> None:
    """Parts along one dimension."""
    data = op.input(0)
    axis = int(op.get("axis", 0)) % data.rank
    held = t.anywhere(data)
    sizes = [output.known[axis] if output is not None else 0 for output in op.outputs]
    if sum(sizes) != data.known[axis] or 0 in sizes:
        raise Unsupported(f"parts {sizes} of {data.known[axis]} elements")
    where = held.order.index(axis)
    dtype, quantization = held.tensor.dtype, held.tensor.quantization
    results = [Tensor(item.name, dtype, permuted(item.known, held.order), quantization) for item in op.results]
    inputs = [held.tensor, numbers(t, sizes, "sizes"), numbers(t, where, "axis")]
    t.append("SPLIT_V", inputs, results, {"num_splits": len(sizes)})
    for item, tensor in zip(op.results, results, strict=True):
        t.put_like(data, item, tensor, held.order)
