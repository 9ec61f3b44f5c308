# SPDX-License-Identifier: Apache-2.0
"""Types and constant tables in LLVM IR."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from typing import assert_never

from opwest.model.types.builds import Target
from opwest.model.types.c_names import CNames
from opwest.model.types.dtypes import DType, round_to_float32
from opwest.model.types.model import Argument, Model, Operator
from opwest.plan.memory import MemoryPlan
from opwest.render.tables.model import model_tables
from opwest.render.tables.types import (
    RUN,
    Definition,
    Expression,
    FieldType,
    Index,
    Nested,
    Pointer,
    Reference,
    Scalar,
    Size,
    Struct,
    StructValue,
    Union,
    Value,
)


def ir_bytes(content: bytes) -> str:
    """Return a constant of bytes: printable ones unchanged, others as two hexadecimal digits."""
    return 'c"' + "".join(chr(b) if 0x20 <= b < 0x7F and b not in b'"\\' else f"\\{b:02X}" for b in content) + '"'


def ir_float(value: float, dtype: DType) -> str:
    """Return a floating constant: the bits of the double with exactly the value in the type."""
    exact = round_to_float32(value) if dtype.size == 4 else value
    if dtype.size == 4:
        exact = struct.unpack("<f", struct.pack("<f", exact))[0]
    return f"0x{struct.pack('>d', exact).hex().upper()}"


def ir_integer(value: int, size: int) -> str:
    """Return an integer constant of `size` bytes: IR has no unsigned types."""
    bits = 8 * size
    return str(value - (1 << bits) if value >> bits - 1 == 1 else value)


def ir_extension(dtype: DType) -> str:
    """Return the attribute by which C's calling conventions extend an integer, after a blank; "" if there is none.

    Integers below 32 bits are extended by their sign; 32 bits are signed, for 64-bit RISC-V only (its ABI sign-extends
    even unsigned int).
    """
    if dtype.is_float or dtype.size == 8:
        return ""
    if dtype.size == 4 or dtype.is_signed:
        return " signext"
    return " zeroext"


def ir_parameter(argument: Argument) -> str:
    """Return the type of an operator's parameter with its attributes."""
    if not argument.scalar:
        return "ptr"
    return argument.type.dtype.llvm + ir_extension(argument.type.dtype)


def ir_entry_result(operator: Operator) -> str:
    """Return the return type of a compiled function, with its attributes before it."""
    if operator.result is not None:
        dtype = operator.result.type.dtype
        return f"{ir_extension(dtype).strip()} {dtype.llvm}".strip()
    return ir_result(operator)


def ir_result(operator: Operator) -> str:
    """Return the return type of an operator as run calls it."""
    return "signext i32" if operator.returns_status else "void"


def ir_parameters(operator: Operator) -> list[str]:
    """Return the types of an operator's parameters."""
    return [ir_parameter(a) for a in operator.args] + (["ptr"] if operator.takes_device else [])


def ir_copy(result: str, to: str, source: str, size: str, pointer_bits: int) -> str:
    """Return a call of memcpy. Not llvm.memcpy: for Arm it becomes __aeabi_memcpy8, which Zephyr's minimal libc lacks.

    `result` is a register for the result, which nothing uses; `size` in bytes, a number or a constant expression.
    """
    return f"  {result} = call ptr @memcpy(ptr {to}, ptr {source}, i{pointer_bits} {size}) nobuiltin"


def ir_phi(register: str, type_: str, values: Iterable[tuple[str | int, str]]) -> str:
    """Return the selection of a value by the preceding block."""
    return f"  {register} = phi {type_} " + ", ".join(f"[ {value}, %{block} ]" for value, block in values)


def ir_load_scalar(register: str, place: str, dtype: DType) -> list[str]:
    """Load an int64_t or a double, and convert it to the type of an argument."""
    wide = "double" if dtype.is_float else "i64"
    if dtype.size == 8:
        return [f"  {register} = load {wide}, ptr {place}"]
    narrowing = "fptrunc" if dtype.is_float else "trunc"
    return [
        f"  {register}.wide = load {wide}, ptr {place}",
        f"  {register} = {narrowing} {wide} {register}.wide to {dtype.llvm}",
    ]


def ir_number(value: int | float, dtype: DType) -> str:
    """Return a scalar constant."""
    return ir_float(float(value), dtype) if dtype.is_float else str(int(value))


PRIVATE = "private unnamed_addr constant"


def ir_struct(struct: Struct) -> str:
    """Return the name of a structure's type; its members if it has no name in C."""
    return f"%{struct.name}" if struct.c_type else _members(struct, 0)


def ir_struct_type(struct: Struct, pointer_bits: int) -> str:
    """Return the definition of a structure's type."""
    return f"%{struct.name} = type {_members(struct, pointer_bits)}"


def _members(struct: Struct, pointer_bits: int) -> str:
    return f"{{ {', '.join(ir_field_type(field.type, pointer_bits) for field in struct.fields)} }}"


def ir_field_type(type_: FieldType | Struct, pointer_bits: int = 0) -> str:
    """Return the type of a field; `pointer_bits` is the width of size_t."""
    match type_:
        case Scalar(dtype) | Union(Scalar(dtype)):
            return dtype.llvm
        case Size():
            return f"i{pointer_bits}"
        case Index(None):
            return f"i{pointer_bits}"
        case Index(count):
            return f"[{count} x i{pointer_bits}]"
        case Nested(struct, None):
            return ir_struct(struct)
        case Nested(struct, count):
            return f"[{count} x {ir_struct(struct)}]"
        case Struct():
            return ir_struct(type_)
        case _:
            return "ptr"


def ir_member(register: str, struct: Struct, base: str, *path: str | int, index: int | str = 0) -> str:
    """Return the instruction that addresses a member of `base`, or of the element at `index` of a table.

    `path` leads to it: fields by name, elements of arrays by number.
    """
    inner = struct
    places = []
    for step in path:
        if isinstance(step, int):
            places.append(step)
            continue
        places.append(inner.index_of(step))
        type_ = inner.field(step).type
        inner = type_.struct if isinstance(type_, Nested) else inner
    listed = "".join(f", i32 {place}" for place in (index, *places))
    return f"  {register} = getelementptr {ir_struct(struct)}, ptr {base}{listed}"


class Printer:
    """Prints values; `string` returns the symbol of a text in a part of the tables, `pointer_bits` is as in types."""

    def __init__(self, string: Callable[[str, str | None], str] | None = None, pointer_bits: int = 0) -> None:
        self._string = string
        self._bits = pointer_bits

    def definition(self, definition: Definition) -> str:
        """Return the definition of a constant."""
        head = f"@{definition.symbol} = {'constant' if definition.is_public else PRIVATE} "
        element = ir_field_type(definition.element)
        items = [f"{element} {self.value(definition.element, item, definition.part)}" for item in definition.values]
        if isinstance(definition.content, StructValue):
            return head + items[0]
        if isinstance(definition.element, Struct):
            lines = ",\n  ".join(items)
            return f"{head}[{len(items)} x {element}] [\n  {lines}\n]"
        return f"{head}[{len(items)} x {element}] [{', '.join(items)}]"

    def value(self, type_: FieldType | Struct, value: Value, part: str | None = None) -> str:
        """Return a constant without its type."""
        match value:
            case None:
                return "null"
            case str():
                assert self._string is not None, "no strings were expected"
                return self._string(value, part)
            case Reference(symbol, None):
                return f"@{symbol}"
            case Reference(symbol, index):
                assert isinstance(type_, Pointer) and isinstance(type_.to, Struct)
                return f"getelementptr ({ir_struct(type_.to)}, ptr @{symbol}, i32 {index})"
            case StructValue():
                members = (
                    f"{ir_field_type(field.type, self._bits)} {self.value(field.type, member, part)}"
                    for field, member in value.values
                )
                return f"{{ {', '.join(members)} }}"
            case tuple():
                return f"[{', '.join(f'i{self._bits} {number}' for number in value)}]"
            case int() | float():
                if isinstance(type_, Index):
                    return str(value)
                assert isinstance(type_, Scalar)
                if type_.dtype.is_float:
                    return ir_float(value, type_.dtype)
                return ir_integer(int(value), type_.dtype.size)
            case Expression(text):
                raise AssertionError(f"the C expression {text} has no value in LLVM IR")
            case _ as never:
                assert_never(never)


def model_name(names: CNames) -> str:
    """Return the symbol of the model's name, which run needs."""
    return _string_of(names, RUN, 0)


def _string_of(names: CNames, part: str, index: int) -> str:
    return f"@{names.function(part)}_string_{index}"


class Tables:
    """Collects the definitions; equal strings are defined once."""

    def __init__(self, names: CNames) -> None:
        self._names = names
        self._strings: dict[str | None, dict[str, str]] = {}
        self._lines: list[str] = []

    def define(self, model: Model, plan: MemoryPlan, target: Target) -> list[str]:
        """Return the definitions of constants, metadata and registry."""
        self._string(model.name, RUN)
        for constant in model.constants:
            self._lines.append(
                f"@{self._names.constant(constant.name)} = constant {_array(constant.content)}, align {constant.align}"
            )
        for program in model.programs:  # each once in an image
            symbol = self._names.program(program.content)
            self._lines += [
                f"${symbol} = comdat any",
                f"@{symbol} = weak_odr constant {_array(program.content)}, comdat, align 16",
            ]
        tables = model_tables(model, plan, target)
        printer = Printer(self._string)
        for definition in (
            *(*tables.devices, *tables.states, *tables.metadata, *tables.details, *tables.registry),
            tables.points,
        ):
            self._lines.append(printer.definition(definition))
        return self._lines

    def _string(self, text: str, part: str | None) -> str:
        """Return the symbol of a C string. Strings of `run` and of optional parts are in separate sections.

        The linker keeps or drops all mergeable strings together: run would keep those of the metadata.
        """
        known = self._strings.setdefault(part, {})
        if text not in known:
            symbol = f"@string_{len(known)}" if part is None else _string_of(self._names, part, len(known))
            kind, section = (PRIVATE, "") if part is None else ("private constant", f', section ".rodata.{symbol[1:]}"')
            content = _array(text.encode() + b"\0")
            self._lines.append(f"{symbol} = {kind} {content}{section}, align 1")
            known[text] = symbol
        return known[text]


def _array(content: bytes) -> str:
    """Return a constant of bytes with its type."""
    return f"[{len(content)} x i8] {ir_bytes(content)}"
