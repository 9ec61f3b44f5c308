# SPDX-License-Identifier: Apache-2.0
"""Operators of the user: what a snippet declares, and how its arguments are bound to a node of the model.

Arguments that are read are bound to the inputs of the node in order, those that are written to its results. A scalar is
the option of its name. `options` is the array of TFLite's custom options, `options_NAME` the array of the option NAME.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from opwest.base.diagnostics import Location
from opwest.base.frozen_dataclass import dataclass
from opwest.base.result import counted
from opwest.compiler.graph.spec import Operator, specify
from opwest.compiler.graph.types import Node, Shape, Tensor, Unsupported

KIND = "USER_OPERATOR"
"""The kind of nodes that are operators of the user."""
OPTIONS = "options"
_SMALL = 6
"""The most tensors in a message."""


@dataclass(frozen=True, eq=False)
class Argument:
    """One argument of an operator of the user."""

    name: str
    dtype: str
    shape: Shape | None
    """None: that of the tensor."""
    direction: str
    """in, out, inout, scratch."""
    is_scalar: bool
    location: Location
    keys: Mapping[str, Any]
    """The keys in the snippet."""

    @property
    def is_option(self) -> bool:
        """Whether it is an array of options."""
        is_named = self.name == OPTIONS or self.name.startswith(f"{OPTIONS}_")
        return is_named and self.direction == "in" and not self.is_scalar

    @property
    def is_read(self) -> bool:
        """Whether it is bound to an input of the node."""
        return self.direction in ("in", "inout") and not self.is_scalar and not self.is_option


@dataclass(frozen=True, eq=False)
class UserOperator:
    """An operator of the user, with the files that it needs."""

    name: str
    location: Location
    arguments: tuple[Argument, ...]
    """The value that it returns is the last one, with the direction out."""
    returns_value: bool
    keys: Mapping[str, Any]
    """The other keys in the snippet."""
    device: str | None
    """The device of its steps."""
    sections: Mapping[str, Any] = field(default_factory=dict)
    """objects, externals, targets, devices of the snippet, with the paths of the imported directory."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """The files by their paths in the imported directory."""


@dataclass(frozen=True, eq=False)
class Use:
    """The options of a node that is an operator of the user."""

    operator: UserOperator
    values: Mapping[str, Any]
    """Numbers, and lists of numbers, by the name of the option."""
    content: bytes | None = None
    """TFLite's custom options; None: the operator cannot have any."""


@dataclass(frozen=True, eq=False)
class Bound:
    """A node as a call."""

    reads: tuple[tuple[Argument, Tensor | Any], ...]
    """Tensors, and arrays of options."""
    writes: tuple[tuple[Argument, Tensor, Shape], ...]
    scalars: tuple[int | float | bool, ...]


def bind(node: Node) -> Bound:
    """Return the call. Raises Unsupported, with the location in the snippet."""
    use: Use = node.options["use"]
    arguments = use.operator.arguments
    inputs = [tensor for tensor in node.inputs if tensor is not None]
    _check_count(use.operator, "input", [argument for argument in arguments if argument.is_read], inputs)
    _check_count(
        use.operator, "result", [argument for argument in arguments if argument.direction == "out"], node.outputs
    )
    reads: list[tuple[Argument, Tensor | Any]] = []
    writes: list[tuple[Argument, Tensor, Shape]] = []
    scalars: list[int | float | bool] = []
    given, results = iter(inputs), iter(node.outputs)
    for argument in arguments:
        if argument.is_scalar:
            scalars.append(_number(argument, use))
        elif argument.is_option:
            reads.append((argument, _array(argument, use)))
        elif argument.is_read:
            tensor = next(given)
            _check_tensor(argument, tensor, "input", tensor.shape)
            if argument.direction == "inout" and not tensor.is_state:
                raise _refusal(argument, f" is inout, input '{tensor.name}' is no variable", "direction: in")
            reads.append((argument, tensor))
        elif argument.direction == "out":
            result = next(results)
            # Files can lack the shape of a result: it is then empty, or has a size of 0.
            shape = result.shape if result.shape and all(result.shape) else argument.shape
            if shape is None:
                text = f"the file does not contain the shape of the result '{result.name}'"
                expected = f"shape: [...] in the argument '{argument.name}'"
                raise Unsupported(text, expected, location=argument.location)
            _check_tensor(argument, result, "result", shape)
            writes.append((argument, result, shape))
    return Bound(tuple(reads), tuple(writes), tuple(scalars))


def _refusal(argument: Argument, text: str, expected: str) -> Unsupported:
    """Return the reason why an argument cannot be bound: `text` follows its name."""
    return Unsupported(f"argument '{argument.name}'{text}", expected, location=argument.location)


def _check_count(operator: UserOperator, role: str, arguments: Sequence[Argument], tensors: Sequence[Tensor]) -> None:
    if len(arguments) == len(tensors):
        return
    shown = ", ".join(f"'{tensor.name}' {tensor.dtype} {list(tensor.shape)}" for tensor in tensors[:_SMALL])
    what = "no arguments" if not tensors else f"{len(tensors)} argument{'s' if len(tensors) > 1 else ''}"
    text = f"expected {what} of '{operator.name}' for the {role}s of the node, found {len(arguments)}"
    more = ", ..." if len(tensors) > _SMALL else ""
    raise Unsupported(text, f"{role}s: {shown}{more}" if tensors else None, location=operator.location)


def _check_tensor(argument: Argument, tensor: Tensor, role: str, shape: Shape) -> None:
    if argument.dtype != tensor.dtype:
        text = f" is {argument.dtype}, {role} '{tensor.name}' is {tensor.dtype}"
        raise _refusal(argument, text, f"dtype: {tensor.dtype}")
    if argument.shape is not None and argument.shape != shape:
        text = f" has the shape {list(argument.shape)}, {role} '{tensor.name}' has the shape {list(shape)}"
        raise _refusal(argument, text, f"shape: {list(shape)}, or no shape")


def _value(argument: Argument, name: str, use: Use) -> Any:
    if name not in use.values:
        names = ", ".join(f"'{value}'" for value in sorted(use.values)[:30])
        expected = f"one of {names}" if names else "an operator with options"
        raise _refusal(argument, f": the node has no option '{name}'", expected)
    return use.values[name]


def _number(argument: Argument, use: Use) -> int | float | bool:
    value = _value(argument, argument.name, use)
    if not isinstance(value, (int, float)):
        text = f": the option '{argument.name}' is not a number"
        raise _refusal(argument, text, f"an array argument '{OPTIONS}_{argument.name}'")
    if argument.dtype == "bool":
        return bool(value)
    if not argument.dtype.startswith(("float", "bfloat")):
        if value != int(value):
            raise _refusal(argument, f" is {argument.dtype}, the option is {value!r}", "dtype: float32")
        return int(value)
    return float(value)


def _array(argument: Argument, use: Use) -> Any:
    """Return the content of an array of options."""
    import numpy as np

    if argument.name == OPTIONS:
        if use.content is None:
            text = ": only custom operators of TFLite have custom options"
            raise _refusal(argument, text, f"{OPTIONS}_NAME, or a scalar with the name of an option")
        array = np.frombuffer(use.content, np.uint8)
        if argument.dtype != "uint8":
            raise _refusal(argument, f" is {argument.dtype}", "dtype: uint8")
    else:
        name = argument.name.removeprefix(f"{OPTIONS}_")
        try:
            array = np.atleast_1d(np.asarray(_value(argument, name, use))).astype(argument.dtype)
        except (TypeError, ValueError, OverflowError):
            raise _refusal(argument, f": the option '{name}' is no list of numbers", "a list of numbers") from None
    if not array.size:
        raise _refusal(argument, ": the option is empty", "an option")
    if argument.shape is not None:
        if array.size != int(np.prod(argument.shape, dtype=np.int64)):
            text = f" has the shape {list(argument.shape)}, the option {counted(array.size, 'element')}"
            raise _refusal(argument, text, f"shape: [{array.size}], or no shape")
        array = array.reshape(argument.shape)
    return array


def opaque_results(
    name: str, arrays: Sequence[Any], states: Sequence[Any], results: Sequence[tuple[str, Shape]]
) -> tuple[Any, ...]:
    """Return results that depend on all bytes of the inputs, for a proof: what the operator computes is unknown.

    The content of states, arrays among the inputs, is changed in the same way.
    """
    import hashlib

    import numpy as np

    digest = hashlib.sha256(name.encode())
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    random = np.random.default_rng(int.from_bytes(digest.digest()[:8], "little"))

    def made(dtype: str, shape: Shape) -> Any:
        return random.integers(0, 2 if dtype == "bool" else 100, shape).astype(dtype)

    for state in states:
        state[...] = made(str(state.dtype), state.shape)
    return tuple(made(dtype, shape) for dtype, shape in results)


specify(
    Operator(
        KIND, lambda node: [(argument.dtype, shape) for argument, _, shape in bind(node).writes], options={"use": None}
    )
)
