# SPDX-License-Identifier: Apache-2.0
"""Read the signatures of functions from debug information (`-g`).

Supports unlinked objects: relocations of the debug sections are applied first. Source: DWARF 2 to 5,
sections 3.3 "Subroutine and Entry Point Entries" and 5 "Type Entries". For split, compressed or damaged
debug information the result is a sentence with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

from opwest.objects import dwarf_units as units_
from opwest.objects.dwarf_compare import DeclaredParameter, compare
from opwest.objects.dwarf_types import NORMAL, DwarfSignature, DwarfType, Types
from opwest.objects.dwarf_units import (
    Abbreviation,
    Budget,
    DebugData,
    Entry,
    SplitDebugError,
    Unit,
    children,
    read_entry,
    read_units,
    reference,
    string,
    subprograms,
)
from opwest.objects.elf import SHF_COMPRESSED, STT_FUNC, STT_NOTYPE, Elf, StringTable, parse_elf
from opwest.objects.facts import Member, ObjectError
from opwest.objects.relocate import Relocations
from opwest.records import dataclass

__all__ = [
    "NO_DEBUG_INFORMATION",
    "DeclaredParameter",
    "DwarfSignature",
    "DwarfType",
    "compare",
    "producers",
    "signatures",
]

_NOT_CHECKED = "signature not checked: "
NO_DEBUG_INFORMATION = f"{_NOT_CHECKED}the object has no debug information (compile with -g)"
_INFO = ".debug_info"
_SECTIONS = (_INFO, ".debug_abbrev", ".debug_str", ".debug_line_str", ".debug_str_offsets")
_COMPRESSED = f"{_NOT_CHECKED}the debug information is compressed (compile with -gz=none)"
_LONGEST_CHAIN = 8
_T = TypeVar("_T")
_LARGEST = 1 << 28


def signatures(member: Member, *, names: bool = False) -> dict[str, DwarfSignature] | str:
    """Return the signatures of the global functions by symbol; with `names`, including parameter names.

    Functions without debug information (assembly, other members of a partial link) are absent. Without
    usable debug information the result is a sentence that starts with "signature not checked: ".
    """
    requested = {n for n, s in member.defined.items() if s.kind == "function" or s.section == "code"}

    def read(elf: Elf) -> dict[str, DwarfSignature] | str:
        return _read(elf, _Wanted(requested, _same_addresses(elf, requested)), names)

    return _without_errors(member, read)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """The functions whose signatures are read."""

    symbols: set[str]
    """Global functions."""
    aliases: Mapping[str, set[str]]
    """By symbol, the global functions at its address."""

    def of(self, linkage: str, name: str, external: bool) -> Iterator[str]:
        """Yield the symbols that an entry with two names (`DW_AT_linkage_name` or empty, `DW_AT_name`) describes.

        Zig defines an exported function as a local symbol (`file.name`) with a global one at the same address. The
        name alone is no proof: that of a C++ function (`conv` of `_ZN3foo4convEv`) can be another function's symbol.
        """
        symbol = linkage or name
        if symbol in self.symbols and external:
            yield symbol
        if name in self.aliases.get(linkage, ()) and name != linkage:
            yield name


def _same_addresses(elf: Elf, requested: set[str]) -> dict[str, set[str]]:
    """Return, by symbol, the requested symbols with its section and value."""
    table = elf.symbol_table()
    if table is None:
        return {}
    names = elf.strings_of(table)
    places: dict[tuple[int, int], set[str]] = {}
    every: list[tuple[str, tuple[int, int]]] = []
    for raw in elf.raw_symbols(table):
        if raw.section > 0 and raw.info & 15 in (STT_NOTYPE, STT_FUNC) and raw.name:
            name = names.name(raw.name)
            place = raw.section, raw.value
            every.append((name, place))
            if name in requested:
                places.setdefault(place, set()).add(name)
    return {name: places[place] for name, place in every if place in places}


def producers(member: Member) -> tuple[str, ...] | str:
    """Return the producers of the units (compilers, often with their options), or the reason why they are unknown."""

    def read(elf: Elf) -> tuple[str, ...] | str:
        found: dict[str, None] = {}
        sections = _debug_data(elf)
        if isinstance(sections, str):
            return sections
        for data in sections:
            for unit in read_units(data):
                root = read_entry(data, unit, unit.first)
                value = root.attributes.get(units_.AT_PRODUCER) if root else None
                found[string(data, unit, value) if value else ""] = None
        return tuple(found)

    seen = _without_errors(member, read)
    return seen.removeprefix(_NOT_CHECKED) if isinstance(seen, str) else seen


def _without_errors(member: Member, read: Callable[[Elf], _T | str]) -> _T | str:
    """Return what `read` finds in an object, or a sentence that starts with "signature not checked: "."""
    try:
        return read(parse_elf(member.content))
    except SplitDebugError:
        return f"{_NOT_CHECKED}the debug information is in another file (compile without -gsplit-dwarf)"
    except (ObjectError, RecursionError) as fault:
        reason = fault.message if isinstance(fault, ObjectError) else "types are nested too deeply"
        return f"{_NOT_CHECKED}{reason}"


def _debug_data(elf: Elf) -> Iterator[DebugData] | str:
    """Return the data of each `.debug_info`, or the reason why there is none."""
    names = {name: [i for i, s in enumerate(elf.sections) if s.name == name] for name in _SECTIONS}
    if not names[_INFO]:
        if any(s.name.startswith(".zdebug_info") for s in elf.sections):
            return _COMPRESSED
        if any(s.name == ".debug_info.dwo" for s in elf.sections):
            raise SplitDebugError
        return NO_DEBUG_INFORMATION
    used = [elf.sections[i] for indexes in names.values() for i in indexes]
    if any(s.flags & SHF_COMPRESSED for s in used):
        return _COMPRESSED
    if sum(s.size for s in used) > _LARGEST:
        return f"{_NOT_CHECKED}the object has more than {_LARGEST >> 20} MiB of debug information"
    relocations = Relocations(elf)
    parts = {
        name: relocations.patched(indexes[0]) if indexes else b"" for name, indexes in names.items() if name != _INFO
    }
    # Sections that overlap bring no more steps than the file has bytes.
    size = sum(elf.sections[i].size for i in names[_INFO]) + len(parts[".debug_abbrev"])
    budget = Budget.of(min(size, len(elf.content)))
    tables: dict[tuple[int, int, int, int], dict[int, Abbreviation]] = {}
    return (
        DebugData(
            relocations.patched(index),
            parts[".debug_abbrev"],
            StringTable(parts[".debug_str"], ".debug_str"),
            StringTable(parts[".debug_line_str"], ".debug_line_str"),
            parts[".debug_str_offsets"],
            elf.layout.order,
            budget,
            tables,
        )
        for index in names[_INFO]
    )


def _read(elf: Elf, wanted: _Wanted, with_names: bool) -> dict[str, DwarfSignature] | str:
    """Return the signatures of the functions in `wanted`."""
    sections = _debug_data(elf)
    if isinstance(sections, str):
        return sections
    found: dict[str, DwarfSignature] = {}
    for data in sections:
        for name, signature in _section_signatures(data, wanted, with_names, elf.machine_name):
            found.setdefault(name, signature)
    return found


def _section_signatures(
    data: DebugData, wanted: _Wanted, with_names: bool, machine: str
) -> Iterator[tuple[str, DwarfSignature]]:
    """Yield the signatures of one `.debug_info`, entries with code first."""
    units = read_units(data)
    types = Types(data, units, machine)
    later: list[tuple[str, DwarfSignature]] = []
    for unit in units:
        for offset in subprograms(data, unit):
            chain = _chain(data, unit, units, offset)
            if units_.AT_DECLARATION in chain[0][1].attributes:
                continue
            external = any(units_.AT_EXTERNAL in entry.attributes for _, entry in chain)
            attributes = chain[0][1].attributes
            for name in wanted.of(_linkage_name(data, chain), _name(data, chain), external):
                signature = _signature(data, name, chain, types, with_names)
                if units_.AT_LOW_PC in attributes or units_.AT_RANGES in attributes:
                    yield name, signature
                else:
                    later.append((name, signature))
    yield from later


def _chain(data: DebugData, unit: Unit, units: list[Unit], offset: int) -> list[tuple[Unit, Entry]]:
    """Return an entry and those that it completes: the declaration, or the abstract instance."""
    chain: list[tuple[Unit, Entry]] = []
    place: tuple[Unit, int] | None = (unit, offset)
    while place is not None and len(chain) < _LONGEST_CHAIN:
        unit, offset = place
        entry = read_entry(data, unit, offset)
        if entry is None:
            break
        chain.append((unit, entry))
        origin = entry.attributes.get(units_.AT_ABSTRACT_ORIGIN) or entry.attributes.get(units_.AT_SPECIFICATION)
        place = reference(data, unit, units, origin) if origin else None
    return chain


def _linkage_name(data: DebugData, chain: list[tuple[Unit, Entry]]) -> str:
    """Return the symbol of a function whose name in the source differs from it, or else an empty string."""
    linkage = _text(data, chain, units_.AT_LINKAGE_NAME)
    return linkage or _text(data, chain, units_.AT_MIPS_LINKAGE_NAME)


def _name(data: DebugData, chain: list[tuple[Unit, Entry]]) -> str:
    """Return the name of a function or a parameter in the source."""
    return _text(data, chain, units_.AT_NAME)


def _text(data: DebugData, chain: list[tuple[Unit, Entry]], attribute: int) -> str:
    """Return the text of an attribute of the first entry that has it; empty without one."""
    for unit, entry in chain:
        value = entry.attributes.get(attribute)
        if value is not None:
            return string(data, unit, value)
    return ""


def _type(data: DebugData, unit: Unit, entry: Entry, types: Types) -> DwarfType:
    """Return the type of an entry, or else of the entry that it completes."""
    for owner, one in _chain(data, unit, types.units, entry.offset):
        if units_.AT_TYPE in one.attributes:
            return types.of(owner, one)
    return types.of(unit, entry)


def _signature(
    data: DebugData, name: str, chain: list[tuple[Unit, Entry]], types: Types, with_names: bool
) -> DwarfSignature:
    parameters: list[DwarfType] = []
    names: list[str] = []
    variadic = False
    for unit, entry in chain:
        for child in children(data, unit, entry):
            tag = child.abbreviation.tag
            if tag == units_.TAG_PARAMETER:
                parameters.append(_type(data, unit, child, types))
                if with_names:
                    names.append(_name(data, _chain(data, unit, types.units, child.offset)))
            elif tag == units_.TAG_UNSPECIFIED_PARAMETERS:
                variadic = True
        if parameters or variadic:
            break
    conventions = (e.attributes.get(units_.AT_CALLING_CONVENTION) for _, e in chain)
    convention = next((value.number for value in conventions if value is not None), NORMAL)
    return DwarfSignature(name, _type(data, *chain[0], types), tuple(parameters), variadic, tuple(names), convention)
