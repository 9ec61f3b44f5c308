# SPDX-License-Identifier: Apache-2.0
"""The layers of an import as JSON values: what each step computes, as the file names it, and what it costs.

import.json and the JSON output of `opwest import` have the same rows. docs/importing-models.md describes them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.graph.types import Graph, Node, Tensor
from opwest.compiler.ir import labels
from opwest.compiler.ir.operations import UserCall
from opwest.compiler.ir.program import Operation, Program, Value
from opwest.compiler.ir.stripes import Striped
from opwest.compiler.output.emit import Step
from opwest.compiler.output.manifest import Implementation, declared, operator_names
from opwest.compiler.selection.macs import macs_of, weight_bytes

_OPERATOR = re.compile(r"(?P<number>\d+)(?: '(?P<name>[^']*)')? \((?P<kind>[^()']+)\)")
"""An operator of the file in a label: `3 (ADD)`, or with the name of a node `3 '/add/Add' (Add)`."""
_ABSORBED = {"RELU", "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1", "MAXIMUM", "MINIMUM"}
"""The operators that a layer before them computes, if they have no operation of their own."""


@dataclass(frozen=True)
class _Part:
    """An operator of the file."""

    number: int
    kind: str
    name: str


def layers_of(model: str, manifest: str, graph: Graph, implementations: Sequence[Implementation]) -> dict[str, Any]:
    """Return the layers of a model, and for each implementation its steps and their costs."""
    rows = _Rows(graph)
    every = [_implementation(made, rows) for made in implementations]
    head = {"model": model, "manifest": manifest}
    return {**head, "layers": rows.layers, "views": rows.views(), "implementations": every}


class _Rows:
    """The layers of all implementations, each once."""

    def __init__(self, graph: Graph) -> None:
        self.layers: list[dict[str, Any]] = []
        self._numbers: dict[str, int] = {}
        self._nodes: dict[tuple[int, str], list[Node]] = {}
        self._makers: dict[Tensor, Node] = {}
        self._readers: dict[Tensor, list[Node]] = {}
        for node in graph.nodes:
            for part in _parts(node.label):
                self._nodes.setdefault((part.number, part.kind), []).append(node)
            self._makers.update(dict.fromkeys(node.outputs, node))
            for tensor in node.inputs:
                if tensor is not None:
                    self._readers.setdefault(tensor, []).append(node)
        self._done: set[Node] = set()

    def enter(self, operations: Sequence[Operation]) -> None:
        """Note the operators of the file that have operations."""
        for operation in operations:
            for part in _parts_of(operation):
                self._done.update(self._nodes_of(part))

    def add(self, operation: Operation, program: Program) -> int:
        """Return the number of the layer of an operation."""
        row = self._row(operation, program)
        number = self._numbers.setdefault(json.dumps(row), len(self.layers))
        self.layers += [row] if number == len(self.layers) else []
        return number

    def views(self) -> list[dict[str, Any]]:
        """Return the operators of the file without code: results that are known or need no copy."""
        absorbed = {node for done in self._done for node in self._with_absorbed(done)}
        left = [nodes[0] for nodes in self._nodes.values() if not absorbed.union(self._done).intersection(nodes)]
        return [self._operator(part, node) for node in dict.fromkeys(left) for part in _parts(node.label)[:1]]

    def _nodes_of(self, part: _Part) -> list[Node]:
        """Return the nodes of an operator of the file: several if a reader translates it to several."""
        return self._nodes.get((part.number, part.kind), [])

    def _row(self, operation: Operation, program: Program) -> dict[str, Any]:
        parts = dict.fromkeys(_parts_of(operation))
        for part in list(parts):
            for node in (other for found in self._nodes_of(part) for other in self._with_absorbed(found)):
                parts.update(dict.fromkeys(_parts(node.label)[:1]))
        is_whole = not labels.layer(operation.label).partition("): ")[2]
        operators = []
        for part in sorted(parts, key=lambda part: part.number):
            nodes = self._nodes_of(part)
            found = filter(None, map(_activation, nodes)) if is_whole or _macs(operation) else ()
            operators.append(
                {**self._operator(part, nodes[-1] if nodes else None), "activation": next(iter(found), None)}
            )
        data = [value for value in operation.inputs if value.base.role != "constant"]
        return {
            "label": labels.layer(operation.label),
            "operators": operators,
            "part": labels.layer(operation.label).partition("): ")[2] or None,
            "inputs": [_operand(value, program) for value in data],
            "outputs": [_operand(value, program) for value in operation.results],
            "attributes": _attributes(operation),
            **_counts(operation, program),
        }

    def _operator(self, part: _Part, node: Node | None) -> dict[str, Any]:
        name = part.name or (node.outputs[0].name if node is not None and node.outputs else "")
        return {"number": part.number, "kind": part.kind, "name": name}

    def _with_absorbed(self, node: Node) -> Iterator[Node]:
        """Yield the operators without operations that a layer computes: its padding, and its activation."""
        producer = self._makers.get(node.inputs[0]) if node.inputs and node.inputs[0] is not None else None
        if producer is not None and producer.kind in ("PAD", "PADV2") and producer not in self._done:
            yield producer
        readers = self._readers.get(node.outputs[0], []) if node.outputs else []
        if len(readers) == 1 and readers[0].kind in _ABSORBED and readers[0] not in self._done:
            yield readers[0]


def _counts(operation: Operation, program: Program) -> dict[str, int | None]:
    """Return the multiplications and the weights; None for an operator of the user."""
    if isinstance(operation, UserCall):
        return dict.fromkeys(("macs", "file_macs", "weight_bytes"))
    in_file = sum(_in_file(operation, program.history[0]))
    return {"macs": macs_of(operation), "file_macs": in_file, "weight_bytes": weight_bytes(operation)}


def _macs(operation: Operation) -> int:
    return 0 if isinstance(operation, UserCall) else macs_of(operation)


def _in_file(operation: Operation, lowered: Program) -> Iterator[int]:
    """Yield the multiplications of the operators of the file, of which passes can remove channels."""
    if isinstance(operation, Striped):
        for layer in operation.layers:
            yield from _in_file(layer.operation, lowered)
        return
    label = labels.layer(operation.label)
    words = {label, *(match[0] for match in _OPERATOR.finditer(label))}
    yield from (_macs(one) for one in lowered.operations if labels.layer(one.label) in words)


def _parts_of(operation: Operation) -> list[_Part]:
    """Return the operators of the file that an operation computes."""
    if isinstance(operation, Striped):
        every = [part for layer in operation.layers for part in _parts_of(layer.operation)]
        return list(dict.fromkeys(every))
    return _parts(operation.label)


def _parts(label: str) -> list[_Part]:
    found = _OPERATOR.finditer(labels.layer(label))
    return [_Part(int(match["number"]), match["kind"], match["name"] or "") for match in found]


def _activation(node: Node) -> str | None:
    """Return the activation that an operator of TFLite contains."""
    name = str(node.options.get("fused_activation_function", "NONE"))
    return None if name == "NONE" else name


def _operand(value: Value, program: Program) -> dict[str, Any]:
    tensor = program.tensors.get(value)
    return {"name": value.name if tensor is None else tensor.name, "dtype": value.dtype, "shape": list(value.shape)}


def _attributes(operation: Operation) -> dict[str, Any]:
    """Return the window of a layer: rows, columns. Products of matrices have none."""
    window = getattr(operation, "window", None)
    if window is None or (operation.inputs[0].shape[1:3] == (1, 1) and window.is_pointwise):
        return {}
    found: dict[str, Any] = {"kernel": list(window.size), "stride": list(window.stride)}
    if window.dilation != (1, 1):
        found["dilation"] = list(window.dilation)
    if getattr(operation, "groups", 1) > 1:
        found["groups"] = operation.groups  # type: ignore[attr-defined]
    return found


def _implementation(made: Implementation, rows: _Rows) -> dict[str, Any]:
    """Return the steps of an implementation and their costs."""
    program = made.program
    assert program is not None
    rows.enter(program.operations)
    own = [not isinstance(operation, UserCall) for operation in program.operations]
    return {
        "variant": None if made.processor is None else made.processor.name,
        "tensors": dict(_tensors(made, program)),
        "steps": [
            {
                "layer": rows.add(operation, program),
                "operator": name,
                "kernel": None if isinstance(operation, UserCall) else step.variant,
                "constant_bytes": _constant_bytes(step),
            }
            for operation, step, name in zip(
                program.operations, made.emitted.steps, operator_names(made.emitted.steps), strict=True
            )
        ],
        "costs": [_costs(choice, own) for choice in made.costs],
    }


def _tensors(made: Implementation, program: Program) -> Iterator[tuple[str, str]]:
    """Yield the name in the manifest and that in the file of each tensor that has another one."""
    for value, name in made.names.items():
        tensor = program.tensors.get(value)
        original = value.name if tensor is None else tensor.name
        if value.role not in ("constant", "arena") and original and original != name:
            yield name, original


def _constant_bytes(step: Step) -> int:
    constants = {declared(value).base for value in step.arguments if value.base.role == "constant"}
    return sum(value.nbytes for value in constants)


def _costs(choice: Mapping[str, Any], own: Sequence[bool]) -> dict[str, Any]:
    """Return the costs on a core, with a row for each step; None for operators of the user."""
    found = iter(choice["layers"])
    kept = ("cycles", "origin", "flash_bytes", "scratch_bytes", "reason")
    steps = [{key: row[key] for key in kept} if is_own and (row := next(found)) else None for is_own in own]
    return {**{key: choice[key] for key in ("core", "source", "flash", "cycles")}, "steps": steps}
