# SPDX-License-Identifier: Apache-2.0
"""Resolve control flow and variables at import, so that a graph without subgraphs remains.

CALL_ONCE gives the initial content of variables, IF with a known condition becomes one of its branches, WHILE with a
condition that is known in each turn becomes its turns. VAR_HANDLE, READ_VARIABLE and ASSIGN_VARIABLE become states.
STABLEHLO_COMPOSITE becomes its decomposition. Sources in TFLite: kernels/if.cc, while.cc, call_once.cc, var_handle.cc,
read_variable.cc, assign_variable.cc, stablehlo_composite.cc.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from opwest.base.frozen_dataclass import dataclass
from opwest.base.result import counted
from opwest.compiler.graph.check import CONTROL, set_results
from opwest.compiler.graph.spec import OPERATORS
from opwest.compiler.graph.types import Graph, Node, Tensor, Unsupported
from opwest.compiler.lowering.simplify import Folding

MAX_NODES = 20_000
"""The most nodes of a graph after the turns of its loops are separate."""
_COUNTS: dict[str, tuple[int, int | None]] = {
    "IF": (1, None),
    "WHILE": (0, None),
    "CALL_ONCE": (0, 0),
    "VAR_HANDLE": (0, 1),
    "READ_VARIABLE": (1, 1),
    "ASSIGN_VARIABLE": (2, 0),
    "STABLEHLO_COMPOSITE": (0, None),
}
"""The least number of inputs, and the number of results if it is fixed."""
_EXPECTED_NODES = f"at most {MAX_NODES} operators after all turns"
_HINT = "export the model without it, or with a condition that does not depend on inputs"


def resolve_control(graph: Graph) -> Graph:
    """Return the graph without control flow; the same graph if it has none.

    An operator that cannot be resolved remains, with the reason; the check of the graph reports it.
    """
    if not any(node.kind in CONTROL for node in graph.nodes):
        return graph
    resolver = _Resolver(graph)
    for node in graph.nodes:
        before = len(resolver.nodes)
        try:
            if resolver.visited > MAX_NODES and node.kind in CONTROL:
                raise Unsupported("not resolved after a loop with too many turns")
            resolver.add(node)
        except Unsupported as reason:
            del resolver.nodes[before:]
            resolver.depth = 0
            resolver.nodes.append(dataclasses.replace(node, refusal=reason))
    return resolver.finish()


class _Resolver:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.fold = Folding(graph.rules)
        self.nodes: list[Node] = []
        self.now: dict[Tensor, Tensor] = {}
        """Tensors that stand for others: results of branches, contents of variables."""
        self.variables: dict[tuple[str, str], _Variable] = {}
        self.handles: dict[Tensor, tuple[str, str]] = {}
        self.visited = 0
        self.depth = 0
        """The number of branches and turns around the node that is read."""

    def read(self, tensor: Tensor) -> Tensor:
        """Return the tensor that stands for one."""
        while tensor in self.now:
            tensor = self.now[tensor]
        return tensor

    def add(self, node: Node) -> None:
        """Add a node, or what it becomes. Raises Unsupported."""
        self.visited += 1
        if self.visited > MAX_NODES and self.depth:
            raise Unsupported("a loop with too many turns", _EXPECTED_NODES, _HINT)
        if node.kind in _COUNTS:
            _check_counts(node)
        inputs = tuple(None if tensor is None else self.read(tensor) for tensor in node.inputs)
        values = [tensor for tensor in inputs if tensor is not None]
        if node.kind == "VAR_HANDLE":
            self.handles[node.output] = (str(node.options["container"]), str(node.options["shared_name"]))
        elif node.kind == "READ_VARIABLE":
            self.now[node.output] = self.variable(values[0], node.output).value
        elif node.kind == "ASSIGN_VARIABLE":
            self.variable(values[0], values[1]).value = values[1]
        elif node.kind == "CALL_ONCE":
            self.call_once(node)
        elif node.kind == "IF":
            self.branch(node, values)
        elif node.kind == "WHILE":
            self.loop(node, values)
        elif node.kind == "STABLEHLO_COMPOSITE":
            [decomposition] = node.options["graphs"]
            self.replace(node, self.inline(decomposition, values, f" of {node.label}"))
        else:
            self.keep(Node(node.kind, inputs, node.outputs, node.options, node.label, node.refusal, node.source))

    def keep(self, node: Node) -> None:
        """Add a node, or compute its results if its inputs are known. Raises Unsupported."""
        known = all(tensor is None or tensor.is_constant for tensor in node.inputs) and node.inputs
        if known and node.kind in OPERATORS:
            set_results(node)
            self.fold(node)
        if not all(output.is_constant for output in node.outputs):
            self.nodes.append(node)

    def variable(self, handle: Tensor, like: Tensor) -> _Variable:
        """Return the variable of a handle; `like` has its dtype and, without an initial content, its shape."""
        key = self.handles.get(handle)
        if key is None:
            raise Unsupported("a handle of a variable that is not the result of VAR_HANDLE", "VAR_HANDLE", _HINT)
        if key not in self.variables:
            self.variables[key] = _new_variable(key[1], like, None)
        return self.variables[key]

    def call_once(self, node: Node) -> None:
        """Set the initial content of variables. Raises Unsupported if it is not constant."""
        inner = _Resolver(self.graph)
        inner.fold = self.fold
        [init] = node.options["graphs"]
        for inner_node in init.nodes:
            inner.add(inner_node)
        if inner.nodes:
            raise Unsupported(f"the initialisation computes {inner.nodes[0].label}", "constants", _HINT)
        for key, variable in inner.variables.items():
            value = variable.value
            if value is variable.state:
                continue
            if not value.is_constant:
                raise Unsupported(f"the initial content of variable '{key[1]}' is not known", "a constant", _HINT)
            self.variables[key] = _new_variable(key[1], value, value.content)

    def inline(self, graph: Graph, inputs: Sequence[Tensor], suffix: str) -> list[Tensor]:
        """Add a copy of a subgraph with these inputs, and return its outputs."""
        if len(graph.inputs) != len(inputs):
            raise Unsupported(
                f"a subgraph with {counted(len(graph.inputs), 'input')} for {counted(len(inputs), 'value')}"
            )
        copies = dict(zip(graph.inputs, inputs, strict=True))

        def copy(tensor: Tensor) -> Tensor:
            if tensor.is_constant or tensor.is_state:
                return tensor
            if tensor not in copies:
                copies[tensor] = Tensor(tensor.name, tensor.dtype, tensor.shape, tensor.quantization)
            return copies[tensor]

        self.depth += 1
        for node in graph.nodes:
            given = tuple(None if tensor is None else copy(tensor) for tensor in node.inputs)
            results = tuple(copy(output) for output in node.outputs)
            label = f"{node.label}{suffix}"
            self.add(Node(node.kind, given, results, node.options, label, node.refusal, node.source))
        self.depth -= 1
        return [self.read(copy(output)) for output in graph.outputs]

    def branch(self, node: Node, inputs: Sequence[Tensor]) -> None:
        """Add the branch of IF."""
        condition, *values = inputs
        if not condition.is_constant:
            raise Unsupported(
                f"the condition '{condition.name}' of IF is computed when the model runs", "a constant", _HINT
            )
        chosen = node.options["graphs"][0 if _is_true(condition) else 1]
        self.replace(node, self.inline(chosen, values, f" of {node.label}"))

    def replace(self, node: Node, values: Sequence[Tensor]) -> None:
        """Use these values instead of the results of a node. Raises Unsupported."""
        if len(values) != len(node.outputs):
            raise Unsupported(
                f"a subgraph with {counted(len(values), 'output')} for {counted(len(node.outputs), 'result')}"
            )
        self.now.update(zip(node.outputs, values, strict=True))

    def loop(self, node: Node, values: Sequence[Tensor]) -> None:
        """Add the turns of WHILE."""
        condition, body = node.options["graphs"]
        turn = 0
        while True:
            self.visited += 1  # subgraphs can be empty
            if self.visited > MAX_NODES:
                raise Unsupported("a loop with too many turns", _EXPECTED_NODES, _HINT)
            before = len(self.nodes)
            if len(condition.outputs) != 1:
                raise Unsupported(f"a condition of WHILE with {counted(len(condition.outputs), 'output')}", "1 output")
            [go_on] = self.inline(condition, values, f" of {node.label}, turn {turn}")
            if not go_on.is_constant:
                raise Unsupported(
                    f"the condition '{go_on.name}' of WHILE is computed when the model runs",
                    "a number of turns that is known at import",
                    _HINT,
                )
            del self.nodes[before:]  # computed for the condition only
            if not _is_true(go_on):
                break
            values = self.inline(body, values, f" of {node.label}, turn {turn}")
            turn += 1
        self.replace(node, values)

    def finish(self) -> Graph:
        """Return the graph."""
        outputs = tuple(self.read(output) for output in self.graph.outputs)
        updates = {
            variable.state: self.read(variable.value)
            for variable in self.variables.values()
            if variable.value is not variable.state
        }
        return dataclasses.replace(self.graph, outputs=outputs, nodes=tuple(self.nodes), updates=updates)


def _check_counts(node: Node) -> None:
    """Check the numbers of inputs and results, and the presence of inputs. Raises Unsupported."""
    least, results = _COUNTS[node.kind]
    if len(node.inputs) < least or results not in (None, len(node.outputs)):
        expected = (
            f"{least} inputs and {counted(results, 'result')}" if results is not None else f"at least {least} inputs"
        )
        raise Unsupported(f"{counted(len(node.inputs), 'input')} and {counted(len(node.outputs), 'result')}", expected)
    if any(tensor is None for tensor in node.inputs):
        raise Unsupported("an absent input")


def _is_true(condition: Tensor) -> bool:
    """Return a known condition. Raises Unsupported unless it is one bool."""
    if condition.dtype != "bool" or condition.content.size != 1:
        shown = f"{condition.dtype} of shape {list(condition.shape)}"
        raise Unsupported(f"the condition '{condition.name}' is {shown}", "one bool")
    return bool(condition.content.reshape(-1)[0])


@dataclass(eq=False)
class _Variable:
    """A variable while the nodes are read."""

    state: Tensor
    value: Tensor
    """The content after the nodes that were read."""


def _new_variable(name: str, like: Tensor, content: Any) -> _Variable:
    """Return a variable with the type of a tensor."""
    state = Tensor(name or "variable", like.dtype, like.shape, like.quantization, content, is_state=True)
    return _Variable(state, state)
