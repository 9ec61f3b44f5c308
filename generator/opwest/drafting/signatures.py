# SPDX-License-Identifier: Apache-2.0
"""What a function's parameters are, in the manifest's terms: from debug information, C or LLVM IR."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from opwest.model.identifiers import fault_of_name
from opwest.records import dataclass

Role = Literal["tensor", "scalar", "device"]
Direction = Literal["in", "out", "inout"]
Access = Literal["reads", "writes", "both", "unknown"]
"""What a function does through a pointer: `both` is what C without `const` allows."""

STRUCT_DEVICE = "const struct device *"


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter; None where a thing is not known."""

    name: str
    role: Role
    dtype: str | None = None
    shape: tuple[int, ...] | None = None
    access: Access = "reads"
    direction: Direction | None = "in"
    handle: str = STRUCT_DEVICE
    """Of a device: its C type."""
    remarks: tuple[str, ...] = ()
    """What helps whoever fills in the rest."""
    comment: str | None = None
    """What the source says of it."""


@dataclass(frozen=True, slots=True)
class Signature:
    """A function that can be an operator, or the reason why it can't."""

    origin: str
    """Where it was read: `debug information`, `C`, `LLVM IR`."""
    parameters: tuple[Parameter, ...] = ()
    returns_status: bool = True
    unfit: str | None = None
    """Why it can't be called as an operator, in words."""

    @property
    def device(self) -> Parameter | None:
        """The parameter that is the device."""
        return next((p for p in self.parameters if p.role == "device"), None)

    @property
    def arguments(self) -> tuple[Parameter, ...]:
        """The parameters but the device."""
        return tuple(p for p in self.parameters if p.role != "device")


def enriched(signature: Signature, source: Signature | None) -> Signature:
    """Return a signature with what only a C source tells: comments, and shapes that are written out."""
    if source is None or signature.unfit or len(signature.parameters) != len(source.parameters):
        return signature
    both = zip(signature.parameters, source.parameters, strict=True)
    parameters = tuple(replace(p, shape=p.shape or s.shape, comment=p.comment or s.comment) for p, s in both)
    return replace(signature, parameters=parameters)


def finished(signature: Signature) -> Signature:
    """Return a signature with directions decided, names that a manifest takes, and its fitness judged."""
    if signature.unfit:
        return signature
    parameters = _named(_directed(signature.parameters))
    return replace(signature, parameters=parameters, unfit=_unfit(parameters))


def _unfit(parameters: Sequence[Parameter]) -> str | None:
    if any(p.role == "device" for p in parameters[:-1]):
        return "it takes a pointer to a structure that is not its last parameter"
    if not any(p.role == "tensor" for p in parameters):
        return "no tensor is among its parameters"
    writes = any(p.role == "tensor" and p.direction != "in" for p in parameters)
    if not writes and not any(p.role == "device" for p in parameters):
        return "it writes no tensor"
    return None


def _directed(parameters: Sequence[Parameter]) -> list[Parameter]:
    """Return the parameters with the directions of tensors, certain, guessed or None."""
    some_only_read = any(p.role == "tensor" and p.access == "reads" for p in parameters)
    found = []
    for one in parameters:
        if one.role == "tensor":
            one = replace(one, direction="in" if one.access == "reads" else "out")
            if one.access == "both" and some_only_read:
                one = replace(one, remarks=("guessed: out; or inout, scratch", *one.remarks))
            elif one.access in ("both", "unknown"):
                one = replace(one, direction=None, remarks=("direction: in, out, inout or scratch", *one.remarks))
        found.append(one)
    return found


def _named(parameters: Sequence[Parameter]) -> tuple[Parameter, ...]:
    """Return the parameters under names of their own that C and C++ take."""
    taken: set[str] = set()
    found = []
    for index, one in enumerate(parameters):
        choices = [one.name, f"arg{index}", *(f"arg{index}_{n}" for n in range(2, len(parameters) + 2))]
        name = next(n for n in choices if n not in taken and fault_of_name(n) is None)
        taken.add(name)
        found.append(replace(one, name=name))
    return tuple(found)
