# SPDX-License-Identifier: Apache-2.0
"""Constant tables as C spells them: designated initialisers, lines of at most 100 columns."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from itertools import pairwise
from typing import assert_never

from opwest.model.dtypes import DTYPES
from opwest.render.c.literals import c_float, c_integer, c_string
from opwest.render.records.types import (
    Abi,
    Constant,
    Enumeration,
    FieldType,
    Flags,
    Function,
    Nested,
    Pointer,
    Scalar,
    Size,
    String,
    Struct,
    Table,
    Union,
    offsets,
    size_and_alignment,
)
from opwest.render.records.values import Definition, Null, Number, Record, Reference, Text, Value

WIDTH = 100
_TAB = 8


def c_definitions(definitions: Iterable[Definition]) -> str:
    """Return definitions of constants, with empty lines around those of more than one line."""
    parts = [_definition(definition) for definition in definitions]
    text = "".join(parts[:1])
    for before, after in pairwise(parts):
        text += ("\n\n" if "\n" in before + after else "\n") + after
    return text


def _definition(definition: Definition) -> str:
    table = definition.type if isinstance(definition.type, Table) else None
    private = "static " if definition.linkage == "private" else ""
    suffix = "" if table is None else "[]" if private else f"[{table.count}]"
    head = f"{private}const {_declared(definition.element, definition.symbol)}{suffix} = "
    if table is None:
        (record,) = definition.items
        return f"{head}{_block(record)};"
    if isinstance(definition.element, Struct):
        rows = "".join(f"\t{_row(item)},\n" for item in definition.items)
        return f"{head}{{\n{rows}}};"
    numbers = ", ".join(_value(definition.element, item) for item in definition.items)
    line = f"{head}{{{numbers}}};"
    if len(line) <= WIDTH:
        return line
    lines = textwrap.wrap(f"{numbers},", WIDTH - _TAB, break_long_words=False)
    return "\n".join([f"{head}{{", *(f"\t{text}" for text in lines), "};"])


def c_type(type_: FieldType) -> str:
    """Return the C type of a field; "" where it has no name."""
    match type_:
        case Scalar(dtype):
            return dtype.c_type
        case Size():
            return "size_t"
        case String():
            return "const char *"
        case Pointer(to, _, is_const):
            return f"{'const ' if is_const else ''}{_pointee(to)} *"
        case Function(name):
            return name
        case Nested(struct):
            return struct.c_type
        case Union():
            return ""
        case _ as never:
            assert_never(never)


def c_layout(struct: Struct) -> dict[str, str]:
    """Return the offset of every field and, under "", the size, as expressions for pointers of 4 and of 8 bytes."""
    small, large = Abi(4), Abi(8)
    places = {name: (offset, offsets(struct, large)[name]) for name, offset in offsets(struct, small).items()}
    places[""] = (size_and_alignment(struct, small)[0], size_and_alignment(struct, large)[0])
    return {name: _linear(*pair) for name, pair in places.items()}


def _linear(small: int, large: int) -> str:
    """Return what is `small` for pointers of 4 bytes and `large` for 8."""
    pointers, odd = divmod(large - small, 4)
    rest = small - 4 * pointers
    assert odd == 0 and rest >= 0, "a layout that depends on more than the number of pointers"
    terms = ["sizeof(void *)" if pointers == 1 else f"{pointers}U * sizeof(void *)"] if pointers else []
    if rest or not terms:
        terms.append(f"{rest}U")
    return " + ".join(terms)


def _pointee(to: Struct | Scalar | str) -> str:
    if isinstance(to, Struct):
        return to.c_type
    if isinstance(to, Scalar):
        return to.dtype.c_type
    return to if to == "void" else f"struct {to}"


def _declared(element: Struct | Scalar | String, symbol: str) -> str:
    if isinstance(element, String):
        return f"char *const {symbol}"
    return f"{_pointee(element)} {symbol}"


def _row(item: Value) -> str:
    """Return a record of a table, filled into lines that a tab and a blank indent."""
    lines: list[str] = []
    for member in _members(item):
        first, *more = _broken(member)
        if lines and not more and _TAB + 1 + len(lines[-1]) + len(first) + len(" },") <= WIDTH:
            lines[-1] += f" {first},"
        else:
            lines += [first, *more]
            lines[-1] += ","
    return "{" + "\n\t ".join(lines).removesuffix(",") + "}"


def _block(item: Value) -> str:
    """Return a record with a field a line."""
    lines = ["\n\t\t".join(_broken(member)) for member in _members(item)]
    return "{\n" + "".join(f"\t{line},\n" for line in lines) + "}"


def _broken(member: str) -> list[str]:
    """Return the lines of a member: a string that is too long for one becomes adjacent literals."""
    head, quote, text = member.partition('"')
    if not quote or _TAB + len(member) + len("{},") <= WIDTH:
        return [member]
    room = WIDTH - 2 * _TAB - len('"",')
    pieces = [""]
    for part in _characters(text[:-1]):
        if len(pieces[-1]) + len(part) > room:
            pieces.append("")
        pieces[-1] += part
    return [head.rstrip(), *(f'"{piece}"' for piece in pieces)]


def _characters(text: str) -> list[str]:
    """Split the inside of a string literal into characters and escape sequences."""
    found, at = [], 0
    while at < len(text):
        length = 1 if text[at] != "\\" else 4 if text[at + 1].isdigit() else 2
        found.append(text[at : at + length])
        at += length
    return found


def _members(item: Value) -> list[str]:
    assert isinstance(item, Record)
    return [f".{field.name} = {_value(field.type, value)}" for field, value in item.values]


def _value(type_: FieldType, value: Value) -> str:
    match value:
        case Null():
            return "NULL"
        case Text(text):
            return c_string(text)
        case Reference(symbol, None):
            return symbol
        case Reference(symbol, index):
            return f"&{symbol}[{index}]"
        case Record():
            return f"{{{', '.join(_members(value))}}}"
        case Number(number):
            return _number(type_, number)
        case _ as never:
            assert_never(never)


def _number(type_: FieldType, number: int | float) -> str:
    if not isinstance(type_, Scalar):
        return f"{number}U"
    if type_.dtype.is_float:
        return c_float(float(number), type_.dtype)
    code = int(number)
    match type_.names:
        case Enumeration() as names:
            return names.constant(code)
        case Constant(name, named) if code == named:
            return name
        case Flags(members=members) as names:
            known = [member for bit, member in enumerate(members) if code >> bit & 1]
            rest = code >> len(members) << len(members)
            return " | ".join([*map(names.constant, known), *([f"0x{rest:02x}U"] if rest else [])]) or "0U"
        case _:
            return c_integer(code, DTYPES[type_.dtype.name])
