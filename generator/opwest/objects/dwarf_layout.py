# SPDX-License-Identifier: Apache-2.0
"""The alignment of structures, from the types and offsets of their members.

DWARF records alignments only if the source sets them (DW_AT_alignment, DWARF 5). Source: the ABIs' tables of
fundamental types; i386 aligns members of 8 bytes and more to 4 (System V ABI, Intel386, "Aggregates and Unions").
"""

from __future__ import annotations

from opwest.objects import dwarf_units as units_
from opwest.objects.dwarf_units import DebugData, Entry, Unit, list_children, read_entry, reference

_AGGREGATES = (units_.TAG_STRUCT, units_.TAG_UNION, units_.TAG_CLASS)
_POINTERS = (units_.TAG_POINTER, units_.TAG_REFERENCE, units_.TAG_RVALUE_REFERENCE)
_INNER = (
    units_.TAG_TYPEDEF, units_.TAG_CONST, units_.TAG_VOLATILE, units_.TAG_RESTRICT, units_.TAG_ATOMIC,
    units_.TAG_ARRAY,
)  # fmt: skip
_LARGEST = {"i386": 4, "arm": 8}
_DEEPEST = 24
_COMPLEX_FLOAT = 3
"""DW_ATE_complex_float: two floats."""


def alignment(data: DebugData, units: list[Unit], unit: Unit, entry: Entry, machine: str, depth: int = 0) -> int:
    """Return the alignment of a type in bytes; 0 if it is unknown."""
    tag = entry.abbreviation.tag
    given = entry.attributes.get(units_.AT_ALIGNMENT)
    explicit = given.number if given else 0
    size = entry.attributes.get(units_.AT_BYTE_SIZE)
    if depth > _DEEPEST:
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
        return max(explicit, min((size.number // 2) & -(size.number // 2), _LARGEST.get(machine, 16)))
    return max(explicit, min(size.number & -size.number, _LARGEST.get(machine, 16)))


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
    for _ in range(_DEEPEST):
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
