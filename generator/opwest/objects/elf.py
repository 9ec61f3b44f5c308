# SPDX-License-Identifier: Apache-2.0
"""The ELF container: header, section table, string and symbol tables, every offset checked first.

pyelftools takes seconds for an object with thousands of sections (`-ffunction-sections`) and does not
validate offsets and counts; only its names of machines are used.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from functools import cache
from typing import NamedTuple

from opwest.base.frozen_dataclass import dataclass
from opwest.base.result import counted
from opwest.objects.facts import Endian, ObjectError

SHT_NULL, SHT_SYMTAB, SHT_STRTAB, SHT_NOBITS, SHT_DYNSYM = 0, 2, 3, 8, 11
SHT_RELA, SHT_REL = 4, 9
SHT_INIT_ARRAY, SHT_FINI_ARRAY, SHT_PREINIT_ARRAY, SHT_GROUP, SHT_SYMTAB_SHNDX = 14, 15, 16, 17, 18
SHT_ARM_EXIDX = 0x70000001
SHF_WRITE, SHF_ALLOC, SHF_EXECINSTR, SHF_GROUP, SHF_TLS, SHF_COMPRESSED = 0x1, 0x2, 0x4, 0x200, 0x400, 0x800
SHN_LORESERVE, SHN_XINDEX = 0xFF00, 0xFFFF
# Reserved indexes in `RawSymbol`: negative, to differ from every section index.
UNDEFINED, ABSOLUTE, COMMON, X86_64_LARGE_COMMON = 0, 0xFFF1 - 0x10000, 0xFFF2 - 0x10000, 0xFF02 - 0x10000
STT_NOTYPE, STT_OBJECT, STT_FUNC, STT_SECTION, STT_FILE, STT_IFUNC = 0, 1, 2, 3, 4, 10
ET_REL, ET_EXEC, ET_DYN, ET_CORE = 1, 2, 3, 4

_AGAIN = "the file is damaged or incomplete: rebuild it or copy it again"
MAX_NAME_LENGTH = 1 << 14
_FRIENDLY = {3: "i386", 40: "arm", 62: "x86-64", 183: "aarch64", 243: "riscv"}


@cache
def _machines() -> Mapping[int, str]:
    """Return ELF's names of machines in lower case, by number."""
    from elftools.elf.enums import ENUM_E_MACHINE  # takes long to import, and only rare machines need it

    return {number: name.removeprefix("EM_").lower() for name, number in ENUM_E_MACHINE.items() if type(number) is int}


_X86_64, _I386, _NO_MACHINE = 62, 3, 0
COMMON_MACHINES = frozenset(_FRIENDLY.values())


def machines() -> frozenset[str]:
    """Return all names of machines: those defined here, and the names in elf.h in lower case."""
    others = (name for number, name in _machines().items() if number not in (_X86_64, _I386, _NO_MACHINE))
    return COMMON_MACHINES.union(others)


def machine_number(name: str) -> int:
    """Return the number of a machine in ELF headers (e_machine). Raises KeyError for an unknown name."""
    numbers = {friendly: number for number, friendly in _FRIENDLY.items()}
    return numbers[name] if name in numbers else {other: number for number, other in _machines().items()}[name]


def machine_name(number: int) -> str:
    """Return the name of a machine in this package, by e_machine of ELF."""
    return _FRIENDLY.get(number) or _machines().get(number) or f"machine-{number}"


def damaged(message: str) -> ObjectError:
    """Return the error for an inconsistent file."""
    return ObjectError(message, "a complete ELF object", _AGAIN)


class Section(NamedTuple):
    """A section header, with its name resolved."""

    name: str
    kind: int
    flags: int
    offset: int
    size: int
    link: int
    info: int
    entry_size: int
    address: int = 0
    """In a linked image; 0 in an object."""


class RawSymbol(NamedTuple):
    """A symbol table entry as stored, with its section index resolved and checked."""

    number: int
    name: int
    info: int
    section: int
    size: int
    value: int = 0
    """In a relocatable object: the offset in the section (Arm: bit 0 set for Thumb functions)."""

    @property
    def kind(self) -> int:
        """The type: STT_FUNC, STT_OBJECT, …"""
        return self.info & 15

    @property
    def binding(self) -> int:
        """The binding: 0 local, 1 global, 2 weak, …"""
        return self.info >> 4

    @property
    def is_local(self) -> bool:
        """Whether other objects cannot refer to it."""
        return self.binding == 0


@dataclass(frozen=True, slots=True)
class Layout:
    """The struct formats of one class and byte order."""

    bits: int
    endian: Endian

    @property
    def order(self) -> str:
        """The byte order for `struct`."""
        return "<" if self.endian == "little" else ">"

    @property
    def header(self) -> struct.Struct:
        """The ELF header after its 16 identifying bytes."""
        return struct.Struct(self.order + ("HHIQQQIHHHHHH" if self.bits == 64 else "HHIIIIIHHHHHH"))

    @property
    def section(self) -> struct.Struct:
        """A section header."""
        return struct.Struct(self.order + ("IIQQQQIIQQ" if self.bits == 64 else "10I"))

    @property
    def symbol(self) -> struct.Struct:
        """A symbol; the order of the fields differs between the classes."""
        return struct.Struct(self.order + ("IBBHQQ" if self.bits == 64 else "IIIBBH"))


class StringTable:
    """Names by offset, with limits on memory for hostile tables."""

    def __init__(self, data: bytes, what: str) -> None:
        self._data = data
        self._what = what
        self._budget = (1 << 26) + 8 * len(data)

    def raw(self, offset: int) -> bytes:
        """Return the bytes of the name at `offset`."""
        end = self._data.find(b"\0", offset, offset + MAX_NAME_LENGTH)
        if end < 0:
            if offset >= len(self._data):
                raise damaged(
                    f"name outside of {self._what} (offset {offset}, size {counted(len(self._data), 'byte')})"
                )
            raise damaged(f"unterminated name, or name of more than {MAX_NAME_LENGTH} bytes, in {self._what}")
        self._budget -= end - offset
        if self._budget < 0:
            raise damaged(f"the names in {self._what} are too long in total")
        return self._data[offset:end]

    def name(self, offset: int) -> str:
        """Return the name at `offset`; bytes that are not UTF-8 are shown as `\\xNN`."""
        return self.raw(offset).decode("utf-8", "backslashreplace")


@dataclass(frozen=True, slots=True)
class Elf:
    """A checked ELF file: the data of every section lies within the file."""

    content: bytes
    layout: Layout
    type: int
    machine: int
    flags: int
    table_offset: int
    sections: tuple[Section, ...]

    @property
    def machine_name(self) -> str:
        """The name of the machine in this package."""
        return machine_name(self.machine)

    def data(self, section: Section) -> bytes:
        """Return the bytes of a section."""
        if section.kind in (SHT_NULL, SHT_NOBITS):
            return b""
        return self.content[section.offset : section.offset + section.size]

    def find(self, name: str) -> Section | None:
        """Return the first section of that name."""
        return next((s for s in self.sections if s.name == name), None)

    def symbol_table(self) -> int | None:
        """Return the index of the symbol table (of the dynamic one in files without it)."""
        for kind in (SHT_SYMTAB, SHT_DYNSYM):
            for index, section in enumerate(self.sections):
                if section.kind == kind:
                    return index
        return None

    def symbols(self) -> Iterator[RawSymbol]:
        """Yield the entries of the symbol table, if there is one."""
        table = self.symbol_table()
        if table is not None:
            yield from self.raw_symbols(table)

    def is_function(self, raw: RawSymbol) -> bool:
        """Whether a symbol is a function, or a global symbol without a type, in a section of code."""
        if raw.section <= 0 or not self.sections[raw.section].flags & SHF_EXECINSTR:
            return False
        return raw.kind == STT_FUNC or (raw.kind == STT_NOTYPE and not raw.is_local)

    def code_offset(self, raw: RawSymbol) -> int:
        """Return the offset of a function in its section: on Arm without the bit of Thumb state."""
        offset = raw.value - self.sections[raw.section].address
        return offset & ~1 if self.machine_name == "arm" else offset

    def symbol_names(self) -> StringTable:
        """Return the names of `symbols`."""
        table = self.symbol_table()
        return StringTable(b"\0", "the string table") if table is None else self.strings_of(table)

    def strings_of(self, table: int) -> StringTable:
        """Return the names of a symbol table."""
        link = self.sections[table].link
        if not 0 < link < len(self.sections) or self.sections[link].kind != SHT_STRTAB:
            raise damaged(f"invalid string table index {link} in the symbol table")
        return StringTable(self.data(self.sections[link]), self.sections[link].name or "the string table")

    def raw_symbols(self, table: int) -> Iterator[RawSymbol]:
        """Yield the entries of a symbol table after the reserved first one."""
        section = self.sections[table]
        unpacker = self.layout.symbol
        if section.entry_size != unpacker.size or section.size % unpacker.size:
            raise damaged(f"the symbol table has entries of {counted(section.entry_size, 'byte')}, not {unpacker.size}")
        extended = self._extended_indexes(table)
        wide = self.layout.bits == 64
        count = len(self.sections)
        for number, fields in enumerate(unpacker.iter_unpack(self.data(section))):
            if number == 0:
                continue
            if wide:
                name, info, _other, index, value, size = fields
            else:
                name, value, size, info, _other, index = fields
            if index == SHN_XINDEX:
                if number >= len(extended):
                    raise damaged(
                        "a symbol has an extended section index, but the object has no table of extended indexes"
                    )
                index = extended[number]
            elif index >= SHN_LORESERVE:
                index -= 0x10000
            if index >= count:
                raise damaged(f"a symbol refers to section {index} of {count}")
            yield RawSymbol(number, name, info, index, size, value)

    def _extended_indexes(self, table: int) -> tuple[int, ...]:
        """Return the section indexes of objects with 65280 sections or more."""
        for section in self.sections:
            if section.kind == SHT_SYMTAB_SHNDX and section.link == table:
                data = self.data(section)
                return struct.unpack(f"{self.layout.order}{len(data) // 4}I", data[: len(data) // 4 * 4])
        return ()


def _layout(content: bytes) -> Layout:
    """Return the layout given by the identification bytes."""
    if len(content) < 16:
        raise damaged(f"truncated: the file has {counted(len(content), 'byte')}, the ELF header at least 16")
    if content[4] not in (1, 2) or content[5] not in (1, 2) or content[6] != 1:
        raise damaged("unknown class, byte order or version in the ELF header")
    return Layout(64 if content[4] == 2 else 32, "little" if content[5] == 1 else "big")


def parse_elf(content: bytes) -> Elf:
    """Return the header and the sections of an ELF file; raise ObjectError for invalid offsets."""
    layout = _layout(content)
    header = layout.header
    if 16 + header.size > len(content):
        raise damaged(f"truncated: the ELF header ends at byte {16 + header.size}, the file has {len(content)}")
    fields = header.unpack_from(content, 16)
    kind, machine, _version, _entry, _phoff, table, flags, *_, entry_size, count, names = fields
    if table == 0:
        return Elf(content, layout, kind, machine, flags, 0, ())
    unpacker = layout.section
    if entry_size != unpacker.size:
        raise damaged(f"section headers have {counted(entry_size, 'byte')}, not {unpacker.size}")
    if table + unpacker.size > len(content):
        raise _cut_table(table + max(count, 1) * unpacker.size, len(content))
    first = unpacker.unpack_from(content, table)
    count = count or first[5]  # more sections than 16 bits can count: section 0 holds the number
    names = first[6] if names == SHN_XINDEX else names
    end = table + count * unpacker.size
    if end > len(content):
        raise _cut_table(end, len(content))
    rows = list(unpacker.iter_unpack(content[table:end]))
    return Elf(
        content, layout, kind, machine, flags, table, _sections(content, rows, names, has_addresses=kind != ET_REL)
    )


def _cut_table(end: int, size: int) -> ObjectError:
    return damaged(f"truncated: the section table ends at byte {end}, the file has {size}")


def _sections(content: bytes, rows: list[tuple[int, ...]], names: int, *, has_addresses: bool) -> tuple[Section, ...]:
    """Return the sections with their names, each within the file."""
    table = None
    if 0 < names < len(rows) and rows[names][1] == SHT_STRTAB:
        offset, size = rows[names][4], rows[names][5]
        if offset + size > len(content):
            raise damaged(f"truncated: the section names end at byte {offset + size}, the file has {len(content)}")
        table = StringTable(content[offset : offset + size], "the table of section names")
    elif names != 0:
        raise damaged(f"invalid index {names} of the section name table in the ELF header")
    sections = []
    for index, (name, kind, flags, address, offset, size, link, info, _align, entry) in enumerate(rows):
        text = table.name(name) if table and kind else ""
        if kind not in (SHT_NULL, SHT_NOBITS) and offset + size > len(content):
            label = text or f"number {index}"
            raise damaged(f"truncated: section {label} ends at byte {offset + size}, the file has {len(content)}")
        sections.append(Section(text, kind, flags, offset, size, link, info, entry, address if has_addresses else 0))
    return tuple(sections)
