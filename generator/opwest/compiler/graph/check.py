# SPDX-License-Identifier: Apache-2.0
"""Check a graph against the specification, and report all operators that cannot be imported at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from opwest.base.diagnostics import Diagnostics, Location
from opwest.base.result import counted
from opwest.compiler.faults import REPORT
from opwest.compiler.graph.spec import check_node
from opwest.compiler.graph.types import MAX_ELEMENTS, Graph, Node, Shape, Tensor, Unsupported
from opwest.compiler.graph.user import KIND

CONTROL = frozenset(
    ("IF", "WHILE", "CALL_ONCE", "VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE", "STABLEHLO_COMPOSITE")
)
"""Control flow and variables, which are resolved before the check, and cannot be operators of the user."""


def _keep(node: Node) -> None:
    """Fold nothing."""


def check_graph(graph: Graph, place: str, faults: Diagnostics, fold: Callable[[Node], None] = _keep) -> list[Node]:
    """Check every node, and set the shape of every result. Returns the nodes without faults, reports to `faults`.

    `fold` is called with each node that passed; it can set the content of results, on which later shapes can depend.
    After an operator without results the shapes of the file are used, so that the others are checked as well.
    """
    passed: list[Node] = []
    known: set[Tensor] = {*graph.inputs}
    for node in graph.nodes:
        for tensor in node.inputs:
            if tensor is not None and not (tensor in known or tensor.is_constant or tensor.is_state):
                known.add(tensor)  # reported once
                text = f"input '{tensor.name}' is not the result of an earlier operator"
                report(faults, place, node, Unsupported(text))
        known.update(node.outputs)
        try:
            shapes = [output.shape for output in node.outputs]
            set_results(node)
            if graph.has_shapes and node.kind != KIND:
                _compare_shapes(node, shapes)
            fold(node)
            for tensor in node.outputs:
                if not tensor.size and not tensor.is_constant:
                    raise Unsupported(
                        f"result '{tensor.name}' is empty: shape {list(tensor.shape)}", "at least one element"
                    )
            passed.append(node)
        except Unsupported as reason:
            report(faults, place, node, reason)
    for role, tensors in (("input", graph.inputs), ("output", graph.outputs)):
        for tensor in tensors:
            if not tensor.size and (role == "input" or tensor.is_constant):
                text = f"{role} '{tensor.name}' of the model is empty: shape {list(tensor.shape)}"
                faults.error(text, Location(place), expected="at least one element")
    return passed


def _compare_shapes(node: Node, shapes: Sequence[Shape]) -> None:
    """Raise Unsupported if the reader has translated an operator to one with another shape."""
    for tensor, shape in zip(node.outputs, shapes, strict=True):
        if tensor.shape != shape:
            raise Unsupported(
                f"internal error: result '{tensor.name}' has the shape {list(shape)}, and {node.kind} computes "
                f"{list(tensor.shape)}",
                hint=REPORT,
            )


def set_results(node: Node) -> None:
    """Check a node, and set the shapes of its results. Raises Unsupported."""
    if node.refusal is not None:
        raise node.refusal
    results = check_node(node)
    if len(results) != len(node.outputs):
        raise Unsupported(f"{counted(len(node.outputs), 'result')}", f"{counted(len(results), 'result')}")
    for tensor, (dtype, shape) in zip(node.outputs, results, strict=True):
        _check_result(tensor, dtype, shape)
        tensor.shape = shape


def _check_result(tensor: Tensor, dtype: str, shape: tuple[int, ...]) -> None:
    if tensor.dtype != dtype:
        raise Unsupported(f"result '{tensor.name}' has dtype {tensor.dtype}", dtype)
    if any(n < 0 for n in shape):
        raise Unsupported(f"result '{tensor.name}' has the shape {list(shape)}", "sizes of at least 0")
    if prod(shape) > MAX_ELEMENTS:
        raise Unsupported(f"result '{tensor.name}' has {counted(prod(shape), 'element')}", f"at most {MAX_ELEMENTS}")


def report(faults: Diagnostics, place: str, node: Node, reason: Unsupported) -> None:
    """Report the reason why a node cannot be imported, with the way out."""
    hint = reason.hint
    if reason.location is None and node.kind not in CONTROL:
        way_out = f"bring an operator of your own: --operator {node.source or node.kind}=FILE.yaml"
        hint = way_out if hint is None else f"{hint}; or {way_out}"
    where = reason.location or Location(place)
    faults.error(f"operator {node.label}: {reason.reason}", where, expected=reason.expected, hint=hint)
