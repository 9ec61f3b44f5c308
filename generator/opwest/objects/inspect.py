# SPDX-License-Identifier: Apache-2.0
"""Read objects, C and C++ sources from the disk and return their facts."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from opwest.base import path_suggestions
from opwest.base.result import counted
from opwest.objects import elf as elf_format
from opwest.objects.archives import archive_members
from opwest.objects.attributes import abi_of
from opwest.objects.elf import Elf, RawSymbol, Section, damaged, parse_elf
from opwest.objects.facts import (
    HEADER_SOURCE,
    SOURCE_SUFFIXES,
    Binding,
    CSource,
    Member,
    ObjectError,
    ObjectFile,
    SectionKind,
    Sizes,
    Symbol,
    SymbolKind,
)
from opwest.objects.magic import ARCHIVE, ELF, is_known_binary, looks_like, not_an_object
from opwest.objects.rewriting import FUNCTIONS, WritableCode, writable_code

MAX_FILE = 1 << 30
_BINDINGS: dict[int, Binding] = {0: "local", 1: "global", 2: "weak", 10: "global"}
_KINDS: dict[int, SymbolKind] = {1: "object", 2: "function", 5: "object", 6: "tls", 10: "function"}
_CONSTRUCTORS = (".init_array", ".ctors", ".preinit_array", ".fini_array", ".dtors")
_CONSTRUCTOR_KINDS = (elf_format.SHT_INIT_ARRAY, elf_format.SHT_FINI_ARRAY, elf_format.SHT_PREINIT_ARRAY)
_RELOCATED = (".data.rel.ro.", ".data.DW.ref.", ".data.rel.local.DW.ref.")


def inspect_object(path: Path, include_dirs: Sequence[Path] = ()) -> ObjectFile | CSource:
    """Return the facts about an ELF object, an archive or a source; by its content, then its name.

    `include_dirs` are directories with headers of C++ sources, besides that of the source.
    """
    content = read_file(path)
    if content.startswith(ELF):
        return ObjectFile(path, "elf", (read_member(path.name, content),))
    if content.startswith(ARCHIVE):
        return ObjectFile(path, "archive", tuple(_archive(content)))
    if path.suffix in (*SOURCE_SUFFIXES, HEADER_SOURCE) and content and not is_known_binary(content):
        # Load tree-sitter only for sources.
        if path.suffix in (".c", HEADER_SOURCE):
            from opwest.objects.c_source import read_c_source

            return read_c_source(path, content)
        from opwest.objects.cpp_source import read_with_headers

        return read_with_headers(path, content, include_dirs)
    raise not_an_object(content)


def read_file(path: Path) -> bytes:
    """Return the content of a regular file."""
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            raise ObjectError(f"cannot read the file: {os.strerror(errno.EISDIR)}", "a file", "list the objects in it")
        if not stat.S_ISREG(status.st_mode):
            raise ObjectError("cannot read the file: not a regular file", "a regular file")
        if status.st_size > MAX_FILE:
            raise ObjectError(f"the file has {counted(status.st_size, 'byte')}", f"at most {MAX_FILE} bytes")
        return path.read_bytes()
    except (OSError, ValueError) as fault:
        reason = fault.strerror if isinstance(fault, OSError) else str(fault)
        expected = "an existing file" if isinstance(fault, FileNotFoundError) else None
        hint = "check its permissions" if isinstance(fault, PermissionError) else path_suggestions.hint_for(path)
        raise ObjectError(f"cannot read the file: {reason}", expected, hint) from fault


def _archive(content: bytes) -> list[Member]:
    """Return the members of an archive."""
    members = []
    for name, data in archive_members(content):
        try:
            if not data.startswith(ELF):
                what, hint = looks_like(data)
                raise ObjectError(f"not an ELF object: this is {what}", "only ELF objects in the archive", hint)
            members.append(read_member(name, data, loose=False))
        except ObjectError as fault:
            raise ObjectError(f"archive member {name}: {fault.message}", fault.expected, fault.hint) from fault
    return members


def read_member(name: str, content: bytes, *, loose: bool = True) -> Member:
    """Return the facts about one ELF object."""
    elf = parse_elf(content)
    mixed = writable_code(elf)
    kinds = [section_kind(s) if i not in mixed else mixed[i].kind for i, s in enumerate(elf.sections)]
    symbols, indirect = _symbols(elf, kinds, mixed)
    sizes = _sizes(elf, kinds, symbols, mixed)
    unusable = tuple(_container_faults(elf))
    faults = (*unusable, *(_faults(elf, symbols, indirect) if elf.type == elf_format.ET_REL else ()))
    return Member(name, content, abi_of(elf), symbols, sizes, faults, loose, opaque=bool(unusable))


def section_kind(section: Section) -> SectionKind | None:
    """Return the kind of memory of a section; None for sections that are not loaded."""
    if not section.flags & elf_format.SHF_ALLOC:
        return None
    if section.flags & elf_format.SHF_EXECINSTR:
        return "code"  # writable ones: see writable_code
    if not section.flags & elf_format.SHF_WRITE or not section.size:
        return "constant"
    if section.kind == elf_format.SHT_NOBITS:
        return "bss"
    # Addresses in position-independent code, which only a dynamic linker writes: of constants, of a personality.
    if section.name == ".data.rel.ro" or section.name.startswith(_RELOCATED) or _runs_by_itself(section):
        return "constant"
    return "data"


def _symbol_section(raw: RawSymbol, kinds: list[SectionKind | None]) -> SectionKind | None:
    """Return the kind of memory of a symbol; None if its section is not loaded (debug information)."""
    if raw.section == elf_format.UNDEFINED:
        return "undefined"
    if raw.section in (elf_format.COMMON, elf_format.X86_64_LARGE_COMMON):
        return "common"
    return kinds[raw.section] if raw.section > 0 else "absolute"


def _symbols(
    elf: Elf, kinds: list[SectionKind | None], mixed: Mapping[int, WritableCode]
) -> tuple[tuple[Symbol, ...], set[str]]:
    """Return the relevant symbols, and the names of indirect functions."""
    names = elf.symbol_names()
    mapped = elf.machine_name in ("arm", "aarch64", "riscv")
    symbols: list[Symbol] = []
    indirect: set[str] = set()
    for raw in elf.symbols():
        kind = raw.kind
        if kind in (elf_format.STT_SECTION, elf_format.STT_FILE):
            continue
        name = names.name(raw.name)
        binding = _BINDINGS.get(raw.binding)
        if binding is None:
            raise damaged(f"unknown binding of symbol {name!r}")
        if binding == "local" and (not name or name.startswith(".L") or (mapped and name.startswith("$"))):
            continue
        section = _symbol_section(raw, kinds)
        if raw.section in mixed and mixed[raw.section].bytes and kind not in FUNCTIONS:
            section = "data"
        if section is None:
            if binding == "local":
                continue
            section = "absolute"
        elif binding == "global" and raw.section > 0 and elf.sections[raw.section].flags & elf_format.SHF_GROUP:
            binding = "weak"  # of a group, a linker keeps one copy (`__x86.get_pc_thunk.ax`)
        if not name:
            raise damaged("a global symbol has no name")
        if kind == elf_format.STT_IFUNC:
            indirect.add(name)
        symbols.append(Symbol(name, binding, _KINDS.get(kind, "other"), section, raw.size))
    return tuple(symbols), indirect


def _sizes(
    elf: Elf, kinds: list[SectionKind | None], symbols: tuple[Symbol, ...], mixed: Mapping[int, WritableCode]
) -> Sizes:
    """Return the bytes by kind."""
    sums = {"code": 0, "constant": 0, "data": 0, "bss": 0}
    for index, (section, kind) in enumerate(zip(elf.sections, kinds, strict=True)):
        if kind is not None:
            written = mixed[index].bytes if index in mixed else 0
            sums["data"] += written
            sums[kind] += section.size - written
    sums["bss"] += sum(s.size for s in symbols if s.section == "common")
    return Sizes(**sums)


def _container_faults(elf: Elf) -> Iterator[str]:
    """Yield the faults of the file as a whole, and the one of output of -flto."""
    if elf.type == elf_format.ET_EXEC:
        yield "not relocatable: an executable; link the .o files instead"
    elif elf.type == elf_format.ET_DYN:
        what = "an executable" if elf.find(".interp") else "a shared library"
        yield f"not relocatable: {what}; link the .o files instead"
    elif elf.type == elf_format.ET_CORE:
        yield "not relocatable: a core dump, not an object"
    elif elf.type != elf_format.ET_REL:
        yield f"not relocatable: unknown ELF file type {elf.type}"
    elif elf.symbol_table() is None and any(section_kind(s) and s.size for s in elf.sections):
        yield "no symbol table: do not strip objects (`strip --strip-debug` keeps the table)"
    names = [s.name for s in elf.sections]
    if any(n.startswith((".gnu.lto_", ".gnu.debuglto_.gnu.lto_")) or n == ".llvm.lto" for n in names):
        yield "compiled with -flto: its symbols cannot be renamed; compile without -flto (add -fno-lto)"


def _runs_by_itself(section: Section) -> bool:
    """Whether a section lists functions for the start or the end of the program."""
    named = any(section.name == name or section.name.startswith(name + ".") for name in _CONSTRUCTORS)
    return named or section.kind in _CONSTRUCTOR_KINDS


def _faults(elf: Elf, symbols: tuple[Symbol, ...], indirect: set[str]) -> Iterator[str]:
    """Yield the faults of constructors, destructors and symbols in a relocatable file."""
    early = next((s.name for s in elf.sections if s.size and _runs_by_itself(s)), None)
    if early is not None:
        yield f"has code that runs before or after main (section {early}): remove constructors and destructors"
    tls = [s.name for s in symbols if s.kind == "tls"]
    if tls or any(s.flags & elf_format.SHF_TLS and s.size for s in elf.sections):
        which = f" ({', '.join(tls[:3])}{', …' if len(tls) > 3 else ''})" if tls else ""
        yield f"uses thread-local variables{which}: remove _Thread_local or __thread"
    if indirect:
        shown = ", ".join(sorted(indirect)[:3])
        yield f"uses indirect functions ({shown}): remove ifunc and target_clones"
