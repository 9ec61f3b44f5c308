# SPDX-License-Identifier: Apache-2.0
"""Types and constant tables in LLVM IR."""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from opwest.render.llvm.text import ir_float, ir_integer, ir_type
from opwest.render.records.types import FieldType, Index, Nested, Pointer, Scalar, Size, Struct, Table, Union
from opwest.render.records.values import Definition, Expression, Null, Number, Numbers, Record, Reference, Text, Value

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
            return ir_type(dtype)
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
        linkage = PRIVATE if definition.linkage == "private" else "constant"
        head = f"@{definition.symbol} = {linkage} "
        element = ir_field_type(definition.element)
        items = [f"{element} {self.value(definition.element, item, definition.part)}" for item in definition.items]
        if not isinstance(definition.type, Table):
            return head + items[0]
        lines = ",\n  ".join(items) if isinstance(definition.element, Struct) else ", ".join(items)
        brackets = ("[\n  ", "\n]") if isinstance(definition.element, Struct) else ("[", "]")
        return f"{head}[{len(items)} x {element}] {brackets[0]}{lines}{brackets[1]}"

    def value(self, type_: FieldType | Struct, value: Value, part: str | None = None) -> str:
        """Return a constant without its type."""
        match value:
            case Null():
                return "null"
            case Text(text):
                assert self._string is not None, "no strings were expected"
                return self._string(text, part)
            case Reference(symbol, None):
                return f"@{symbol}"
            case Reference(symbol, index):
                assert isinstance(type_, Pointer) and isinstance(type_.to, Struct)
                return f"getelementptr ({ir_struct(type_.to)}, ptr @{symbol}, i32 {index})"
            case Record():
                members = (
                    f"{ir_field_type(field.type, self._bits)} {self.value(field.type, member, part)}"
                    for field, member in value.values
                )
                return f"{{ {', '.join(members)} }}"
            case Number(number) if isinstance(type_, Index):
                return str(number)
            case Numbers(numbers):
                return f"[{', '.join(f'i{self._bits} {number}' for number in numbers)}]"
            case Number(number):
                assert isinstance(type_, Scalar)
                return (
                    ir_float(number, type_.dtype) if type_.dtype.is_float else ir_integer(int(number), type_.dtype.size)
                )
            case Expression(text):
                raise AssertionError(f"the C expression {text} has no value in LLVM IR")
            case _ as never:
                assert_never(never)
