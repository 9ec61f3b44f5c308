# SPDX-License-Identifier: Apache-2.0
"""Lower a checked graph to a program, node by node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from opwest.base.diagnostics import Diagnostics
from opwest.compiler.graph.check import report
from opwest.compiler.graph.spec import registrar
from opwest.compiler.graph.types import Graph, Node, Rules, Shape, Tensor, Unsupported
from opwest.compiler.ir import labels
from opwest.compiler.ir.movement import Axis, Move, Region, is_copy
from opwest.compiler.ir.operations import Copy
from opwest.compiler.ir.program import Operation, Program, Value
from opwest.compiler.semantics.movement import strides_of

Lowering = Callable[["Node", "Builder"], None]
"""Adds the operations of a node to a program. Raises Unsupported."""
LOWERINGS: dict[str, Lowering] = {}
"""By kind. Importing the package fills it."""
lowers = registrar(LOWERINGS)


class Builder:
    """A program in the making."""

    def __init__(self, graph: Graph) -> None:
        self.rules: Rules = graph.rules
        self.program = Program()
        self._values: dict[Tensor, Value] = {}
        for tensor in graph.inputs:
            self.program.inputs.append(self._new(tensor, "input"))
        self._outputs = list(graph.outputs)
        self._parts: list[Value] = []
        self._updates = graph.updates
        self._parts_of_labels: list[str] = []

    def _new(self, tensor: Tensor, role: str) -> Value:
        value = Value(tensor.name, role, tensor.dtype, tensor.shape, tensor.quantization, tensor.content)
        self._values[tensor] = value
        return value

    def value(self, tensor: Tensor) -> Value:
        """Return the value of a tensor; a result gets its memory here, a state is added to the program."""
        value = self._values.get(tensor)
        if value is not None:
            return value
        if not tensor.size:
            raise Unsupported(f"'{tensor.name}' is empty: shape {list(tensor.shape)}", "at least one element")
        if tensor.is_state:
            state = self._new(tensor, "state")
            self.program.states.append(state)
            return state
        return self._new(tensor, "constant" if tensor.is_constant else "intermediate")

    def constant(self, name: str, array: Any) -> Value:
        """Return a constant that the file does not have."""
        return Value(name, "constant", str(array.dtype), tuple(array.shape), None, array)

    def intermediate(self, name: str, dtype: str, shape: Shape) -> Value:
        """Return memory for a result that the graph does not have."""
        return Value(name, "intermediate", dtype, shape)

    def view(self, tensor: Tensor, of: Value, offset: int = 0) -> None:
        """Let a result of the graph be a contiguous part of another value."""
        self._values[tensor] = self.part(of, tensor.shape, offset, tensor)

    def part(self, of: Value, shape: Shape, offset: int = 0, tensor: Tensor | None = None) -> Value:
        """Return a contiguous part of a value."""
        name = of.name if tensor is None else tensor.name
        quantization = of.quantization if tensor is None else tensor.quantization
        if of.root is not None:
            of, offset = of.root, of.offset + offset
        part = Value(name, "intermediate", of.dtype, shape, quantization, None, of, offset)
        self._parts.append(part)
        return part

    def place(self, tensor: Tensor, of: Value, offset: int) -> bool:
        """Let the memory of a result be a part of another value, which is not written before; return whether it can.

        The tensor, or one that it shows completely, must be the result of an operation in memory of its own, and no
        output.
        """
        value = self._values.get(tensor)
        while value is not None and value.root is not None and value.root.size == value.size:
            value = value.root
        if value is None or value.role != "intermediate" or value.root is not None or value.dtype != of.dtype:
            return False
        kept = [*(self._values.get(output) for output in self._outputs), *(state.next for state in self.program.states)]
        if value in kept:
            return False
        if of.root is not None:
            of, offset = of.root, of.offset + offset
        for part in self._parts:
            if part.root is value:
                part.root, part.offset = of, part.offset + offset
        value.root, value.offset = of, offset
        self._parts.append(value)
        return True

    def add(self, operation: Operation) -> None:
        """Append an operation."""
        self.program.operations.append(operation)

    def lower(
        self, kind: Callable[..., Operation], node: Node, inputs: Sequence[Tensor | Value | None], *numbers: Any
    ) -> None:
        """Append an operation that computes the results of a node. Inputs that are None are left out."""
        values = tuple(
            self.value(given) if isinstance(given, Tensor) else given for given in inputs if given is not None
        )
        self.add(kind(node.label, values, tuple(self.value(output) for output in node.outputs), *numbers))

    def lower_node(self, node: Node) -> None:
        """Append the operations of a node. Raises Unsupported."""
        operations = self.program.operations
        first = len(operations)
        LOWERINGS[node.kind](node, self)
        made = operations[first:]
        # A node with one operation is a part of an operator of the file, if this one has become several nodes.
        kind = node.kind.removeprefix("ONNX_").replace("_", " ").lower()
        self._parts_of_labels += [kind] if len(made) == 1 else map(labels.what, made)

    def finish(self) -> Program:
        """Return the program after its outputs have memory of their own, each written by one operation."""
        self.program.operations = labels.distinct(self.program.operations, self._parts_of_labels)
        taken: set[Value] = set()
        for tensor in self._outputs:
            value = self.value(tensor)
            if value.role == "intermediate" and value.root is None and value not in taken:
                value.role = "output"
                output = value
            else:
                output = Value(tensor.name, "output", value.dtype, value.shape, value.quantization)
                self.add(Copy(f"copy to output '{tensor.name}'", (value,), (output,)))
            taken.add(output)
            self.program.outputs.append(output)
            self.program.tensors[output] = tensor
        for tensor, after in self._updates.items():
            # The new content has memory of its own: it can be an input, a constant, an output or another state.
            source = self.value(after)
            content = Value(f"next_{tensor.name}", "intermediate", source.dtype, source.shape)
            self.add(Copy(f"copy to state '{tensor.name}'", (source,), (content,)))
            self.value(tensor).next = content
        self.program.tensors.update({value: tensor for tensor, value in self._values.items()})
        return self.program


def lower_graph(graph: Graph, place: str, faults: Diagnostics) -> Program:
    """Return the program before all passes; report every node without a lowering."""
    builder = Builder(graph)
    for node in graph.nodes:
        try:
            builder.lower_node(node)
        except Unsupported as reason:
            report(faults, place, node, reason)
    faults.raise_if_errors()
    return builder.finish()


def check_lowering(graph: Graph, nodes: Sequence[Node], place: str, faults: Diagnostics) -> None:
    """Report the nodes that cannot be lowered, for a graph that has other faults."""
    builder = Builder(graph)
    for node in nodes:
        try:
            LOWERINGS[node.kind](node, builder)
        except Unsupported as reason:
            report(faults, place, node, reason)
        except Exception:
            continue


def move(node: Node, build: Builder, regions: Sequence[Region], inputs: int = 1) -> None:
    """Add a copy of the first inputs; a view if nothing moves."""
    values = tuple(build.value(node.input(i)) for i in range(inputs))
    if values and values[0].size == node.output.size and is_copy(regions, node.output.size):
        build.view(node.output, values[0])
        return
    build.lower(Move, node, values, tuple(regions))


Steps = Sequence[int | tuple[int, ...]]


def region(
    source: int | None,
    counts: Sequence[int],
    steps: Steps,
    places: Sequence[int],
    start: int = 0,
    place: int = 0,
    fill: int | float = 0,
    table: tuple[int, ...] | None = None,
) -> Region:
    """Return a region from its counts, the steps in the source and those in the result."""
    axes = tuple(map(Axis, counts, steps, places))
    return Region(source, axes, start, place, fill, table)


def box(
    source: int | None,
    result: Shape,
    low: Sequence[int],
    counts: Sequence[int],
    steps: Steps,
    start: int = 0,
    fill: int | float = 0,
    table: tuple[int, ...] | None = None,
) -> Region:
    """Return the region of a box of the result: `counts` elements from `low` on."""
    places = strides_of(result)
    first = sum(at * step for at, step in zip(low, places, strict=True))
    return region(source, counts, steps, places, start, first, fill, table)


def whole(
    source: int | None, result: Shape, steps: Steps | None = None, start: int = 0, fill: int | float = 0
) -> Region:
    """Return the region of a whole result. Without steps in the source, one element is repeated."""
    zeros = [0] * len(result)
    return box(source, result, zeros, result, zeros if steps is None else steps, start, fill)


def is_contiguous(data: Shape, starts: Sequence[int], steps: Sequence[int], counts: Sequence[int]) -> int | None:
    """Return the offset of a part whose elements follow each other; None if they do not."""
    strides = strides_of(data)
    expected = 1
    for count, step, stride in reversed([*zip(counts, steps, strides, strict=True)]):
        if count > 1:
            if step * stride != expected:
                return None
            expected *= count
    return sum(start * stride for start, stride in zip(starts, strides, strict=True))
