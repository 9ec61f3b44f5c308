# SPDX-License-Identifier: Apache-2.0
"""Types of the runtime's structures, and their layout in an ABI."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Self

from opwest.base.frozen_dataclass import dataclass
from opwest.model.types.dtypes import DType
from opwest.plan.problem import round_up


@dataclass(frozen=True, slots=True)
class Enumeration:
    """An enum of the runtime: members are numbered from 0 and have the prefix and upper case in C.

    `prefix` is None if the members are the C names.
    """

    c_type: str
    prefix: str | None
    members: tuple[str, ...]

    def code(self, member: str) -> int:
        """Return the number of a member. Raises ValueError if it is unknown."""
        return self.members.index(member)

    def constant(self, code: int) -> str:
        """Return the name of a number in the runtime's headers."""
        member = self.members[code]
        return member if self.prefix is None else self.prefix + member.upper()


@dataclass(frozen=True, slots=True)
class Flags:
    """Bits with a name, from bit 0 on; the bits from `shift` on are the binary logarithm of the argument of a macro."""

    prefix: str
    members: tuple[str, ...]
    macro: str = ""
    shift: int = 0

    def bits(self, **flags: bool) -> int:
        """Return the number with these flags set. Raises ValueError for an unknown flag."""
        bits = 0
        for name, is_set in flags.items():
            if is_set:
                bits |= 1 << self.members.index(name)
        return bits

    def constant(self, member: str) -> str:
        """Return the name of a bit in the runtime's headers."""
        return self.prefix + member.upper()


@dataclass(frozen=True, slots=True)
class Constant:
    """A number with a name in the runtime's headers."""

    constant: str
    value: int
    header: str = "opwest/model.h"


@dataclass(frozen=True, slots=True)
class Scalar:
    """A number: `names` contains the names of numbers."""

    dtype: DType
    names: Enumeration | Flags | Constant | None = None


@dataclass(frozen=True, slots=True)
class Size:
    """size_t."""


@dataclass(frozen=True, slots=True)
class Index:
    """intptr_t; `count` for an array."""

    count: int | None = None


@dataclass(frozen=True, slots=True)
class String:
    """A pointer to constant text that ends with a null character."""


@dataclass(frozen=True, slots=True)
class Pointer:
    """A pointer to data; `count` is the field with the number of elements, None for one object or untyped data.

    `to` is the name of the structure if its description is missing or comes later.
    """

    to: Struct | Scalar | str
    count: str | None = None
    is_const: bool = True
    is_unique: bool = False
    """Whether a model stores equal content once, because addresses are compared."""


@dataclass(frozen=True, slots=True)
class Function:
    """A pointer to a function, of a type that the runtime's headers define."""

    c_type: str


@dataclass(frozen=True, slots=True)
class Union:
    """A union; `widest` is its member that sets size and alignment."""

    widest: Scalar


@dataclass(frozen=True, slots=True)
class Nested:
    """A structure inside another; `count` for an array of them (0: a flexible array member)."""

    struct: Struct
    count: int | None = None


FieldType = Scalar | Size | Index | String | Pointer | Function | Union | Nested


@dataclass(frozen=True, slots=True)
class Field:
    """A member of a structure."""

    name: str
    type: FieldType


@dataclass(frozen=True)
class Struct:
    """A structure; `c_type` is its C spelling, "" for one without a name, `header` the file that defines it."""

    name: str
    c_type: str
    header: str
    fields: tuple[Field, ...]

    @classmethod
    def make(cls, name: str, header: str, /, **fields: FieldType) -> Self:
        """Return `struct <name>`."""
        return cls(name, f"struct {name}", header, tuple(Field(n, t) for n, t in fields.items()))

    @classmethod
    def typedef(cls, name: str, header: str, /, **fields: FieldType) -> Self:
        """Return a structure whose C type is `name`."""
        return cls(name, name, header, tuple(Field(n, t) for n, t in fields.items()))

    @cached_property
    def checks(self) -> tuple[tuple[str, Field, Callable[[Value], bool]], ...]:
        """The name of each field, the field, and a function that returns whether a value fits it."""
        return tuple((field.name, field, _check(field.type)) for field in self.fields)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {field.name: place for place, field in enumerate(self.fields)}

    @cached_property
    def names(self) -> frozenset[str]:
        """The names of the fields."""
        return frozenset(self._places)

    def index_of(self, name: str) -> int:
        """Return the place of a field, from 0. Raises KeyError if it is unknown."""
        return self._places[name]

    def field(self, name: str) -> Field:
        """Return a field. Raises KeyError if it is unknown."""
        return self.fields[self._places[name]]


@dataclass(frozen=True, slots=True)
class Abi:
    """The parameters of layouts: bytes of a pointer, and the alignment of 64-bit numbers inside structures."""

    pointer: int
    wide_alignment: int = 8


def size_and_alignment(type_: FieldType | Struct, abi: Abi) -> tuple[int, int]:
    """Return the bytes of a type and their alignment."""
    match type_:
        case Struct():
            *_, (end, _) = _layout(type_, abi)
            return end, max(size_and_alignment(field.type, abi)[1] for field in type_.fields)
        case Nested(struct, count):
            size, alignment = size_and_alignment(struct, abi)
            return size * (1 if count is None else count), alignment
        case Scalar(dtype) | Union(Scalar(dtype)):
            return dtype.size, abi.wide_alignment if dtype.size == 8 else dtype.size
        case Index(count):
            return abi.pointer * (1 if count is None else count), abi.pointer
        case Size() | String() | Pointer() | Function():
            return abi.pointer, abi.pointer


def offsets(struct: Struct, abi: Abi) -> dict[str, int]:
    """Return the offset of every field, in bytes."""
    return {name: offset for offset, name in _layout(struct, abi) if name is not None}


def _layout(struct: Struct, abi: Abi) -> Iterator[tuple[int, str | None]]:
    """Yield the offset of each field with its name, then the size of the structure with None."""
    end, widest = 0, 1
    for field in struct.fields:
        size, alignment = size_and_alignment(field.type, abi)
        start = round_up(end, alignment)
        yield start, field.name
        end, widest = start + size, max(widest, alignment)
    yield round_up(end, widest), None


@dataclass(frozen=True, slots=True)
class Reference:
    """The address of a table's first element, of the element at `index`, or of a function."""

    symbol: str
    index: int | None = None


@dataclass(frozen=True, slots=True)
class Expression:
    """A C expression, for a value that the compiler defines. Tables with one have no LLVM IR."""

    text: str


class StructValue:
    """A value of a structure. Raises ValueError for a missing or unknown field, or a value of the wrong type."""

    __slots__ = ("struct", "values")

    def __init__(self, struct: Struct, /, **fields: Value) -> None:
        if fields.keys() != struct.names:
            odd = ", ".join(sorted(struct.names ^ fields.keys()))
            raise ValueError(f"{struct.name}: missing or unknown fields: {odd}")
        values = []
        for name, field, fits in struct.checks:
            value = fields[name]
            if not fits(value):
                raise _misfit(f"{struct.name}.{name}", field.type, value)
            values.append((field, value))
        self.struct = struct
        self.values = tuple(values)


Value = str | int | float | tuple[int, ...] | Reference | StructValue | Expression | None
"""A text, a number, the numbers of an array, an address, a structure, a C expression, or NULL."""

RUN = "run"
"""The part of the tables that open, run and close need."""


@dataclass(frozen=True, slots=True)
class Definition:
    """A constant: one structure, or a table. Raises ValueError for a value that does not fit `element`.

    `part` is the part of the tables that a linker keeps or drops together: None for the metadata.
    """

    symbol: str
    element: Struct | Scalar | String
    content: StructValue | tuple[Value, ...]
    is_public: bool = False
    part: str | None = None

    def __post_init__(self) -> None:
        """Check the values."""
        element = self.element
        fits = _check(element)
        for value in self.values:
            if not (type(value) is StructValue and value.struct is element) and not fits(value):
                raise _misfit(self.symbol, element, value)

    @property
    def values(self) -> tuple[Value, ...]:
        """The elements of the table, or the one structure."""
        return self.content if isinstance(self.content, tuple) else (self.content,)


def table(
    symbol: str,
    element: Struct | Scalar,
    values: Iterable[Value],
    *,
    is_public: bool = False,
    part: str | None = None,
) -> list[Definition]:
    """Return the definition of a table; nothing without values, since C has no empty arrays."""
    content = tuple(values)
    return [Definition(symbol, element, content, is_public, part)] if content else []


def address(definitions: Sequence[Definition]) -> Reference | None:
    """Return the address of a result of `table`; NULL if it is empty."""
    return Reference(definitions[0].symbol) if definitions else None


def _misfit(where: str, type_: FieldType | Struct, value: Value) -> ValueError:
    return ValueError(f"{where}: {value!r} does not fit {type_!r:.80}")


def _check(type_: FieldType | Struct) -> Callable[[Value], bool]:
    """Return a function that returns whether a value fits a type."""
    match type_:
        case Scalar(dtype) if dtype.is_float:
            return lambda value: isinstance(value, (int, float, Expression))
        case Scalar(dtype):
            low, high = dtype.minimum, dtype.maximum
            if low is None or high is None:
                return lambda value: isinstance(value, Expression)
            return lambda value: low <= value <= high if isinstance(value, int) else isinstance(value, Expression)
        case Size():
            return lambda value: isinstance(value, int) and value >= 0
        case Index(None):
            return lambda value: isinstance(value, int)
        case Index(count):
            return lambda value: isinstance(value, tuple) and len(value) == count
        case String():
            return lambda value: value is None or isinstance(value, (str, Expression))
        case Pointer() | Function():
            return lambda value: value is None or isinstance(value, Reference)
        case Struct() | Nested(Struct(), None):
            struct = type_ if isinstance(type_, Struct) else type_.struct
            return lambda value: isinstance(value, StructValue) and (value.struct is struct or value.struct == struct)
        case Nested() | Union():
            return lambda _: False
