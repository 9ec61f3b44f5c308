# SPDX-License-Identifier: Apache-2.0
"""A quantised graph from a float graph: the arithmetic of each operator, scales, conversions between them.

A tensor exists in the dtype of the operator that computes it, its home. Readers with another arithmetic, or another
scale, read a copy that a QUANTIZE or DEQUANTIZE makes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.graph.check import set_results
from opwest.compiler.graph.types import Graph, Node, Quantization, Rules, Tensor, Unsupported
from opwest.compiler.reference.run import run_node
from opwest.compiler.semantics.layers import KINDS, requantisation
from opwest.quantisation.calibration import Range, quantization_of, range_of_constant, union
from opwest.quantisation.constants import parameters, quantised_constant, symmetric
from opwest.quantisation.rules import DTYPES, Precision, Rule, data_of, is_float, permitted, rule_of


@dataclass(frozen=True)
class Plan:
    """What is asked of a quantised graph."""

    base: Precision
    """The arithmetic of layers that are not kept, and the dtype of inputs and outputs."""
    float_io: bool = False
    kept: Mapping[Node, Precision] = dataclasses.field(default_factory=dict)
    """The arithmetic of other layers."""
    means: Mapping[Tensor, Any] = dataclasses.field(default_factory=dict)
    """The means of elements over samples, which correct biases; without them biases are not corrected."""


@dataclass(frozen=True, eq=False)
class QuantisedGraph:
    """A graph, and where the operators and the tensors of the float graph are in it."""

    graph: Graph
    nodes: Mapping[Node, Node]
    homes: Mapping[Tensor, Tensor]
    precisions: Mapping[Node, Precision]
    refused: Mapping[Node, str]
    """Operators that remain float32 because their scales have no integer form, with the reason."""


def quantised_graph(graph: Graph, ranges: Mapping[Tensor, Range], plan: Plan) -> QuantisedGraph:
    """Return the quantised form of a graph whose shapes are known."""
    refused: dict[Node, str] = {}
    while True:
        precisions = precisions_of(graph, plan, refused)
        made = _Builder(graph, ranges, plan, precisions).build()
        failed = {
            node: reason
            for node, new in made.nodes.items()
            if precisions[node] != "float" and (reason := _reason(new, graph.rules)) is not None
        }
        if not failed:
            return dataclasses.replace(made, refused=refused)
        refused.update(failed)


def _reason(node: Node, rules: Rules) -> str | None:
    """Return the reason why an operator has no integer form with its scales."""
    try:
        set_results(node)
        if node.kind in KINDS and node.kind != "BATCH_MATMUL":
            requantisation(node, rules)
        else:
            run_node(node, [None if tensor is None else _zeros(tensor) for tensor in node.inputs], rules)
    except Unsupported as reason:
        return reason.reason
    return None


def _zeros(tensor: Tensor) -> Any:
    return np.zeros(tensor.shape, tensor.dtype) if tensor.content is None else tensor.content


def precisions_of(graph: Graph, plan: Plan, refused: Iterable[Node] = ()) -> dict[Node, Precision]:
    """Return the arithmetic of each operator: movements have that of all their data, or the base."""
    found: dict[Node, Precision] = {}
    homes: dict[Tensor, Precision] = {}
    floats = frozenset(refused)
    for node in graph.nodes:
        rule = rule_of(node)
        wanted = plan.kept.get(node, plan.base)
        if rule is not None and not rule.is_layer:
            given = {homes.get(tensor, plan.base) for tensor in node.inputs if tensor is not None and tensor in homes}
            wanted = given.pop() if len(given) == 1 else plan.base
        found[node] = "float" if node in floats else permitted(node, wanted)
        homes.update((tensor, found[node]) for tensor in node.outputs if tensor.dtype == "float32")
    return found


class _Groups:
    """Tensors with one scale in one arithmetic: disjoint sets."""

    def __init__(self) -> None:
        self._parents: dict[Tensor, Tensor] = {}

    def root(self, tensor: Tensor) -> Tensor:
        """Return the tensor that represents the group."""
        while (parent := self._parents.get(tensor, tensor)) is not tensor:
            self._parents[tensor] = self._parents.get(parent, parent)
            tensor = parent
        return tensor

    def join(self, tensors: Iterable[Tensor]) -> None:
        """Make one group of the groups of tensors."""
        first, *others = (self.root(tensor) for tensor in tensors)
        for other in others:
            if other is not self.root(first):
                self._parents[other] = self.root(first)


class _Builder:
    def __init__(
        self, graph: Graph, ranges: Mapping[Tensor, Range], plan: Plan, precisions: Mapping[Node, Precision]
    ) -> None:
        self.graph, self.ranges, self.plan, self.precisions = graph, ranges, plan, precisions
        self.nodes: list[Node] = []
        self.homes: dict[Tensor, Tensor] = {}
        self.copies: dict[tuple[Tensor, str, Quantization | None], Tensor] = {}
        self.made: dict[Node, Node] = {}
        self.fixed: dict[tuple[Tensor, str], Quantization] = {}
        self.scales: dict[tuple[Tensor, str], Quantization] = {}
        self.groups = {"int8": _Groups(), "int16": _Groups()}
        self._join()

    def _join(self) -> None:
        """Find the groups of equal scales, and the scale of each."""
        members: dict[str, dict[Tensor, None]] = {"int8": {}, "int16": {}}
        for node, precision in self.precisions.items():
            rule = rule_of(node)
            if precision == "float" or rule is None:
                continue
            dtype = DTYPES[precision]
            results = [tensor for tensor in node.outputs if tensor.dtype == "float32"]
            if rule.scales == "fixed":
                scale, zero = rule.fixed[dtype]
                self.fixed.update(((tensor, dtype), Quantization((scale,), (zero,))) for tensor in results)
            data = [node.input(number) for number in data_of(node, rule)]
            members[dtype].update(dict.fromkeys((*data, *results)))
            if rule.scales == "equal":
                self.groups[dtype].join((*data, *results))
        for port in (*self.graph.inputs, *self.graph.outputs):
            if port.dtype == "float32":
                members[DTYPES[self.plan.base]][port] = None
        for dtype, tensors in members.items():
            self._set_scales(dtype, tensors)

    def _set_scales(self, dtype: str, tensors: Iterable[Tensor]) -> None:
        groups: dict[Tensor, list[Tensor]] = {}
        for tensor in tensors:
            groups.setdefault(self.groups[dtype].root(tensor), []).append(tensor)
        for root, members in groups.items():
            given = {self.fixed[tensor, dtype] for tensor in members if (tensor, dtype) in self.fixed}
            others = (tensor for tensor in members if (tensor, dtype) not in self.fixed)
            free = [tensor for tensor in others if not self._follows(tensor, members)]
            if len(given) == 1 and not free:
                [self.scales[root, dtype]] = given
            else:
                self.scales[root, dtype] = quantization_of(union(map(self._range, members)), dtype)

    def _follows(self, tensor: Tensor, members: Sequence[Tensor]) -> bool:
        """Whether a tensor is the result of an operator with equal scales, whose values are those of other members."""
        producer = next((node for node in self.graph.nodes if tensor in node.outputs), None)
        rule = None if producer is None else rule_of(producer)
        if rule is None or producer is None or rule.scales != "equal":
            return False
        return any(data in members for data in producer.inputs if data is not None and not data.is_constant)

    def _range(self, tensor: Tensor) -> Range:
        if tensor.is_constant:
            return range_of_constant(tensor.content)
        return self.ranges.get(tensor, (0.0, 0.0))

    def scale_of(self, tensor: Tensor, dtype: str) -> Quantization:
        """Return the scale that readers with equal scales use."""
        return self.scales[self.groups[dtype].root(tensor), dtype]

    def build(self) -> QuantisedGraph:
        """Return the graph."""
        inputs = []
        for tensor in self.graph.inputs:
            home = tensor
            if tensor.dtype == "float32" and not self.plan.float_io:
                dtype = DTYPES[self.plan.base]
                home = Tensor(tensor.name, dtype, tensor.shape, self.scale_of(tensor, dtype))
            self.homes[tensor] = home
            inputs.append(home)
        for node, precision in self.precisions.items():
            self._add(node, precision)
        outputs = tuple(self._output(tensor) for tensor in self.graph.outputs)
        graph = dataclasses.replace(self.graph, inputs=tuple(inputs), outputs=outputs, nodes=tuple(self.nodes))
        return QuantisedGraph(graph, self.made, self.homes, self.precisions, {})

    def _output(self, tensor: Tensor) -> Tensor:
        if tensor.dtype != "float32":
            return tensor
        home = self.homes.get(tensor, tensor)
        wanted = "float32" if self.plan.float_io else DTYPES[self.plan.base]
        if home.dtype == wanted:
            return home
        scale = None
        if wanted != "float32":
            scale = self.fixed_scale(tensor, wanted) or self.scale_of(tensor, wanted)
        result = self.copy(tensor, wanted, scale)
        if result.name != tensor.name and home not in self.graph.inputs:
            home.name, result.name = result.name, tensor.name
        return result

    def fixed_scale(self, tensor: Tensor, dtype: str) -> Quantization | None:
        """Return the scale that the kind of the producer of a tensor has in a dtype."""
        for node in self.graph.nodes:
            if tensor in node.outputs and (rule := rule_of(node)) is not None and dtype in rule.fixed:
                scale, zero = rule.fixed[dtype]
                return Quantization((scale,), (zero,))
        return None

    def copy(self, tensor: Tensor, dtype: str, scale: Quantization | None) -> Tensor:
        """Return a float tensor in a dtype with a scale: its home, a constant, or the result of a conversion."""
        if tensor.is_constant:
            return quantised_constant(tensor, dtype, scale) if scale is not None else tensor
        home = self.homes.get(tensor, tensor)
        if home.dtype == dtype and (scale is None or home.quantization == scale):
            return home
        key = (tensor, dtype, scale)
        if key not in self.copies:
            copy = Tensor(self._name(tensor, dtype), dtype, tensor.shape, scale)
            kind = "DEQUANTIZE" if dtype == "float32" else "QUANTIZE"
            self.nodes.append(Node(kind, (home,), (copy,), {}, f"{kind} of '{tensor.name}'"))
            self.copies[key] = copy
        return self.copies[key]

    def _name(self, tensor: Tensor, dtype: str) -> str:
        count = sum(key[:2] == (tensor, dtype) for key in self.copies)
        return f"{tensor.name}/{dtype}" + (f"_{count}" if count else "")

    def _add(self, node: Node, precision: Precision) -> None:
        """Append an operator with the arithmetic, after the conversions of what it reads."""
        rule = rule_of(node)
        if precision == "float" or rule is None:
            new = self._unchanged(node)
        else:
            new = self._quantised(node, rule, DTYPES[precision])
        self.made[node] = new
        self.nodes.append(new)

    def _unchanged(self, node: Node) -> Node:
        if not is_float(node):
            return node
        inputs = tuple(
            self.copy(tensor, "float32", None) if tensor is not None and tensor.dtype == "float32" else tensor
            for tensor in node.inputs
        )
        outputs = tuple(self._result(tensor, "float32", None) for tensor in node.outputs)
        return dataclasses.replace(node, inputs=inputs, outputs=outputs)

    def _result(self, tensor: Tensor, dtype: str, scale: Quantization | None) -> Tensor:
        if tensor.dtype != "float32":
            return tensor
        self.homes[tensor] = Tensor(tensor.name, dtype, tensor.shape, scale)
        return self.homes[tensor]

    def _quantised(self, node: Node, rule: Rule, dtype: str) -> Node:
        inputs = list(node.inputs)
        for number in data_of(node, rule):
            tensor = node.input(number)
            home = self.homes.get(tensor)
            scale = self.scale_of(tensor, dtype)
            if rule.scales != "equal" and home is not None and home.dtype == dtype and home.quantization is not None:
                scale = home.quantization
            inputs[number] = self.copy(tensor, dtype, scale)
        if rule.weights is not None:
            data = inputs[2 if node.kind == "TRANSPOSE_CONV" else 0]
            assert data is not None and data.quantization is not None and rule.bias is not None
            wide = "int32" if dtype == "int8" else "int64"
            means = self.plan.means.get(node.input(2 if node.kind == "TRANSPOSE_CONV" else 0))
            weights, sums = parameters(node, rule, data.quantization, wide, means)
            inputs[rule.weights] = weights
            if sums is not None:
                inputs[rule.bias :] = [sums]
        if node.kind == "PRELU":
            slopes = node.input(1)
            inputs[1] = quantised_constant(slopes, "int8", symmetric(slopes.content))
        results = []
        for tensor in node.outputs:
            target = self.fixed.get((tensor, dtype)) if rule.scales == "fixed" else None
            if target is None and tensor.dtype == "float32":
                target = self.scale_of(tensor, dtype)
            results.append(self._result(tensor, dtype, target))
        options = dict(node.options)
        if dtype == "int16" and "pot_scale_int16" in options:
            options["pot_scale_int16"] = False
        return dataclasses.replace(node, inputs=tuple(inputs), outputs=tuple(results), options=options)
