# SPDX-License-Identifier: Apache-2.0
"""Renaming symbols in a copy of an object, without a toolchain.

The symbol table gets a new string table at the end of the file: the old table followed by the new
names. Old offsets remain valid: other symbols do not change, nor do section names that share the
table.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

from opwest.objects.elf import SHT_SYMTAB, Elf, damaged, parse_elf
from opwest.objects.facts import ObjectError

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
