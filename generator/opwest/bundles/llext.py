# SPDX-License-Identifier: Apache-2.0
"""The image of a bundle that Zephyr's LLEXT loads: a relocatable ELF file.

LLEXT joins sections of one kind to a region. It copies a region into RAM if there is one relocation in it, or if it
is writable; others stay in the slot. So code, constants with relocations and constants without become one section each.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from opwest.base.diagnostics import fail
from opwest.bundles.image import DESCRIPTOR, loaded_relocations, named_symbols
from opwest.bundles.toolchain import Toolchain
from opwest.objects.elf import (
    SHF_ALLOC,
    SHF_EXECINSTR,
    SHF_WRITE,
    SHT_REL,
    SHT_RELA,
    SHT_STRTAB,
    SHT_SYMTAB,
    UNDEFINED,
    Elf,
    RawSymbol,
    damaged,
    parse_elf,
)
from opwest.objects.relocations import Entry, relocation_entries

_HEADER = struct.Struct("<16sHHIIIIIHHHHHH")
_SECTION = struct.Struct("<10I")
_SYMBOL = struct.Struct("<IIIBBH")
_RELOCATION = struct.Struct("<II")
_WORD = struct.Struct("<I")
_RELOCATABLE = 1
_ABSOLUTE = 0xFFF1
"""SHN_ABS; RawSymbol has it as a negative number."""
_INFO_LINK = 0x40
_SECTION_TYPE, _GLOBAL = 3, 1
_ADDRESSES = (2, 38)
"""R_ARM_ABS32, R_ARM_TARGET1: the word is the address plus the word before."""
_CALLS = (10, 30)
"""R_ARM_THM_CALL, R_ARM_THM_JUMP24."""
_NO_OPERATION = bytes.fromhex("aff30080")
"""NOP.W"""


class _Part(NamedTuple):
    """A section of the new file."""

    name: str
    kind: int
    flags: int
    content: bytes
    align: int
    link: int = 0
    info: int = 0
    entry_size: int = 0


class _Symbols:
    """The symbols of the new file: sections, other local ones, and the exported one."""

    def __init__(self, section_count: int) -> None:
        self.section_count = section_count
        self._others: dict[tuple[int, int, int], int] = {}

    def of(self, section: int, raw: RawSymbol) -> int:
        """Return the number of a local symbol."""
        key = section, raw.value, raw.kind
        return self._others.setdefault(key, 1 + self.section_count + len(self._others))

    def table(self, exported: tuple[int, RawSymbol]) -> tuple[bytes, int]:
        """Return the table, and the number of the exported symbol: the first global one, whose name is at 1."""
        rows = [(0, 0, 0, 0, 0, 0)]
        rows += [(0, 0, 0, _SECTION_TYPE, 0, index + 1) for index in range(self.section_count)]
        rows += [(0, value, 0, kind, 0, section) for section, value, kind in self._others]
        section, raw = exported
        rows.append((1, raw.value, raw.size, _GLOBAL << 4 | raw.kind, 0, section))
        return b"".join(_SYMBOL.pack(*row) for row in rows), len(rows) - 1


def compact(elf: Elf, exported: RawSymbol) -> bytes:
    """Return a relocatable file with the loaded sections of another one, for Arm, and the exported symbol."""
    loaded = [index for index, part in enumerate(elf.sections) if part.flags & SHF_ALLOC and part.size]
    places = {old: new for new, old in enumerate(loaded, start=1)}
    raw = {symbol.number: symbol for symbol in elf.symbols()}
    symbols = _Symbols(len(loaded))
    contents = {old: bytearray(elf.data(elf.sections[old])) for old in loaded}
    relocations: dict[int, list[tuple[int, int, int]]] = {old: [] for old in loaded}
    for index, section in enumerate(elf.sections):
        if section.kind == SHT_REL and section.info in places:
            for entry in relocation_entries(elf, index):
                row = _relocation(entry, raw, places, symbols, contents[section.info])
                if row is not None:
                    relocations[section.info].append(row)
    parts = [_loaded(elf, old, bytes(contents[old])) for old in loaded]
    changed = [old for old in loaded if relocations[old]]
    symbol_index = 1 + len(loaded) + len(changed)
    for old in changed:
        rows = b"".join(_RELOCATION.pack(at, number << 8 | kind) for at, number, kind in relocations[old])
        title = f".rel{elf.sections[old].name}"
        parts.append(_Part(title, SHT_REL, _INFO_LINK, rows, 4, symbol_index, places[old], _RELOCATION.size))
    content, first_global = symbols.table((places[exported.section], exported))
    parts.append(_Part(".symtab", SHT_SYMTAB, 0, content, 4, symbol_index + 1, first_global, _SYMBOL.size))
    parts.append(_Part(".strtab", SHT_STRTAB, 0, b"\0" + DESCRIPTOR.encode() + b"\0", 1))
    return _file(elf, parts)


def _relocation(
    entry: Entry, raw: dict[int, RawSymbol], places: dict[int, int], symbols: _Symbols, data: bytearray
) -> tuple[int, int, int] | None:
    """Return offset, symbol and type of a relocation in the new file; None if it is applied."""
    symbol = raw.get(entry.symbol)
    if symbol is None or symbol.section & 0xFFFF == _ABSOLUTE:
        _absolute(entry, symbol.value if symbol else 0, data)
        return None
    section = places.get(symbol.section)
    if section is None:
        raise damaged("a relocation of a section that is not loaded")
    if entry.type in _ADDRESSES:
        _add(data, entry.offset, symbol.value)
        # The symbols of sections have the numbers of their sections.
        return entry.offset, section, entry.type
    return entry.offset, symbols.of(section, symbol), entry.type


def _absolute(entry: Entry, value: int, data: bytearray) -> None:
    """Apply a relocation with an absolute symbol: an undefined weak one, a call of which has no effect."""
    if entry.type in _ADDRESSES:
        _add(data, entry.offset, value)
    elif entry.type in _CALLS and value == 0:
        data[entry.offset : entry.offset + len(_NO_OPERATION)] = _NO_OPERATION
    else:
        raise damaged(f"relocation {entry.type} of an absolute symbol")


def _add(data: bytearray, offset: int, value: int) -> None:
    (word,) = _WORD.unpack_from(data, offset)
    _WORD.pack_into(data, offset, (word + value) & 0xFFFFFFFF)


def _loaded(elf: Elf, index: int, content: bytes) -> _Part:
    section = elf.sections[index]
    align = elf.layout.section.unpack_from(elf.content, elf.table_offset + index * elf.layout.section.size)[8]
    flags = section.flags | (SHF_WRITE if section.name == TABLES else 0)
    return _Part(section.name, section.kind, flags, content, max(1, align))


def _file(elf: Elf, parts: Sequence[_Part]) -> bytes:
    """Return the file: header, sections, their names, the table of sections."""
    names = b"\0"
    rows = [(0,) * 10]
    body = bytearray(_HEADER.size)
    for part in (*parts, None):
        offset = len(names)
        names += (part.name if part else ".shstrtab").encode() + b"\0"
        entry = part or _Part(".shstrtab", SHT_STRTAB, 0, names, 1)
        body += bytes(-len(body) % entry.align)
        place = (len(body), len(entry.content))
        rows.append((offset, entry.kind, entry.flags, 0, *place, entry.link, entry.info, entry.align, entry.entry_size))
        body += entry.content
    body += bytes(-len(body) % 4)
    start = len(body)
    body += b"".join(_SECTION.pack(*row) for row in rows)
    _HEADER.pack_into(
        *(body, 0, elf.content[:16], _RELOCATABLE, elf.machine, 1, 0, 0, start, elf.flags),
        *(_HEADER.size, 0, 0, _SECTION.size, len(rows), len(rows) - 1),
    )
    return bytes(body)


CODE, TABLES, EXPORT = ".text", ".data.rel.ro", ".exported_sym"
CONSTANTS = ".llext.rodata.noreloc"
"""LLEXT of Zephyr 4.3 has a region of its own for this name."""
_NAME = ".rodata.opwest_bundle_name"
_KEPT = (CODE, CONSTANTS, TABLES, EXPORT)
_RELOCATIONS = {"arm": frozenset((0, 2, 3, 10, 30, 38, 40, 42, 43, 44, 45, 46, 47, 48, 49, 50))}
"""The types that LLEXT of Zephyr 4.2 applies, by machine."""
# struct llext_const_symbol of <zephyr/llext/symbol.h>.
_SOURCE = f"""extern const char {DESCRIPTOR}[];
static const char name[] __attribute__((section("{_NAME}"))) = "{DESCRIPTOR}";
static const void *const exported[] __attribute__((section("{EXPORT}"), used)) = {{name, {DESCRIPTOR}}};
"""


def relocatable_image(chain: Toolchain, whole: Path, work: Path) -> bytes:
    """Return the image of a relocatable object without dependencies. Raises OpwestError if LLEXT cannot load it."""
    elf = parse_elf(whole.read_bytes())
    if elf.machine_name not in _RELOCATIONS:
        raise fail(f"no bundles for LLEXT on machine {elf.machine_name}", expected="a Cortex-M processor")
    source, export, joined = (work / f"llext{end}" for end in (".c", "_name.o", "_joined.o"))
    source.write_text(_SOURCE, encoding="utf-8")
    chain.run([*chain.machine, "-Os", "-fno-lto", "-fno-pic", "-c", str(source), "-o", str(export)])
    script = work / "llext.ld"
    script.write_text(_script(elf), encoding="utf-8")
    # The undefined symbols are weak: the caller has reported the others.
    weak = sorted({name for name, raw in named_symbols(elf) if name and raw.section == UNDEFINED})
    absent = [f"-Wl,--defsym={name}=0" for name in weak]
    link = ["-nostdlib", "-r", "-fno-lto", "-Wl,--build-id=none", "-Wl,-S", f"-Wl,-T,{script}", *absent]
    chain.run([*chain.machine, *link, str(whole), str(export), "-o", str(joined)])
    made = parse_elf(joined.read_bytes())
    _check(made)
    exported = next((raw for name, raw in named_symbols(made) if name == DESCRIPTOR), None)
    if exported is None:
        raise damaged(f"the image has no symbol {DESCRIPTOR!r}")
    return compact(made, exported)


def _script(elf: Elf) -> str:
    """Return the linker script that joins the sections of each kind."""
    relocated = {section.info for section in elf.sections if section.kind in (SHT_REL, SHT_RELA) and section.size}
    parts: dict[str, list[str]] = {CODE: [], CONSTANTS: [_NAME], TABLES: []}
    for index, section in enumerate(elf.sections):
        if section.flags & SHF_ALLOC and section.size:
            kind = CODE if section.flags & SHF_EXECINSTR else TABLES if index in relocated else CONSTANTS
            parts[kind].append(section.name)
    lines = []
    for kind, names in parts.items():
        quoted = " ".join(f'*("{name}")' for name in dict.fromkeys(names))
        lines.append(f"\t{kind} : {{ {quoted} }}")
    export = f"\t{EXPORT} : {{ KEEP(*({EXPORT})) }}"
    rest = "\t/DISCARD/ : { *(.opwest_bundle.facts .comment .note .note.* .debug* .ARM.exidx* .ARM.extab*) }"
    return "\n".join(["SECTIONS", "{", *lines, export, rest, "}", ""])


def _check(elf: Elf) -> None:
    """Refuse an image that LLEXT would refuse, or copy into RAM as a whole."""
    for section in elf.sections:
        if section.flags & SHF_ALLOC and section.size and section.name not in _KEPT:
            raise damaged(f"section {section.name!r} is not part of an image for LLEXT")
    relocated = {elf.sections[section.info].name for section in elf.sections if section.kind in (SHT_REL, SHT_RELA)}
    if CONSTANTS in relocated:
        raise damaged(f"section {CONSTANTS!r} has relocations")
    names = {raw.number: name for name, raw in named_symbols(elf)}
    for entry in loaded_relocations(elf):
        if entry.type not in _RELOCATIONS[elf.machine_name]:
            name = names.get(entry.symbol) or "?"
            message = f"relocation {entry.type} of symbol {name!r} is not implemented by Zephyr's LLEXT"
            hint = "link the bundle for a slot, or compile the operator for a newer core or without this relocation"
            raise fail(message, hint=hint)
