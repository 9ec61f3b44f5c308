# SPDX-License-Identifier: Apache-2.0
"""The specification of an operator: operands, dtypes, options, the shapes of its results.

The rows are in compiler/semantics/, one module per family. Later stages rely on them: a node that passes has its
operands and options, and shapes that agree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any, TypeVar

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.graph.types import Node, Shape, Tensor, Unsupported

Result = tuple[str, Shape]
"""The dtype and the shape of a result."""
Infer = Callable[[Node], Sequence[Result]]
"""Returns the results of a node whose operands agree with the row. Raises Unsupported."""
States = Callable[[Node], Sequence[tuple[str, str, Shape]]]
"""Returns the name, the dtype and the shape of each state of a node that agrees with its row."""
CUSTOM_HINT = "docs/importing-models.md lists the supported operators"


@dataclass(frozen=True)
class Operator:
    """One row: an operator and what it accepts."""

    kind: str
    infer: Infer
    dtypes: Sequence[str] = ()
    """The accepted dtypes of the inputs, such as "int8 int8 [int32]": an entry in brackets may be absent, and the last
    entry repeats if it ends with "...". Alternatives of one operand are separated by "|". Empty: any."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Every option with its default value."""
    known: tuple[int, ...] = ()
    """The inputs whose content must be known at import: shapes, axes."""
    shape_input: int | None = None
    """The input that is the shape of the only result. If it is computed when the model runs, the shape of the result in
    the file takes its place, as in tflite-micro."""
    states: States | None = None
    """The states that the operator owns, which are no tensors of a file. Readers add them to the inputs."""


OPERATORS: dict[str, Operator] = {}
"""The rows by kind. Importing compiler/semantics/ fills it."""


def specify(*rows: Operator) -> None:
    """Add rows."""
    for row in rows:
        assert row.kind not in OPERATORS, row.kind
        OPERATORS[row.kind] = row


Key = TypeVar("Key")
Function = TypeVar("Function")


def registrar(table: dict[Key, Function]) -> Callable[..., Callable[[Function], Function]]:
    """Return a decorator with parameters that enters a function in a table, under each of some keys."""

    def enter(*keys: Key) -> Callable[[Function], Function]:
        def register(function: Function) -> Function:
            for key in keys:
                assert key not in table, key
                table[key] = function
            return function

        return register

    return enter


def check_node(node: Node) -> Sequence[Result]:
    """Return the results of a node. Raises Unsupported if it does not agree with the row of its operator."""
    row = OPERATORS.get(node.kind)
    if row is None:
        raise Unsupported("unsupported operator", hint=CUSTOM_HINT)
    given = _without_states(node, row)
    if row.dtypes:
        dtypes = [None if tensor is None else tensor.dtype for tensor in given]
        if not any(_accepts(pattern.split(), dtypes) for pattern in row.dtypes):
            shown = ", ".join(dtype or "none" for dtype in dtypes)
            raise Unsupported(f"unsupported dtypes {shown}", " or ".join(_words(p) for p in row.dtypes), CUSTOM_HINT)
    if row.shape_input is not None:
        _use_shape_of_file(node, row.shape_input)
    for number in row.known:
        tensor = node.optional(number)
        if tensor is not None and not tensor.is_constant:
            raise Unsupported(
                f"input {number} '{tensor.name}' is computed when the model runs, but determines a shape",
                "a constant",
                "export the model with fixed shapes",
            )
    unknown = sorted(node.options.keys() - row.options.keys())
    assert not unknown, f"{node.label}: options {unknown}"
    node.options = {**row.options, **node.options}
    try:
        results = row.infer(node)
        if row.states is not None:
            _check_states(node, row)
        return results
    except (ArithmeticError, AssertionError, LookupError, TypeError, ValueError) as error:
        # Rows rely on ordinary files; a damaged one can contradict itself in ways that they do not name.
        shapes = ", ".join("none" if tensor is None else str(list(tensor.shape)) for tensor in node.inputs)
        text = f"contradictory shapes or options: inputs {shapes}" + (f" ({error})" if str(error) else "")
        raise Unsupported(text, hint="the file may be damaged") from None


def _without_states(node: Node, row: Operator) -> list[Tensor | None]:
    """Return the inputs without the states that the operator owns."""
    return [tensor for tensor in node.inputs if row.states is None or tensor is None or not tensor.is_state]


def add_states(node: Node) -> None:
    """Add the states that the operator owns to its inputs; not if the check will refuse the node.

    Copies of the node have the same states: tflite-micro keeps one for each operator of a file.
    """
    row = OPERATORS[node.kind]
    if row.states is None or node.refusal is not None or len(_without_states(node, row)) < len(node.inputs):
        return
    try:
        states = row.states(node)
    except (Unsupported, ArithmeticError, AssertionError, LookupError, TypeError, ValueError):
        return  # the check reports it
    name = node.outputs[0].name if node.outputs else node.kind
    made = (Tensor(f"{name} {what}", dtype, shape, is_state=True) for what, dtype, shape in states)
    node.inputs = (*node.inputs, *made)


def _check_states(node: Node, row: Operator) -> None:
    """Raise Unsupported if the shapes of a file contradict those of the operators before this one."""
    assert row.states is not None
    found = [(tensor.dtype, tensor.shape) for tensor in node.inputs if tensor is not None and tensor.is_state]
    wanted = [(dtype, shape) for _, dtype, shape in row.states(node)]
    if found != wanted:
        shown = ", ".join(f"{dtype} {list(shape)}" for dtype, shape in found) or "none"
        expected = ", ".join(f"{dtype} {list(shape)}" for dtype, shape in wanted) or "none"
        raise Unsupported(f"states by the shapes of the file: {shown}", expected, "the file may be damaged")


def _use_shape_of_file(node: Node, number: int) -> None:
    """Replace a computed shape by that of the result in the file, if it is complete."""
    import numpy as np

    tensor = node.optional(number)
    if tensor is None or tensor.is_constant or len(node.outputs) != 1 or not node.output.shape:
        return
    if all(n > 0 for n in node.output.shape):
        shape = np.asarray(node.output.shape, np.int32)
        known = Tensor(tensor.name, "int32", shape.shape, None, shape)
        node.inputs = (*node.inputs[:number], known, *node.inputs[number + 1 :])


def _accepts(pattern: Sequence[str], dtypes: Sequence[str | None]) -> bool:
    if pattern and pattern[-1].endswith("..."):
        repeated = pattern[-1].removesuffix("...")
        rest = max(len(dtypes) - len(pattern) + 1, 0)
        pattern = [*pattern[:-1], *[repeated] * rest]
    if len(dtypes) > len(pattern):
        return False
    padded = [*dtypes, *[None] * (len(pattern) - len(dtypes))]
    for entry, dtype in zip(pattern, padded, strict=True):
        if dtype is None:
            if not entry.startswith("["):
                return False
        elif dtype not in entry.strip("[]").split("|"):
            return False
    return True


def _words(pattern: str) -> str:
    return ", ".join(entry.replace("|", "/") for entry in pattern.split())


def same(node: Node) -> Sequence[Result]:
    """Return the dtype and shape of the first input."""
    first = node.input(0)
    return [(first.dtype, first.shape)]


def broadcast_inputs(node: Node) -> Sequence[Result]:
    """Return the dtype of the first input and the common shape of all."""
    return [(node.input(0).dtype, broadcast([tensor.shape for tensor in node.inputs if tensor is not None]))]


def broadcast(shapes: Iterable[Shape]) -> Shape:
    """Return the common shape under numpy's rule of broadcasting. Raises Unsupported."""
    import numpy as np

    listed = list(shapes)
    try:
        return tuple(int(n) for n in np.broadcast_shapes(*listed))
    except ValueError:
        shown = " and ".join(str(list(shape)) for shape in listed)
        raise Unsupported(f"shapes {shown} cannot be broadcast to one shape") from None
