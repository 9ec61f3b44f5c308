# SPDX-License-Identifier: Apache-2.0
"""If with a known condition becomes a branch, Loop with a known number of turns becomes its turns.

Conditions that depend on constants and shapes only are known. Source: onnx/docs/Operators.md, If, Loop.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from opwest.compiler.graph.types import Damaged, Unsupported
from opwest.frontends.onnx.file import inner_graphs
from opwest.frontends.onnx.translation import Translation, translates
from opwest.frontends.onnx.values import Op, constant_item

if TYPE_CHECKING:
    from opwest.frontends.onnx.fold import Reader

KINDS = frozenset(("If", "Loop", "Scan"))
MAX_TURNS = 1024
"""The most turns of a loop."""
MAX_NODES = 20_000
"""The most operators after the turns of all loops are separate."""
_HINT = "export the model with constant conditions, or with its loops unrolled"


def resolve(node: Any, number: int, target: Reader) -> bool:
    """Add the operators of a branch or of all turns; return whether they are known."""
    if node.domain not in ("", "ai.onnx") or node.op_type not in ("If", "Loop"):
        return False
    graphs = {attribute.name: attribute.g for attribute in node.attribute if attribute.HasField("g")}
    if node.op_type == "If":
        condition = _known(target, node, 0)
        if condition is None or condition.size != 1:
            return False
        chosen = graphs.get("then_branch" if condition.reshape(-1)[0] else "else_branch")
        if chosen is None or len(chosen.output) != len(node.output):
            raise Damaged(f"operator {number} (If) has a branch with other results")
        _bind(target, node.output, _inline(chosen, {}, _prefix(node, number), number, target))
        return True
    body = graphs.get("body")
    turns, start = _known(target, node, 0), _known(target, node, 1)
    given = [bool(name) for name in (*node.input[:2], "", "")[:2]]
    if body is None or (given[0] and turns is None) or (given[1] and start is None):
        return False
    most = MAX_TURNS + 1 if turns is None else int(turns.reshape(-1)[0])
    _unroll(node, number, target, body, most if start is None or start.all() else 0)
    return True


def _prefix(node: Any, number: int) -> str:
    return next((name for name in node.output if name), str(number)) + "/"


def _unroll(node: Any, number: int, target: Reader, body: Any, turns: int) -> None:
    """Add the turns of a loop, at most `turns`."""
    names = [value.name for value in body.input]
    values = list(node.input[2:])
    count = len(values)
    if len(names) != count + 2 or len(body.output) < count + 1 or len(node.output) > len(body.output) - 1:
        raise Damaged(f"operator {number} (Loop) has a body with other operands")
    scans: list[list[str]] = [[] for _ in node.output[count:]]
    for turn in range(turns):
        if turn == MAX_TURNS:
            raise Unsupported(f"operator {number} (Loop): more than {MAX_TURNS} turns", "shorter loops", _HINT)
        prefix = f"{_prefix(node, number)}{turn}/"
        given = {names[0]: _set(target, f"{prefix}turn", np.asarray(turn, np.int64))}
        given[names[1]] = _set(target, f"{prefix}condition", np.asarray(True))
        given.update(zip(names[2:], values, strict=True))
        condition, *results = _inline(body, given, prefix, number, target)
        again = target.items.get(condition)
        if again is None or again.content is None:
            raise Unsupported(
                f"operator {number} (Loop): the condition '{condition}' is computed when the model runs",
                "a constant",
                _HINT,
            )
        values = results[:count]
        for scan, name in zip(scans, results[count:], strict=False):
            scan.append(name)
        if not np.asarray(again.content).all():
            break
    _bind(target, node.output[:count], values)
    for result, parts in zip(node.output[count:], scans, strict=True):
        if result:
            _stack(target, number, result, parts)


def _stack(target: Reader, number: int, result: str, parts: list[str]) -> None:
    """Join the results of the turns along a new first dimension."""
    from onnx import helper

    if not parts:
        raise Unsupported(f"operator {number} (Loop): the result '{result}' of no turns", "one turn or more", _HINT)
    wide = []
    for place, part in enumerate(parts):
        name = f"{result}/{place}"
        shape = target.items[part].known
        wanted = _set(target, f"{name}/shape", np.asarray((1, *shape), np.int64))
        target.node(helper.make_node("Reshape", [part, wanted], [name]), number)
        wide.append(name)
    target.node(helper.make_node("Concat", wide, [result], axis=0), number)


def _known(target: Reader, node: Any, place: int) -> Any:
    """Return the content of an input, None if it is computed when the model runs or absent."""
    item = target.items.get(node.input[place]) if place < len(node.input) and node.input[place] else None
    return None if item is None or item.content is None else np.asarray(item.content)


def _set(target: Reader, name: str, array: Any) -> str:
    target.items[name] = constant_item(name, array)
    return name


def _bind(target: Reader, names: Any, values: list[str]) -> None:
    """Let names stand for other items."""
    for name, value in zip(names, values, strict=True):
        if name:
            if value not in target.items:
                raise Damaged(f"'{value}' is not computed")
            target.items[name] = target.items[value]


def _inline(graph: Any, given: Mapping[str, str], prefix: str, number: int, target: Reader) -> list[str]:
    """Add a copy of a subgraph whose own names have a prefix; return the names of its results."""
    from onnx import NodeProto

    table = dict(given)
    for tensor in graph.initializer:
        table[tensor.name] = f"{prefix}{tensor.name}"
        target.constant(tensor, table[tensor.name])
    for node in graph.node:
        target.taken += 1
        if target.taken > MAX_NODES:
            raise Unsupported(
                f"operator {number}: more than {MAX_NODES} operators after all turns", "shorter loops", _HINT
            )
        table.update((name, f"{prefix}{name}") for name in node.output if name)
        copy = NodeProto()
        copy.CopyFrom(node)
        _rename(copy, table)
        target.node(copy, number)
    return [table.get(value.name, value.name) for value in graph.output]


def _rename(node: Any, table: Mapping[str, str]) -> None:
    for names in (node.input, node.output):
        for place, name in enumerate(names):
            names[place] = table.get(name, name)
    for graph in inner_graphs(node):
        own = {value.name for value in (*graph.input, *graph.initializer)}
        own.update(name for inner in graph.node for name in inner.output)
        outer = {name: other for name, other in table.items() if name not in own}
        for inner in graph.node:
            _rename(inner, outer)
        for value in graph.output:
            value.name = outer.get(value.name, value.name)


@translates("If", "Loop", "Scan")
def refuse(op: Op, t: Translation) -> None:
    """What remains depends on data."""
    if op.kind == "Scan":
        raise Unsupported("Scan", "a Loop with a constant number of turns, or none", _HINT)
    names = [
        item.name for item in op.inputs[: 1 if op.kind == "If" else 2] if item is not None and item.content is None
    ]
    what = "the condition" if op.kind == "If" else "the number of turns or the condition"
    raise Unsupported(f"{what} '{', '.join(names)}' is computed when the model runs", "a constant", _HINT)
