# SPDX-License-Identifier: Apache-2.0
"""Read the entries of `.debug_info` that signatures need: units, abbreviations, forms.

pyelftools lacks relocations of RISC-V, takes minutes for 10,000 functions, and does not validate the
file. This reader decodes only the requested attributes, within a budget of steps for damaged sections.

Sources: DWARF 5, section 7.5 (format of debugging information), and DWARF 4 for versions before.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import field
from typing import NamedTuple

from opwest.base.frozen_dataclass import dataclass
from opwest.base.result import counted
from opwest.objects.elf import MAX_NAME_LENGTH, StringTable, damaged
from opwest.objects.facts import ObjectError

_MAX_LENGTH = 10  # bytes of a LEB128 number of 64 bits


def uleb(data: bytes, at: int) -> tuple[int, int]:
    """Return the unsigned LEB128 number at `at`, and its end offset."""
    value = shift = 0
    for place in range(at, min(at + _MAX_LENGTH, len(data))):
        byte = data[place]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place + 1
        shift += 7
    raise damaged(f"unterminated LEB128 number at {at}")


def sleb(data: bytes, at: int) -> tuple[int, int]:
    """Return the signed LEB128 number at `at`, and its end offset."""
    value, end = uleb(data, at)
    bits = 7 * (end - at)
    return (value - (1 << bits) if value >> (bits - 1) else value), end


def fixed(data: bytes, at: int, size: int, order: str) -> int:
    """Return the unsigned number of `size` bytes at `at`; `order` is that of `struct`."""
    if at < 0 or at + size > len(data):
        raise damaged(f"number at {at} outside of {counted(len(data), 'byte')} of data")
    return int.from_bytes(data[at : at + size], "little" if order == "<" else "big")


def initial_length(data: bytes, at: int, order: str) -> tuple[int, int, int]:
    """Return the length of a unit or an entry, where it begins, and the size of offsets in it: 4 or 8."""
    length = fixed(data, at, 4, order)
    if length == 0xFFFFFFFF:
        return fixed(data, at + 4, 8, order), at + 12, 8
    return length, at + 4, 4


def string_end(data: bytes, at: int) -> int:
    """Return the offset of the null byte that ends the string at `at`, which has at most `MAX_NAME_LENGTH` bytes."""
    end = data.find(b"\0", at, at + MAX_NAME_LENGTH + 1) if at >= 0 else -1
    if end < 0:
        raise damaged(f"unterminated string, or string of more than {MAX_NAME_LENGTH} bytes, at {at}")
    return end


TAG_ARRAY, TAG_CLASS, TAG_ENUM, TAG_PARAMETER, TAG_POINTER, TAG_REFERENCE = 0x01, 0x02, 0x04, 0x05, 0x0F, 0x10
TAG_STRUCT, TAG_SUBROUTINE_TYPE, TAG_TYPEDEF, TAG_UNION, TAG_UNSPECIFIED_PARAMETERS = 0x13, 0x15, 0x16, 0x17, 0x18
TAG_BASE, TAG_CONST, TAG_SUBPROGRAM, TAG_VOLATILE, TAG_RESTRICT = 0x24, 0x26, 0x2E, 0x35, 0x37
TAG_RVALUE_REFERENCE, TAG_ATOMIC = 0x42, 0x47
TAG_MODULE, TAG_NAMESPACE, TAG_MEMBER, TAG_INHERITANCE, TAG_SUBRANGE = 0x1E, 0x39, 0x0D, 0x1C, 0x21
TAG_UNSPECIFIED, TAG_STRING = 0x3B, 0x12
AT_NAME, AT_BYTE_SIZE, AT_LOW_PC, AT_ABSTRACT_ORIGIN, AT_DECLARATION, AT_ENCODING = 0x03, 0x0B, 0x11, 0x31, 0x3C, 0x3E
AT_EXTERNAL, AT_SPECIFICATION, AT_TYPE, AT_RANGES, AT_LINKAGE_NAME, AT_STR_OFFSETS_BASE = (
    0x3F, 0x47, 0x49, 0x55, 0x6E, 0x72,
)  # fmt: skip
AT_DATA_MEMBER_LOCATION, AT_ALIGNMENT = 0x38, 0x88
AT_UPPER_BOUND, AT_COUNT, AT_GNU_VECTOR = 0x2F, 0x37, 0x2107
AT_PRODUCER, AT_CALLING_CONVENTION, AT_MIPS_LINKAGE_NAME = 0x25, 0x36, 0x2007
AT_LOCATION, AT_LANGUAGE, AT_LOWER_BOUND, AT_DATA_LOCATION = 0x02, 0x13, 0x22, 0x50
FORTRAN = frozenset((0x07, 0x08, 0x0E, 0x22, 0x23, 0x2D))
"""DW_LANG_Fortran77 to DW_LANG_Fortran18."""
C = frozenset((0x01, 0x02, 0x04, 0x0C, 0x19, 0x1A, 0x1D, 0x21, 0x2A, 0x2B, 0x2C, 0x3A, 0x3E))
"""DW_LANG_C89 to DW_LANG_C23, DW_LANG_C_plus_plus to DW_LANG_C_plus_plus_23."""
FROM_ONE = FORTRAN | {0x03, 0x0D, 0x2E, 0x2F}
"""Fortran and Ada: arrays begin at 1 without DW_AT_lower_bound; no pointer is described as one to const."""
_DWO_NAMES = (0x76, 0x2130)
_UNIT_COMPILE, _UNIT_PARTIAL = 1, 3
_STRX = {0x1A: 0, 0x1F02: 0, 0x25: 1, 0x26: 2, 0x27: 3, 0x28: 4}
_FIXED = {
    0x05: 2, 0x06: 4, 0x07: 8, 0x0B: 1, 0x0C: 1, 0x11: 1, 0x12: 2, 0x13: 4, 0x14: 8, 0x19: 0, 0x1C: 4, 0x1E: 16,
    0x20: 8, 0x21: 0, 0x24: 8, 0x25: 1, 0x26: 2, 0x27: 3, 0x28: 4, 0x29: 1, 0x2A: 2, 0x2B: 3, 0x2C: 4,
}  # fmt: skip
_OFFSETS = (0x0E, 0x17, 0x1D, 0x1F, 0x1F20, 0x1F21)
_ULEBS = (0x0F, 0x15, 0x1A, 0x1B, 0x22, 0x23, 0x1F01, 0x1F02)
CONSTANTS = (0x05, 0x06, 0x07, 0x0B, 0x0D, 0x0F, 0x21)
FORM_BLOCKS = {0x0A: 1, 0x03: 2, 0x04: 4, 0x09: 0, 0x18: 0}
_ADDR, _STRING, _SDATA, _STRP, _REF_ADDR, _INDIRECT = 0x01, 0x08, 0x0D, 0x0E, 0x10, 0x16
_LINE_STRP, _IMPLICIT = 0x1F, 0x21
_UNIT_REFERENCES = (0x11, 0x12, 0x13, 0x14, 0x15)
_FLAG_PRESENT = 0x19
SPLIT = "the debug information is in another file (compile without -gsplit-dwarf)"
_PER_STEP = 16  # bytes of a string that take the time of one step


class Abbreviation(NamedTuple):
    """An abbreviation; `size` is the total of all attributes in bytes, None if it varies."""

    tag: int
    children: bool
    attributes: tuple[tuple[int, int, int], ...]
    size: int | None


class Value(NamedTuple):
    """An attribute as stored; `at` is its offset."""

    form: int
    number: int
    at: int


class Entry(NamedTuple):
    """A debugging information entry: offset, tag, attributes, and the offset of the next entry."""

    offset: int
    abbreviation: Abbreviation
    attributes: dict[int, Value]
    end: int


@dataclass(slots=True)
class Unit:
    """A compilation unit; offsets are those of its section."""

    start: int
    first: int
    end: int
    version: int
    address: int
    offset: int
    abbreviations: dict[int, Abbreviation] = field(default_factory=dict)
    strings_base: int = 0
    language: int = 0
    """DW_LANG_*; 0 if not recorded."""

    def size_of(self, form: int) -> int | None:
        """Return the size of a form in bytes, None if it varies."""
        if form == _ADDR or (form == _REF_ADDR and self.version == 2):
            return self.address
        if form == _REF_ADDR or form in _OFFSETS:
            return self.offset
        return _FIXED.get(form)


@dataclass(slots=True)
class Budget:
    """The steps left to read the debug information of a file."""

    steps: int


@dataclass(slots=True)
class DebugData:
    """The sections that one `.debug_info` refers to, relocations applied."""

    info: bytes
    abbreviations: bytes
    strings: StringTable
    line_strings: StringTable
    string_offsets: bytes
    location_lists: tuple[bytes, bytes]
    """`.debug_loclists` and, of DWARF 4 and before, `.debug_loc`; without relocations, which change only addresses."""
    order: str
    budget: Budget
    """Shared by the sections of a file, which can have the same bytes."""
    tables: dict[tuple[int, int, int, int], dict[int, Abbreviation]] = field(default_factory=dict)
    """The abbreviations, each table read once; also shared."""

    def spend(self, steps: int) -> None:
        """Count steps, to bound the time for damaged data."""
        self.budget.steps -= steps
        if self.budget.steps < 0:
            raise damaged("the debug information requires too many steps for its size")

    def number(self, at: int, size: int) -> int:
        """Return the unsigned number at `at`."""
        return fixed(self.info, at, size, self.order)


def read_units(data: DebugData) -> list[Unit]:
    """Return the units of `.debug_info` that describe compiled code; raise ObjectError if they are in another file."""
    units: list[Unit] = []
    at = 0
    while at + 4 <= len(data.info):
        unit = _read_unit(data, at)
        at = unit.end if unit.version else unit.first
        if unit.version:
            units.append(unit)
    return units


def _read_unit(data: DebugData, start: int) -> Unit:
    """Return the unit at `start`; version 0 marks a unit to skip, which ends at `first`."""
    data.spend(16)
    length, at, offset = initial_length(data.info, start, data.order)
    end = at + length
    if end > len(data.info):
        raise damaged("truncated unit in the debug information")
    version = data.number(at, 2)
    at += 2
    if version == 5:
        kind, address = data.number(at, 1), data.number(at + 1, 1)
        table = data.number(at + 2, offset)
        at += 2 + offset
        if kind in (4, 5, 6):
            raise ObjectError(SPLIT)
        if kind not in (_UNIT_COMPILE, _UNIT_PARTIAL):
            return Unit(start, end, end, 0, 0, 0)
    elif version in (2, 3, 4):
        table, address = data.number(at, offset), data.number(at + offset, 1)
        at += offset + 1
    else:
        raise damaged(f"debug information of DWARF version {version}, not 2 to 5")
    if address not in (4, 8):
        raise damaged(f"debug information with addresses of {address} bytes")
    unit = Unit(start, at, end, version, address, offset)
    unit.abbreviations = _abbreviations(data, table, unit)
    root = read_entry(data, unit, at)
    if root is None:
        return Unit(start, end, end, 0, 0, 0)
    if any(name in root.attributes for name in _DWO_NAMES):
        raise ObjectError(SPLIT)
    language = root.attributes.get(AT_LANGUAGE)
    unit.language = language.number if language else 0
    base = root.attributes.get(AT_STR_OFFSETS_BASE)
    unit.strings_base = base.number if base else (2 * offset if version == 5 else 0)
    producer = root.attributes.get(AT_PRODUCER)
    if unit.language in C and producer is not None and string(data, unit, producer).startswith("zig"):
        unit.language = 0  # Zig records C99
    return unit


def _abbreviations(data: DebugData, at: int, unit: Unit) -> dict[int, Abbreviation]:
    """Return the abbreviations at `at` by their codes."""
    key = at, unit.address, unit.offset, unit.version
    if key in data.tables:
        return data.tables[key]
    table: dict[int, Abbreviation] = {}
    source = data.abbreviations
    while True:
        code, at = uleb(source, at)
        if code == 0:
            break
        tag, at = uleb(source, at)
        children, at = fixed(source, at, 1, data.order), at + 1
        attributes: list[tuple[int, int, int]] = []
        size: int | None = 0
        while True:
            data.spend(1)
            name, at = uleb(source, at)
            form, at = uleb(source, at)
            constant = 0
            if form == _IMPLICIT:
                constant, at = sleb(source, at)
            if name == 0 and form == 0:
                break
            attributes.append((name, form, constant))
            width = unit.size_of(form)
            size = None if width is None or size is None else size + width
        table[code] = Abbreviation(tag, bool(children), tuple(attributes), size)
    data.tables[key] = table
    return table


def _skip(data: DebugData, unit: Unit, form: int, at: int) -> int:
    """Return the end offset of a value whose form has a variable size."""
    info = data.info
    if form in _ULEBS or form == _SDATA:
        return uleb(info, at)[1]
    if form == _STRING:
        end = string_end(info, at)
        data.spend((end - at) // _PER_STEP)
        return end + 1
    if form in FORM_BLOCKS:
        width = FORM_BLOCKS[form]
        length, at = (data.number(at, width), at + width) if width else uleb(info, at)
        return at + length
    if form == _INDIRECT:
        real, at = uleb(info, at)
        size = unit.size_of(real)
        if real == _INDIRECT:
            raise damaged("nested indirect form in the debug information")
        return _skip(data, unit, real, at) if size is None else at + size
    raise damaged(f"unknown form 0x{form:x} in the debug information")


def _past(data: DebugData, unit: Unit, abbreviation: Abbreviation, at: int) -> int:
    """Return the end offset of an entry whose attributes start at `at`."""
    if abbreviation.size is not None:
        return at + abbreviation.size
    data.spend(len(abbreviation.attributes))
    for _, form, _ in abbreviation.attributes:
        size = unit.size_of(form)
        at = _skip(data, unit, form, at) if size is None else at + size
    return at


def read_entry(data: DebugData, unit: Unit, offset: int) -> Entry | None:
    """Return the entry at `offset` with its attributes; None for the end of a list of children."""
    if not unit.first <= offset < unit.end:
        raise damaged(f"reference to {offset} outside of its unit")
    code, at = uleb(data.info, offset)
    if code == 0:
        return None
    abbreviation = unit.abbreviations.get(code)
    if abbreviation is None:
        raise damaged(f"undefined abbreviation {code} in the debug information")
    data.spend(1 + len(abbreviation.attributes))
    attributes: dict[int, Value] = {}
    for name, form, constant in abbreviation.attributes:
        if form == _INDIRECT:
            form, at = uleb(data.info, at)
        size = unit.size_of(form)
        if size is None:
            end = _skip(data, unit, form, at)
            number = uleb(data.info, at)[0] if form in _ULEBS else sleb(data.info, at)[0] if form == _SDATA else 0
        else:
            end = at + size
            number = constant if form == _IMPLICIT else 1 if form == _FLAG_PRESENT else data.number(at, size)
        attributes.setdefault(name, Value(form, number, at))
        at = end
    if at > unit.end:
        raise damaged("truncated entry in the debug information")
    return Entry(offset, abbreviation, attributes, at)


def subprograms(data: DebugData, unit: Unit) -> Iterator[int]:
    """Yield the offsets of the functions at the top level of a unit, or in its modules and namespaces."""
    info, end, table = data.info, unit.end, unit.abbreviations
    at, depth = unit.first, 0
    outer = 1  # entries at this depth are in the unit itself, or only in modules and namespaces
    while at < end:
        start = at
        code = info[at]
        at += 1
        if code >= 0x80:
            code, at = uleb(info, start)
        if code == 0:
            depth -= 1
            if depth <= 0:
                return
            outer = min(outer, depth)
            continue
        abbreviation = table.get(code)
        if abbreviation is None:
            raise damaged(f"undefined abbreviation {code} in the debug information")
        if depth == outer and abbreviation.tag == TAG_SUBPROGRAM:
            yield start
        at = _past(data, unit, abbreviation, at)
        if abbreviation.children:
            if depth == outer and abbreviation.tag in (TAG_MODULE, TAG_NAMESPACE):
                outer += 1
            depth += 1
        elif depth == 0:
            return


def children(data: DebugData, unit: Unit, entry: Entry) -> Iterator[Entry]:
    """Yield the children of an entry up to its first child with children.

    Compilers emit parameters first.
    """
    at = entry.end
    while entry.abbreviation.children and at < unit.end:
        child = read_entry(data, unit, at)
        if child is None:
            return
        yield child
        if child.abbreviation.children:
            return
        at = child.end


def list_children(data: DebugData, unit: Unit, entry: Entry) -> Iterator[Entry]:
    """Yield the children of an entry; their own children are skipped."""
    at, depth = entry.end, 0
    while entry.abbreviation.children and at < unit.end:
        child = read_entry(data, unit, at)
        if child is None:
            depth -= 1
            at += 1
            if depth < 0:
                return
            continue
        if depth == 0:
            yield child
        at = child.end
        depth += child.abbreviation.children


def reference(unit: Unit, units: list[Unit], value: Value) -> tuple[Unit, int] | None:
    """Return the unit and the offset that an attribute refers to; None for another file or a type unit."""
    if value.form in _UNIT_REFERENCES:
        return unit, unit.start + value.number
    if value.form == _REF_ADDR:
        index = bisect_right(units, value.number, key=lambda u: u.start) - 1
        return (units[index], value.number) if index >= 0 else None
    return None


def string(data: DebugData, unit: Unit, value: Value) -> str:
    """Return the text of an attribute, empty if it is in another file."""
    if value.form == _STRING:
        text = data.info[value.at : string_end(data.info, value.at)]
        # Bytes that are not UTF-8 are decoded one by one.
        data.spend(len(text) // _PER_STEP if text.isascii() else len(text))
        return text.decode("utf-8", "backslashreplace")
    if value.form == _STRP:
        return data.strings.name(value.number)
    if value.form == _LINE_STRP:
        return data.line_strings.name(value.number)
    if value.form in _STRX:
        at = unit.strings_base + value.number * unit.offset
        return data.strings.name(fixed(data.string_offsets, at, unit.offset, data.order))
    return ""
