# SPDX-License-Identifier: Apache-2.0
"""Sections that are both writable and executable (flags "awx"): code in RAM, variables, or both.

Assemblers and GCC's section attribute accept any flags for a name (`.ramfunc`, `.itcm`). A function in such a section
is code; a variable is state although the section has the flag for code.
"""

from __future__ import annotations

from typing import Final, Literal

from opwest.objects import elf as elf_format
from opwest.objects.elf import Elf, RawSymbol
from opwest.records import dataclass

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
