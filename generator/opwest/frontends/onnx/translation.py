# SPDX-License-Identifier: Apache-2.0
"""A graph in the making: where the tensors of an ONNX model are stored, in which layout and as which numbers.

A layout is an `order`: dimension i of the stored tensor is dimension order[i] of the ONNX tensor. Operators request the
order that they need, and leave their results in the order that they compute. A TRANSPOSE is added only where an
operator needs another order than the stored one. 8-bit tensors with a scale are stored as int8; uint8 remains at the
interface.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.base.result import counted
from opwest.compiler.graph.types import Node, Quantization, Rules, Shape, Tensor, Unsupported
from opwest.compiler.reference.elementwise import quantised_even
from opwest.compiler.semantics.elementwise import QuantizeNumbers
from opwest.frontends.onnx.values import Item, Model, Op


def parameters(op: Op) -> tuple[Any, Any] | None:
    """Return scales and zero points of QuantizeLinear or DequantizeLinear, 1-d; None if they are not constant."""
    scale, zero = op.input(1), op.optional(2)
    if scale.content is None or (zero is not None and zero.content is None) or op.get("block_size", 0):
        return None
    scales = np.asarray(scale.content, np.float32)
    zeros = np.zeros(scales.shape, np.int64) if zero is None else np.asarray(zero.content).astype(np.int64)
    scales, zeros = scales.reshape(-1), zeros.reshape(-1)
    if not len(scales) or len(scales) != len(zeros):
        raise Unsupported(f"{counted(len(scales), 'scale')} and {len(zeros)} zero points")
    wrong = scales[~(np.isfinite(scales) & (scales > 0))]
    if len(wrong):
        hint = "quantisers write it for infinite values: use a large number, such as -1e4 in the mask of an attention"
        raise Unsupported(f"scale {wrong[0]:g}", "a positive number", hint if np.isinf(wrong[0]) else "")
    return scales, zeros


def int8_of(op: Op) -> Quantization | None:
    """Return the quantisation of 8-bit data as int8, None for other dtypes and more than one scale."""
    item = op.output if op.kind == "QuantizeLinear" else op.input(0)
    constants = parameters(op)
    if item.dtype not in ("int8", "uint8") or constants is None or len(constants[0]) != 1:
        return None
    return Quantization((float(constants[0][0]),), (int(constants[1][0]) - (128 if item.dtype == "uint8" else 0),))


def as_signed(content: Any, zeros: Any) -> tuple[Any, Any]:
    """Return int8 or uint8 integers, and their zero points, as int8."""
    move = 128 if content.dtype == np.uint8 else 0
    return (content.astype(np.int16) - move).astype(np.int8), zeros - move


RELUS: dict[tuple[float | None, float | None], str] = {
    (0.0, None): "RELU",
    (0.0, 6.0): "RELU6",
    (-1.0, 1.0): "RELU_N1_TO_1",
}
"""TFLite's operators and fused activations by their limits."""


def activation_of(op: Op) -> str | None:
    """Return TFLite's fused activation for an operator, None if there is none."""
    if op.kind == "Relu":
        return "RELU"
    if op.kind != "Clip":
        return None
    low, high = limits_of_clip(op)
    return RELUS.get((low, high))


def limits_of_clip(op: Op) -> tuple[float | None, float | None]:
    """Return the constant limits of Clip, None for none. Raises Unsupported."""
    limits: list[float | None] = []
    for number, name, absent in ((1, "min", -3.4e38), (2, "max", 3.4e38)):
        value = op.constant(number, name)
        limit = None if value is None else float(np.asarray(value).reshape(-1)[0])
        if limit is not None and (limit <= absent if number == 1 else limit >= absent):
            limit = None
        limits.append(limit)
    return limits[0], limits[1]


def table_of(source: Quantization, target: Quantization, function: Any, rules: Rules) -> Any:
    """Return the int8 results of a float32 function for the int8 values -128 to 127, rounded as QuantizeLinear does."""
    numbers = QuantizeNumbers(target.scale, target.zero, -128, 127, rules.inverse_scales)
    values = np.arange(-128, 128).astype(np.float32) - np.float32(source.zero)
    with np.errstate(all="ignore"):
        results = np.asarray(function(values * np.float32(source.scale)), np.float32)
        return quantised_even(results, numbers).astype(np.int8)


Order = tuple[int, ...]


@dataclass(frozen=True)
class StoredTensor:
    """A stored tensor and its order."""

    tensor: Tensor
    order: Order


@dataclass(frozen=True)
class Constant:
    """The integers of a constant that DequantizeLinear reads."""

    content: Any
    """In the dtype of the file."""
    scales: Any
    """float32 [n]"""
    zeros: Any
    """int64 [n]"""
    axis: int | None
    """None: one scale."""

    def real(self) -> Any:
        """Return the float32 values."""
        shape = [1] * self.content.ndim
        if self.axis is not None:
            shape[self.axis] = -1
        centred = self.content.astype(np.int64) - self.zeros.reshape(shape)
        return centred.astype(np.float32) * self.scales.reshape(shape)


@dataclass(frozen=True)
class Epilogue:
    """The operators fused into this one."""

    item: Item
    """The result after the activation."""
    activation: str
    absorbed: tuple[Op, ...]
    """The activation."""
    quantization: Quantization | None
    """That of the result as int8, if only operators QuantizeLinear read it."""


def identity(rank: int) -> Order:
    """Return the order of the file."""
    return tuple(range(rank))


def channels_last(rank: int) -> Order:
    """Return the order of an image: NHWC for NCHW."""
    return (0, *range(2, rank), 1)


def with_last(order: Order, axis: int) -> Order:
    """Return an order with a dimension last."""
    return (*(other for other in order if other != axis), axis)


def without(order: Order, axes: Container[int]) -> Order:
    """Return the order of what remains without some dimensions of the ONNX tensor."""
    left = [axis for axis in order if axis not in axes]
    return tuple(sorted(left).index(axis) for axis in left)


def permuted(shape: Sequence[int], order: Iterable[int]) -> Shape:
    """Return the shape in an order."""
    return tuple(shape[axis] for axis in order)


class Translation:
    """Nodes and tensors of a graph in the making."""

    def __init__(self, model: Model, rules: Rules) -> None:
        self.rules = rules
        self.nodes: list[Node] = []
        self.held: dict[Item, list[StoredTensor]] = {}
        """Tensors in the dtype of the file, by order; the first is the one that was computed."""
        self.eight: dict[Item, StoredTensor] = {}
        """8-bit integers with a scale, as int8."""
        self.real: dict[Item, StoredTensor] = {}
        """float32 tensors that are known as int8 with a scale: results of DequantizeLinear."""
        self.fixed: dict[Item, Constant] = {}
        """Constants that DequantizeLinear reads, by its result."""
        self.columns: dict[Item, Any] = {}
        """Flattened images [n, length] with other columns: stored column i is column columns[i]."""
        self.later_fixed = {
            op.outputs[0] for op in model.ops if op.kind == "DequantizeLinear" and op.input(0).content is not None
        }
        """Constants that DequantizeLinear reads, known before it is translated."""
        self.centred: dict[Item, StoredTensor] = {}
        """int16 integers without their zero point: results of DynamicQuantizeLinear."""
        self.done: set[Op] = set()
        self.outputs = set(model.kept)
        self.readers: dict[Item, list[Op]] = {}
        self.label = self.source = ""
        for op in model.ops:
            for item in op.given:
                self.readers.setdefault(item, []).append(op)

    # Nodes.

    def emit(
        self,
        kind: str,
        inputs: Sequence[Tensor | None],
        shape: Shape,
        dtype: str = "float32",
        quantization: Quantization | None = None,
        name: str = "",
        **options: Any,
    ) -> Tensor:
        """Append a node with one result."""
        first = next((tensor for tensor in inputs if tensor is not None), None)
        tensor = Tensor(name or (first.name if first else ""), dtype, tuple(int(n) for n in shape), quantization)
        self.append(kind, inputs, [tensor], options)
        return tensor

    def append(
        self, kind: str, inputs: Sequence[Tensor | None], results: Sequence[Tensor], options: Mapping[str, Any]
    ) -> None:
        """Append a node."""
        self.nodes.append(Node(kind, tuple(inputs), tuple(results), dict(options), self.label, source=self.source))

    def constant(self, array: Any, name: str = "constant", quantization: Quantization | None = None) -> Tensor:
        """Return a constant of the graph."""
        array = np.array(array, order="C")
        return Tensor(name, str(array.dtype), tuple(array.shape), quantization, array)

    def reshape(self, tensor: Tensor, shape: Shape) -> Tensor:
        """Return the elements in another shape."""
        if tensor.shape == tuple(shape):
            return tensor
        if tensor.is_constant:
            return self.constant(np.reshape(tensor.content, shape), tensor.name, tensor.quantization)
        wanted = self.constant(np.asarray(shape, np.int32), "shape")
        return self.emit("RESHAPE", [tensor, wanted], shape, tensor.dtype, tensor.quantization, new_shape=tuple(shape))

    def with_rank(self, tensor: Tensor, rank: int) -> Tensor:
        """Return the elements with ones before the other dimensions."""
        return self.reshape(tensor, (1,) * (rank - len(tensor.shape)) + tensor.shape)

    def transpose(self, tensor: Tensor, order: Order) -> Tensor:
        """Return the tensor with dimension i from dimension order[i]."""
        if order == identity(len(order)):
            return tensor
        shape = permuted(tensor.shape, order)
        if tensor.is_constant:
            return self.constant(np.transpose(tensor.content, order), tensor.name, tensor.quantization)
        moved = [axis for axis in order if tensor.shape[axis] != 1]
        if moved == sorted(moved):
            return self.reshape(tensor, shape)
        wanted = self.constant(np.asarray(order, np.int32), "order")
        return self.emit("TRANSPOSE", [tensor, wanted], shape, tensor.dtype, tensor.quantization)

    # Stored tensors.

    def ordered(self, held: StoredTensor, order: Order) -> Tensor:
        """Return a stored tensor in another order."""
        return self.transpose(held.tensor, tuple(held.order.index(axis) for axis in order))

    def stored(self, item: Item) -> StoredTensor:
        """Return where an item is stored in the dtype of the file."""
        if item not in self.held:
            order = None
            if item.content is not None:
                tensor = self.constant(item.content, item.name)
            elif item in self.fixed:
                tensor = self.constant(self.fixed[item].real(), item.name)
            elif item in self.real:
                source, order = self.real[item].tensor, self.real[item].order
                tensor = self.emit("DEQUANTIZE", [source], source.shape, name=item.name)
            elif item in self.eight:
                tensor, order = self._unsigned(self.eight[item].tensor, item), self.eight[item].order
            else:
                raise Unsupported(f"input '{item.name}' is the result of an unsupported operator")
            self.held[item] = [StoredTensor(tensor, identity(item.rank) if order is None else order)]
        return self.held[item][0]

    def tensor(self, item: Item, order: Order | None = None) -> Tensor:
        """Return an item in the dtype of the file, in an order (None: that of the file)."""
        order = identity(item.rank) if order is None else order
        first = self.stored(item)
        for held in self.held[item]:
            if held.order == order:
                return held.tensor
        tensor = self.ordered(first, order)
        self.held[item].append(StoredTensor(tensor, order))
        return tensor

    def put(self, item: Item, tensor: Tensor, order: Order | None = None) -> None:
        """Set where an item is stored."""
        if tensor.name != item.name and not tensor.is_constant and self.nodes and tensor in self.nodes[-1].outputs:
            tensor.name = item.name
        self.held[item] = [StoredTensor(tensor, identity(item.rank) if order is None else order)]

    def values_of(self, item: Item) -> Any:
        """Return the array of a constant; None for other items."""
        if item.content is not None:
            return item.content
        return self.fixed[item].real() if item in self.fixed else None

    def constant_values(self, item: Item, what: str) -> Any:
        """Return the array of a constant; `what` is its purpose in messages. Raises Unsupported."""
        values = self.values_of(item)
        if values is None:
            raise Unsupported(f"{what} '{item.name}' is computed when the model runs", "a constant")
        return values

    # Integers with a scale.

    def lookup(self, tensor: Tensor, table: Any, quantization: Quantization | None, name: str = "") -> Tensor:
        """Return table[value] for 8-bit data; the table starts with the least value."""
        constant = self.constant(table, "table")
        return self.emit("ONNX_LOOKUP", [tensor, constant], tensor.shape, constant.dtype, quantization, name)

    def _unsigned(self, tensor: Tensor, item: Item) -> Tensor:
        """Return int8 data in the dtype of the file."""
        if item.dtype == "int8":
            return tensor
        assert tensor.quantization is not None
        moved = Quantization(tensor.quantization.scales, (tensor.quantization.zero + 128,))
        return self.lookup(tensor, np.arange(256).astype(np.uint8), moved, item.name)

    def as_int8(self, item: Item, quantization: Quantization) -> StoredTensor:
        """Return 8-bit data with a scale, as int8; `quantization` is that of the int8 data."""
        known = self.eight.get(item)
        if known is not None and known.tensor.quantization == quantization:
            return known
        tensor, order = self.stored(item).tensor, self.stored(item).order
        move = 128 if item.dtype == "uint8" else 0
        tensor.quantization = tensor.quantization or Quantization(quantization.scales, (quantization.zero + move,))
        if item.dtype == "uint8" or tensor.quantization != quantization:
            tensor = self.lookup(tensor, np.arange(-128, 128).astype(np.int8), quantization, item.name)
        self.eight.setdefault(item, StoredTensor(tensor, order))
        return StoredTensor(tensor, order)

    def rounded(self, tensor: Tensor, dtype: str, quantization: Quantization, name: str = "") -> Tensor:
        """Return float32 data as integers, rounded as QuantizeLinear does."""
        by = self.rules.inverse_scales
        return self.emit("ONNX_QUANTIZE", [tensor], tensor.shape, dtype, quantization, name, by_inverse=by)

    def requantised(self, tensor: Tensor, quantization: Quantization) -> Tensor:
        """Return int8 data with another scale, rounded as QuantizeLinear does."""
        if tensor.quantization == quantization:
            return tensor
        assert tensor.quantization is not None
        return self.lookup(tensor, table_of(tensor.quantization, quantization, lambda x: x, self.rules), quantization)

    def put_like(self, item: Item, result: Item, tensor: Tensor, order: Order) -> None:
        """Set where a result is stored, in the same form as an item: for parts and other orders of it."""
        for table in (self.real, self.eight):
            if item in table:
                table[result] = StoredTensor(tensor, order)
                return
        self.put(result, tensor, order)

    def anywhere(self, item: Item) -> StoredTensor:
        """Return an item as it is stored, for operators that move elements."""
        return self.real.get(item) or self.eight.get(item) or self.stored(item)

    def as_stored(self, item: Item, order: Order) -> Tensor:
        """Return an item in an order, as the integers that it is stored as, if it is."""
        held = self.real.get(item) or self.eight.get(item)
        return self.tensor(item, order) if held is None else self.ordered(held, order)

    # What follows an operator.

    def end(self, op: Op, with_activation: bool = True) -> Epilogue:
        """Return the activation and the quantisation that follow an operator."""
        item, activation = op.output, "NONE"
        absorbed: tuple[Op, ...] = ()
        readers = self.readers.get(item, [])
        if with_activation and len(readers) == 1 and item not in self.outputs:
            fused = activation_of(readers[0])
            if fused is not None:
                item, activation, absorbed = readers[0].output, fused, (readers[0],)
        return Epilogue(item, activation, absorbed, self._quantization_after(item))

    def _quantization_after(self, item: Item) -> Quantization | None:
        readers = self.readers.get(item, [])
        if not readers or item in self.outputs or any(reader.kind != "QuantizeLinear" for reader in readers):
            return None
        quantizations = [int8_of(reader) for reader in readers]
        first = quantizations[0]
        if first is None or any(quantization != first for quantization in quantizations):
            return None
        return first

    def finish(
        self,
        end: Epilogue,
        kind: str,
        inputs: Sequence[Tensor | None],
        shape: Shape,
        order: Order | None = None,
        **options: Any,
    ) -> None:
        """Append the node of an operator on int8 data with what follows it."""
        tensor = self.emit(kind, inputs, shape, "int8", end.quantization, end.item.name, **options)
        self.settle(end, tensor, order)

    def settle(self, end: Epilogue, tensor: Tensor, order: Order | None = None) -> None:
        """Set the storage of the result of a fused operator, quantised if it is not and QuantizeLinear follows."""
        self.done.update(end.absorbed)
        if end.quantization is None:
            self.put(end.item, tensor, order)
            return
        if tensor.quantization is None:
            tensor = self.rounded(tensor, "int8", end.quantization)
        order = identity(end.item.rank) if order is None else order
        for op in self.readers[end.item]:
            self.eight[op.output] = StoredTensor(tensor, order)
            self.done.add(op)


Translate = Callable[[Op, Translation], None]
TRANSLATIONS: dict[str, Translate] = {}
"""By operator. `read.py` imports all modules that fill it."""


def translates(*kinds: str) -> Callable[[Translate], Translate]:
    """Register a function. It can raise Unsupported."""

    def register(function: Translate) -> Translate:
        for kind in kinds:
            assert kind not in TRANSLATIONS, kind
            TRANSLATIONS[kind] = function
        return function

    return register
