# SPDX-License-Identifier: Apache-2.0
"""Signatures from debug information."""

from __future__ import annotations

import re

from opwest.drafting.signatures import STRUCT_DEVICE, Access, Parameter, Signature, finished
from opwest.model.dtypes import DTYPES, dtype_of_c
from opwest.model.identifiers import is_symbol
from opwest.objects.dwarf import DwarfSignature, DwarfType

ORIGIN = "debug information"
_STATUS_BYTES = 4
_STRUCT = re.compile(r"struct [A-Za-z_][A-Za-z0-9_]*")
_KEY = re.compile(r"(struct|union|class) ")
_FIXED = re.compile(r"u?int\d+_t")
_VARYING = frozenset(("long", "long int", "unsigned long", "long unsigned int"))


def from_dwarf(seen: DwarfSignature) -> Signature:
    """Return the signature of a function that has debug information."""
    value = _value(seen.returns)
    unfit = None if value else _unfit_result(seen.returns)
    if seen.variadic:
        unfit = "variable arguments"
    parameters = []
    last = len(seen.parameters) - 1
    for index, type_ in enumerate(seen.parameters):
        name = seen.names[index] if index < len(seen.names) else ""
        one = _parameter(name, type_, is_last=index == last)
        if isinstance(one, str):
            unfit = unfit or f"parameter {index + 1} is {one}"
        else:
            parameters.append(one)
    return finished(Signature(ORIGIN, tuple(parameters), seen.returns.kind != "void", value, unfit))


def _value(returns: DwarfType) -> str | None:
    """Return the dtype of a result that cannot be a status."""
    is_status = returns.kind == "integer" and returns.size in (0, _STATUS_BYTES)
    return None if is_status else dtype_of(returns)


def _unfit_result(returns: DwarfType) -> str | None:
    fits = returns.kind in ("void", "unknown") or (returns.kind == "integer" and returns.size in (0, _STATUS_BYTES))
    return None if fits else f"return type {returns}, expected void or a number"


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
