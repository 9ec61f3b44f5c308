# SPDX-License-Identifier: Apache-2.0
"""Signatures of functions in terms of the manifest, from types in debug information or C, or from LLVM IR."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from itertools import chain, count
from types import MappingProxyType
from typing import Literal, NamedTuple

from opwest.base.frozen_dataclass import dataclass
from opwest.model.types.c_names import fault_of_name, is_symbol
from opwest.model.types.dtypes import DTYPES, dtype_of_c, dtype_of_ir
from opwest.objects.dwarf_types import DwarfSignature, DwarfType
from opwest.objects.llvm.facts import IrFunction, IrParameter, IrUse

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
_WINDOW = ", a window of Exo: declare a tensor, f32[N], in place of [f32][N]"
STRUCT_DEVICE = "const struct device *"


def is_constant_name(name: str, *, certain: bool = False) -> bool:
    """Return whether a tensor is probably a constant, by its name; `certain` excludes names that results have too."""
    return (_CERTAIN if certain else _CONSTANT).search(name) is not None


class Comment(NamedTuple):
    """The description of a parameter in a comment."""

    text: str
    direction: Direction | None = None


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
    documented: Direction | None = None
    """The direction in the comment: `@param[in,out]`."""
    table: str | None = None
    """The table of pointers that contains its address."""
    nulls: int = 0
    """The number of pointers without a tensor that it stands for."""
    value: str | None = None
    """Of a scalar: the number that steps pass."""


@dataclass(frozen=True, slots=True)
class Signature:
    """A function that can be an operator, or the reason why it cannot."""

    origin: str
    """`debug information`, `header`, `C` or `LLVM IR`."""
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
    """Return a signature with the information that only C has: comments, constant shapes, documented directions."""
    if source is None or signature.unfit or len(signature.parameters) != len(source.parameters):
        return signature
    parameters = []
    for own, other in zip(signature.parameters, source.parameters, strict=True):
        shape, comment = own.shape or other.shape, own.comment or other.comment
        direction, remarks = own.direction, own.remarks
        if other.documented is not None and own.access == other.access:
            direction, remarks = other.direction, other.remarks
        parameters.append(replace(own, shape=shape, comment=comment, direction=direction, remarks=remarks))
    return replace(signature, parameters=tuple(parameters))


def _finished(
    origin: str, parameters: Sequence[Parameter | str], *, returns: bool, value: str | None, unfit: str | None
) -> Signature:
    """Return a signature with directions and valid names, and the reason if it is not an operator.

    A text in place of a parameter is a description of an unsupported one.
    """
    for index, parameter in enumerate(parameters, start=1):
        if isinstance(parameter, str):
            unfit = unfit or f"parameter {index} is {parameter}{_WINDOW if 'exo_win_' in parameter else ''}"
    supported = [without_tensor(parameter) for parameter in parameters if isinstance(parameter, Parameter)]
    if unfit:
        return Signature(origin, tuple(supported), returns, value, unfit)
    complete = _named(_directed(supported, returns_value=value is not None))
    tensors = [parameter for parameter in complete if parameter.role == "tensor"]
    takes_device = any(parameter.role == "device" for parameter in complete)
    has_result = takes_device or any(tensor.direction not in ("in", "scratch") for tensor in tensors)
    if value is None and returns and not has_result:
        value = "int32"  # a status without a result would have no use
    if any(parameter.role == "device" for parameter in complete[:-1]):
        unfit = "a pointer to a structure is not the last parameter"
    elif not tensors:
        unfit = "no parameter is a tensor"
    elif not has_result and value is None:
        unfit = "no tensor is written, and nothing is returned"
    return Signature(origin, complete, returns and value is None, value, unfit)


def without_tensor(parameter: Parameter) -> Parameter:
    """Return a parameter; the context of Exo's functions, a pointer to void, as one that is always NULL."""
    if parameter.role != "tensor" or parameter.name != "ctxt" or parameter.dtype is not None:
        return parameter
    return Parameter("ctxt", "tensor", "uint8", direction="scratch", nulls=1, remarks=("guessed: Exo's context",))


def _directed(parameters: Sequence[Parameter], *, returns_value: bool) -> Iterator[Parameter]:
    """Yield the parameters with the directions of tensors, certain, guessed or None."""
    some_only_read = any(p.role == "tensor" and p.access == "reads" for p in parameters)
    for parameter in parameters:
        if parameter.role == "tensor" and not parameter.nulls:
            direction, remark = _direction(parameter, some_only_read=some_only_read, returns_value=returns_value)
            remarks = (remark, *parameter.remarks) if remark else parameter.remarks
            parameter = replace(parameter, direction=direction, remarks=remarks)
        yield parameter


def _direction(parameter: Parameter, *, some_only_read: bool, returns_value: bool) -> tuple[Direction | None, str]:
    """Return the direction of a tensor, and a remark if it is guessed or unknown."""
    name, access = parameter.name, parameter.access
    if access == "reads":
        return "in", ""
    if parameter.struct:
        return "inout", ""
    if parameter.documented is not None:
        return parameter.documented, ""
    if _SCRATCH.search(name):
        return "scratch", "guessed by name: scratch"
    if access == "writes":
        return "out", ""
    if access == "both":
        if is_constant_name(name, certain=some_only_read):
            return "in", "guessed by name: in"
        if returns_value:
            return "in", "guessed: in; alternatives: inout, scratch"
        if some_only_read:
            return "out", "guessed: out; alternatives: inout, scratch"
        if _INPUT.search(name):
            return "in", "guessed by name: in"
        if _OUTPUT.search(name):
            return "out", "guessed by name: out"
    return None, "direction: in, out, inout or scratch"


def _named(parameters: Iterable[Parameter]) -> tuple[Parameter, ...]:
    """Return the parameters with unique names valid in C and C++."""
    named: dict[str, Parameter] = {}
    for index, parameter in enumerate(parameters):
        choices = chain((parameter.name, f"arg{index}"), (f"arg{index}_{n}" for n in count(2)))
        name = next(n for n in choices if n not in named and fault_of_name(n) is None)
        table = parameter.table
        if table is not None and (fault_of_name(table) is not None or table in {p.table for p in named.values()}):
            table = f"table{index}"
        named[name] = replace(parameter, name=name, table=table)
    return tuple(named.values())


def _table(name: str, dtype: str | None, remarks: tuple[str, ...], *, writes: bool) -> Parameter:
    """Return the first entry of a table of pointers, whose length is unknown."""
    remarks = (*remarks, "the entries of the table: an argument for each pointer")
    return Parameter(f"{name}0", "tensor", dtype, access="both" if writes else "reads", table=name, remarks=remarks)


DWARF_ORIGIN = "debug information"
HEADER_ORIGIN = "header"
C_ORIGIN = "C"
_STRUCT = re.compile(r"struct [A-Za-z_][A-Za-z0-9_]*")
_STATUS_BYTES = 4
_KEY = re.compile(r"(struct|union|class) ")
_NO_COMMENTS: Mapping[str, Comment] = MappingProxyType({})
_FIXED = re.compile(r"u?int\d+_t")
_SLICE = re.compile(r"struct (.*\[\]|(&(mut )?|\[\]).*\w.*)")  # of D, of Rust and of Zig
_NO_ELEMENTS = frozenset(("void", "struct", "pointer", "function", "other"))
_VARYING = frozenset(("long", "long int", "unsigned long", "long unsigned int"))


def from_dwarf(seen: DwarfSignature) -> Signature:
    """Return the signature of a function that has debug information, read with the names of parameters."""
    return from_types(DWARF_ORIGIN, seen)


def from_types(
    origin: str,
    seen: DwarfSignature,
    shapes: Sequence[tuple[int, ...] | None] = (),
    comments: Mapping[str, Comment] = _NO_COMMENTS,
    unsized: Set[str] = frozenset(),
) -> Signature:
    """Return the signature of a function whose types are known.

    `shapes` are the dimensions of arrays, by parameter; `comments` are descriptions of parameters by name;
    `unsized` are structures with a definition and an unknown size.
    """
    returns = seen.returns
    is_status = returns.kind == "integer" and returns.size in (0, _STATUS_BYTES)
    value = None if is_status else dtype_of(returns)
    unfit = None
    if seen.variadic:
        unfit = "variable arguments"
    elif not is_status and value is None and returns.kind not in ("void", "unknown"):
        unfit = f"return type {returns}, expected void or a number"
    last = len(seen.parameters) - 1
    shapes = shapes or (None,) * len(seen.parameters)
    parameters: list[Parameter | str] = []
    for index, (name, type_, shape) in enumerate(zip(seen.names, seen.parameters, shapes, strict=True)):
        one = _parameter(name, type_, unsized, is_last=index == last)
        if isinstance(one, Parameter):
            shape = one.shape or (shape if one.struct is None else None)
            above = comments.get(name, Comment(""))
            one = replace(one, shape=shape, comment=above.text or None, documented=above.direction)
        parameters.append(one)
    return _finished(origin, parameters, returns=returns.kind != "void", value=value, unfit=unfit)


def _parameter(name: str, type_: DwarfType, unsized: Set[str], *, is_last: bool) -> Parameter | str:
    """Return the parameter, or a description of an unsupported one."""
    if type_.kind in ("integer", "float", "bool", "unknown"):
        dtype = dtype_of(type_)
        return Parameter(name, "scalar", dtype, remarks=_remarks(type_, dtype))
    target = type_.target
    if type_.kind != "pointer" or target is None:
        if type_.kind == "other":
            return type_.name
        if _SLICE.fullmatch(type_.name):
            return f"a slice ({type_.name.removeprefix('struct ')}): declare a pointer and a length"
        return f"a {type_.kind} ({type_})" if type_.kind != "pointer" else "a pointer to an unknown type"
    access: Access = "reads" if target.const else "both"
    if target.kind == "struct":
        tag = _tag(target)
        if tag is not None and tag != "device" and target.size:
            return Parameter(name, "tensor", "uint8", (target.size,), access, struct=tag, align=target.align)
        if tag is not None and target.names & unsized:
            remark = f"shape: [SIZE] and align: those of `{target.name}`, which depend on the target"
            return Parameter(name, "tensor", "uint8", access=access, struct=tag, remarks=(remark,))
        return _device(name, target) if is_last else f"{type_}, a structure"
    if target.kind == "pointer" and target.target and target.target.kind not in _NO_ELEMENTS:
        dtype = dtype_of(target.target)
        return _table(name, dtype, _remarks(target.target, dtype), writes=not target.target.const)
    if target.kind in ("pointer", "function"):
        return "a pointer to a pointer" if target.kind == "pointer" else "a pointer to a function"
    dtype = dtype_of(target)
    return Parameter(name, "tensor", dtype, target.shape or None, access, remarks=_remarks(target, dtype))


def _remarks(type_: DwarfType, dtype: str | None) -> tuple[str, ...]:
    if dtype is None:
        return (f"{type_} in C" + (": the size depends on the target" if type_.kind == "integer" else ""),)
    if type_.names & _VARYING and not any(_FIXED.fullmatch(name) for name in type_.names):
        return (f"{type_.name} in C: the size depends on the target",)
    return ()


def _tag(target: DwarfType) -> str | None:
    """Return the tag or the typedef of a structure."""
    names = [_KEY.sub("", name, count=1) for name in (target.name, *sorted(target.names))]
    return next((name for name in names if is_symbol(name)), None)


def _device(name: str, target: DwarfType) -> Parameter | str:
    tags = sorted(n for n in target.names if _STRUCT.fullmatch(n))
    if not tags:
        return "a pointer to a structure without a name"
    const = "const " if target.const else ""
    return Parameter(name, "device", handle=f"{const}{tags[0]} *" if tags[0] != "struct device" else STRUCT_DEVICE)


def dtype_of(type_: DwarfType) -> str | None:
    """Return the dtype of a C type, or None."""
    if type_.kind == "bool":
        return "bool"
    if type_.kind == "float":
        named = (dtype_of_c(name) for name in sorted(type_.names))
        known = next((dtype for dtype in named if dtype), None) or DTYPES.get(f"float{type_.size * 8}")
    elif type_.kind == "integer":
        sign = "u" if type_.signed is False else ""  # plain char and enumerations: as signed
        known = DTYPES.get(f"{sign}int{type_.size * 8}")
    else:
        known = None
    return known.name if known else None


IR_ORIGIN = "LLVM IR"
_STATUS = IrParameter("integer", 32)
_DEVICES = ("dev", "device")
_SIZES = {"i8": "int8 or uint8", "i16": "int16 or uint16", "i32": "int32 or uint32", "i64": "int64 or uint64"}


def from_ir(function: IrFunction) -> Signature:
    """Return the signature of a function that a module of IR defines."""
    returns = function.returns
    value = DTYPES.get(f"float{returns.bits}") if returns is not None and returns.kind == "float" else None
    unfit = None
    if function.variadic:
        unfit = "variable arguments"
    elif returns not in (None, _STATUS) and value is None:
        unfit = f"it returns {returns}, expected i32, float, double or void"
    last = len(function.parameters) - 1
    parameters = [
        _ir_parameter(
            kind,
            function.uses[index] if index < len(function.uses) else IrUse("", "unknown", ()),
            is_last=index == last,
        )
        for index, kind in enumerate(function.parameters)
    ]
    name = value.name if value else None
    return _finished(IR_ORIGIN, parameters, returns=returns is not None, value=name, unfit=unfit)


def _ir_parameter(kind: IrParameter, use: IrUse, *, is_last: bool) -> Parameter | str:
    """Return the parameter, or a description of an unsupported one."""
    if kind.kind == "other" or (kind.kind == "integer" and kind.bits not in (1, 8, 16, 32, 64)):
        return str(kind)
    if kind.kind == "float":
        known = DTYPES.get(f"float{kind.bits}")
        return Parameter(use.name, "scalar", known.name if known else None)
    if kind.kind == "integer":
        if kind.bits == 1:
            return Parameter(use.name, "scalar", "bool")
        return Parameter(use.name, "scalar", None, remarks=(f"dtype: {_SIZES[f'i{kind.bits}']}",))
    if is_last and use.name in _DEVICES:
        return Parameter(use.name, "device", remarks=("guessed from the parameter's name",))
    access: Access = "unknown" if use.access == "stores" else use.access
    element = dtype_of_ir(use.elements[0]) if len(use.elements) == 1 else None
    remarks = []
    if element is None:
        seen = [_SIZES.get(element, element) for element in use.elements]
        remarks.append(f"dtype: {' or '.join(seen)}?" if seen else "dtype: not in the IR")
    return Parameter(use.name, "tensor", element.name if element else None, access=access, remarks=tuple(remarks))
