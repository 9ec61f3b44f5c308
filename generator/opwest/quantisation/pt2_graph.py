# SPDX-License-Identifier: Apache-2.0
"""The quantised values of a torch.fx graph: which nodes have integer results, their scales, runs with rounded values.

The module takes nodes as objects and torch as an argument: it imports neither torch nor torchao.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.graph.types import Quantization
from opwest.quantisation.calibration import Range, quantization_of, union
from opwest.quantisation.pt2_rules import ATEN, MERGED, AtenRule

Node = Any
"""A node of torch.fx."""


def rule_of(node: Node) -> AtenRule | None:
    """Return the rule of a node that computes float32 numbers; None for others."""
    rule = ATEN.get(str(node.target)) if node.op == "call_function" else None
    if rule is None or not is_float(node):
        return None
    return rule


def is_float(node: Node) -> bool:
    """Whether the value of a node is one float32 tensor."""
    return str(getattr(node.meta.get("val"), "dtype", "")) == "torch.float32"


def data_of(node: Node) -> list[Node]:
    """Return the float32 inputs of a node without weights and bias."""
    rule = rule_of(node)
    inputs = node.all_input_nodes[:1] if rule is not None and rule.weight_axis is not None else node.all_input_nodes
    return [one for one in inputs if is_float(one)]


@dataclass(frozen=True, eq=False)
class Parts:
    """The layers of a graph, and the nodes of each: an activation after a layer is a part of it."""

    layers: Mapping[str, tuple[Node, ...]]
    """By the name of the first node."""
    moves: frozenset[Node]


def parts_of(nodes: Iterable[Node]) -> Parts:
    """Return the layers with a rule."""
    layers: dict[str, tuple[Node, ...]] = {}
    moves: set[Node] = set()
    done: set[Node] = set()
    for node in nodes:
        rule = rule_of(node)
        if rule is None or node in done:
            continue
        if not rule.is_layer:
            moves.add(node)
            continue
        layers[node.name] = (node,)
        readers = list(node.users)
        if str(node.target) in MERGED and len(readers) == 1:
            after = rule_of(readers[0])
            if after is not None and after.is_activation:
                layers[node.name] = (node, readers[0])
                done.add(readers[0])
    return Parts(layers, frozenset(moves))


def scales_of(
    parts: Parts, kept: Collection[str], ranges: Mapping[str, Range]
) -> tuple[dict[Node, Quantization], set[Node]]:
    """Return the scale of each quantised value, and the quantised nodes.

    A movement is quantised where its data are. Values with one scale have that of the union of their ranges.
    """
    quantised = {node for name, nodes in parts.layers.items() if name not in kept for node in nodes}
    inner = {nodes[0] for nodes in parts.layers.values() if len(nodes) > 1}
    values: dict[Node, None] = {}
    for node in quantised:
        values.update(dict.fromkeys(one for one in data_of(node) if one not in inner))
        if node not in inner:
            values[node] = None
    ordered = sorted(parts.moves, key=_position)
    for _ in range(2):  # along the order, and against it
        for node in ordered:
            data = data_of(node)
            if data and (node in values or all(one in values for one in data)):
                values.update(dict.fromkeys((*data, node)))
                quantised.add(node)
        ordered.reverse()
    return _grouped(values, quantised, ranges), quantised


def _position(node: Node) -> int:
    return int(list(node.graph.nodes).index(node))


def _grouped(
    values: Iterable[Node], quantised: Collection[Node], ranges: Mapping[str, Range]
) -> dict[Node, Quantization]:
    groups: dict[Node, set[Node]] = {value: {value} for value in values}
    for node in quantised:
        rule = rule_of(node)
        if rule is None or rule.scales != "equal":
            continue
        joined: set[Node] = set().union(*(groups[one] for one in (node, *data_of(node)) if one in groups))
        for one in joined:
            groups[one] = joined
    found: dict[Node, Quantization] = {}
    for value, group in groups.items():
        if value in found:
            continue
        fixed = {rule.fixed for one in group if (rule := rule_of(one)) is not None and rule.fixed is not None}
        limits = union(ranges.get(one.name, (0.0, 0.0)) for one in group)
        scale = quantization_of(limits, "int8")
        if len(fixed) == 1 and (numbers := fixed.pop()) is not None:
            scale = Quantization((numbers[0],), (numbers[1],))
        found.update(dict.fromkeys(group, scale))
    return found


Rounding = Callable[[Any, Quantization], Any]
"""From a float32 tensor to its rounded values."""


def runner(torch: Any, module: Any, scales: Mapping[Node, Quantization], quantised: Collection[Node]) -> Any:
    """Return an interpreter of a module that computes quantised nodes with rounded values, as QDQ graphs do."""

    def rounded(tensor: Any, node: Node) -> Any:
        scale = scales.get(node)
        if scale is None:
            return tensor
        return torch.fake_quantize_per_tensor_affine(tensor, scale.scale, scale.zero, -128, 127)

    def rounded_weights(tensor: Any, axis: int) -> Any:
        others = [i for i in range(tensor.dim()) if i != axis]
        each = tensor.abs().amax(dim=others).clamp(min=1e-12) / 127
        zeros = torch.zeros(len(each), dtype=torch.int32)
        return torch.fake_quantize_per_channel_affine(tensor, each, zeros, axis, -127, 127)

    class Runner(torch.fx.Interpreter):  # type: ignore[misc]
        """Keeps the values of all nodes."""

        def __init__(self) -> None:
            super().__init__(module, garbage_collect_values=False)
            self.values: dict[str, Any] = {}

        def run_node(self, node: Node) -> Any:
            """Return the value of a node."""
            is_quantised = node in quantised
            if is_quantised:
                rule = rule_of(node)
                for one in data_of(node):
                    self.env[one] = rounded(self.env[one], one)
                if rule is not None and rule.weight_axis is not None:
                    weights = node.args[1]
                    self.env[weights] = rounded_weights(self.env[weights], rule.weight_axis)
            value = super().run_node(node)
            if is_quantised:
                value = rounded(value, node)
            self.values[node.name] = value
            return value

    return Runner()


def values_of(torch: Any, run: Any, inputs: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
    """Return the outputs and all values of one run, as tensors without gradients."""
    with torch.no_grad():
        outputs = run.run(*inputs)
    return list(outputs) if isinstance(outputs, (tuple, list)) else [outputs], dict(run.values)
