# SPDX-License-Identifier: Apache-2.0
"""The image of a bundle that Zephyr's LLEXT loads: a relocatable ELF file.

LLEXT joins sections of one kind to a region. It copies a region into RAM if there is one relocation in it, or if it
is writable; others stay in the slot. So code, constants with relocations and constants without become one section each.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from opwest.bundles.linked import DESCRIPTOR, named_symbols
from opwest.bundles.llext_file import compact
from opwest.bundles.toolchain import Toolchain
from opwest.diagnostics import Diagnostic, OpwestError
from opwest.objects.elf import SHF_ALLOC, SHF_EXECINSTR, SHT_REL, SHT_RELA, UNDEFINED, Elf, damaged, parse_elf
from opwest.objects.relocate import relocation_entries

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
    """Return the image made of a relocatable object with everything that it needs.

    `work` is a directory for files. Raises OpwestError for an object that LLEXT cannot load.
    """
    elf = parse_elf(whole.read_bytes())
    if elf.machine_name not in _RELOCATIONS:
        message = f"no bundles for LLEXT on machine {elf.machine_name}"
        raise OpwestError([Diagnostic("error", message, expected="a Cortex-M processor")])
    source, export, joined = (work / f"llext{end}" for end in (".c", "_name.o", "_joined.o"))
    source.write_text(_SOURCE, encoding="utf-8")
    chain.run([*chain.machine, "-Os", "-fno-lto", "-fno-pic", "-c", str(source), "-o", str(export)])
    script = work / "llext.ld"
    script.write_text(_script(elf), encoding="utf-8")
    absent = [f"-Wl,--defsym={name}=0" for name in _weak_references(elf)]
    link = ["-nostdlib", "-r", "-fno-lto", "-Wl,--build-id=none", "-Wl,-S", f"-Wl,-T,{script}", *absent]
    chain.run([*chain.machine, *link, str(whole), str(export), "-o", str(joined)])
    made = parse_elf(joined.read_bytes())
    _check(made)
    exported = next((raw for name, raw in named_symbols(made) if name == DESCRIPTOR), None)
    if exported is None:
        raise damaged(f"the image has no symbol {DESCRIPTOR!r}")
    return compact(made, exported, DESCRIPTOR, writable=TABLES)


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


def _weak_references(elf: Elf) -> list[str]:
    """Return undefined symbols: only weak ones, which the caller permits. Their value is 0."""
    return sorted({name for name, raw in named_symbols(elf) if name and raw.section == UNDEFINED})


def _check(elf: Elf) -> None:
    """Refuse an image that LLEXT would refuse, or copy into RAM as a whole."""
    for section in elf.sections:
        if section.flags & SHF_ALLOC and section.size and section.name not in _KEPT:
            raise damaged(f"section {section.name!r} is not part of an image for LLEXT")
    relocated = {elf.sections[section.info].name for section in elf.sections if section.kind in (SHT_REL, SHT_RELA)}
    if CONSTANTS in relocated:
        raise damaged(f"section {CONSTANTS!r} has relocations")
    names = dict(enumerate((name for name, _ in named_symbols(elf)), start=1))
    for kind, symbol in _foreign_relocations(elf):
        message = f"relocation {kind} of symbol {names.get(symbol) or '?'!r} is not implemented by Zephyr's LLEXT"
        hint = "link the bundle for a slot, or compile the operator for a newer core or without this relocation"
        raise OpwestError([Diagnostic("error", message, hint=hint)])


def _foreign_relocations(elf: Elf) -> Iterator[tuple[int, int]]:
    """Yield the types and symbols of relocations that LLEXT does not apply."""
    known = _RELOCATIONS[elf.machine_name]
    for index, section in enumerate(elf.sections):
        if section.kind in (SHT_REL, SHT_RELA) and elf.sections[section.info].flags & SHF_ALLOC:
            for entry in relocation_entries(elf, index):
                if entry.type not in known:
                    yield entry.type, entry.symbol
