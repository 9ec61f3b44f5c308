# SPDX-License-Identifier: Apache-2.0
"""Operators of ONNX in the making, from calls of PyTorch's operators."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.graph.types import Shape, Unsupported
from opwest.frontends.onnx.file import MAX_OPSET
from opwest.frontends.onnx.fold import evaluated
from opwest.frontends.onnx.values import Origin
from opwest.frontends.torch.program import Call, Code, Meta, Ref

_NOT_FOLDED = ("DequantizeLinear", "QuantizeLinear", "LSTM", "GRU", "RNN", "Dropout", "Resize")
FLOATS = ("float16", "bfloat16", "float32", "float64")
ALL = (1 << 63) - 1
"""The end of a slice that has no end."""


@dataclass(frozen=True, eq=False)
class Integers:
    """The integers of a constant with a scale, before DequantizeLinear."""

    content: Any
    scales: Any
    """float32 [n]"""
    zeros: Any
    """[n] in the dtype of the content."""
    axis: int | None
    """None: one scale."""


@dataclass(frozen=True, eq=False)
class Value:
    """A tensor of ONNX."""

    name: str
    dtype: str
    shape: Shape
    content: Any = None
    """The array of a constant."""
    integers: Integers | None = None
    """Those of a result of DequantizeLinear that is constant."""

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return prod(self.shape)


Operand = Value | int | float | bool


class Builder:
    """The operators, and the constants by name. `taken` are names of the program."""

    def __init__(self, taken: Iterable[str]) -> None:
        self.nodes: list[Any] = []
        """NodeProto of onnx."""
        self.constants: dict[str, Any] = {}
        self.origins: dict[str, Origin] = {}
        """What an operator is a part of, by the name of its first result."""
        self._origin = Origin("", "")
        self._first = 0
        self._count = 0
        self._prefix = ""
        self._taken = frozenset(taken)

    # Calls.

    def begin(
        self,
        call: Call,
        metas: Mapping[str, Meta],
        refusal: Unsupported | None = None,
        *,
        is_reported: bool = False,
    ) -> None:
        """Let the operators from here on be parts of a call."""
        types = {}
        for name in call.results:
            if name is not None and name in metas:
                types[name] = (metas[name].dtype, metas[name].shape)
        self._origin = Origin(call.label, call.shown, types, refusal, is_reported)
        self._prefix = next((name for name in call.results if name), f"node_{call.number}")
        self._first = len(self.nodes)

    def abandon(self) -> None:
        """Remove the operators of a call."""
        del self.nodes[self._first :]

    def named(self, results: Mapping[str, Value]) -> dict[str, Value]:
        """Give results of the call their names in the program; return the renamed ones by their names."""
        own = {name for node in self.nodes[self._first :] for name in node.output if name}
        table: dict[str, str] = {}
        values = {}
        for wanted, value in results.items():
            if value.name in own and value.name not in table:
                table[value.name] = wanted
                values[wanted] = Value(wanted, value.dtype, value.shape, None, value.integers)
            else:
                name = table.get(value.name, value.name)
                values[wanted] = dataclasses.replace(value, name=name)
        for node in self.nodes[self._first :]:
            for names in (node.input, node.output):
                for place, name in enumerate(names):
                    if name in table:
                        names[place] = table[name]
            first = next((name for name in node.output if name), "")
            self.origins[first] = self._origin
        return values

    def foreign(
        self, kind: str, inputs: Sequence[Value | None], results: Sequence[str], options: Mapping[str, Any]
    ) -> None:
        """Append a call as it is."""
        from onnx import helper

        names = ["" if value is None else value.name for value in inputs]
        outputs = list(results) or [self.name()]
        self.nodes.append(helper.make_node(kind, names, outputs, **options))
        self.origins[outputs[0]] = self._origin

    # Operators and constants.

    def name(self) -> str:
        """Return a new name: a C identifier if those of the program are."""
        while (name := f"{self._prefix}_{self._count}") in self._taken:
            self._count += 1
        self._count += 1
        return name

    def nodes_of(
        self, kind: str, inputs: Sequence[Value | None], types: Sequence[tuple[str, Shape] | None], **attributes: Any
    ) -> list[Value | None]:
        """Append an operator with results of these types; None for a result that nothing reads."""
        from onnx import helper

        if kind not in _NOT_FOLDED and all(value is None or value.content is not None for value in inputs):
            folded = self._folded(kind, inputs, len(types), attributes)
            if folded is not None:
                return folded
        results = [None if kind_of is None else Value(self.name(), *kind_of) for kind_of in types]
        names = ["" if value is None else value.name for value in inputs]
        while names and not names[-1]:
            names.pop()
        given = {name: value for name, value in attributes.items() if value is not None}
        outputs = ["" if result is None else result.name for result in results]
        self.nodes.append(helper.make_node(kind, names, outputs, **given))
        self.origins[next((name for name in outputs if name), "")] = self._origin
        return results

    def _folded(
        self, kind: str, inputs: Sequence[Value | None], count: int, attributes: Mapping[str, Any]
    ) -> list[Value | None] | None:
        """Return the results of an operator on constants; None if they are not known."""
        from onnx import helper

        given = {name: value for name, value in attributes.items() if value is not None}
        names = ["" if value is None else f"x{place}" for place, value in enumerate(inputs)]
        node = helper.make_node(kind, names, [f"y{place}" for place in range(count)], **given)
        arrays = {name: value.content for name, value in zip(names, inputs, strict=True) if value is not None}
        with np.errstate(all="ignore"):
            results = evaluated(node, arrays, MAX_OPSET)
        return None if results is None else [self.constant(np.asarray(array)) for array in results]

    def op(
        self, kind: str, inputs: Sequence[Value | None], shape: Sequence[int], dtype: str = "", **attributes: Any
    ) -> Value:
        """Append an operator with one result; the dtype is that of the first input if there is none."""
        first = next((value for value in inputs if value is not None), None)
        dtype = dtype or (first.dtype if first is not None else "float32")
        [result] = self.nodes_of(kind, inputs, [(dtype, tuple(int(n) for n in shape))], **attributes)
        assert result is not None
        return result

    def constant(self, array: Any, dtype: str = "") -> Value:
        """Return a constant."""
        content = np.asarray(array, dtype or None)
        name = self.name()
        self.constants[name] = content
        return Value(name, str(content.dtype), content.shape, content)

    def ints(self, numbers: Iterable[int]) -> Value:
        """Return integers as a constant of one dimension."""
        return self.constant(np.asarray(list(numbers), np.int64))

    def operand(self, given: Operand, dtype: str) -> Value:
        """Return a tensor or a number in a dtype."""
        if isinstance(given, Value):
            return self.cast(given, dtype)
        with np.errstate(all="ignore"):
            return self.constant(np.asarray(given).astype(dtype))

    def cast(self, value: Value, dtype: str) -> Value:
        """Return a tensor in a dtype."""
        if value.dtype == dtype:
            return value
        if value.content is not None:
            with np.errstate(all="ignore"):
                return self.constant(value.content.astype(dtype))
        from onnx import helper

        return self.op("Cast", [value], value.shape, dtype, to=helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def dequantised(self, integers: Integers) -> Value:
        """Return the real values of a constant with a scale."""
        is_single = integers.axis is None
        parameters = [integers.scales, integers.zeros]
        scale, zero = (self.constant(array.reshape(()) if is_single else array) for array in parameters)
        inputs = [self.constant(integers.content), scale, zero]
        made = self.op("DequantizeLinear", inputs, integers.content.shape, "float32", axis=integers.axis)
        return Value(made.name, made.dtype, made.shape, None, integers)

    # Movement.

    def reshape(self, value: Value, shape: Sequence[int]) -> Value:
        """Return the elements in another shape."""
        shape = tuple(int(n) for n in shape)
        if shape == value.shape:
            return value
        if value.content is not None:
            return self.constant(value.content.reshape(shape))
        return self.op("Reshape", [value, self.ints(shape)], shape, allowzero=1 if 0 in shape else None)

    def transpose(self, value: Value, order: Sequence[int]) -> Value:
        """Return the tensor with dimension i from dimension order[i]."""
        order = [int(axis) for axis in order]
        if order == list(range(value.rank)):
            return value
        if value.content is not None:
            return self.constant(np.ascontiguousarray(value.content.transpose(order)))
        if value.integers is not None:
            whole = value.integers
            content = np.ascontiguousarray(whole.content.transpose(order))
            axis = None if whole.axis is None else order.index(whole.axis)
            return self.dequantised(Integers(content, whole.scales, whole.zeros, axis))
        return self.op("Transpose", [value], [value.shape[axis] for axis in order], perm=order)

    def slice(self, value: Value, axis: int, start: int, stop: int, step: int = 1) -> Value:
        """Return a range of a dimension: start and stop are between 0 and the number of elements."""
        if (start, stop, step) == (0, value.shape[axis], 1):
            return value
        count = max(0, -(-(stop - start) // step))
        shape = [*value.shape[:axis], count, *value.shape[axis + 1 :]]
        if value.content is not None:
            cut = tuple(slice(start, stop, step) if i == axis else slice(None) for i in range(value.rank))
            return self.constant(np.ascontiguousarray(value.content[cut]))
        numbers = [self.ints([n]) for n in (start, stop, axis, step)]
        return self.op("Slice", [value, *numbers], shape)

    def expand(self, value: Value, shape: Sequence[int]) -> Value:
        """Repeat dimensions of one element."""
        if tuple(shape) == value.shape:
            return value
        return self.op("Expand", [value, self.ints(shape)], shape)

    def concat(self, values: Sequence[Value], axis: int) -> Value:
        """Join tensors."""
        values = [value for value in values if value.shape[axis]]
        if len(values) == 1:
            return values[0]
        shape = list(values[0].shape)
        shape[axis] = sum(value.shape[axis] for value in values)
        return self.op("Concat", values, shape, axis=axis)

    # Arithmetic.

    def binary(self, kind: str, one: Operand, other: Operand, dtype: str = "") -> Value:
        """Append an operator of two operands with one dtype; that of a tensor if there is none."""
        wanted = dtype or next(value.dtype for value in (one, other) if isinstance(value, Value))
        operands = [self.operand(value, wanted) for value in (one, other)]
        shape = broadcast(*(value.shape for value in operands))
        return self.op(kind, operands, shape, "bool" if kind in COMPARISONS else wanted)

    def unary(self, kind: str, value: Value, **attributes: Any) -> Value:
        """Append an operator of one operand."""
        return self.op(kind, [value], value.shape, **attributes)


COMPARISONS = ("Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual")


def broadcast(*shapes: Shape) -> Shape:
    """Return the common shape. Raises Unsupported."""
    try:
        return tuple(int(n) for n in np.broadcast_shapes(*shapes))
    except ValueError:
        raise Unsupported(f"operands of the shapes {', '.join(str(list(shape)) for shape in shapes)}") from None


class Context:
    """A call with its tensors as values."""

    def __init__(self, call: Call, metas: Mapping[str, Meta], read: Callable[[str], Value], build: Builder) -> None:
        self.call = call
        self.build = build
        self._read = read
        self.results = [None if name is None else metas.get(name) for name in call.results]

    @property
    def meta(self) -> Meta:
        """The type of the first result. Raises Unsupported."""
        first = next((meta for meta in self.results if meta is not None), None)
        if first is None:
            raise Unsupported("no result that is a tensor")
        return first

    @property
    def overload(self) -> str:
        """The overload, such as Tensor."""
        return self.call.target.rpartition(".")[2]

    def has(self, *names: str) -> bool:
        """Return whether one of some arguments is given and not None."""
        return any(self.call.arguments.get(name) is not None for name in names)

    def get(self, name: str, default: Any = None) -> Any:
        """Return an argument: a value, a number, a text, a list; the default if it is absent or None."""
        value = self.call.arguments.get(name)
        return default if value is None else self._converted(value)

    def _converted(self, value: Any) -> Any:
        if isinstance(value, Ref):
            return self._read(value.name)
        return [self._converted(item) for item in value] if isinstance(value, list) else value

    def tensor(self, *names: str) -> Value:
        """Return the tensor of the first argument that is given. Raises Unsupported."""
        value = self.optional(*names)
        if value is None:
            raise Unsupported(f"no tensor '{names[0]}'")
        return value

    def optional(self, *names: str) -> Value | None:
        """Return the tensor of the first argument that is given; None if it is absent. Raises Unsupported."""
        value = next((found for name in names if (found := self.get(name)) is not None), None)
        if value is not None and not isinstance(value, Value):
            raise Unsupported(f"'{names[0]}' is no tensor")
        return value

    def tensors(self, name: str) -> list[Value]:
        """Return a list of tensors. Raises Unsupported."""
        values = self.get(name)
        if not isinstance(values, list) or not all(isinstance(value, Value) for value in values):
            raise Unsupported(f"'{name}' is no list of tensors")
        return values

    def operand(self, name: str, default: Operand | None = None) -> Operand:
        """Return a tensor or a number. Raises Unsupported."""
        value = self.get(name, default)
        if not isinstance(value, (Value, int, float)):
            raise Unsupported(f"'{name}' is no tensor and no number")
        return value

    def number(self, name: str, default: float | None = None) -> float:
        """Return a number, also that of a constant tensor of one element. Raises Unsupported."""
        value = self.get(name, default)
        if isinstance(value, Value) and value.content is not None and value.size == 1:
            value = value.content.reshape(-1)[0].item()
        if not isinstance(value, (int, float)):
            raise Unsupported(f"'{name}' is not a number that is known at import", "a number")
        return value

    def integer(self, name: str, default: int | None = None) -> int:
        """Return an integer. Raises Unsupported."""
        value = self.number(name, default)
        if value != int(value):
            raise Unsupported(f"'{name}' is {value}", "an integer")
        return int(value)

    def flag(self, name: str, default: bool = False) -> bool:
        """Return a bool."""
        return bool(self.number(name, default))

    def integers(self, name: str, default: Sequence[int] | None = None) -> list[int]:
        """Return integers; one number is a list of one. Raises Unsupported."""
        value = self.get(name, default)
        if isinstance(value, int):
            return [value]
        if not isinstance(value, (list, tuple)) or not all(type(number) is int for number in value):
            raise Unsupported(f"'{name}' is no list of integers")
        return list(value)

    def text(self, name: str, default: str) -> str:
        """Return a text. Raises Unsupported."""
        value = self.get(name, default)
        if not isinstance(value, str):
            raise Unsupported(f"'{name}' is no text")
        return value

    def dtype(self, name: str = "dtype") -> str | None:
        """Return the dtype of an argument."""
        value = self.call.arguments.get(name)
        return value.value if isinstance(value, Code) and value.kind == "dtype" else None


def axis_of(axis: int, rank: int) -> int:
    """Return a dimension counted from the start. Raises Unsupported."""
    if not -max(rank, 1) <= axis < max(rank, 1):
        raise Unsupported(f"dimension {axis} of {rank}")
    return axis % max(rank, 1)


def axes_of(axes: Iterable[int], rank: int) -> list[int]:
    """Return different dimensions counted from the start. Raises Unsupported."""
    made = [axis_of(axis, rank) for axis in axes]
    if len(set(made)) != len(made):
        raise Unsupported(f"the dimensions {made}")
    return made


Results = Value | Sequence[Value | None]
Translate = Callable[[Context, Builder], Results]
TRANSLATIONS: dict[str, Translate] = {}
"""By namespace and operator, or also the overload. `read.py` imports all modules that fill it."""


def translates(*names: str) -> Callable[[Translate], Translate]:
    """Register a function for operators of ATen, or of another namespace with it. It can raise Unsupported."""

    def register(function: Translate) -> Translate:
        for name in names:
            key = name if name.partition(".")[0] in _NAMESPACES else f"aten.{name}"
            assert key not in TRANSLATIONS, key
            TRANSLATIONS[key] = function
        return function

    return register


_NAMESPACES = ("aten", "quantized_decomposed", "torchao", "pt2e_quant", "prims", "higher_order")
