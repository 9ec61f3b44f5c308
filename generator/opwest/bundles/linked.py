# SPDX-License-Identifier: Apache-2.0
"""The linked image: its bytes, and the numbers that the compiler determined."""

from __future__ import annotations

import struct
from typing import NamedTuple

from opwest.objects.elf import SHF_ALLOC, SHT_NOBITS, UNDEFINED, Elf, RawSymbol, damaged

IMAGE = ".image"
"""The section of the linker script with the whole image."""
DESCRIPTOR = "opwest_bundle"
_FACTS = ".opwest_bundle.facts"
_PT_LOAD = 1


class Facts(NamedTuple):
    """The numbers of the array opwest_bundle_facts, in its order."""

    machine: int
    float_abi: int
    pointer_size: int
    big_endian: int
    metadata_version: int
    host_version: int
    slot_size: int
    workspace_size: int
    workspace_align: int
    short_enums: int


def facts_of(elf: Elf) -> Facts:
    """Return the numbers of an object or image. Raises ObjectError without them."""
    section = elf.find(_FACTS)
    data = elf.data(section) if section else b""
    size = 4 * len(Facts._fields)
    if len(data) < size:
        raise damaged("the image has no facts")
    return Facts(*struct.unpack(f"{elf.layout.order}{len(Facts._fields)}I", data[:size]))


def named_symbols(elf: Elf) -> list[tuple[str, RawSymbol]]:
    """Return all symbols with their names."""
    table = elf.symbol_table()
    if table is None:
        return []
    names = elf.strings_of(table)
    return [(names.name(raw.name), raw) for raw in elf.raw_symbols(table)]


def foreign_sections(elf: Elf) -> list[tuple[str, int]]:
    """Return the names and sizes of sections in memory besides the image."""
    return [
        (section.name, section.size)
        for section in elf.sections
        if section.flags & SHF_ALLOC and section.size and section.name != IMAGE
    ]


def image_of(elf: Elf, address: int) -> bytes:
    """Return the bytes of the image, which must be linked at an address. Raises ObjectError."""
    section = elf.find(IMAGE)
    if section is None or section.kind == SHT_NOBITS or not section.size:
        raise damaged("the linker wrote no image")
    if _address_of(elf, section.offset) != address:
        raise damaged("the linker placed the image at another address")
    return elf.data(section)


def _address_of(elf: Elf, offset: int) -> int:
    """Return the address of a byte of the file, by the program headers."""
    wide = elf.layout.bits == 64
    fields = elf.layout.header.unpack_from(elf.content, 16)
    begin, size, count = fields[4], fields[8], fields[9]
    program = struct.Struct(elf.layout.order + ("IIQQQQQQ" if wide else "IIIIIIII"))
    if size != program.size or begin + count * size > len(elf.content):
        raise damaged("invalid program headers")
    for index in range(count):
        row = program.unpack_from(elf.content, begin + index * size)
        kind, at, address, length = (row[0], row[2], row[3], row[5]) if wide else (row[0], row[1], row[2], row[4])
        if kind == _PT_LOAD and at <= offset < at + length:
            return int(address + offset - at)
    raise damaged("the image is in no segment")


def descriptor_of(elf: Elf, address: int) -> int:
    """Return the offset of the descriptor in the image. Raises ObjectError without one."""
    for name, raw in named_symbols(elf):
        if name == DESCRIPTOR and raw.section != UNDEFINED:
            return raw.value - address
    raise damaged(f"the image has no symbol {DESCRIPTOR!r}")
