# SPDX-License-Identifier: Apache-2.0
"""The argument arrays of packed and ffi operators, entry by entry: the same for C and for LLVM IR."""

from __future__ import annotations

from opwest.model.conventions import EntryKind
from opwest.model.model import Argument, Model, Operator
from opwest.records import dataclass


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of `args`."""

    kind: EntryKind
    parameter: int
    """The bridge's parameter with its value."""
    tensor: int | None
    """Its place among the DLTensors."""
    argument: Argument | None
    """None for the device."""


def entries(operator: Operator) -> list[Entry]:
    """Return the entries for a packed or ffi operator: its arguments, then its device."""
    found: list[Entry] = []
    tensors = 0
    for index, argument in enumerate(operator.args):
        if not argument.is_passed:
            continue
        kind = _kind(argument)
        found.append(Entry(kind, index, tensors if kind == "tensor" else None, argument))
        tensors += kind == "tensor"
    if operator.takes_device:
        found.append(Entry("pointer", len(operator.args), None, None))
    return found


def tensors(operator: Operator) -> list[Argument]:
    """Return the arguments that are passed as DLTensors."""
    return [e.argument for e in entries(operator) if e.kind == "tensor" and e.argument is not None]


def strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides of a dense tensor in C order, in elements."""
    found: list[int] = []
    step = 1
    for extent in reversed(shape):
        found.append(step)
        step *= extent
    return tuple(reversed(found))


def supplied(operator: Operator, what: str) -> int | None:
    """Return the bridge's parameter for the workspace or for the arrays; None if there is none."""
    return next((i for i, a in enumerate(operator.args) if a.supplied == what), None)


def has_bridges(model: Model) -> bool:
    """Return whether an operator has another convention, a workspace or a value."""
    return any(operator.is_bridged for operator in model.operators)


def _kind(argument: Argument) -> EntryKind:
    if argument.scalar:
        if argument.type.dtype.is_float:
            return "float"
        return "boolean" if argument.type.dtype.kind == "bool" else "integer"
    return "pointer" if argument.pointer else "tensor"
