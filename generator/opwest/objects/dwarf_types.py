# SPDX-License-Identifier: Apache-2.0
"""C types and signatures from DWARF (DWARF 5, section 5), reduced to the properties relevant for calls."""

from __future__ import annotations

import re
from dataclasses import field, replace
from typing import Literal

from opwest.objects import dwarf_units as units_
from opwest.objects.dwarf_layout import alignment
from opwest.objects.dwarf_units import DebugData, Entry, Unit, read_entry, reference, string
from opwest.records import dataclass

Kind = Literal["void", "integer", "float", "bool", "pointer", "struct", "function", "other", "unknown"]

NORMAL = 1
"""DW_CC_normal: the calling convention of C."""
_DEEPEST = 24
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
        if place is None or depth > _DEEPEST:
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
