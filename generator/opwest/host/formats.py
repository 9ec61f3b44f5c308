# SPDX-License-Identifier: Apache-2.0
"""Object formats of hosts: ELF, Mach-O (macOS) and COFF (MinGW on Windows).

Emitted assembly is for ELF, as Zephyr builds. `translated` gives the directives of the other formats. Sources: GNU as
(.incbin, .linkonce), Mach-O and COFF directives of LLVM's assembler (llvm/lib/MC/MCParser/DarwinAsmParser.cpp,
COFFAsmParser.cpp).
"""

from __future__ import annotations

import re
from typing import Literal

Format = Literal["elf", "macho", "coff"]

_SECTION = re.compile(r'^\t\.section \.rodata\.(\S+), "a(G?)", %progbits.*$')
_DROPPED = re.compile(r"^\t\.(?:type|size) ")
_SYMBOL = re.compile(r"^(\t\.(?:global|weak) )?([A-Za-z_]\w*)(:?)$")


def format_of(macros: str) -> Format:
    """Return the format of a compiler's objects by its predefined macros (`-dM -E`)."""
    names = set(re.findall(r"^#define (\w+)", macros, re.MULTILINE))
    if "__APPLE__" in names:
        return "macho"
    return "coff" if "_WIN32" in names else "elf"


def prefix_of(macros: str) -> str:
    """Return the prefix of C symbols in assembly, which predefined macros contain."""
    found = re.search(r"^#define __USER_LABEL_PREFIX__ (\S+)$", macros, re.MULTILINE)
    return found[1] if found else ""


def translated(source: str, form: Format, prefix: str) -> str:
    """Return emitted assembly (constants.S, vectors.S) for another format.

    Programs have a section that all models of an image share: `.linkonce` in COFF, a weak definition in Mach-O.
    """
    return "\n".join(_line(line, form, prefix) for line in source.split("\n"))


def _line(line: str, form: Format, prefix: str) -> str:
    if found := _SECTION.match(line):
        if form == "macho":
            return "\t.const_data"  # __DATA,__const: the linker also moves constants with pointers to it
        shared = "\n\t.linkonce discard" if found[2] else ""
        return f'\t.section .rdata${found[1]},"dr"{shared}'
    if _DROPPED.match(line):
        return ""
    if found := _SYMBOL.match(line):
        directive, name, colon = found.groups()
        if directive is None and not colon:
            return line
        if directive and directive.strip() == ".weak":
            # A COFF symbol of a .linkonce section is an ordinary one.
            weak = f"\n\t.weak_definition {prefix}{name}" if form == "macho" else ""
            return f"\t.globl {prefix}{name}{weak}"
        return f"{chr(9) + '.globl ' if directive else ''}{prefix}{name}{colon}"
    return line
