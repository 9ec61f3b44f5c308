# SPDX-License-Identifier: Apache-2.0
"""Constant tables in C: designated initialisers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import assert_never

from opwest.render.literals import c_float, c_integer, c_string
from opwest.render.tables.layout import ROWS
from opwest.render.tables.types import (
    RUN,
    Abi,
    Definition,
    Enumeration,
    Expression,
    FieldType,
    Flags,
    Function,
    Index,
    Nested,
    Pointer,
    Reference,
    Scalar,
    Size,
    String,
    Struct,
    StructValue,
    Union,
    Value,
    offsets,
    size_and_alignment,
)

_ABSENT = frozenset(("NULL",))
_ZEROS = _ABSENT | {"0U", "0"}
"""Values of members that an initialiser need not contain: in rows of a table only the first."""


def c_definitions(definitions: Iterable[Definition]) -> str:
    """Return definitions of constants, with empty lines around those of more than one line."""
    strings = _Strings()
    parts: list[str] = []
    for definition in definitions:
        text = _definition(definition, strings)
        parts += [*strings.take(), text]
    separated = parts[:1]
    for before, after in pairwise(parts):
        separated += ["\n\n" if "\n" in before or "\n" in after else "\n", after]
    return "".join(separated)


class _Strings:
    """The strings of optional parts: arrays in their own sections, because a linker keeps all literals of a file."""

    def __init__(self) -> None:
        self._known: dict[str, dict[str, str]] = {}
        self._new: list[str] = []

    def symbol(self, part: str, text: str) -> str:
        """Return the name of a string's array."""
        known = self._known.setdefault(part, {})
        if text not in known:
            known[text] = symbol = f"{part}_string_{len(known)}"
            self._new.append(f"static const char {symbol}[] = {c_string(text)};")
        return known[text]

    def take(self) -> list[str]:
        """Return the definitions of the strings that are new since the last call."""
        new, self._new = self._new, []
        return new


def _definition(definition: Definition, strings: _Strings) -> str:
    """Return the definition of a constant; lines that are too long are broken when the file is rendered."""

    def literal(text: str) -> str:
        is_optional = definition.part is not None and definition.part != RUN
        return strings.symbol(definition.part or "", text) if is_optional else c_string(text)

    private = "" if definition.is_public else "static "
    head = f"{private}const {_declared(definition.element, definition.symbol)}"
    if isinstance(definition.content, StructValue):
        fields = "".join(f"\t{member},\n" for member in _members(definition.content, literal, _ZEROS))
        return f"{head} = {{\n{fields}}};"
    items = [_value(definition.element, value, literal) for value in definition.content]
    head += f"[{len(items)}] = " if definition.is_public else "[] = "
    if isinstance(definition.element, Struct):
        rows = items
    else:
        return f"{head}{{{', '.join(items)}}};"
    lines = "".join(f"\t{row},\n" for row in rows)
    return f"{head}{{\n{lines}}};"


def c_type(type_: FieldType) -> str:
    """Return the C type of a field; "" if it has no name."""
    match type_:
        case Scalar(dtype):
            return dtype.c_type
        case Size():
            return "size_t"
        case Index(None):
            return "intptr_t"
        case Index():
            return ""
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


def c_struct_value(struct: StructValue, literal: Callable[[str], str] = c_string) -> str:
    """Return the initialiser of a structure; `literal` returns the C expression of a string."""
    macro = ROWS.get(struct.struct.name)
    if macro is not None:
        return f"{macro}({', '.join(_arguments(struct, literal))})"
    return f"{{{', '.join(_members(struct, literal))}}}"


def c_layout(struct: Struct) -> dict[str, str]:
    """Return the offset of every field and, under "", the size, as expressions for pointers of 4 and of 8 bytes."""
    small, large = Abi(4), Abi(8)
    places = {name: (offset, offsets(struct, large)[name]) for name, offset in offsets(struct, small).items()}
    places[""] = (size_and_alignment(struct, small)[0], size_and_alignment(struct, large)[0])
    return {name: _linear(*pair) for name, pair in places.items()}


def _linear(small: int, large: int) -> str:
    """Return an expression that is `small` for pointers of 4 bytes and `large` for 8."""
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


def _members(struct: StructValue, literal: Callable[[str], str], omitted: frozenset[str] = _ABSENT) -> list[str]:
    """Return the members except those with an `omitted` value; the first one if it is the only one."""
    texts = _texts(struct, literal)
    fields = _fields(struct.struct)
    members = [field[0] + text for field, text in zip(fields, texts, strict=True) if text not in omitted]
    return members or [fields[0][0] + texts[0]]


def _arguments(struct: StructValue, literal: Callable[[str], str]) -> list[str]:
    """Return the values of all members, also of nested structures."""
    arguments = []
    for text, (_, value) in zip(_texts(struct, literal), struct.values, strict=True):
        if type(value) is StructValue:
            arguments += _arguments(value, literal)
        else:
            arguments.append(text)
    return arguments


def _texts(struct: StructValue, literal: Callable[[str], str]) -> list[str]:
    texts = []
    for (_, type_, numbers), (_, value) in zip(_fields(struct.struct), struct.values, strict=True):
        if type(value) is int:
            if value not in numbers:  # most numbers occur in many rows
                numbers[value] = _value(type_, value, literal)
            texts.append(numbers[value])
        elif type(value) is str:
            texts.append(literal(value))
        elif value is None:
            texts.append("NULL")
        else:
            texts.append(_value(type_, value, literal))
    return texts


_Fields = list[tuple[str, FieldType, dict[int, str]]]
"""Of each field, the text before a value, the type, and the texts of numbers."""
_FIELDS: dict[int, tuple[Struct, _Fields]] = {}
"""By the identity of the structure: to hash one takes longer than to print a value."""


def _fields(struct: Struct) -> _Fields:
    known = _FIELDS.get(id(struct))
    if known is None:
        known = _FIELDS[id(struct)] = struct, [(f".{field.name} = ", field.type, {}) for field in struct.fields]
    return known[1]


def _value(type_: FieldType | Struct, value: Value, literal: Callable[[str], str]) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, (int, float)):
        return str(value) if isinstance(type_, Index) else _number(type_, value)
    if isinstance(value, str):
        return literal(value)
    if isinstance(value, Reference):
        return _reference(type_, value.symbol, value.index)
    if isinstance(value, StructValue):
        return c_struct_value(value, literal)
    if isinstance(value, Expression):
        return value.text
    return f"{{{', '.join(map(str, value))}}}"


def _reference(type_: FieldType | Struct, symbol: str, index: int | None) -> str:
    if index is not None:
        return f"&{symbol}[{index}]"
    if not isinstance(type_, Pointer):
        return symbol
    address = f"&{symbol}" if isinstance(type_.to, Struct) and type_.count is None else symbol
    return address if type_.is_const else f"({c_type(type_)})(uintptr_t){address}"  # tables are constant


def _number(type_: FieldType | Struct, number: int | float) -> str:
    if not isinstance(type_, Scalar):
        return f"{number}U"
    dtype, names = type_.dtype, type_.names
    if dtype.is_float:
        return c_float(float(number), dtype)
    code = int(number)
    if isinstance(names, Enumeration):
        return names.constant(code)
    if isinstance(names, Flags):
        known = [names.constant(member) for bit, member in enumerate(names.members) if code >> bit & 1]
        shifted = code >> names.shift if names.macro else 0
        return " | ".join([*known, *([f"{names.macro}({1 << shifted})"] if shifted else [])]) or "0U"
    if names is not None and code == names.value:
        return names.constant
    is_small = dtype.size == 8 and 0 <= code < 1 << 31  # converted without a suffix
    return str(code) if is_small else c_integer(code, dtype)
