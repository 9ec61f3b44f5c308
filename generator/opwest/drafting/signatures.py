# SPDX-License-Identifier: Apache-2.0
"""Signatures of functions in terms of the manifest, from debug information, C or LLVM IR."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain, count
from typing import Literal

from opwest.base.frozen_dataclass import dataclass
from opwest.model.types.c_names import fault_of_name, is_symbol
from opwest.model.types.dtypes import DTYPES, dtype_of_c, dtype_of_ir
from opwest.objects.dwarf_types import DwarfSignature, DwarfType
from opwest.objects.facts import CFunction, CParameter, CSource
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
    """`debug information`, `C` or `LLVM IR`."""
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


def _finished(
    origin: str, parameters: Sequence[Parameter | str], *, returns: bool, value: str | None, unfit: str | None
) -> Signature:
    """Return a signature with directions and valid names, and the reason if it is not an operator.

    A text in place of a parameter is a description of an unsupported one.
    """
    for index, parameter in enumerate(parameters, start=1):
        if isinstance(parameter, str):
            unfit = unfit or f"parameter {index} is {parameter}"
    supported = [parameter for parameter in parameters if isinstance(parameter, Parameter)]
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


def _directed(parameters: Sequence[Parameter], *, returns_value: bool) -> Iterator[Parameter]:
    """Yield the parameters with the directions of tensors, certain, guessed or None."""
    some_only_read = any(p.role == "tensor" and p.access == "reads" for p in parameters)
    for parameter in parameters:
        if parameter.role == "tensor":
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
        named[name] = replace(parameter, name=name)
    return tuple(named.values())


DWARF_ORIGIN = "debug information"
_STATUS_BYTES = 4
_KEY = re.compile(r"(struct|union|class) ")
_FIXED = re.compile(r"u?int\d+_t")
_VARYING = frozenset(("long", "long int", "unsigned long", "long unsigned int"))


def from_dwarf(seen: DwarfSignature) -> Signature:
    """Return the signature of a function that has debug information, read with the names of parameters."""
    returns = seen.returns
    is_status = returns.kind == "integer" and returns.size in (0, _STATUS_BYTES)
    value = None if is_status else dtype_of(returns)
    unfit = None
    if seen.variadic:
        unfit = "variable arguments"
    elif not is_status and value is None and returns.kind not in ("void", "unknown"):
        unfit = f"return type {returns}, expected void or a number"
    last = len(seen.parameters) - 1
    parameters = [
        _parameter(name, type_, is_last=index == last)
        for index, (name, type_) in enumerate(zip(seen.names, seen.parameters, strict=True))
    ]
    return _finished(DWARF_ORIGIN, parameters, returns=returns.kind != "void", value=value, unfit=unfit)


def _parameter(name: str, type_: DwarfType, *, is_last: bool) -> Parameter | str:
    """Return the parameter, or a description of an unsupported one."""
    if type_.kind in ("integer", "float", "bool", "unknown"):
        dtype = dtype_of(type_)
        return Parameter(name, "scalar", dtype, remarks=_remarks(type_, dtype))
    target = type_.target
    if type_.kind != "pointer" or target is None:
        return f"a {type_.kind} ({type_})" if type_.kind != "pointer" else "a pointer to an unknown type"
    if target.kind == "struct":
        tag = _tag(target)
        if tag is not None and target.size and tag != "device":
            access: Access = "reads" if target.const else "both"
            return Parameter(name, "tensor", "uint8", (target.size,), access, struct=tag, align=target.align)
        return _device(name, target) if is_last else f"{type_}, a structure"
    if target.kind in ("pointer", "function"):
        return "a pointer to a pointer" if target.kind == "pointer" else "a pointer to a function"
    access = "reads" if target.const else "both"
    dtype = dtype_of(target)
    return Parameter(name, "tensor", dtype, access=access, remarks=_remarks(target, dtype))


def _remarks(type_: DwarfType, dtype: str | None) -> tuple[str, ...]:
    if dtype is None:
        return (f"{type_} in C",)
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


C_ORIGIN = "C"
_DIMENSIONS = re.compile(r"\[(?:static)?(\d+)\]")
_STRUCT = re.compile(r"struct [A-Za-z_][A-Za-z0-9_]*")
_TAG = re.compile(rb"\b(?:struct|union)\s+([A-Za-z_]\w*)\s*\{")
_TYPEDEF = re.compile(rb"\}\s*([A-Za-z_]\w*)\s*;")
_STOP = re.compile(rb"[;}]")
_MAX_REMARK_LENGTH = 60


def from_source(source: CSource) -> dict[str, Signature]:
    """Return the signatures of the functions that a C source defines, by name."""
    text = _Text(source.text)
    return {function.name: _signature(function, text) for function in source.c_functions}


class _Text:
    """The structures and comments of a source; each byte is searched once, however many functions there are."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._lines = [0, *(match.end() for match in re.finditer(rb"\n", content))]
        self._starts = [match.start() for match in re.finditer(rb"/\*\*", content)]
        self._comment = cache(self._find_comment)
        self._structs = {
            pattern: {match[1].decode() for match in re.finditer(pattern, content)} for pattern in (_TAG, _TYPEDEF)
        }

    def struct(self, base: str) -> str | None:
        """Return the tag or typedef of a structure that the source defines."""
        name = base.removeprefix("struct ").removeprefix("union ")
        return name if name in self._structs[_TAG if name != base else _TYPEDEF] else None

    def comments(self, line: int) -> dict[str, str]:
        """Return the descriptions of parameters in the comment before a line, counted from 1, by name."""
        place = self._lines[min(line, len(self._lines)) - 1]
        index = bisect_left(self._starts, place) - 1
        if index < 0:
            return {}
        comment = self._comment(index)
        if comment is None or not comment[0] <= place <= comment[1]:  # not closed, or of another declaration
            return {}
        return comment[2]

    def _find_comment(self, index: int) -> tuple[int, int, dict[str, str]] | None:
        """Return the end of a comment, the end of the declaration after it, and its descriptions; None without an end.

        The search ends where the next comment of this form begins.
        """
        begin = self._starts[index]
        limit = self._starts[index + 1] if index + 1 < len(self._starts) else len(self._content)
        end = self._content.find(b"*/", begin, limit)
        if end < 0:
            return None
        stop = _STOP.search(self._content, end, limit)
        comment = self._content[begin:end].decode("utf-8", "replace")
        return end + 2, stop.start() if stop else limit, _descriptions(comment)


def _signature(function: CFunction, text: _Text) -> Signature:
    """Return the signature of a function."""
    is_status = function.returns in ("void", "unknown") or _is_status(function.returns)
    value = None if is_status else _dtype(_unqualified(function.returns))
    unfit = None
    if function.parameters is None:
        unfit = "variable arguments"
    elif not is_status and value is None:
        unfit = f"return type {function.returns}, expected void or a number"
    comments = text.comments(function.line)
    last = len(function.parameter_types) - 1
    parameters = [
        _source_parameter(seen, comments.get(seen.name), text, is_last=index == last)
        for index, seen in enumerate(function.parameter_types)
    ]
    return _finished(C_ORIGIN, parameters, returns=function.returns != "void", value=value, unfit=unfit)


def _unqualified(written: str) -> str:
    return " ".join(word for word in written.split() if word not in ("const", "volatile"))


def _is_status(written: str) -> bool:
    """Whether a result may be a status; unknown typedefs are accepted."""
    name = _unqualified(written)
    if "*" in name or name.startswith(("struct ", "union ")):
        return False
    dtype = _dtype(name)
    return dtype in ("int32", "uint32") or (dtype is None and name not in ("long", "unsigned long", "long long"))


def _source_parameter(seen: CParameter, comment: str | None, source: _Text, *, is_last: bool) -> Parameter | str:
    """Return the parameter, or a description of an unsupported one."""
    text = seen.text.replace(" ", "")
    if ")(" in text:
        return f"a pointer to a function (`{seen.text}`)"
    stars = text.count("*")
    if stars > 1 or (stars == 1 and "[" in text and "(*" not in text):
        return f"a pointer to a pointer (`{seen.text}`)"
    if not seen.base:
        return f"not readable without a compiler (`{seen.text}`)"
    access: Access = "reads" if _points_to_const(seen.text) else "both"
    struct = source.struct(seen.base)
    if struct is not None and seen.pointers:
        remarks: tuple[str, ...] = (f"shape: [SIZE] and align: those of `{seen.base}`; drafted if compiled with -g",)
        return Parameter(seen.name, "tensor", "uint8", access=access, struct=struct, remarks=remarks, comment=comment)
    if seen.base.startswith(("struct ", "union ")):
        if seen.pointers == 0:
            return f"a structure (`{seen.text}`)"
        if not is_last or not _STRUCT.fullmatch(seen.base):
            return f"a pointer to a structure (`{seen.text}`)"
        const = "const " if _points_to_const(seen.text) else ""
        handle = STRUCT_DEVICE if seen.base == "struct device" else f"{const}{seen.base} *"
        return Parameter(seen.name, "device", handle=handle, comment=comment)
    dtype = _dtype(seen.base)
    remarks = () if dtype else (f"`{seen.base}` in C",)
    if seen.pointers == 0:
        return Parameter(seen.name, "scalar", dtype, remarks=remarks, comment=comment)
    return Parameter(seen.name, "tensor", dtype, _shape(text), access, remarks=remarks, comment=comment)


def _points_to_const(text: str) -> bool:
    return "const" in re.split(r"[*\[]", text)[0].split()


def _dtype(base: str) -> str | None:
    """Return the dtype of a C type; None if it depends on the target."""
    known = dtype_of_c(base)
    return known.name if known else None


def _shape(text: str) -> tuple[int, ...] | None:
    """Return the dimensions of an array; None if one is missing or not a number."""
    brackets = text.count("[")
    sizes = _DIMENSIONS.findall(text)
    if not brackets or "*" in text or len(sizes) != brackets:
        return None
    shape = tuple(int(size) for size in sizes)
    return shape if len(shape) <= 16 and all(0 < size < 1 << 31 for size in shape) else None


def _descriptions(comment: str) -> dict[str, str]:
    """Return the descriptions of parameters in a comment, by name."""
    plain = " ".join(re.sub(r"^\s*/?\*+", "", line).strip() or "\n" for line in comment.split("\n"))
    descriptions = {}
    for name, words in re.findall(r"[@\\]param(?:\[[\w,]*\])?\s+(\w+)\s+([^@\\\n]+)", plain):
        comment = "".join(c for c in " ".join(words.split()) if c.isprintable())
        descriptions[name] = comment if len(comment) <= _MAX_REMARK_LENGTH else f"{comment[:_MAX_REMARK_LENGTH]}…"
    return descriptions
