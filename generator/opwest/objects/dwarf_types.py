# SPDX-License-Identifier: Apache-2.0
"""C types and signatures from DWARF (DWARF 5, section 5), reduced to the properties relevant for calls."""

from __future__ import annotations

import re
from dataclasses import field, replace
from typing import Literal

from opwest.base.frozen_dataclass import dataclass
from opwest.objects import dwarf_units as units_
from opwest.objects.dwarf_units import DebugData, Entry, Unit, list_children, read_entry, reference, string

_AGGREGATES = (units_.TAG_STRUCT, units_.TAG_UNION, units_.TAG_CLASS)
_INNER = (
    units_.TAG_TYPEDEF, units_.TAG_CONST, units_.TAG_VOLATILE, units_.TAG_RESTRICT, units_.TAG_ATOMIC,
    units_.TAG_ARRAY,
)  # fmt: skip
_MAX_ALIGNMENTS = {"i386": 4, "arm": 8}
_COMPLEX_FLOAT = 3
"""DW_ATE_complex_float: two floats."""


def alignment(data: DebugData, units: list[Unit], unit: Unit, entry: Entry, machine: str, depth: int = 0) -> int:
    """Return the alignment of a type in bytes; 0 if it is unknown."""
    tag = entry.abbreviation.tag
    given = entry.attributes.get(units_.AT_ALIGNMENT)
    explicit = given.number if given else 0
    size = entry.attributes.get(units_.AT_BYTE_SIZE)
    if depth > _MAX_DEPTH:
        return 0
    if tag in _AGGREGATES:
        return max(explicit, _of_members(data, units, unit, entry, machine, depth))
    if tag in _POINTERS:
        return max(explicit, unit.address)
    if tag == units_.TAG_ARRAY and units_.AT_GNU_VECTOR in entry.attributes:
        return max(explicit, _of_vector(data, units, unit, entry, machine))
    if tag in _INNER:
        return max(explicit, _of_type(data, units, unit, entry, machine, depth))
    if size is None or not size.number:
        return explicit
    encoding = entry.attributes.get(units_.AT_ENCODING)
    if encoding and encoding.number == _COMPLEX_FLOAT:
        return max(explicit, min((size.number // 2) & -(size.number // 2), _MAX_ALIGNMENTS.get(machine, 16)))
    return max(explicit, min(size.number & -size.number, _MAX_ALIGNMENTS.get(machine, 16)))


def _of_vector(data: DebugData, units: list[Unit], unit: Unit, entry: Entry, machine: str) -> int:
    """Return the alignment of a type of SIMD registers: its size, at most 8 on 32-bit Arm (AAPCS32).

    Compilers align vectors that are larger than the target's registers less; DWARF does not record the registers.
    """
    given = entry.attributes.get(units_.AT_BYTE_SIZE)
    size = given.number if given else _size_of_element(data, units, unit, entry)
    if not given:
        for child in list_children(data, unit, entry):
            if child.abbreviation.tag == units_.TAG_SUBRANGE:
                count = child.attributes.get(units_.AT_COUNT)
                last = child.attributes.get(units_.AT_UPPER_BOUND)
                size *= count.number if count else last.number + 1 if last else 0
    return min(size & -size, 8) if machine == "arm" else size & -size


def _size_of_element(data: DebugData, units: list[Unit], unit: Unit, entry: Entry) -> int:
    """Return the size of the elements of an array in bytes; 0 if it is unknown."""
    for _ in range(_MAX_DEPTH):
        value = entry.attributes.get(units_.AT_TYPE)
        place = reference(data, unit, units, value) if value else None
        target = read_entry(data, *place) if place else None
        if place is None or target is None:
            return 0
        unit, entry = place[0], target
        size = entry.attributes.get(units_.AT_BYTE_SIZE)
        if size is not None:
            return size.number
    return 0


def _of_type(data: DebugData, units: list[Unit], unit: Unit, entry: Entry, machine: str, depth: int) -> int:
    """Return the alignment of the type that an entry refers to."""
    value = entry.attributes.get(units_.AT_TYPE)
    place = reference(data, unit, units, value) if value else None
    target = read_entry(data, *place) if place else None
    return alignment(data, units, place[0], target, machine, depth + 1) if place and target else 0


def _of_members(data: DebugData, units: list[Unit], unit: Unit, entry: Entry, machine: str, depth: int) -> int:
    """Return the alignment that the members of a structure require; 1 if it is packed."""
    largest = 1
    for child in list_children(data, unit, entry):
        if child.abbreviation.tag not in (units_.TAG_MEMBER, units_.TAG_INHERITANCE):
            continue
        given = child.attributes.get(units_.AT_ALIGNMENT)
        found = max(given.number if given else 0, _of_type(data, units, unit, child, machine, depth))
        offset = child.attributes.get(units_.AT_DATA_MEMBER_LOCATION)
        if found and offset is not None and offset.number % found:
            found = offset.number & -offset.number  # packed
        largest = max(largest, found)
    size = entry.attributes.get(units_.AT_BYTE_SIZE)
    if size is not None and size.number % largest:
        return size.number & -size.number  # packed
    return largest


Kind = Literal["void", "integer", "float", "bool", "pointer", "struct", "function", "other", "unknown"]

NORMAL = 1
"""DW_CC_normal: the calling convention of C."""
_MAX_DEPTH = 24
_QUALIFIERS = (units_.TAG_VOLATILE, units_.TAG_RESTRICT, units_.TAG_ATOMIC)
_POINTERS = (units_.TAG_POINTER, units_.TAG_REFERENCE, units_.TAG_RVALUE_REFERENCE)
_TAGGED = {units_.TAG_STRUCT: "struct", units_.TAG_UNION: "union", units_.TAG_CLASS: "class"}
# DW_ATE_*: the kind of a base type, and whether it is signed.
_ENCODINGS: dict[int, tuple[Kind, bool | None]] = {
    0x02: ("bool", False), 0x04: ("float", True), 0x05: ("integer", True), 0x06: ("integer", True),
    0x07: ("integer", False), 0x08: ("integer", False), 0x10: ("integer", False),
}  # fmt: skip


# Rust and Zig record `const` only in the names of pointer types: `*const i8`, `&i8`, `[*]const i8`.
POINTER_TO_CONST = re.compile(r"(?:&(?!mut )|(?:\*|\[\*[^\]]*\])(?:align\([^)]*\) |allowzero )*const )")


@dataclass(frozen=True, slots=True)
class DwarfType:
    """A type, with typedefs and `volatile` followed to their end."""

    kind: Kind
    size: int = 0
    """In bytes; 0 if unknown."""
    signed: bool | None = None
    """Of integers; None where either is accepted: plain `char`, and enumerations (unsigned in GCC)."""
    name: str = ""
    """As written: `int8_t`, `float`, `struct device`; of a pointer empty."""
    names: frozenset[str] = frozenset()
    """`name` and its aliases: a typedef and its `struct tag`."""
    const: bool = False
    target: DwarfType | None = None
    """The type that a pointer refers to."""
    align: int = 0
    """Of structures: the alignment in bytes; 0 if unknown."""

    def __str__(self) -> str:
        if self.kind == "pointer" and self.target is not None and not self.name:
            if self.target.kind == "function":
                return "a pointer to a function"
            text = f"{self.target}{'' if self.target.kind == 'pointer' and not self.target.name else ' '}*"
            return f"{text} const" if self.const else text
        return f"const {self.name or self.kind}" if self.const else self.name or self.kind


VOID = DwarfType("void", name="void", names=frozenset({"void"}))
UNKNOWN = DwarfType("unknown", name="a type without description")


@dataclass(frozen=True, slots=True)
class DwarfSignature:
    """The signature of a compiled function."""

    name: str
    returns: DwarfType
    parameters: tuple[DwarfType, ...]
    variadic: bool = False
    names: tuple[str, ...] = field(default=(), compare=False)
    """Parameter names, if requested; empty for a parameter without a name."""
    convention: int = NORMAL
    """The calling convention (DW_CC_*)."""

    def __str__(self) -> str:
        parameters = [str(p) for p in self.parameters] + (["..."] if self.variadic else [])
        return f"{self.returns} ({', '.join(parameters) or 'void'})"


def _as_const(type_: DwarfType) -> DwarfType:
    return replace(type_, const=True)


@dataclass(slots=True)
class Types:
    """The types of one `.debug_info`, each built once."""

    data: DebugData
    units: list[Unit]
    machine: str
    """As `Abi.machine`: it determines alignments."""
    _known: dict[int, DwarfType] = field(default_factory=dict)

    def of(self, unit: Unit, entry: Entry, depth: int = 0) -> DwarfType:
        """Return the type that an entry refers to, void if none."""
        value = entry.attributes.get(units_.AT_TYPE)
        if value is None:
            return VOID
        place = reference(self.data, unit, self.units, value)
        if place is None or depth > _MAX_DEPTH:
            return UNKNOWN
        unit, offset = place
        known = self._known.get(offset)
        if known is None:
            target = read_entry(self.data, unit, offset)
            known = self._build(unit, target, depth + 1) if target else UNKNOWN
            if depth == 0:  # deeper types may be truncated at the limit of the depth
                self._known[offset] = known
        return known

    def _build(self, unit: Unit, entry: Entry, depth: int) -> DwarfType:
        """Return the type that an entry describes."""
        tag = entry.abbreviation.tag
        if tag in _QUALIFIERS:
            return self.of(unit, entry, depth)
        if tag == units_.TAG_CONST:
            return _as_const(self.of(unit, entry, depth))
        name = self._name(unit, entry)
        size = self._number(entry, units_.AT_BYTE_SIZE)
        if tag == units_.TAG_TYPEDEF:
            inner = self.of(unit, entry, depth)
            return replace(inner, name=name, names=inner.names | {name})
        if tag in _POINTERS:
            target = self.of(unit, entry, depth)
            return DwarfType(
                "pointer", size or unit.address, target=_as_const(target) if POINTER_TO_CONST.match(name) else target
            )
        if tag == units_.TAG_ARRAY:
            return self.of(unit, entry, depth)  # only as the target of a pointer, which then refers to the elements
        if tag in _TAGGED:
            label = f"{_TAGGED[tag]} {name}" if name else f"an unnamed {_TAGGED[tag]}"
            align = alignment(self.data, self.units, unit, entry, self.machine)
            return DwarfType("struct", size, name=label, names=frozenset({label}), align=align)
        if tag == units_.TAG_ENUM:
            label = f"enum {name}" if name else "an unnamed enum"
            return DwarfType("integer", size, None, label, frozenset({label}))
        if tag == units_.TAG_BASE:
            kind, sign = _ENCODINGS.get(self._number(entry, units_.AT_ENCODING), ("other", None))
            if name == "char":
                sign = None
            return DwarfType(kind, size, sign, name, frozenset({name}))
        if tag == units_.TAG_SUBROUTINE_TYPE:
            return DwarfType("function", name="function")
        return DwarfType("other", size, name=name or "a type unknown in C")

    def _name(self, unit: Unit, entry: Entry) -> str:
        value = entry.attributes.get(units_.AT_NAME)
        return string(self.data, unit, value) if value else ""

    @staticmethod
    def _number(entry: Entry, attribute: int) -> int:
        value = entry.attributes.get(attribute)
        return value.number if value else 0
