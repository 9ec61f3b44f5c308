# SPDX-License-Identifier: Apache-2.0
"""Run a planned manifest in numpy: every tensor is at its planned place in the memory of its pool.

A step does what its operation does (`compiler/execution/`), on the memory that the manifest names. Memory that nothing
has written, and scratch memory, contain a pattern.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.execution.run import PATTERN, results_of
from opwest.compiler.ir.program import Operation, Program, Value
from opwest.compiler.output.emit import Step as Emitted
from opwest.compiler.output.manifest import Implementation
from opwest.model.types.model import Argument, Binding, Model, Step
from opwest.plan.memory import MemoryPlan

After = Callable[[int, Operation, Sequence[Any]], None]
"""Called after each step with its number, its operation and the arrays of its results."""


class Contradiction(Exception):  # noqa: N818 - a finding, which the caller completes
    """A step of the manifest that is not the operation of the program."""

    def __init__(self, reason: str, operation: Operation | None = None) -> None:
        super().__init__(reason)
        self.operation = operation


class Machine:
    """A model with its memory; the cases are a sequence of runs."""

    def __init__(self, model: Model, plan: MemoryPlan, implementation: Implementation) -> None:
        assert implementation.program is not None
        self._model, self._plan = model, plan
        self._program: Program = implementation.program
        self._constants = {constant.name: np.frombuffer(constant.content, np.uint8) for constant in model.constants}
        self._buffers = {buffer.name for buffer in model.buffers}
        names = implementation.names
        self._names = {value: names[value] for value in (*self._program.inputs, *self._program.outputs)}
        self._states = [names[value] for value in self._program.states]
        triples = zip(model.steps, implementation.emitted.steps, self._program.operations, strict=True)
        self._steps = [self._bound(*triple) for triple in triples]
        self._memory: dict[str, Any] = {}
        self._pools: dict[str, Any] = {}
        self._lasting: dict[str, Any] = {}
        self.open()

    def _bound(self, step: Step, emitted: Emitted, operation: Operation) -> _Bound:
        """Return the operands of a step. Raises Contradiction."""
        given: dict[Value, tuple[Binding, Argument]] = {}
        scratch = []
        values = iter(emitted.arguments)
        for argument, binding in zip(step.operator.args, step.bindings, strict=True):
            if argument.direction == "scratch":
                scratch.append((binding, argument))
            elif not argument.scalar:
                value = next(values)
                given[value] = binding, argument
                if value.role == "constant" and value.root is None:
                    self._check_constant(value, binding, operation)
        if next(values, None) is not None:
            raise Contradiction("a step has not all arguments of its operator", operation)
        operands = []
        for value in operation.inputs:
            if value.role == "constant" and value not in given:
                operands.append(value.content)
            elif value in given:
                operands.append(given[value])
            else:
                raise Contradiction(f"a step does not pass '{value.name}'", operation)
        results = []
        for value in operation.results:
            if value not in given or not given[value][1].is_written:
                raise Contradiction(f"a step does not write '{value.name}'", operation)
            results.append(given[value])
        return _Bound(operation, operands, results, scratch)

    def _check_constant(self, value: Value, binding: Binding, operation: Operation) -> None:
        """Raise Contradiction for a constant of the manifest with another content."""
        content = self._constants.get(binding.name)
        if content is None or content.tobytes() != np.ascontiguousarray(value.content).tobytes():
            raise Contradiction(f"the constant '{binding.shown}' has another content", operation)

    def open(self) -> None:
        """Set the initial content of states, and copy the constants that are in pools."""
        self._lasting = {}
        for state in self._model.states:
            size = state.type.size
            if state.initial is None:
                self._lasting[state.name] = np.zeros(size, np.uint8)
            else:
                self._lasting[state.name] = np.resize(self._constants[state.initial], size)
        for buffer in self._model.buffers:
            if buffer.role == "constant":
                self._lasting[buffer.name] = self._constants[buffer.name]

    def run(self, inputs: Sequence[Any], after: After | None = None) -> tuple[list[Any], list[Any]]:
        """Return the outputs and the states of one run. Raises ValueError where an operator returns an error code."""
        self._pools = {name: np.full(plan.size, PATTERN, np.uint8) for name, plan in self._plan.pools.items()}
        tensors = (*self._model.inputs, *self._model.outputs)
        self._memory = {tensor.name: np.full(tensor.type.size, PATTERN, np.uint8) for tensor in tensors}
        for name, content in self._lasting.items():
            self._at(name, 0, len(content))[:] = content
        for value, array in zip(self._program.inputs, inputs, strict=True):
            content = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
            self._at(self._names[value], 0, len(content))[:] = content
        for number, step in enumerate(self._steps):
            results = self._step(step)
            if after is not None:
                after(number, step.operation, results)
        self._end()
        outputs = [self._array(self._names[value], value) for value in self._program.outputs]
        states = [self._array(name, value) for name, value in zip(self._states, self._program.states, strict=True)]
        return outputs, states

    def _step(self, step: _Bound) -> tuple[Any, ...]:
        for binding, argument in step.scratch:
            self._at(binding.name, binding.offset, argument.type.size)[:] = PATTERN
        arrays = []
        for value, operand in zip(step.operation.inputs, step.operands, strict=True):
            array = self._view(*operand) if isinstance(operand, tuple) else operand
            arrays.append(array.reshape(value.shape))
        results = results_of(step.operation, arrays)
        for place, array in zip(step.results, results, strict=True):
            view = self._view(*place)
            view[...] = array.reshape(view.shape)
        return results

    def _end(self) -> None:
        """Copy the new contents of states, and keep the states."""
        for state in self._model.states:
            size = state.type.size
            if state.next is not None:
                self._at(state.name, 0, size)[:] = self._at(state.next.name, state.next.offset, size).copy()
        for name in self._lasting:
            self._lasting[name] = self._at(name, 0, len(self._lasting[name])).copy()

    def _at(self, name: str, offset: int, size: int) -> Any:
        """Return bytes of a tensor."""
        if name in self._buffers:
            pool, start = self._plan.place(name)
            whole, offset = self._pools[pool], start + offset
        else:
            whole = self._memory[name] if name in self._memory else self._constants[name]
        part = whole[offset : offset + size]
        if len(part) != size:
            raise Contradiction(f"'{name}' is outside of its memory")
        return part

    def _view(self, binding: Binding, argument: Argument) -> Any:
        """Return the array of an argument, which shares the memory."""
        kind = argument.type
        flat = self._at(binding.name, binding.offset, kind.size).view(kind.dtype.numpy)
        if not kind.pitch:
            return flat
        strides = (kind.pitch * flat.itemsize, flat.itemsize)
        return np.lib.stride_tricks.as_strided(flat, (kind.rows, kind.shape[-1]), strides)

    def _array(self, name: str, value: Value) -> Any:
        """Return the content of a tensor."""
        size = value.size * np.dtype(value.dtype).itemsize
        return self._at(name, 0, size).copy().view(value.dtype).reshape(value.shape)


@dataclass(frozen=True, eq=False)
class _Bound:
    """A step: its operation, and the memory of its operands."""

    operation: Operation
    operands: Sequence[Any]
    results: Sequence[Any]
    scratch: Sequence[tuple[Binding, Argument]]
