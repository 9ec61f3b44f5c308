# SPDX-License-Identifier: Apache-2.0
"""The steps of a lowered model: operators and their tensors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from math import prod
from typing import Any, Literal

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.faults import fault
from opwest.frontends.tvm.lower import main_function

Role = Literal["input", "output", "constant", "intermediate"]


@dataclass(eq=False)
class Tensor:
    """A tensor; several Relax variables can refer to it, with other shapes of the same size."""

    role: Role
    dtype: str
    shape: tuple[int, ...]
    number: int
    content: Any = None
    """A constant's numpy array."""


@dataclass(frozen=True)
class Step:
    """One call; `writes` counts the last arguments, which are results."""

    function: str
    arguments: tuple[Tensor, ...]
    writes: int


@dataclass
class Steps:
    """A whole model."""

    inputs: list[Tensor] = field(default_factory=list)
    outputs: list[Tensor] = field(default_factory=list)
    constants: list[Tensor] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    copies: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Copy functions to create (dtype, elements): for outputs that are inputs, constants or other outputs."""
    shared_bytes: int = 0
    """The bytes of storage that TVM's own memory plan allocates."""

    @property
    def intermediates(self) -> list[Tensor]:
        """The intermediate tensors, in the order of the steps that write them."""
        found = (t for step in self.steps for t in step.arguments if t.role == "intermediate")
        return list(dict.fromkeys(found))


def extract_steps(module: Any) -> Steps:
    """Return the steps of a module from `lower_graph`."""
    return _Walk(main_function(module)).result()


class _Walk:
    def __init__(self, main: Any) -> None:
        self.main = main
        self.found = Steps()
        self.known: dict[Any, Any] = {}
        self.constants: dict[tuple[str, tuple[int, ...], bytes], Tensor] = {}
        self.written: set[Tensor] = set()
        self.count = 0

    def result(self) -> Steps:
        for parameter in self.main.params:
            tensor = self._new("input", parameter)
            self.found.inputs.append(tensor)
            self.known[parameter] = tensor
            self.written.add(tensor)
        for block in self.main.body.blocks:
            for binding in block.bindings:
                self.known[binding.var] = self._value(binding)
        self._name_outputs(list(self._flat(self._look(self.main.body.body))))
        return self.found

    def _new(self, role: Role, variable: Any) -> Tensor:
        self.count += 1
        return Tensor(role, *_type(variable), self.count)

    def _value(self, binding: Any) -> Any:
        value = binding.value
        if type(value).__name__ != "Call":
            return self._look(value)
        name = getattr(value.op, "name", None)
        if name is None:
            return self._call(value)
        if name == "relax.memory.alloc_storage":
            size = int(value.args[0].values[0])
            self.found.shared_bytes += -(-size // 16) * 16
            return None
        if name in ("relax.memory.alloc_tensor", "relax.builtin.alloc_tensor"):
            return self._new("intermediate", binding.var)
        if name == "relax.reshape":
            return self._look(value.args[0])
        if name.startswith("relax.memory.kill_"):
            return None
        raise fault(f"operator {name}, which writes {binding.var.name!r}, was not lowered by TVM")

    def _look(self, value: Any) -> Any:
        kind = type(value).__name__
        if kind == "Tuple":
            return [self._look(one) for one in value.fields]
        if kind == "TupleGetItem":
            return self._look(value.tuple_value)[int(value.index)]
        if hasattr(value, "value") and hasattr(value.value, "numpy"):
            return self._constant(value.value.numpy())
        return self.known[value]

    def _constant(self, array: Any) -> Tensor:
        key = (str(array.dtype), tuple(array.shape), array.tobytes())
        if key not in self.constants:
            self.count += 1
            self.constants[key] = Tensor("constant", key[0], key[1], self.count, array)
            self.written.add(self.constants[key])
        return self.constants[key]

    def _flat(self, value: Any) -> Iterator[Tensor]:
        if isinstance(value, list):
            for one in value:
                yield from self._flat(one)
        else:
            yield value

    def _call(self, call: Any) -> Any:
        arguments = tuple(t for arg in call.args for t in self._flat(self._look(arg)))
        results = [t for t in arguments if t not in self.written]
        name = call.op.name_hint
        if not results or list(arguments[-len(results) :]) != results:
            raise fault(f"unsupported operator '{name}': it modifies an argument in place")
        for tensor in arguments:
            if tensor.role == "constant" and tensor not in self.found.constants:
                self.found.constants.append(tensor)
        self.written.update(results)
        self.found.steps.append(Step(name, arguments, len(results)))
        return None

    def _name_outputs(self, results: list[Tensor]) -> None:
        """Make the returned tensors outputs; copy those that cannot be outputs."""
        shapes = list(self._flat_types(self.main.ret_ty))
        for tensor, (dtype, shape) in zip(results, shapes, strict=True):
            if tensor.role == "intermediate":
                tensor.role, tensor.shape = "output", shape
                self.found.outputs.append(tensor)
                continue
            self.count += 1
            copy = Tensor("output", dtype, shape, self.count)
            name = f"copy_{dtype}_{prod(shape)}"
            self.found.copies[name] = (dtype, prod(shape))
            if tensor.role == "constant" and tensor not in self.found.constants:
                self.found.constants.append(tensor)
            self.found.steps.append(Step(name, (tensor, copy), 1))
            self.found.outputs.append(copy)

    def _flat_types(self, kind: Any) -> Iterator[tuple[str, tuple[int, ...]]]:
        if type(kind).__name__ == "TupleType":
            for one in kind.fields:
                yield from self._flat_types(one)
        else:
            yield str(kind.dtype), tuple(int(d) for d in kind.shape.values)


def _type(variable: Any) -> tuple[str, tuple[int, ...]]:
    kind = variable.ty
    return str(kind.dtype), tuple(int(d) for d in kind.shape.values)
