# SPDX-License-Identifier: Apache-2.0
"""Run a program on numpy arrays: every value is a part of the memory of its root, as in the emitted code."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from opwest.compiler.graph.spec import registrar
from opwest.compiler.ir.program import Operation, Program, Value, extent_of, rows_of
from opwest.compiler.reference.run import converted, initial_content

Arrays = Sequence[Any]
"""numpy arrays in the shapes of the values."""
Function = Callable[[Any, Arrays], Any]
"""From an operation and the arrays of its inputs to the array of its result, or a tuple of arrays, in any dtype and
shape. States change in place. Raises ValueError where the operator returns an error code."""

FUNCTIONS: dict[type[Operation], Function] = {}
"""By type. Importing the package fills it."""
executes = registrar(FUNCTIONS)
PATTERN = 0xA5
"""The bytes of memory that nothing has written."""


class Memory:
    """The memory of the values of a program during one run."""

    def __init__(self, content: Mapping[Value, Any]) -> None:
        """`content`: the arrays of inputs and states; those of states change."""
        self._arrays: dict[Value, Any] = dict(content)

    def part(self, value: Value) -> Any:
        """Return a value as an array that shares the memory of its root."""
        base = value.base
        if base not in self._arrays:
            if base.content is None:
                self._arrays[base] = np.full(base.nbytes, PATTERN, np.uint8).view(base.dtype)
            else:
                self._arrays[base] = np.array(base.content, order="C")
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
            state[value] = initial_content(value)
        given[value] = state[value]
    memory = Memory(given)
    for operation in program.operations:
        # All reads are before all writes. An array of a state is the memory itself: operators change it in place.
        results = results_of(operation, [memory.part(value) for value in operation.inputs])
        for value, array in zip(operation.results, results, strict=True):
            memory.part(value)[...] = array
        if after is not None:
            after(operation, memory)
    for value in program.states:
        if value.next is not None:
            state[value] = memory.part(value.next).reshape(value.shape).copy()
    return [memory.part(value).copy() for value in program.outputs]


def results_of(operation: Operation, arrays: Arrays) -> tuple[Any, ...]:
    """Return the results of an operation in the dtypes and shapes of its values."""
    with np.errstate(all="ignore"):
        return converted(FUNCTIONS[type(operation)](operation, arrays), operation.results)
