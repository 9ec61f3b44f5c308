# SPDX-License-Identifier: Apache-2.0
"""Changes of a copy of an object, without a toolchain: renamed symbols, removed sections; writable code.

For renamed symbols, the symbol table gets a new string table at the end of the file: the old table followed by the new
names. Old offsets remain valid: other symbols do not change, nor do section names that share the
table.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Final, Literal

from opwest.base.frozen_dataclass import dataclass
from opwest.objects import elf as elf_format
from opwest.objects.elf import Elf, RawSymbol, Section, damaged, parse_elf
from opwest.objects.facts import ObjectError
from opwest.objects.library_symbols import UNWIND_PREFIX


def rename_symbols(content: bytes, names: Mapping[str, str]) -> bytes:
    """Return the object with its global and weak symbols renamed, both definitions and references.

    Ignores names that the object does not have. Raises ObjectError if the content is not an object,
    or if a new name is in use.
    """
    elf = parse_elf(content)
    table = next((i for i, s in enumerate(elf.sections) if s.kind == elf_format.SHT_SYMTAB), None)
    if table is None:
        return content
    changes = _changes(elf, table, names)
    if not changes:
        return content
    link = elf.sections[table].link
    strings = bytearray(elf.data(elf.sections[link]))
    if strings[-1:] != b"\0":
        strings += b"\0"
    places: dict[bytes, int] = {}
    result = bytearray(content)
    entry = elf.layout.symbol.size
    start = elf.sections[table].offset
    for number, name in changes:
        if name not in places:
            places[name] = len(strings)
            strings += name + b"\0"
        # The offset of the name is the first word of an entry in both classes.
        struct.pack_into(elf.layout.order + "I", result, start + number * entry, places[name])
    result += bytes(-len(result) % 8)
    _move_section(elf, result, link, len(result), len(strings))
    return bytes(result + strings)


def _changes(elf: Elf, table: int, names: Mapping[str, str]) -> list[tuple[int, bytes]]:
    """Return the entries to change with their new names, after checking for clashes."""
    strings = elf.strings_of(table)
    changes: list[tuple[int, bytes]] = []
    holders: dict[bytes, bytes] = {}  # new name to old name
    for raw in elf.raw_symbols(table):
        if raw.is_local or raw.kind in (elf_format.STT_SECTION, elf_format.STT_FILE):
            continue
        old = strings.raw(raw.name)
        # Only the names of this object are read: a model can have thousands of objects with a name each.
        name = names.get(old.decode("utf-8", "surrogateescape"))
        new = old if name is None else name.encode()
        if name is not None and (not new or b"\0" in new):
            raise ValueError(f"{old.decode()!r} cannot be renamed to {new.decode()!r}")
        if holders.setdefault(new, old) != old:
            clash, other = new.decode("utf-8", "backslashreplace"), old.decode("utf-8", "backslashreplace")
            raise ObjectError(
                f"cannot rename symbol {other!r} to {clash!r}: the name is in use",
                hint="choose another name for the operator or for the model",
            )
        if new != old:
            changes.append((raw.number, new))
    return changes


def _move_section(elf: Elf, result: bytearray, index: int, offset: int, size: int) -> None:
    """Write a new offset and size into a section header."""
    if elf.layout.bits == 32 and offset + size > 0xFFFFFFFF:
        raise damaged("the renamed object exceeds 4 GiB")
    layout = elf.layout.section
    at = elf.table_offset + index * layout.size
    fields = list(layout.unpack_from(result, at))
    fields[4], fields[5] = offset, size
    layout.pack_into(result, at, *fields)


def without_sections(content: bytes, *, unwind_tables: bool, stack_note: bool) -> bytes:
    """Return a valid ELF object without the named sections and their relocations.

    Without unwind tables, undefined personality routines become weak: a linker does not extract them from libgcc.
    """
    elf = parse_elf(content)

    def is_removed(section: Section) -> bool:
        if section.kind == elf_format.SHT_ARM_EXIDX or section.name.startswith(".ARM.extab"):
            return unwind_tables
        return stack_note and section.name == ".note.GNU-stack"

    sections = list(enumerate(elf.sections))
    dropped = {index for index, section in sections if is_removed(section)}
    kinds = (elf_format.SHT_REL, elf_format.SHT_RELA)
    dropped |= {index for index, section in sections if section.kind in kinds and section.info in dropped}
    data = bytearray(content)
    for index, section in sections:
        if index in dropped:
            at = elf.table_offset + index * elf.layout.section.size
            data[at : at + elf.layout.section.size] = bytes(elf.layout.section.size)
        elif section.kind == elf_format.SHT_GROUP and section.size >= 4:
            size = _without_members(data, elf.layout.order, section, dropped)
            _move_section(elf, data, index, section.offset, size)
    if unwind_tables:
        _weaken(elf, data)
    return bytes(data)


def _without_members(data: bytearray, order: str, group: Section, dropped: set[int]) -> int:
    """Remove sections from a group (a word of flags, then the number of each); return its new size."""
    flags, *members = struct.unpack_from(f"{order}{group.size // 4}I", data, group.offset)
    kept = [m for m in members if m not in dropped]
    struct.pack_into(f"{order}{len(kept) + 1}I", data, group.offset, flags, *kept)
    return 4 * (len(kept) + 1)


def _weaken(elf: Elf, data: bytearray) -> None:
    """Make undefined personality routines weak."""
    table = elf.symbol_table()
    if table is None:
        return
    symbols, names = elf.sections[table], elf.sections[elf.sections[table].link]
    info_at = 4 if elf.layout.bits == 64 else 12
    for raw in elf.raw_symbols(table):
        is_personality = elf.content.startswith(UNWIND_PREFIX.encode(), names.offset + raw.name)
        if raw.section == elf_format.UNDEFINED and is_personality:
            data[symbols.offset + raw.number * symbols.entry_size + info_at] = 2 << 4 | raw.kind


FUNCTIONS: Final = (elf_format.STT_FUNC, elf_format.STT_IFUNC)
_FLAGS = elf_format.SHF_ALLOC | elf_format.SHF_WRITE | elf_format.SHF_EXECINSTR
_PADDING = 15
"""Bytes before a function that compilers insert to align it, at most."""


@dataclass(frozen=True, slots=True)
class WritableCode:
    """One section."""

    kind: Literal["code", "constant", "data", "bss"]
    """`code` if it has functions; `constant` if it is empty."""
    bytes: int = 0
    """Those of variables, in a section with functions."""


def writable_code(elf: Elf) -> dict[int, WritableCode]:
    """Return the writable sections with code by their indexes."""
    sections = {i: s for i, s in enumerate(elf.sections) if s.flags & _FLAGS == _FLAGS}
    symbols: dict[int, list[RawSymbol]] = {index: [] for index in sections}
    for raw in elf.symbols() if sections else ():
        if raw.section in symbols:
            symbols[raw.section].append(raw)
    return {index: _section(section, symbols[index]) for index, section in sections.items()}


def _section(section: Section, symbols: list[RawSymbol]) -> WritableCode:
    if not section.size:
        return WritableCode("constant")
    functions = [s for s in symbols if s.kind in FUNCTIONS]
    if not functions:
        return WritableCode("bss" if section.kind == elf_format.SHT_NOBITS else "data")
    variables = _covered([s for s in symbols if s.kind == elf_format.STT_OBJECT], section.size)
    # Local variables without symbols: bytes that belong to no function. Assembly may give no sizes.
    if all(s.size for s in functions):
        rest = section.size - _covered(functions, section.size)
        if rest > _PADDING * len(functions):
            variables = max(variables, rest)
    return WritableCode("code", variables)


def _covered(symbols: list[RawSymbol], size: int) -> int:
    """Return the number of bytes of a section that symbols cover."""
    end = total = 0
    for start, length in sorted((s.value & ~1 if s.kind in FUNCTIONS else s.value, s.size) for s in symbols):
        stop = min(start + length, size)
        total += max(0, stop - max(start, end))
        end = max(end, stop)
    return total


def code_size(content: bytes) -> int:
    """Return the bytes of code and constants, as the column `text` of size(1). Raises ObjectError."""
    kept, writable = elf_format.SHF_ALLOC, elf_format.SHF_ALLOC | elf_format.SHF_WRITE
    sections = (s for s in parse_elf(content).sections if s.kind != elf_format.SHT_NOBITS)
    return sum(section.size for section in sections if section.flags & writable == kept)
