# SPDX-License-Identifier: Apache-2.0
"""Run a program on numpy arrays: every value is a part of the memory of its root, as in the emitted code."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import opwest.compiler.execution  # noqa: F401 - fills the table of functions
from opwest.compiler.execution.registry import results_of
from opwest.compiler.ir.program import Operation, Program, Value, extent_of, rows_of

PATTERN = 0xA5
"""The bytes of memory that nothing has written."""


def painted(size: int, dtype: str) -> Any:
    """Return memory for elements with the pattern in all bytes."""
    kind = np.dtype(dtype)
    return np.full(size * kind.itemsize, PATTERN, np.uint8).view(kind)


class Memory:
    """The memory of the values of a program during one run."""

    def __init__(self, content: Mapping[Value, Any]) -> None:
        """`content`: the arrays of inputs and states; those of states change."""
        self._arrays: dict[Value, Any] = dict(content)

    def part(self, value: Value) -> Any:
        """Return a value as an array that shares the memory of its root."""
        base = value.base
        if base not in self._arrays:
            content = painted(base.size, base.dtype) if base.content is None else np.array(base.content, order="C")
            self._arrays[base] = content
        memory = self._arrays[base].reshape(-1)
        if value.root is None:
            return memory.reshape(value.shape)
        return rows_of(memory[value.offset : value.offset + extent_of(value)], value)


def run_program(
    program: Program,
    inputs: Sequence[Any],
    state: dict[Value, Any] | None = None,
    after: Callable[[Operation, Memory], None] | None = None,
) -> list[Any]:
    """Return the outputs of one run. `state` has the content of states, and is updated.

    `after` is called after each operation. Raises ValueError where an operator returns an error code.
    """
    state = {} if state is None else state
    given = {value: np.array(array, order="C") for value, array in zip(program.inputs, inputs, strict=True)}
    for value in program.states:
        if value not in state:
            state[value] = np.zeros(value.shape, value.dtype) if value.content is None else np.array(value.content)
        given[value] = state[value]
    memory = Memory(given)
    for operation in program.operations:
        execute(operation, memory)
        if after is not None:
            after(operation, memory)
    for value in program.states:
        if value.next is not None:
            state[value] = memory.part(value.next).reshape(value.shape).copy()
    return [memory.part(value).copy() for value in program.outputs]


def execute(operation: Operation, memory: Memory) -> None:
    """Run one operation: all reads before all writes."""
    # An array of a state is the memory itself: operators change it in place.
    arrays = [memory.part(value) for value in operation.inputs]
    results = results_of(operation, arrays)
    for value, array in zip(operation.results, results, strict=True):
        memory.part(value)[...] = array
