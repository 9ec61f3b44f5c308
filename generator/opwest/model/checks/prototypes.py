# SPDX-License-Identifier: Apache-2.0
"""Compare the declared signature of an operator with its C source, or with types from debug information or a header."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from opwest.base.diagnostics import Diagnostics
from opwest.base.result import counted
from opwest.model.inputs.files import Linkable
from opwest.model.inputs.written import points_to_const, report_written, takes_plain_pointers, written_by_source
from opwest.model.types.conventions import CONVENTIONS, POINTER_TABLES
from opwest.model.types.dtypes import dtype_of_c
from opwest.model.types.model import Argument, Operator
from opwest.objects.dwarf_signatures import C_SCALARS, DeclaredParameter, compare
from opwest.objects.dwarf_types import DwarfSignature, DwarfType
from opwest.objects.facts import CFunction, CParameter, CSource

if TYPE_CHECKING:
    from opwest.objects.c_writes import Written


def reports_foreign(faults: Diagnostics, operator: Operator, linkable: Linkable) -> bool:
    """Report a function of Halide or MLIR with another calling convention than its operator; whether it is one."""
    origin = linkable.origins.of(operator.symbol)
    if origin is None or origin.convention not in ("halide", "memref", POINTER_TABLES.name):
        return False
    if origin.convention == POINTER_TABLES.name and operator.symbol != origin.symbol:
        return False  # a plain function, such as Faust's instanceInit
    if (operator.convention.name, operator.symbol) == (origin.convention, origin.symbol):
        return False
    symbol = f", symbol: {origin.symbol}" if operator.symbol != origin.symbol else ""
    faults.error(
        f"{linkable.name}: operator {operator.name!r} is {operator.convention.name}, "
        f"but {origin.tool} compiled the function {operator.symbol!r}",
        operator.location,
        expected=f"convention: {origin.convention}{symbol}",
        hint=f"the object {origin.evidence}",
    )
    return True


def check_prototype(
    faults: Diagnostics, operator: Operator, file: str, function: CFunction, source: CSource | None = None
) -> None:
    """Compare a function in a C source with the manifest: the number of parameters, and whether it returns void.

    `source` shows which parameters the function writes.
    """
    expected = len(operator.parameters)
    at = operator.location
    if function.convention:
        faults.error(
            f"{file}:{function.line}: function {function.name!r} has the attribute {function.convention!r}, "
            "which changes its calling convention",
            at,
            expected="the calling convention of C",
            hint="remove the attribute, or call the function from another one",
        )
    if function.parameters is not None and function.parameters != expected:
        faults.error(
            f"{file}:{function.line}: function {function.name!r} has {counted(function.parameters, 'parameter')}, "
            f"operator {operator.name!r} {_takes(operator)}",
            at,
            expected=f"{expected} parameters" if operator.convention.arrays is None else operator.prototype,
            hint=_convention_hint(operator, function.parameters),
        )
    else:
        structs = {a.name: a.struct for a in operator.passed if a.struct}
        for (name, c_type), seen in zip(operator.parameters, function.parameter_types, strict=False):
            struct = structs.get(name)
            if struct is not None and seen.base in ("void", struct, f"struct {struct}", f"union {struct}"):
                continue
            passed = c_type.rstrip() if struct is None else f"struct {struct} *"
            if struct is not None or not _fits(c_type, seen):
                faults.error(
                    f"{file}:{function.line}: function {function.name!r} has the parameter `{seen.text}`, "
                    f"operator {operator.name!r} passes `{passed}` for {name!r}",
                    at,
                    expected=operator.prototype,
                    hint="compare the order and the dtypes of the arguments"
                    if operator.convention.arrays is None
                    else f"the calling convention is {operator.convention.name}",
                )
        written = written_by_source(source, operator, function) if source is not None else {}
        const = [parameter.const for parameter in function.parameter_types]
        _check_qualifiers(faults, operator, f"{file}:{function.line}", const, written)
    if not _returns(operator, function.returns):
        faults.error(
            f"{file}:{function.line}: function {function.name!r} returns {function.returns}, "
            f"operator {operator.name!r} returns {_declared_result(operator)}",
            at,
            expected=_expected_result(function.returns),
        )


def _check_qualifiers(
    faults: Diagnostics,
    operator: Operator,
    place: str,
    const: Sequence[bool | None],
    written: Mapping[str, Written] = MappingProxyType({}),
) -> None:
    """Report inputs that a function writes, or may write; `const` is that of the type that each parameter points to."""
    if not takes_plain_pointers(operator):
        return
    for parameter, is_const in zip(operator.passing, const, strict=False):  # the device follows
        if parameter.argument is None:
            continue
        argument = operator.args[parameter.argument]
        if argument.direction == "in" and not argument.scalar and is_const is False:
            if argument.name in written:
                report_written(faults, place, operator, argument, written[argument.name])
                continue
            faults.warning(
                f"{place}: function {operator.symbol!r} can write the input {argument.name!r}: "
                f"its parameter is a pointer to a type without const",
                argument.location,
                expected=operator.prototype,
                hint="add const, or declare direction: out or inout",
            )


def _returns(operator: Operator, written: str) -> bool:
    """Return whether a function can return what the operator declares; unresolved typedefs are accepted."""
    if (written == "void") != (operator.c_result == "void"):
        return False
    known, expected = C_SCALARS.get(written), C_SCALARS[operator.c_result]
    if known is None or known.kind == "void":
        return "*" not in written
    if operator.result is None:
        return known.kind == "integer" and known.size == expected.size
    same = known.signed is None or known.kind == "bool" or known.signed == expected.signed
    return known.size == expected.size and _is_float(known) == _is_float(expected) and same


def _declared_result(operator: Operator) -> str:
    """Return a description of the declared result."""
    if operator.result is not None:
        return f"{operator.c_result} (dtype {operator.result.type.dtype.name})"
    return "status (the default)" if operator.returns_status else "void"


def _expected_result(written: str) -> str:
    """Return the declaration for a function's return type."""
    if written == "void":
        return "returns: void"
    dtype = dtype_of_c(written)
    if dtype is None or dtype.name == "int32":
        return "returns: status"
    return f"returns: {{dtype: {dtype.name}}}"


def _takes(operator: Operator) -> str:
    """Return a description of the arguments that a call of the operator passes."""
    if operator.convention.arrays is not None:
        return f"is {operator.convention.name}, which has {len(operator.parameters)}"
    device = " and its device" if operator.takes_device else ""
    return f"has {counted(len(operator.passing), 'argument')}{device}"


def _convention_hint(operator: Operator, count: int) -> str | None:
    """Return the likely convention of a function, from the number of its parameters."""
    for convention in CONVENTIONS:
        arrays = convention.arrays
        if arrays is not None and convention is not operator.convention and count == len(arrays.parameters):
            return f"for a function compiled by TVM, declare convention: {convention.name}"
    return None


def _fits(c_type: str, seen: CParameter) -> bool:
    """Return whether a parameter accepts the value that a call passes; unresolved typedefs and macros are accepted."""
    known = C_SCALARS.get(seen.base)
    expected = C_SCALARS.get(c_type.removeprefix("const ").rstrip(" *"))
    pointer = "*" in c_type
    if expected is None or expected.kind == "void":  # void or a structure
        return not pointer or seen.pointers > 0 or known is None
    if known is None or known.kind == "void":
        return True
    if (seen.pointers > 0) != pointer:
        return False
    if c_type.endswith("**"):
        return seen.pointers == 2 and known.size == expected.size and _is_float(known) == _is_float(expected)
    return seen.pointers > 1 or (known.size == expected.size and _is_float(known) == _is_float(expected))


def _is_float(type_: DwarfType) -> bool:
    """Return whether every C compiler has arithmetic for a type; 16-bit floats are passed as their bits."""
    return type_.kind == "float" and type_.size > 2


def check_types(
    faults: Diagnostics,
    operator: Operator,
    place: str,
    signature: DwarfSignature,
    *,
    single: bool,
    qualifiers: bool = True,
) -> None:
    """Compare every type of a function with the manifest; `place` is its object or its declaration in a header.

    With a `single` target, declared sizes of structures are exact; otherwise that of the largest structure.
    """
    words = {a.name: f"{a.type.dtype.name}{'' if a.scalar else ' tensor'}" for a in operator.passed if a.table is None}
    named = words if operator.convention.arrays is None else {}
    parameters = [DeclaredParameter(name, c_type, named.get(name, "")) for name, c_type in operator.parameters]
    returns = operator.c_result if operator.result else "status" if operator.returns_status else "void"
    differences = compare(signature, returns, parameters)
    if not differences and qualifiers:
        pointed = [points_to_const(parameter) for parameter in signature.parameters if signature.records_const]
        _check_qualifiers(faults, operator, place, pointed)
    if operator.convention.arrays is None and len(signature.parameters) == len(parameters):
        pairs = zip(operator.passing, signature.parameters, strict=False)  # the device follows
        for parameter, seen in pairs:
            if parameter.argument is not None:
                differences += _struct_differences(operator.args[parameter.argument], seen, single)
    hint = None if single or not any(map(_depends_on_target, signature.parameters)) else _FIXED_TYPES
    for difference in differences:
        faults.error(
            f"{place}: function {operator.symbol!r} does not fit operator {operator.name!r}: {difference}",
            operator.location,
            expected=str(signature) if operator.convention.arrays is None else operator.prototype,
            hint=hint,
        )


_FIXED_TYPES = (
    "the size of size_t, long and enumerations depends on the target: list a C source that calls the function, and "
    "whose parameters have types of fixed size"
)
_FIXED = re.compile(r"u?int\d+_t")
_VARYING = frozenset(
    ("size_t", "ssize_t", "intptr_t", "uintptr_t", "long", "long int", "unsigned long", "long unsigned int")
)


def _depends_on_target(type_: DwarfType) -> bool:
    """Whether a parameter has another size for other targets."""
    fixed = any(map(_FIXED.fullmatch, type_.names))
    is_enumeration = any(name.startswith("enum ") or name == "an unnamed enum" for name in type_.names)
    return type_.kind == "integer" and not fixed and (bool(type_.names & _VARYING) or is_enumeration)


def _struct_differences(argument: Argument, seen: DwarfType, single: bool) -> Iterator[str]:
    """Yield the differences between the declared bytes of a structure and the structure that a function takes."""
    target = seen.target
    if argument.struct is None or target is None or target.kind != "struct":
        return
    head = f"argument {argument.name!r} is struct {argument.struct}"
    keys = ("", "struct ", "union ", "class ")
    if not {f"{key}{argument.struct}" for key in keys} & target.names:
        yield f"{head}, the function takes {seen}"
    elif argument.type.size < target.size or (single and target.size and argument.type.size != target.size):
        yield f"{head} with {counted(argument.type.size, 'byte')}, it has {target.size} (shape: [{target.size}])"
    elif target.align > argument.align:
        yield f"{head} aligned to {argument.align}, it requires align: {target.align}"
