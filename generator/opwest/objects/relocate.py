# SPDX-License-Identifier: Apache-2.0
"""Relocations of sections that are read but not run: debug information and unwind tables.

In an unlinked object every section starts at address 0, and references between sections are relocations.
`targets` returns the targets of fields; `patched` returns the bytes as linked with every section at 0,
which resolves offsets between debug sections.

Sources: ELF for the Arm Architecture (AAELF32) 5.6, for AArch64 (AAELF64) 5.7, the System V psABIs
of x86-64 4.4 and i386 4.4, and the RISC-V psABI, "Relocations".
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import cached_property
from typing import Literal, NamedTuple

from opwest.objects.dwarf_units import uleb
from opwest.objects.elf import SHT_REL, SHT_RELA, Elf, damaged

Operation = Literal["absolute", "relative", "prel31", "add", "sub", "set", "set6", "sub6", "set_uleb", "sub_uleb"]


class Entry(NamedTuple):
    """A relocation; `addend` is None if the section contains it (SHT_REL)."""

    offset: int
    type: int
    symbol: int
    addend: int | None


# By machine and number: the operation and the size in bytes.
_OPERATIONS: dict[str, dict[int, tuple[Operation, int]]] = {
    "x86-64": {
        1: ("absolute", 8), 2: ("relative", 4), 10: ("absolute", 4), 11: ("absolute", 4), 12: ("absolute", 2),
        14: ("absolute", 1), 24: ("relative", 8), 4: ("relative", 4),
    },
    "i386": {1: ("absolute", 4), 2: ("relative", 4), 20: ("absolute", 2), 22: ("absolute", 1)},
    "arm": {2: ("absolute", 4), 3: ("relative", 4), 5: ("absolute", 2), 38: ("absolute", 4), 42: ("prel31", 4)},
    "aarch64": {
        257: ("absolute", 8), 258: ("absolute", 4), 259: ("absolute", 2), 260: ("relative", 8),
        261: ("relative", 4), 262: ("relative", 2),
    },
    "riscv": {
        1: ("absolute", 4), 2: ("absolute", 8), 33: ("add", 1), 34: ("add", 2), 35: ("add", 4), 36: ("add", 8),
        37: ("sub", 1), 38: ("sub", 2), 39: ("sub", 4), 40: ("sub", 8), 52: ("sub6", 1), 53: ("set6", 1),
        54: ("set", 1), 55: ("set", 2), 56: ("set", 4), 57: ("relative", 4), 60: ("set_uleb", 0),
        61: ("sub_uleb", 0),
    },
}  # fmt: skip
# Without effect here: none, hints to the linker, and offsets of thread-local variables.
_IGNORED: dict[str, tuple[int, ...]] = {
    "x86-64": (0, 17, 21),
    "i386": (0, 32),
    "arm": (0, 40, 106),
    "aarch64": (0, 256),
    "riscv": (0, 6, 7, 8, 9, 43, 51),
}


def relocation_entries(elf: Elf, index: int) -> Iterator[Entry]:
    """Yield the entries of a relocation section; raise ObjectError for a wrong entry size."""
    section = elf.sections[index]
    wide, explicit = elf.layout.bits == 64, section.kind == SHT_RELA
    unpacker = struct.Struct(elf.layout.order + ("QQ" if wide else "II") + (("q" if wide else "i") if explicit else ""))
    if section.entry_size != unpacker.size or section.size % unpacker.size:
        raise damaged(f"section {section.name} has relocations of {section.entry_size} bytes, not {unpacker.size}")
    shift, mask = (32, 0xFFFFFFFF) if wide else (8, 0xFF)
    for fields in unpacker.iter_unpack(elf.data(section)):
        info = fields[1]
        yield Entry(fields[0], info & mask, info >> shift, fields[2] if explicit else None)


class Relocations:
    """The relocations of one object, by the section that they change."""

    def __init__(self, elf: Elf) -> None:
        self.elf = elf
        self._operations = _OPERATIONS.get(elf.machine_name, {})
        self._ignored = _IGNORED.get(elf.machine_name, (0,))

    @cached_property
    def tables(self) -> dict[int, list[int]]:
        """Indexes of the sections of relocations, by the index of the section that they change.

        Raises ObjectError for sections with more bytes in total than the file, which bounds the number of entries.
        """
        found: dict[int, list[int]] = {}
        total, size = 0, len(self.elf.content)
        for index, section in enumerate(self.elf.sections):
            if section.kind in (SHT_RELA, SHT_REL):
                found.setdefault(section.info, []).append(index)
                total += section.size
        if total > size:
            raise damaged(f"the sections of relocations overlap: {total} bytes in a file of {size}")
        return found

    @cached_property
    def places(self) -> list[tuple[int, int]]:
        """Section and value of every symbol, by its number."""
        table = self.elf.symbol_table()
        places = [(0, 0)]
        if table is not None:
            places += [(raw.section, raw.value) for raw in self.elf.raw_symbols(table)]
        return places

    def _entries(self, section: int) -> Iterator[Entry]:
        for table in self.tables.get(section, ()):
            yield from relocation_entries(self.elf, table)

    def _place(self, symbol: int) -> tuple[int, int]:
        if symbol >= len(self.places):
            raise damaged(f"a relocation refers to symbol {symbol} of {len(self.places)}")
        return self.places[symbol]

    def targets(self, section: int) -> dict[int, tuple[int, int]]:
        """Return the targets of the fields of a section, by offset: a section and an offset in it."""
        data = self.elf.data(self.elf.sections[section])
        found: dict[int, tuple[int, int]] = {}
        for entry in self._entries(section):
            operation, size = self._operations.get(entry.type, ("set", 0))
            if operation not in ("absolute", "relative", "prel31", "add") or size < 4:
                continue
            where, value = self._place(entry.symbol)
            addend = entry.addend
            if addend is None:
                addend = self._in_place(data, entry.offset, size, 31 if operation == "prel31" else 8 * size)
            found[entry.offset] = where, value + addend
        return found

    def _in_place(self, data: bytes | bytearray, offset: int, size: int, bits: int) -> int:
        """Return the sign-extended addend in the section."""
        value = self._read(data, offset, size) & ((1 << bits) - 1)
        return value - (1 << bits) if value >> (bits - 1) else value

    def _read(self, data: bytes | bytearray, offset: int, size: int) -> int:
        if offset + size > len(data):
            raise damaged(f"relocation at {offset} outside of its section of {len(data)} bytes")
        return int.from_bytes(data[offset : offset + size], self.elf.layout.endian)

    def patched(self, section: int) -> bytes:
        """Return the bytes of a section with its relocations applied, every section being at 0.

        Raises ObjectError for an unknown relocation type.
        """
        content = self.elf.data(self.elf.sections[section])
        if section not in self.tables:
            return content
        data = bytearray(content)
        for entry in self._entries(section):
            known = self._operations.get(entry.type)
            if known is None:
                if entry.type in self._ignored:
                    continue
                raise damaged(f"unknown relocation type {entry.type} in section {self.elf.sections[section].name}")
            self._apply(data, entry, *known)
        return bytes(data)

    def _apply(self, data: bytearray, entry: Entry, operation: Operation, size: int) -> None:
        """Change one field as a linker does."""
        at = entry.offset
        value = self._place(entry.symbol)[1]
        if operation in ("set_uleb", "sub_uleb"):
            self._apply_uleb(data, at, value + (entry.addend or 0), subtract=operation == "sub_uleb")
            return
        old = self._read(data, at, size)
        bits = 31 if operation == "prel31" else 8 * size
        value += self._in_place(data, at, size, bits) if entry.addend is None else entry.addend
        if operation in ("relative", "prel31"):
            value -= at
        elif operation == "add":
            value = old + value
        elif operation == "sub" or operation == "sub6":
            value = old - value
        if operation in ("set6", "sub6"):
            value = old & 0xC0 | value & 0x3F
        elif operation == "prel31":
            value = old & 0x80000000 | value & 0x7FFFFFFF
        data[at : at + size] = (value & ((1 << 8 * size) - 1)).to_bytes(size, self.elf.layout.endian)

    @staticmethod
    def _apply_uleb(data: bytearray, at: int, value: int, *, subtract: bool) -> None:
        """Change a ULEB128 number without changing its length."""
        old, end = uleb(bytes(data[at : at + 10]), 0)
        value = (old - value if subtract else value) & ((1 << 7 * end) - 1)
        for place in range(at, at + end):
            data[place] = value & 0x7F | (0x80 if place < at + end - 1 else 0)
            value >>= 7
