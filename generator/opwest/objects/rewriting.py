# SPDX-License-Identifier: Apache-2.0
"""Renaming symbols in a copy of an object, without a toolchain.

The symbol table gets a new string table at the end of the file: the old table followed by the new
names. Old offsets remain valid: other symbols do not change, nor do section names that share the
table.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Final, Literal

from opwest.base.frozen_dataclass import dataclass
from opwest.objects import elf as elf_format
from opwest.objects.elf import SHF_ALLOC, SHF_WRITE, SHT_NOBITS, SHT_SYMTAB, Elf, RawSymbol, damaged, parse_elf
from opwest.objects.facts import ObjectError
from opwest.objects.library_symbols import UNWIND_PREFIX

_STB_LOCAL = 0
_SPECIAL_KINDS = (3, 4)  # section and file symbols


def rename_symbols(content: bytes, names: Mapping[str, str]) -> bytes:
    """Return the object with its global and weak symbols renamed, both definitions and references.

    Ignores names that the object does not have. Raises ObjectError if the content is not an object,
    or if a new name is in use.
    """
    elf = parse_elf(content)
    table = next((i for i, s in enumerate(elf.sections) if s.kind == SHT_SYMTAB), None)
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
    renames = {old.encode(): new.encode() for old, new in names.items() if old != new}
    for old, new in renames.items():
        if not new or b"\0" in new:
            raise ValueError(f"{old.decode()!r} cannot be renamed to {new.decode()!r}")
    strings = elf.strings_of(table)
    changes: list[tuple[int, bytes]] = []
    holders: dict[bytes, bytes] = {}  # new name to old name
    for raw in elf.raw_symbols(table):
        if raw.info >> 4 == _STB_LOCAL or raw.info & 15 in _SPECIAL_KINDS:
            continue
        old = strings.raw(raw.name)
        new = renames.get(old, old)
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


_SHT_RELA, _SHT_REL, _SHT_GROUP, _SHT_ARM_EXIDX = 4, 9, 17, 0x70000001
_ELF_64, _LITTLE = 2, 1
_STACK_NOTE, _EXTAB = b".note.GNU-stack", b".ARM.extab"
_EXTENDED = 0xFFFF
_NAME, _TYPE, _OFFSET, _SIZE, _LINK, _INFO = 0, 1, 4, 5, 6, 7


def without_sections(content: bytes, *, unwind_tables: bool, stack_note: bool) -> bytes:
    """Return a valid ELF object without the named sections and their relocations.

    Without unwind tables, undefined personality routines become weak: a linker does not extract them from libgcc.
    """
    wide = content[4] == _ELF_64
    order = "<" if content[5] == _LITTLE else ">"
    header = struct.Struct(order + ("2I4Q2I2Q" if wide else "10I"))
    start = struct.unpack_from(order + ("Q" if wide else "I"), content, 0x28 if wide else 0x20)[0]
    if not start:
        return content
    count, names = struct.unpack_from(order + "2H", content, 0x3C if wide else 0x30)
    first = header.unpack_from(content, start)
    # More than 65,279 sections: the first header has the numbers.
    count = count or first[_SIZE]
    names = first[_LINK] if names == _EXTENDED else names
    headers = [header.unpack_from(content, start + i * header.size) for i in range(count)]

    def is_removed(section: tuple[int, ...]) -> bool:
        name = headers[names][_OFFSET] + section[_NAME]
        if section[_TYPE] == _SHT_ARM_EXIDX or content.startswith(_EXTAB, name):
            return unwind_tables
        return stack_note and content.startswith(_STACK_NOTE + b"\0", name)

    dropped = {i for i, section in enumerate(headers) if is_removed(section)}
    relocations = (_SHT_REL, _SHT_RELA)
    dropped |= {i for i, section in enumerate(headers) if section[_TYPE] in relocations and section[_INFO] in dropped}
    data = bytearray(content)
    for index, section in enumerate(headers):
        at = start + index * header.size
        if index in dropped:
            header.pack_into(data, at, *[0] * 10)
        elif section[_TYPE] == SHT_SYMTAB and unwind_tables and section[_LINK] < count:
            _weaken(data, order, wide, section, headers[section[_LINK]])
        elif section[_TYPE] == _SHT_GROUP and section[_SIZE] >= 4:
            fields = list(section)
            fields[_SIZE] = _without_members(data, order, section[_OFFSET], section[_SIZE], dropped)
            header.pack_into(data, at, *fields)
    return bytes(data)


def _without_members(data: bytearray, order: str, offset: int, size: int, dropped: set[int]) -> int:
    """Remove sections from a group (a word of flags, then the number of each); return its new size."""
    flags, *members = struct.unpack_from(f"{order}{size // 4}I", data, offset)
    kept = [m for m in members if m not in dropped]
    struct.pack_into(f"{order}{len(kept) + 1}I", data, offset, flags, *kept)
    return 4 * (len(kept) + 1)


def _weaken(data: bytearray, order: str, wide: bool, table: tuple[int, ...], names: tuple[int, ...]) -> None:
    """Make undefined personality routines weak."""
    size, info_at, index_at = (24, 4, 6) if wide else (16, 12, 14)
    for at in range(table[_OFFSET], table[_OFFSET] + table[_SIZE] // size * size, size):
        (index,) = struct.unpack_from(f"{order}H", data, at + index_at)
        (name,) = struct.unpack_from(f"{order}I", data, at)
        if index == 0 and data.startswith(UNWIND_PREFIX.encode(), names[_OFFSET] + name):
            data[at + info_at] = 2 << 4 | data[at + info_at] & 15


_STT_OBJECT, _STT_IFUNC = 1, 10
FUNCTIONS: Final = (elf_format.STT_FUNC, _STT_IFUNC)
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


def writable_code(elf: Elf, table: int | None) -> dict[int, WritableCode]:
    """Return the writable sections with code by their indexes. `table` is the index of the symbol table."""
    found = {i: s for i, s in enumerate(elf.sections) if s.flags & _FLAGS == _FLAGS}
    symbols: dict[int, list[RawSymbol]] = {index: [] for index in found}
    for raw in elf.raw_symbols(table) if found and table is not None else ():
        if raw.section in symbols:
            symbols[raw.section].append(raw)
    return {index: _section(section, symbols[index]) for index, section in found.items()}


def _section(section: elf_format.Section, symbols: list[RawSymbol]) -> WritableCode:
    if not section.size:
        return WritableCode("constant")
    functions = [s for s in symbols if s.info & 15 in FUNCTIONS]
    if not functions:
        return WritableCode("bss" if section.kind == elf_format.SHT_NOBITS else "data")
    variables = _covered([s for s in symbols if s.info & 15 == _STT_OBJECT], section.size)
    # Local variables without symbols: bytes that belong to no function. Assembly may give no sizes.
    if all(s.size for s in functions):
        rest = section.size - _covered(functions, section.size)
        if rest > _PADDING * len(functions):
            variables = max(variables, rest)
    return WritableCode("code", variables)


def _covered(symbols: list[RawSymbol], size: int) -> int:
    """Return the number of bytes of a section that symbols cover."""
    end = total = 0
    for start, length in sorted((s.value & ~1 if s.info & 15 in FUNCTIONS else s.value, s.size) for s in symbols):
        stop = min(start + length, size)
        total += max(0, stop - max(start, end))
        end = max(end, stop)
    return total


def code_size(content: bytes) -> int:
    """Return the bytes of code and constants, as the column `text` of size(1). Raises ObjectError."""
    sections = parse_elf(content).sections
    return sum(
        section.size
        for section in sections
        if section.flags & SHF_ALLOC and not section.flags & SHF_WRITE and section.kind != SHT_NOBITS
    )
