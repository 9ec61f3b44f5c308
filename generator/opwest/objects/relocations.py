# SPDX-License-Identifier: Apache-2.0
"""Detect relocations that Zephyr's link of a target cannot resolve, before the link.

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

from opwest.base.frozen_dataclass import dataclass
from opwest.objects.compat import TargetAbi
from opwest.objects.elf import SHF_ALLOC, Elf, parse_elf
from opwest.objects.facts import Member
from opwest.objects.relocate import Relocations, relocation_entries

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
    machine = elf.machine_name
    if machine != target.machine or elf.layout.bits != target.bits:
        return []
    families = _families_of(target, member.abi.arch)
    reasons = {number: family for family in families for number in family.types}
    thunks = machine == "i386"
    if thunks:
        reasons |= {_I386_PC32: _I386_THUNK, _PLT32_I386: _I386_THUNK}
    first: dict[str, tuple[_Family, int, str, int]] = {}
    counts: dict[str, int] = {}
    relocations = Relocations(elf)
    names = _Names(elf, relocations)
    for section, tables in relocations.tables.items():
        if section >= len(elf.sections) or not elf.sections[section].flags & SHF_ALLOC:
            continue
        for table in tables:
            for entry in relocation_entries(elf, table):
                family = reasons.get(entry.type)
                if family is None:
                    continue
                if family is _I386_THUNK and names.of(entry.symbol) != _PC_THUNK:
                    continue
                if family is _RISCV_MEDLOW and names.is_absolute(entry.symbol):
                    continue
                counts[family.reason] = counts.get(family.reason, 0) + 1
                first.setdefault(family.reason, (family, entry.type, elf.sections[section].name, entry.symbol))
    return [
        _sentence(machine, names, *first[family.reason], counts[family.reason])
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


class _Names:
    """Names of symbols by number, read on demand."""

    def __init__(self, elf: Elf, relocations: Relocations) -> None:
        self._elf = elf
        self._relocations = relocations
        self._table = elf.symbol_table()
        self._by_number: dict[int, str] = {}

    def of(self, number: int) -> str:
        """Return the name of a symbol; that of its section where it has none."""
        if not self._by_number and self._table is not None:
            strings = self._elf.strings_of(self._table)
            self._by_number = {raw.number: strings.name(raw.name) for raw in self._elf.raw_symbols(self._table)}
        name = self._by_number.get(number, "")
        if name or not 0 < number < len(self._relocations.places):
            return name
        section = self._relocations.places[number][0]
        return self._elf.sections[section].name if section > 0 else ""

    def is_absolute(self, number: int) -> bool:
        """Whether a symbol is an absolute value, not an address."""
        places = self._relocations.places
        return number == 0 or (number < len(places) and places[number][0] < 0)


def _sentence(machine: str, names: _Names, family: _Family, number: int, section: str, symbol: int, count: int) -> str:
    name = names.of(symbol)
    relocation = f"{_PREFIXES[machine]}{family.types.get(number, 'PLT32')}"
    more = f", and {count - 1} more" if count > 1 else ""
    return f"{relocation} in {section}{f' for {name}' if name else ''}{more}: {family.reason}; {family.hint}"
