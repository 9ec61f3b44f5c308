# SPDX-License-Identifier: Apache-2.0
"""The relocations of an object, and those that Zephyr's link of a target cannot resolve.

Results with the linkers and scripts of Zephyr 4.2 (repeated by tests/unit/objects/test_objects_relocations.py
if the tools are installed):

- native_sim links `ld -r`, localizes symbols with objcopy, and makes an executable with `-no-pie`
  (scripts/native_simulator/Makefile). So absolute addresses (`R_X86_64_32`, `R_X86_64_32S`, `R_386_32`)
  resolve, and so do `-fPIC` and `-fpie`, with one exception: on i386 objcopy makes
  `__x86.get_pc_thunk.bx` local, of which the host's `crti.o` has another copy, and the link fails
  ("defined in discarded section"). Other thunks link.
- Arm Cortex-M: linker.ld discards `.got`. Accesses through it fail, some without a message.
  Cortex-A, Cortex-R and AArch64 keep it. No code sets up a static base (`-frwpi`).
- RISC-V: linker.ld does not place `.got` (an orphan section, which twister treats as an error). 64-bit images
  are compiled for medany and lie at 2 GiB, where `R_RISCV_HI20` does not reach.
- Thread-local variables are always rejected: only some configurations of Zephyr support them.

Numbers: AAELF32 5.6, AAELF64 5.7, the psABIs of x86-64, i386 and RISC-V.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import cached_property
from typing import Literal, NamedTuple

from opwest.base.frozen_dataclass import dataclass
from opwest.base.result import counted
from opwest.objects.compat import TargetAbi
from opwest.objects.dwarf_units import uleb
from opwest.objects.elf import SHF_ALLOC, SHT_REL, SHT_RELA, Elf, damaged, parse_elf
from opwest.objects.facts import Member

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
        raise damaged(
            f"section {section.name} has relocations of {counted(section.entry_size, 'byte')}, not {unpacker.size}"
        )
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
        tables: dict[int, list[int]] = {}
        total, size = 0, len(self.elf.content)
        for index, section in enumerate(self.elf.sections):
            if section.kind in (SHT_RELA, SHT_REL):
                tables.setdefault(section.info, []).append(index)
                total += section.size
        if total > size:
            raise damaged(f"the sections of relocations overlap: {total} bytes in a file of {size}")
        return tables

    @cached_property
    def places(self) -> list[tuple[int, int]]:
        """Section and value of every symbol, by its number."""
        return [(0, 0), *((raw.section, raw.value) for raw in self.elf.symbols())]

    @cached_property
    def _names(self) -> dict[int, str]:
        names = self.elf.symbol_names()
        return {raw.number: names.name(raw.name) for raw in self.elf.symbols()}

    def name(self, symbol: int) -> str:
        """Return the name of a symbol, by its number; that of its section where it has none."""
        name = self._names.get(symbol, "")
        if name or not 0 < symbol < len(self.places):
            return name
        section = self.places[symbol][0]
        return self.elf.sections[section].name if section > 0 else ""

    def is_absolute(self, symbol: int) -> bool:
        """Whether a symbol is an absolute value, not an address."""
        return symbol == 0 or (symbol < len(self.places) and self.places[symbol][0] < 0)

    def entries(self, section: int) -> Iterator[Entry]:
        """Yield the relocations of a section."""
        for table in self.tables.get(section, ()):
            yield from relocation_entries(self.elf, table)

    def _place(self, symbol: int) -> tuple[int, int]:
        if symbol >= len(self.places):
            raise damaged(f"a relocation refers to symbol {symbol} of {len(self.places)}")
        return self.places[symbol]

    def targets(self, section: int) -> dict[int, tuple[int, int]]:
        """Return the targets of the fields of a section, by offset: a section and an offset in it."""
        data = self.elf.data(self.elf.sections[section])
        targets: dict[int, tuple[int, int]] = {}
        for entry in self.entries(section):
            operation, size = self._operations.get(entry.type, ("set", 0))
            if operation not in ("absolute", "relative", "prel31", "add") or size < 4:
                continue
            where, value = self._place(entry.symbol)
            addend = entry.addend
            if addend is None:
                addend = self._in_place(data, entry.offset, size, 31 if operation == "prel31" else 8 * size)
            targets[entry.offset] = where, value + addend
        return targets

    def _in_place(self, data: bytes | bytearray, offset: int, size: int, bits: int) -> int:
        """Return the sign-extended addend in the section."""
        value = self._read(data, offset, size) & ((1 << bits) - 1)
        return value - (1 << bits) if value >> (bits - 1) else value

    def _read(self, data: bytes | bytearray, offset: int, size: int) -> int:
        if offset + size > len(data):
            raise damaged(f"relocation at {offset} outside of its section of {counted(len(data), 'byte')}")
        return int.from_bytes(data[offset : offset + size], self.elf.layout.endian)

    def patched(self, section: int) -> bytes:
        """Return the bytes of a section with its relocations applied, every section being at 0.

        Raises ObjectError for an unknown relocation type.
        """
        content = self.elf.data(self.elf.sections[section])
        if section not in self.tables:
            return content
        data = bytearray(content)
        for entry in self.entries(section):
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


_PC_THUNK = "__x86.get_pc_thunk.bx"
_I386_PC32, _RISCV_HI20 = 2, 26


@dataclass(frozen=True, slots=True)
class _Family:
    """Relocations that fail for one reason, with the reason and a hint."""

    reason: str
    hint: str
    types: dict[int, str]


_NO_TLS = "remove _Thread_local or __thread"
_TLS = "accesses thread-local variables"
_GOT_HINT = "compile with -fno-pic"
_DYNAMIC = "requires a dynamic linker, absent in firmware"
_DYNAMIC_HINT = "use the unlinked .o files"
_ARM_GOT = "uses the global offset table (GOT), which Zephyr's linker script discards"
_RISCV_GOT = "uses the global offset table (GOT), which Zephyr's linker script does not place"
_ARM_SB = "accesses data relative to a static base (R9), which Zephyr does not set"
_TLS_ARM = {
    13: "TLS_DESC", 17: "TLS_DTPMOD32", 18: "TLS_DTPOFF32", 19: "TLS_TPOFF32", 90: "TLS_GOTDESC", 91: "TLS_CALL",
    92: "TLS_DESCSEQ", 93: "THM_TLS_CALL", 104: "TLS_GD32", 105: "TLS_LDM32", 106: "TLS_LDO32", 107: "TLS_IE32",
    108: "TLS_LE32", 109: "TLS_LDO12", 110: "TLS_LE12", 111: "TLS_IE12GP", 129: "THM_TLS_DESCSEQ16",
    130: "THM_TLS_DESCSEQ32",
}  # fmt: skip
_GOT_ARM = {
    24: "GOTOFF32", 25: "BASE_PREL", 26: "GOT_BREL", 95: "GOT_ABS", 96: "GOT_PREL", 97: "GOT_BREL12", 98: "GOTOFF12",
    99: "GOTRELAX", 161: "GOTFUNCDESC", 162: "GOTOFFFUNCDESC", 163: "FUNCDESC",
}  # fmt: skip
_SB_ARM = {
    9: "SBREL32", 35: "LDR_SBREL_11_0_NC", 36: "ALU_SBREL_19_12_NC", 37: "ALU_SBREL_27_20_CK", 39: "SBREL31",
    **{70 + n: name for n, name in enumerate((
        "ALU_SB_G0_NC", "ALU_SB_G0", "ALU_SB_G1_NC", "ALU_SB_G1", "ALU_SB_G2", "LDR_SB_G0", "LDR_SB_G1", "LDR_SB_G2",
        "LDRS_SB_G0", "LDRS_SB_G1", "LDRS_SB_G2", "LDC_SB_G0", "LDC_SB_G1", "LDC_SB_G2",
    ))},
    84: "MOVW_BREL_NC", 85: "MOVT_BREL", 86: "MOVW_BREL", 87: "THM_MOVW_BREL_NC", 88: "THM_MOVT_BREL",
    89: "THM_MOVW_BREL",
}  # fmt: skip
_DYN_ARM = {20: "COPY", 21: "GLOB_DAT", 22: "JUMP_SLOT", 23: "RELATIVE", 160: "IRELATIVE"}
_FAMILIES: dict[str, tuple[_Family, ...]] = {
    "x86-64": (
        _Family(_TLS, _NO_TLS, {
            16: "DTPMOD64", 17: "DTPOFF64", 18: "TPOFF64", 19: "TLSGD", 20: "TLSLD", 21: "DTPOFF32", 22: "GOTTPOFF",
            23: "TPOFF32", 34: "GOTPC32_TLSDESC", 35: "TLSDESC_CALL", 36: "TLSDESC",
        }),
        _Family(_DYNAMIC, _DYNAMIC_HINT, {
            5: "COPY", 6: "GLOB_DAT", 7: "JUMP_SLOT", 8: "RELATIVE", 37: "IRELATIVE", 38: "RELATIVE64",
        }),
    ),
    "i386": (
        _Family(_TLS, _NO_TLS, {
            14: "TLS_TPOFF", 15: "TLS_IE", 16: "TLS_GOTIE", 17: "TLS_LE", 18: "TLS_GD", 19: "TLS_LDM", 32: "TLS_LDO_32",
            33: "TLS_IE_32", 34: "TLS_LE_32", 35: "TLS_DTPMOD32", 36: "TLS_DTPOFF32", 37: "TLS_TPOFF32",
            39: "TLS_GOTDESC", 40: "TLS_DESC_CALL", 41: "TLS_DESC",
        }),
        _Family(_DYNAMIC, _DYNAMIC_HINT, {5: "COPY", 6: "GLOB_DAT", 7: "JUMP_SLOT", 8: "RELATIVE", 42: "IRELATIVE"}),
    ),
    "arm": (
        _Family(_TLS, _NO_TLS, _TLS_ARM),
        _Family(_ARM_SB, "compile without -frwpi, -fropi and -msingle-pic-base", _SB_ARM),
        _Family(_DYNAMIC, _DYNAMIC_HINT, _DYN_ARM),
    ),
    "aarch64": (
        _Family(_TLS, _NO_TLS, {n: f"number {n} (thread-local)" for n in range(512, 574)}),
        _Family(_DYNAMIC, _DYNAMIC_HINT, {
            1024: "COPY", 1025: "GLOB_DAT", 1026: "JUMP_SLOT", 1027: "RELATIVE", 1028: "TLS_DTPMOD", 1029: "TLS_DTPREL",
            1030: "TLS_TPREL", 1031: "TLSDESC", 1032: "IRELATIVE",
        }),
    ),
    "riscv": (
        _Family(_TLS, _NO_TLS, {
            6: "TLS_DTPMOD32", 7: "TLS_DTPMOD64", 8: "TLS_DTPREL32", 9: "TLS_DTPREL64", 10: "TLS_TPREL32",
            11: "TLS_TPREL64", 12: "TLSDESC", 21: "TLS_GOT_HI20", 22: "TLS_GD_HI20", 29: "TPREL_HI20",
            30: "TPREL_LO12_I", 31: "TPREL_LO12_S", 32: "TPREL_ADD", 62: "TLSDESC_HI20", 63: "TLSDESC_LOAD_LO12",
            64: "TLSDESC_ADD_LO12", 65: "TLSDESC_CALL",
        }),
        _Family(_RISCV_GOT, _GOT_HINT, {20: "GOT_HI20", 41: "GOT32_PCREL"}),
        _Family(_DYNAMIC, _DYNAMIC_HINT, {3: "RELATIVE", 4: "COPY", 5: "JUMP_SLOT", 58: "IRELATIVE"}),
    ),
}  # fmt: skip
_ARM_NO_GOT = _Family(_ARM_GOT, _GOT_HINT, _GOT_ARM)
_RISCV_MEDLOW = _Family(
    "requires addresses below 2 GiB; Zephyr's 64-bit images are above",
    "compile with -mcmodel=medany",
    {_RISCV_HI20: "HI20"},
)
_I386_THUNK = _Family(
    "calls a PIC helper that conflicts with that of the host's C runtime in native_sim",
    "compile with -fno-pic",
    {_I386_PC32: "PC32"},
)
_PREFIXES = {"x86-64": "R_X86_64_", "i386": "R_386_", "arm": "R_ARM_", "aarch64": "R_AARCH64_", "riscv": "R_RISCV_"}
_PLT32_I386 = 4


def relocation_faults(member: Member, target: TargetAbi) -> list[str]:
    """Return why the relocations of an object cannot be resolved for a target, one sentence per reason.

    Each names the first relocation of its kind, its section and its symbol. An object for another machine
    has no faults here; `abi_faults` reports it. Raises ObjectError if the object cannot be read.
    """
    elf = parse_elf(member.content)
    if elf.machine_name != target.machine or elf.layout.bits != target.bits:
        return []
    families = _families_of(target, member.abi.arch)
    reasons = {number: family for family in families for number in family.types}
    if elf.machine_name == "i386":
        reasons |= {_I386_PC32: _I386_THUNK, _PLT32_I386: _I386_THUNK}
    first: dict[str, tuple[_Family, int, str, int]] = {}
    counts: dict[str, int] = {}
    relocations = Relocations(elf)
    for section in relocations.tables:
        if section >= len(elf.sections) or not elf.sections[section].flags & SHF_ALLOC:
            continue
        for entry in relocations.entries(section):
            family = reasons.get(entry.type)
            is_other = family is _I386_THUNK and relocations.name(entry.symbol) != _PC_THUNK
            if family is None or is_other or (family is _RISCV_MEDLOW and relocations.is_absolute(entry.symbol)):
                continue
            counts[family.reason] = counts.get(family.reason, 0) + 1
            first.setdefault(family.reason, (family, entry.type, elf.sections[section].name, entry.symbol))
    return [
        _sentence(relocations, *first[family.reason], counts[family.reason])
        for family in (*families, _I386_THUNK)
        if family.reason in first
    ]


def _families_of(target: TargetAbi, arch: str | None) -> list[_Family]:
    """Return the unsupported relocations of a target; `arch` is that of the object if the target has none."""
    families = list(_FAMILIES.get(target.machine, ()))
    if target.machine == "arm" and "-M" in (target.arch or arch or ""):
        families.insert(1, _ARM_NO_GOT)
    if target.machine == "riscv" and target.bits == 64:
        families.append(_RISCV_MEDLOW)
    return families


def _sentence(relocations: Relocations, family: _Family, number: int, section: str, symbol: int, count: int) -> str:
    name = relocations.name(symbol)
    relocation = f"{_PREFIXES[relocations.elf.machine_name]}{family.types.get(number, 'PLT32')}"
    more = f", and {count - 1} more" if count > 1 else ""
    return f"{relocation} in {section}{f' for {name}' if name else ''}{more}: {family.reason}; {family.hint}"
