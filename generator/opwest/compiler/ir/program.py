# SPDX-License-Identifier: Apache-2.0
"""Values and programs."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import field
from math import prod
from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.graph.types import Quantization, Shape, Tensor

LOWERING = "lowering"
"""What made a program that no pass has changed."""


@dataclass(eq=False)
class Value:
    """A tensor in memory, compared by identity."""

    name: str
    """The name in the model; it need not be an identifier."""
    role: str
    """input, output, state, constant, intermediate, arena: memory for views that a compiler has planned."""
    dtype: str
    shape: Shape
    quantization: Quantization | None = None
    content: Any = None
    """The array of a constant, or the initial content of a state."""
    root: Value | None = None
    """The value that contains this view, which has no memory of its own."""
    offset: int = 0
    """The first element of a view, in elements of its root."""
    pitch: int = 0
    """Row stride of a view in its root, in elements; 0: contiguous."""
    next: Value | None = None
    """The value that becomes the content of a state after a run."""

    @property
    def size(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The bytes of the elements."""
        return self.size * np.dtype(self.dtype).itemsize

    @property
    def row(self) -> int:
        """Row stride in elements."""
        return self.pitch or (self.shape[-1] if self.shape else 1)

    @property
    def base(self) -> Value:
        """The value with the memory."""
        return self if self.root is None else self.root.base


def extent_of(value: Value) -> int:
    """Return the number of elements from the first to the last one of a value in the memory of its root."""
    rows = value.size // value.shape[-1] if value.pitch and value.shape[-1] else 1
    return (rows - 1) * value.pitch + value.size // rows if rows else 0


def rows_of(memory: Any, value: Value) -> Any:
    """Return the elements of a value in its shape, as a view of one-dimensional memory that starts with it.

    Raises ValueError if the memory ends before the value.
    """
    if len(memory) < extent_of(value):
        raise ValueError(f"{len(memory)} elements of memory for the {extent_of(value)} of '{value.name}'")
    if not value.pitch:
        return memory[: value.size].reshape(value.shape)
    strides = [memory.itemsize, value.pitch * memory.itemsize]
    for count in reversed(value.shape[1:-1]):
        strides.append(strides[-1] * count)
    return np.lib.stride_tricks.as_strided(memory, value.shape, strides[: len(value.shape)][::-1])


@dataclass(frozen=True, eq=False)
class Operation:
    """One operation: it reads `inputs` and writes all elements of `results`. Subclasses add the semantics."""

    label: str
    """The operator of the model, for comments and messages."""
    inputs: tuple[Value, ...]
    results: tuple[Value, ...]


@dataclass(eq=False)
class Program:
    """A model as operations in order."""

    inputs: list[Value] = field(default_factory=list)
    outputs: list[Value] = field(default_factory=list)
    states: list[Value] = field(default_factory=list)
    operations: list[Operation] = field(default_factory=list)
    tensors: dict[Value, Tensor] = field(default_factory=dict)
    """The tensors of the graph that values are."""
    channels: dict[Value, Any] = field(default_factory=dict)
    """The channels of its tensor that a value has, as indices; a value that is absent has all."""
    source: Program | None = None
    """The program that a pass made this one from."""
    made_by: str = LOWERING
    """The name of the pass: a key of INVARIANTS."""

    def derived(self, made_by: str, **changes: Any) -> Program:
        """Return a program that a pass makes from this one."""
        return dataclasses.replace(self, source=self, made_by=made_by, **changes)

    @property
    def history(self) -> list[Program]:
        """The programs that the passes made this one from, the lowered one first, and this one."""
        return [self] if self.source is None else [*self.source.history, self]

    @property
    def new_contents(self) -> set[Value]:
        """The values with memory of their own that become the contents of states after a run."""
        return {state.next.base for state in self.states if state.next is not None}

    @property
    def readers(self) -> dict[Value, list[Operation]]:
        """By value with memory of its own: the operations that read it or a view of it, once for each operand."""
        readers: dict[Value, list[Operation]] = {}
        for operation in self.operations:
            for value in operation.inputs:
                readers.setdefault(value.base, []).append(operation)
        return readers

    @property
    def spans(self) -> dict[Value, tuple[int, int]]:
        """The numbers of the first and the last operation of each value with memory of its own, without constants."""
        last = max(len(self.operations) - 1, 0)
        spans: dict[Value, tuple[int, int]] = {}
        for number, operation in enumerate(self.operations):
            for value in (*operation.inputs, *operation.results):
                if value.base.role != "constant":
                    spans[value.base] = spans.get(value.base, (number, number))[0], number
        new_contents = self.new_contents
        for value, (first, end) in spans.items():
            if value.role == "input":
                spans[value] = 0, end
            elif value.role == "output" or value in new_contents:
                spans[value] = first, last
        return {**spans, **dict.fromkeys(self.states, (0, last))}

    def values(self) -> Iterator[Value]:
        """Yield every value once, with the roots of views before them."""
        seen: set[Value] = set()

        def whole(value: Value) -> Iterator[Value]:
            if value.root is not None:
                yield from whole(value.root)
            if value not in seen:
                seen.add(value)
                yield value

        for value in (*self.inputs, *self.outputs, *self.states):
            yield from whole(value)
        for operation in self.operations:
            for value in (*operation.inputs, *operation.results):
                yield from whole(value)


UNUSED_CHANNELS, FUSED_SUMS = "unused channels", "fused sums"
JOINED_CHANNELS, STRIPES = "concatenations in place", "stripes"
INVARIANTS = {
    LOWERING: "each operator of the graph is one or more operations, or a view",
    UNUSED_CHANNELS: "a value that loses channels is read by layers only, which read none of these channels",
    FUSED_SUMS: "a convolution is removed only if a sum is the only reader of its result",
    JOINED_CHANNELS: "a result in place is one channel range of the concatenation, its only reader",
    STRIPES: "a block has the layers of the program in their order, and only its last result is read after it",
}
"""What each pass keeps, beside the results."""
