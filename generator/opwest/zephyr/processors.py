# SPDX-License-Identifier: Apache-2.0
"""The processor of a board, and the named targets that its firmware can select.

A processor determines some symbols of Kconfig (`CONFIG_CPU_CORTEX_M4`). Options of the firmware, such as `CONFIG_FPU`,
are unknown before its build, so a board has one target for each combination of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from opwest.model.builds import Target
from opwest.objects.compat import isa_extensions
from opwest.targets import named_targets
from opwest.zephyr.version import QUALIFIERS
from opwest.zephyr.workspace import Workspace, read_text

_OF_PROCESSOR = re.compile(r"CONFIG_(CPU_CORTEX_\w+|ARCH_POSIX|RISCV|RISCV_ISA_RV32E|64BIT)")
_CPU = re.compile(r"CPU_CORTEX_[AMR]\d\w*")
_INTEGER = ("m", "a", "c")
_IMAC = "RISCV RISCV_ISA_EXT_M RISCV_ISA_EXT_A RISCV_ISA_EXT_C"
_SIMULATED = {
    "qemu_cortex_m0": "CPU_CORTEX_M0",
    "qemu_cortex_m3": "CPU_CORTEX_M3",
    "qemu_cortex_a53": "CPU_CORTEX_A53 64BIT CPU_HAS_FPU",
    "qemu_riscv32": f"{_IMAC} CPU_HAS_FPU",
    "qemu_riscv32e": f"{_IMAC} RISCV_ISA_RV32E",
    "qemu_riscv64": f"{_IMAC} 64BIT CPU_HAS_FPU CPU_HAS_FPU_DOUBLE_PRECISION",
    "mps2/an383": "CPU_CORTEX_M0PLUS",
    "mps2/an385": "CPU_CORTEX_M3",
    "mps2/an386": "CPU_CORTEX_M4 CPU_HAS_FPU",
    "mps2/an500": "CPU_CORTEX_M7",
    "mps2/an521/cpu0": "CPU_CORTEX_M33",
    "mps3/corstone300/an547": "CPU_CORTEX_M55 CPU_HAS_FPU",
    "mps3/corstone300/fvp": "CPU_CORTEX_M55 CPU_HAS_FPU",
    "mps2_an385": "CPU_CORTEX_M3",
    "mps2_an521": "CPU_CORTEX_M33",
    "mps3_an547": "CPU_CORTEX_M55 CPU_HAS_FPU",
}
"""Simulated boards, which manifests often list: their processors are known without Zephyr's tree."""


def selected_targets(board: str, workspace: Workspace | None) -> list[str]:
    """Return the named targets that firmware for a board can select; empty if its processor is unknown."""
    symbols = processor_symbols(board, workspace)
    if symbols is None:
        return []
    return [
        name
        for name, entry in named_targets().items()
        if _fits(entry["kconfig"], entry["machine"], entry.get("arch"), symbols)
    ]


def fits_processor(target: Target, symbols: frozenset[str]) -> bool:
    """Whether firmware for a processor can select a target."""
    return _fits(dict(target.kconfig), target.machine, target.arch, symbols)


def _fits(kconfig: Mapping[str, str], machine: str, arch: str | None, symbols: frozenset[str]) -> bool:
    """Whether the conditions of a target on the processor hold; each target has at least one."""
    own = {s.removeprefix("CONFIG_"): value for s, value in kconfig.items() if _OF_PROCESSOR.fullmatch(s)}
    if not own or any((value == "y") != (symbol in symbols) for symbol, value in own.items()):
        return False
    # The ISA of a RISC-V processor is not a condition; the FPU is an option, its precision is not.
    double = kconfig.get("CONFIG_CPU_HAS_FPU_DOUBLE_PRECISION")
    if machine == "riscv" and double and (double == "y") != ("CPU_HAS_FPU_DOUBLE_PRECISION" in symbols):
        return False
    needed = isa_extensions(arch) & set(_INTEGER) if machine == "riscv" and arch else frozenset()
    return all(f"RISCV_ISA_EXT_{extension.upper()}" in symbols for extension in needed)


def processor_symbols(board: str, workspace: Workspace | None) -> frozenset[str] | None:
    """Return the symbols of Kconfig (without CONFIG_) that a board's processor selects; None if unknown."""
    name = re.sub("@[^/]*", "", board)  # the revision
    if re.match(r"native_(sim|posix)(_64)?(/|$)", name):
        return frozenset(["ARCH_POSIX", *(["64BIT"] if name.endswith(("/64", "_64")) else [])])
    if name in _SIMULATED:
        return frozenset(_SIMULATED[name].split())
    if workspace is None or workspace.version is None:
        return None
    if workspace.version.pair < QUALIFIERS:
        roots, where = _symbols_of_defconfig(name, workspace), [workspace.base / "soc"]
    else:
        roots, where = _symbols_of_soc(name, workspace)
    symbols = _closure(roots, _selects(where))
    processors = {symbol for symbol in symbols if _CPU.fullmatch(symbol)}
    known = len(processors) == 1 or symbols & {"RISCV", "ARCH_POSIX"}
    return frozenset(symbols) if known else None


def _symbols_of_defconfig(board: str, workspace: Workspace) -> list[str]:
    """Return the SoC of a board before Zephyr 3.7: its defconfig sets it."""
    for file in (workspace.base / "boards").glob(f"*/*/{board}_defconfig"):
        return re.findall(r"^CONFIG_(\w+)=y", read_text(file), re.MULTILINE)
    return []


def _symbols_of_soc(board: str, workspace: Workspace) -> tuple[list[str], list[Path]]:
    """Return the symbols of a board's SoC and CPU cluster, and the directories of its SoC.

    `config SOC` has the name of the SoC (`default "nrf5340" if SOC_NRF5340_CPUAPP_QKAA`); symbols of clusters contain
    the qualifiers in upper case.
    """
    plain, _, qualifiers = board.partition("/")
    full = workspace.boards.get(plain, frozenset())
    socs = {one.split("/")[1] for one in full if one.count("/") and one.split("/")[1]}
    soc, *rest = qualifiers.split("/") if qualifiers else [""]
    soc = soc or (next(iter(socs)) if len(socs) == 1 else "")
    if not soc:
        return [], []
    folders = [
        file.parent
        for file in sorted((workspace.base / "soc").rglob("soc.yml"))
        if re.search(rf"^\s*-?\s*name:\s*{re.escape(soc)}\s*$", read_text(file), re.MULTILINE)
    ]
    named = re.compile(rf'^\s*default\s+"{re.escape(soc)}"\s+if\s+(.+)$', re.MULTILINE)
    found = [
        symbol
        for text in _kconfig(folders)
        for condition in named.findall(text)
        for symbol in re.findall(r"SOC_\w+", condition)
    ]
    # Only the symbols of the CPU cluster, if the board has one.
    clusters = [symbol for symbol in found if rest and rest[0].upper() in symbol.split("_")]
    return clusters or [*found, "_".join(["SOC", soc, *rest]).upper()], folders


def _kconfig(folders: Iterable[Path]) -> Iterator[str]:
    for folder in folders:
        for file in sorted(folder.rglob("Kconfig*")):
            yield read_text(file)


def _selects(folders: Iterable[Path]) -> dict[str, set[str]]:
    """Return the unconditional selections of the symbols in the Kconfig files of directories."""
    found: dict[str, set[str]] = {}
    for text in _kconfig(folders):
        current = ""
        for line in text.splitlines():
            if match := re.match(r"\s*config\s+(\w+)\s*$", line):
                current = match[1]
            elif match := re.match(r"\s*select\s+(\w+)\s*(?:#.*)?$", line):
                found.setdefault(current, set()).add(match[1])
    return found


def _closure(roots: Iterable[str], selects: Mapping[str, set[str]]) -> set[str]:
    found = set(roots)
    pending = list(found)
    while pending:
        for symbol in selects.get(pending.pop(), ()):
            if symbol not in found:
                found.add(symbol)
                pending.append(symbol)
    return found
