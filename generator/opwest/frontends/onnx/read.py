# SPDX-License-Identifier: Apache-2.0
"""An ONNX file as graphs."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

from opwest.compiler.graph.spec import CUSTOM_HINT
from opwest.compiler.graph.types import Graph, Node, Rules, Tensor, Unsupported
from opwest.compiler.graph.user import KIND, Use, UserOperator, bind
from opwest.frontends.onnx import (  # noqa: F401 - they fill the table of translations
    control,
    elements,
    functions,
    gates,
    layers,
    movement,
    parts,
    pools,
    quantised,
    reductions,
    resize,
)  # fmt: skip
from opwest.frontends.onnx.file import MAX_OPSET, MIN_OPSET, other_attributes
from opwest.frontends.onnx.fold import read_model
from opwest.frontends.onnx.simplify import simplify
from opwest.frontends.onnx.translation import TRANSLATIONS, Translation
from opwest.frontends.onnx.values import Item, Model, Op, check_operands

_WITHOUT_EFFECT = {
    *(("Cast", "round_mode"), ("CastLike", "round_mode"), ("DequantizeLinear", "output_dtype")),
    *(("Squeeze", "axes"), ("Unsqueeze", "axes")),
    *(("Dropout", "ratio"), ("Gemm", "broadcast")),
    *(
        (kind, "broadcast")
        for kind in ("Add", "Sub", "Mul", "Div", "Pow", "And", "Or", "Xor", "Less", "Greater", "Equal")
    ),
}
"""Attributes of untested opsets that determine a dtype or a shape, which onnx infers, concern only other dtypes or
training, or permit what later opsets always permit: to broadcast along the last dimensions."""


def translate(model: Model, rules: Rules) -> Graph:
    """Return the graph. An operator that cannot be translated becomes a node with the reason."""
    made = Translation(model, rules)
    inputs = []
    for item in model.inputs:
        tensor = Tensor(item.name, item.dtype, item.known)
        made.put(item, tensor)
        inputs.append(tensor)
    states = {}
    for state in model.states:
        before = Tensor(state.item.name, state.item.dtype, state.item.known, content=state.content, is_state=True)
        made.put(state.item, before)
        states[state] = before
    lost: set[Item] = set()
    for op in model.ops:
        if op in made.done:
            continue
        if lost.intersection(op.inputs):
            lost.update(op.results)  # the reason is that of an operator before it
            continue
        made.label, made.source = op.label, op.source
        try:
            if op.use is not None:
                _bring(op, op.use, made)
                continue
            if op.origin is not None and op.origin.refusal is not None:
                raise op.origin.refusal
            function = TRANSLATIONS.get(op.kind)
            if function is None:
                raise Unsupported("unsupported operator", hint=CUSTOM_HINT)
            if op.kind not in control.KINDS:
                for result in op.results:
                    _ = result.known
                check_operands(op)
            function(op, made)
            _check_attributes(op)
        except Unsupported as reason:
            _refuse(op, made, reason)
            lost.update(result for result in op.results if result.shape is None)
    outputs = []
    for item in model.outputs:
        made.label = f"output '{item.name}'"
        try:
            outputs.append(made.tensor(item))
        except Unsupported:  # an operator before it is refused
            outputs.append(Tensor(item.name, item.dtype, item.shape or ()))
    updates = {}
    for state, before in states.items():
        made.label = f"buffer '{state.item.name}'"
        with contextlib.suppress(Unsupported):  # an operator before it is refused
            updates[before] = made.tensor(state.after)
    return Graph(
        "",
        tuple(inputs),
        tuple(outputs),
        tuple(made.nodes),
        rules,
        updates,
        names=model.names,
        remarks=model.remarks,
        has_shapes=True,
    )


def _check_attributes(op: Op) -> None:
    """Refuse an attribute of an untested opset that the translation did not read. Raises Unsupported."""
    if MIN_OPSET <= op.version <= MAX_OPSET:
        return
    for name, default in other_attributes(op.kind, op.version).items():
        value = op.get(name, default) if name not in op.used else default
        if value != default and (op.kind, name) not in _WITHOUT_EFFECT:
            raise Unsupported(f"{name}={value} of opset {op.version}", f"opset {MIN_OPSET} to {MAX_OPSET}")


def _bring(op: Op, use: Use, made: Translation) -> None:
    """Append a node that is an operator of the user: its tensors are those of the file, in their layout."""
    inputs = [None if item is None else made.tensor(item) for item in op.inputs]
    results = [Tensor(item.name, item.dtype, item.shape or ()) for item in op.results]
    made.append(KIND, inputs, results, {"use": use})
    if any(item.shape is None for item in op.results):
        bind(made.nodes.pop())  # reports the missing shape
    for item, tensor in zip(op.results, results, strict=True):
        made.put(item, tensor)


def _refuse(op: Op, made: Translation, reason: Unsupported) -> None:
    """Append a node that cannot be checked; operators after it are translated as far as its shape is known."""
    results = []
    for item in op.results:
        tensor = Tensor(item.name, item.dtype, item.shape or ())
        results.append(tensor)
        if item.shape is not None:
            made.put(item, tensor)
    inputs = [made.held[item][0].tensor for item in op.given if item in made.held]
    made.nodes.append(Node(op.kind, tuple(inputs), tuple(results), {}, op.label, reason, op.source))


def read_onnx(
    content: bytes, rules: Rules | None = None, users: Mapping[str, UserOperator] | None = None
) -> tuple[Graph, ...]:
    """Return the model of a file. Raises Damaged."""
    return (translate(simplify(read_model(content, users or {})), rules or Rules()),)
