# SPDX-License-Identifier: Apache-2.0
"""Values of constant tables. A record checks for missing fields and for values of the wrong type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from opwest.base.frozen_dataclass import dataclass
from opwest.render.tables.types import (
    FieldType,
    Function,
    Index,
    Nested,
    Pointer,
    Scalar,
    Size,
    String,
    Struct,
    Table,
    Union,
)


@dataclass(frozen=True, slots=True)
class Text:
    """A string."""

    text: str


@dataclass(frozen=True, slots=True)
class Reference:
    """The address of a table's first element, of the element at `index`, or of a function."""

    symbol: str
    index: int | None = None


@dataclass(frozen=True, slots=True)
class Null:
    """No address."""


NULL: Final = Null()


@dataclass(frozen=True, slots=True)
class Number:
    """A number of any scalar type."""

    value: int | float


@dataclass(frozen=True, slots=True)
class Numbers:
    """The numbers of an array."""

    values: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Expression:
    """A C expression, for a value that the compiler defines. Tables with one have no LLVM IR."""

    text: str


class Record:
    """A value of a structure. Raises ValueError for a missing or unknown field, or a value of the wrong type."""

    def __init__(self, struct: Struct, fields: Mapping[str, Value]) -> None:
        expected = [field.name for field in struct.fields]
        if sorted(fields) != sorted(expected):
            odd = ", ".join(sorted(set(expected) ^ set(fields)))
            raise ValueError(f"{struct.name}: missing or unknown fields: {odd}")
        for field in struct.fields:
            _check(f"{struct.name}.{field.name}", field.type, fields[field.name])
        self.struct = struct
        self.values = tuple((field, fields[field.name]) for field in struct.fields)


Value = Text | Reference | Null | Number | Numbers | Record | Expression
Linkage = Literal["private", "public"]
RUN = "run"
"""The part of the tables that open, run and close need."""


@dataclass(frozen=True, slots=True)
class Definition:
    """A constant: a table of the elements `items`, or one record. Raises ValueError for an item of the wrong type.

    `part` is the part of the tables that a linker keeps or drops together: None for the metadata.
    """

    symbol: str
    type: Struct | Table
    items: tuple[Value, ...]
    linkage: Linkage = "private"
    part: str | None = None

    def __post_init__(self) -> None:
        """Check the items."""
        count = self.type.count if isinstance(self.type, Table) else 1
        if len(self.items) != count:
            raise ValueError(f"{self.symbol}: {len(self.items)} items, expected {count}")
        for item in self.items:
            _check(self.symbol, self.element, item)

    @property
    def element(self) -> Struct | Scalar | String:
        """The type of one item."""
        return self.type.element if isinstance(self.type, Table) else self.type


def _check(where: str, type_: FieldType | Struct, value: Value) -> None:
    if not _fits(type_, value):
        raise ValueError(f"{where}: {value!r} does not fit {type_!r:.80}")


def _fits(type_: FieldType | Struct, value: Value) -> bool:
    if isinstance(value, Expression):
        return isinstance(type_, (Scalar, String))
    match type_:
        case Scalar(dtype):
            if not isinstance(value, Number) or dtype.is_float:
                return isinstance(value, Number)
            low, high = dtype.minimum, dtype.maximum
            return isinstance(value.value, int) and low is not None and high is not None and low <= value.value <= high
        case Size():
            return isinstance(value, Number) and isinstance(value.value, int) and value.value >= 0
        case Index(None):
            return isinstance(value, Number) and isinstance(value.value, int)
        case Index(count):
            return isinstance(value, Numbers) and len(value.values) == count
        case String():
            return isinstance(value, (Text, Null))
        case Pointer() | Function():
            return isinstance(value, (Reference, Null))
        case Nested(struct, None):
            return isinstance(value, Record) and value.struct == struct
        case Nested() | Union():
            return False
        case Struct():
            return isinstance(value, Record) and value.struct == type_
