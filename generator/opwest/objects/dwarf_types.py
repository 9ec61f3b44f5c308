# SPDX-License-Identifier: Apache-2.0
"""C types and signatures from DWARF (DWARF 5, section 5), reduced to the properties relevant for calls."""

from __future__ import annotations

import re
from dataclasses import field, replace
from typing import Literal

from opwest.base.frozen_dataclass import dataclass
from opwest.objects import dwarf_units as units_
from opwest.objects.dwarf_units import DebugData, Entry, Unit, list_children, read_entry, reference, string

_INNER = (
    units_.TAG_TYPEDEF, units_.TAG_CONST, units_.TAG_VOLATILE, units_.TAG_RESTRICT, units_.TAG_ATOMIC,
    units_.TAG_ARRAY,
)  # fmt: skip
_MAX_ALIGNMENTS = {"i386": 4, "arm": 8}
_COMPLEX_FLOAT = 3
"""DW_ATE_complex_float: two floats."""


Kind = Literal["void", "integer", "float", "bool", "pointer", "struct", "function", "other", "unknown"]

NORMAL = 1
"""DW_CC_normal: the calling convention of C."""
_MAX_DEPTH = 24
_BOUNDS = (units_.AT_LOWER_BOUND, units_.AT_UPPER_BOUND, units_.AT_COUNT)
_MAX_COUNT, _MAX_RANK = 1 << 31, 16
_NO_VALUE = ("void", "anyopaque")
"""Types that Zig and LDC describe as base types."""
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

_ZIG_OPTIONAL = re.compile(r"\?(?:\*|\[\*[^\]]*\])(?:align\([^)]*\) )?(const )?")
"""Zig's optional pointers, null or an address; their debug information is that of a union, or of the name alone."""
# LDC records it only in the names of base types: `const(float)`, `immutable(byte)`.
_D_CONST = re.compile(r"^(?:const|immutable|inout)\((.*)\)$")


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
    is_array: bool = False
    """Whether it is an array; its other properties are those of the elements."""
    shape: tuple[int, ...] = field(default=(), compare=False)
    """Of arrays: the dimensions, outermost first; empty if one is unknown."""

    def __str__(self) -> str:
        if self.kind == "pointer" and self.target is not None and not self.name:
            if self.target.kind == "function":
                return "a pointer to a function"
            text = f"{self.target}{'' if self.target.kind == 'pointer' and not self.target.name else ' '}*"
            return f"{text} const" if self.const else text
        return f"const {self.name or self.kind}" if self.const else self.name or self.kind


VOID = DwarfType("void", name="void", names=frozenset({"void"}))
UNKNOWN = DwarfType("unknown", name="a type without description")
DESCRIPTOR = DwarfType("other", name="an array descriptor: declare the array x(n) or x(*), not x(:)")
"""Of Fortran: a structure with the address, the bounds and the strides of an array."""


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
    records_const: bool = field(default=True, compare=False)
    """Whether the debug information contains `const` and the like: that of Ada and Fortran does not."""

    def __str__(self) -> str:
        parameters = [str(p) for p in self.parameters] + (["..."] if self.variadic else [])
        return f"{self.returns} ({', '.join(parameters) or 'void'})"


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
        place = reference(unit, self.units, value)
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
            return replace(self.of(unit, entry, depth), const=True)
        name = self._name(unit, entry)
        size = self._number(entry, units_.AT_BYTE_SIZE)
        if optional := _ZIG_OPTIONAL.match(name):
            return DwarfType("pointer", unit.address, target=replace(UNKNOWN, const=optional[1] is not None))
        if tag == units_.TAG_TYPEDEF:
            inner = self.of(unit, entry, depth)
            return replace(inner, name=name, names=inner.names | {name})
        if tag in _POINTERS:
            target = self.of(unit, entry, depth)
            if POINTER_TO_CONST.match(name):
                target = replace(target, const=True)
            return DwarfType("pointer", size or unit.address, target=target)
        if tag == units_.TAG_ARRAY:
            return self._array(unit, entry, depth)
        if tag in _TAGGED:
            label = f"{_TAGGED[tag]} {name}" if name else f"an unnamed {_TAGGED[tag]}"
            align = self._alignment(unit, entry)
            return DwarfType("struct", size, name=label, names=frozenset({label}), align=align)
        if tag == units_.TAG_ENUM:
            label = f"enum {name}" if name else "an unnamed enum"
            return DwarfType("integer", size, None, label, frozenset({label}))
        if tag == units_.TAG_BASE and name in _NO_VALUE and size == 0:
            return VOID
        if tag == units_.TAG_BASE:
            kind, sign = _ENCODINGS.get(self._number(entry, units_.AT_ENCODING), ("other", None))
            plain = _D_CONST.sub(r"\1", name)
            if plain == "char":
                sign = None
            return DwarfType(kind, size, sign, plain, frozenset({plain}), const=plain != name)
        if tag == units_.TAG_SUBRANGE and units_.AT_TYPE in entry.attributes:  # Ada: `range 0 .. 100`
            inner = self.of(unit, entry, depth)
            return replace(inner, size=size or inner.size, name=name, names=inner.names | {name})
        if tag == units_.TAG_UNSPECIFIED and name in _NO_VALUE:
            return VOID
        if tag == units_.TAG_STRING and size == 1:  # Fortran: `character(kind=c_char)`
            return DwarfType("integer", 1, None, "character", frozenset({"character"}))
        if tag == units_.TAG_SUBROUTINE_TYPE:
            return DwarfType("function", name="function")
        return DwarfType("other", size, name=name or "a type unknown in C")

    def _array(self, unit: Unit, entry: Entry, depth: int) -> DwarfType:
        """Return the type of the elements with the dimensions: C has arrays only as the targets of pointers."""
        if units_.AT_DATA_LOCATION in entry.attributes:
            return DESCRIPTOR
        inner = self.of(unit, entry, depth)
        sizes = [
            self._count(unit, child)
            for child in list_children(self.data, unit, entry)
            if child.abbreviation.tag == units_.TAG_SUBRANGE
        ]
        if unit.language in units_.FORTRAN:
            sizes.reverse()  # the first subscript of Fortran is the innermost dimension
        # A parameter of C, float x[4][8], is a pointer to its rows: the outermost dimension is not recorded.
        is_known = 0 not in sizes and (inner.shape or not inner.is_array) and len(sizes) <= _MAX_RANK
        is_known = is_known and unit.language not in units_.C
        return replace(inner, is_array=True, shape=(*sizes, *inner.shape) if is_known else ())

    def _count(self, unit: Unit, subrange: Entry) -> int:
        """Return the number of elements of a dimension; 0 if it is not constant."""
        first, last, count = map(subrange.attributes.get, _BOUNDS)
        if any(value is not None and value.form not in units_.CONSTANTS for value in (first, last, count)):
            return 0
        lowest = first.number if first else int(unit.language in units_.FROM_ONE)
        number = count.number if count else last.number - lowest + 1 if last else 0
        return number if 0 < number < _MAX_COUNT else 0

    def _name(self, unit: Unit, entry: Entry) -> str:
        value = entry.attributes.get(units_.AT_NAME)
        return string(self.data, unit, value) if value else ""

    @staticmethod
    def _number(entry: Entry, attribute: int) -> int:
        """Return the number of an attribute; 0 without it."""
        value = entry.attributes.get(attribute)
        return value.number if value else 0

    def _target(self, unit: Unit, entry: Entry) -> tuple[Unit, Entry] | None:
        """Return the entry of the type that an entry refers to; None if there is none."""
        value = entry.attributes.get(units_.AT_TYPE)
        place = reference(unit, self.units, value) if value else None
        target = read_entry(self.data, *place) if place else None
        return (place[0], target) if place and target else None

    def _alignment(self, unit: Unit, entry: Entry, depth: int = 0) -> int:
        """Return the alignment of a type in bytes; 0 if it is unknown."""
        if depth > _MAX_DEPTH:
            return 0
        return max(self._number(entry, units_.AT_ALIGNMENT), self._natural_alignment(unit, entry, depth))

    def _natural_alignment(self, unit: Unit, entry: Entry, depth: int) -> int:
        """Return the alignment of a type without attributes; 0 if it is unknown."""
        tag = entry.abbreviation.tag
        if tag in _TAGGED:
            return self._alignment_of_members(unit, entry, depth)
        if tag in _POINTERS:
            return unit.address
        if tag == units_.TAG_ARRAY and units_.AT_GNU_VECTOR in entry.attributes:
            return self._alignment_of_vector(unit, entry)
        if tag in _INNER:
            return self._alignment_of_target(unit, entry, depth)
        size = self._number(entry, units_.AT_BYTE_SIZE)
        if self._number(entry, units_.AT_ENCODING) == _COMPLEX_FLOAT:
            size //= 2
        return min(size & -size, _MAX_ALIGNMENTS.get(self.machine, 16))

    def _alignment_of_target(self, unit: Unit, entry: Entry, depth: int) -> int:
        target = self._target(unit, entry)
        return self._alignment(*target, depth + 1) if target else 0

    def _alignment_of_members(self, unit: Unit, entry: Entry, depth: int) -> int:
        """Return the alignment that the members of a structure require; 1 if it is packed."""
        largest = 1
        for child in list_children(self.data, unit, entry):
            if child.abbreviation.tag not in (units_.TAG_MEMBER, units_.TAG_INHERITANCE):
                continue
            align = max(self._number(child, units_.AT_ALIGNMENT), self._alignment_of_target(unit, child, depth))
            offset = self._number(child, units_.AT_DATA_MEMBER_LOCATION)
            if align and offset % align:
                align = offset & -offset  # packed
            largest = max(largest, align)
        size = self._number(entry, units_.AT_BYTE_SIZE)
        return size & -size if size % largest else largest  # packed, or not

    def _alignment_of_vector(self, unit: Unit, entry: Entry) -> int:
        """Return the alignment of a type of SIMD registers: its size, at most 8 on 32-bit Arm (AAPCS32).

        Compilers align vectors that are larger than the target's registers less; DWARF does not record the registers.
        """
        if units_.AT_BYTE_SIZE in entry.attributes:
            size = self._number(entry, units_.AT_BYTE_SIZE)
        else:
            size = self._size_of_element(unit, entry)
            for child in list_children(self.data, unit, entry):
                if child.abbreviation.tag == units_.TAG_SUBRANGE:
                    size *= self._count(unit, child)
        return min(size & -size, 8) if self.machine == "arm" else size & -size

    def _size_of_element(self, unit: Unit, entry: Entry) -> int:
        """Return the size of the elements of an array in bytes; 0 if it is unknown."""
        for _ in range(_MAX_DEPTH):
            target = self._target(unit, entry)
            if target is None:
                return 0
            unit, entry = target
            if units_.AT_BYTE_SIZE in entry.attributes:
                return self._number(entry, units_.AT_BYTE_SIZE)
        return 0
