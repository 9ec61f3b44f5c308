# SPDX-License-Identifier: Apache-2.0
"""Signatures of functions in terms of the manifest, from debug information, C or LLVM IR."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, count
from typing import Literal

from opwest.model.identifiers import fault_of_name
from opwest.records import dataclass

Role = Literal["tensor", "scalar", "device"]
Direction = Literal["in", "out", "inout", "scratch"]
Access = Literal["reads", "writes", "both", "unknown"]
"""The access through a pointer; `both` for a C pointer without `const`."""

# Constants, scratch memory, inputs and outputs, by the last words of an argument's name: `dense_weights`, `tmp`.
_CONSTANT = re.compile(
    r"(^|_)(weights?|kernels?|filters?|bias(es)?|gamma|beta|mean|var(iance)?|coeff(icient)?s?|lut|table|params?)\d*$",
    re.IGNORECASE,
)
# Functions that declare other arguments `const` also write tensors with the other names: a mean, a table.
_CERTAIN = re.compile(r"(^|_)(weights?|bias(es)?|gamma|beta|coeff(icient)?s?|lut)\d*$", re.IGNORECASE)
_SCRATCH = re.compile(r"(^|_)(scratch|tmp)\d*$", re.IGNORECASE)
_INPUT = re.compile(r"(^|_)(in|inputs?|src|features)\d*$", re.IGNORECASE)
_OUTPUT = re.compile(r"(^|_)(out|outputs?|dst|results?)\d*$", re.IGNORECASE)
STRUCT_DEVICE = "const struct device *"


def is_constant_name(name: str, *, certain: bool = False) -> bool:
    """Return whether a tensor is probably a constant, by its name; `certain` excludes names that results have too."""
    return (_CERTAIN if certain else _CONSTANT).search(name) is not None


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter; None for unknown properties."""

    name: str
    role: Role
    dtype: str | None = None
    shape: tuple[int, ...] | None = None
    access: Access = "reads"
    direction: Direction | None = "in"
    struct: str | None = None
    """Of a tensor of bytes: the structure that it contains, by tag or typedef."""
    align: int = 0
    """Of a structure; 0 if unknown."""
    handle: str = STRUCT_DEVICE
    """Of a device: its C type."""
    remarks: tuple[str, ...] = ()
    """Comments that help to complete the entry."""
    comment: str | None = None
    """The comment in the source."""


@dataclass(frozen=True, slots=True)
class Signature:
    """A function that can be an operator, or the reason why it cannot."""

    origin: str
    """Origin: `debug information`, `C`, `LLVM IR`."""
    parameters: tuple[Parameter, ...] = ()
    returns_status: bool = True
    value: str | None = None
    """The dtype of the result of a computation that the function returns."""
    unfit: str | None = None
    """The reason why it cannot be an operator."""

    @property
    def device(self) -> Parameter | None:
        """The parameter that is the device."""
        return next((p for p in self.parameters if p.role == "device"), None)

    @property
    def result(self) -> Parameter | None:
        """The tensor for the value that the function returns."""
        if self.value is None:
            return None
        taken = {p.name for p in self.parameters}
        names = chain(("result", "value", "returned"), (f"result_{n}" for n in count(2)))
        name = next(n for n in names if n not in taken)
        return Parameter(name, "tensor", self.value, (1,), "writes", "out")

    @property
    def step_arguments(self) -> tuple[Parameter, ...]:
        """The arguments of a step."""
        return (*self.arguments, *([self.result] if self.result else []))

    @property
    def arguments(self) -> tuple[Parameter, ...]:
        """The parameters except for the device."""
        return tuple(p for p in self.parameters if p.role != "device")


def enriched(signature: Signature, source: Signature | None) -> Signature:
    """Return a signature with the information that only a C source has: comments and constant shapes."""
    if source is None or signature.unfit or len(signature.parameters) != len(source.parameters):
        return signature
    both = zip(signature.parameters, source.parameters, strict=True)
    parameters = tuple(replace(p, shape=p.shape or s.shape, comment=p.comment or s.comment) for p, s in both)
    return replace(signature, parameters=parameters)


def finished(signature: Signature) -> Signature:
    """Return a signature with directions and valid names, and the reason if it is not an operator."""
    if signature.unfit:
        return signature
    parameters = _named(_directed(signature.parameters, returns_value=signature.value is not None))
    value = signature.value
    if value is None and signature.returns_status and not _writes(parameters) and not _takes_device(parameters):
        value = "int32"  # a status without a result would have no use
    return replace(
        signature,
        parameters=parameters,
        returns_status=signature.returns_status and value is None,
        value=value,
        unfit=_unfit(parameters, returns_value=value is not None),
    )


def _writes(parameters: Sequence[Parameter]) -> bool:
    return any(p.role == "tensor" and p.direction not in ("in", "scratch") for p in parameters)


def _takes_device(parameters: Sequence[Parameter]) -> bool:
    return any(p.role == "device" for p in parameters)


def _unfit(parameters: Sequence[Parameter], *, returns_value: bool) -> str | None:
    if any(p.role == "device" for p in parameters[:-1]):
        return "a pointer to a structure is not the last parameter"
    if not any(p.role == "tensor" for p in parameters):
        return "no parameter is a tensor"
    if not _writes(parameters) and not _takes_device(parameters) and not returns_value:
        return "no tensor is written, and nothing is returned"
    return None


def _directed(parameters: Sequence[Parameter], *, returns_value: bool) -> list[Parameter]:
    """Return the parameters with the directions of tensors, certain, guessed or None."""
    some_only_read = any(p.role == "tensor" and p.access == "reads" for p in parameters)
    found = []
    for one in parameters:
        if one.role == "tensor":
            one = replace(one, direction="in" if one.access == "reads" else "inout" if one.struct else "out")
            if one.struct:
                found.append(one)
                continue
            if one.access != "reads" and _SCRATCH.search(one.name):
                one = replace(one, direction="scratch", remarks=("guessed by name: scratch", *one.remarks))
            elif one.access == "both" and is_constant_name(one.name, certain=some_only_read):
                one = replace(one, direction="in", remarks=("guessed by name: in", *one.remarks))
            elif one.access == "both" and returns_value:
                one = replace(one, direction="in", remarks=("guessed: in; alternatives: inout, scratch", *one.remarks))
            elif one.access == "both" and some_only_read:
                one = replace(one, remarks=("guessed: out; alternatives: inout, scratch", *one.remarks))
            elif one.access == "both" and (by_name := _direction_by_name(one.name)) is not None:
                one = replace(one, direction=by_name, remarks=(f"guessed by name: {by_name}", *one.remarks))
            elif one.access in ("both", "unknown"):
                one = replace(one, direction=None, remarks=("direction: in, out, inout or scratch", *one.remarks))
        found.append(one)
    return found


def _direction_by_name(name: str) -> Literal["in", "out"] | None:
    return "in" if _INPUT.search(name) else "out" if _OUTPUT.search(name) else None


def _named(parameters: Sequence[Parameter]) -> tuple[Parameter, ...]:
    """Return the parameters with unique names valid in C and C++."""
    taken: set[str] = set()
    found = []
    for index, one in enumerate(parameters):
        choices = [one.name, f"arg{index}", *(f"arg{index}_{n}" for n in range(2, len(parameters) + 2))]
        name = next(n for n in choices if n not in taken and fault_of_name(n) is None)
        taken.add(name)
        found.append(replace(one, name=name))
    return tuple(found)
