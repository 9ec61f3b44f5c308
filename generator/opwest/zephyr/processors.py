# SPDX-License-Identifier: Apache-2.0
"""The processor of a board, and the named targets that its firmware can select.

A processor determines some symbols of Kconfig (`CONFIG_CPU_CORTEX_M4`). Options of the firmware, such as `CONFIG_FPU`,
are unknown before its build, so a board has one target for each combination of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from opwest.model.types.builds import Target
from opwest.objects.compat import isa_extensions
from opwest.objects.flash import Flash, flash_of_symbols
from opwest.objects.targets import named_targets
from opwest.zephyr.workspace import Workspace

if TYPE_CHECKING:
    from opwest.zephyr.configuration import Configuration

_OF_PROCESSOR = re.compile(r"CONFIG_(CPU_CORTEX_\w+|ARCH_POSIX|RISCV|RISCV_ISA_RV32E|RISCV_ISA_EXT_[MAC]|64BIT)")
_CPU = re.compile(r"CPU_CORTEX_[AMR]\d+(PLUS)?")
_OTHERS = {
    "XTENSA": "Xtensa",
    "ARC": "ARC",
    "X86": "x86",
    "SPARC": "SPARC",
    "MIPS": "MIPS",
    "RX": "RX",
    "NIOS2": "Nios II",
    "ARM64": "AArch64",
}
"""Architectures without a named target, and generic cores."""
_INTEGER = ("m", "a", "c")
_IMAC = "RISCV RISCV_ISA_EXT_M RISCV_ISA_EXT_A RISCV_ISA_EXT_C"
_M55 = "CPU_CORTEX_M55 CPU_HAS_FPU ARMV8_M_DSP ARMV8_1_M_MVEI ARMV8_1_M_MVEF"
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
    "mps3/corstone300/an547": _M55,
    "mps3/corstone300/fvp": _M55,
    "mps2_an385": "CPU_CORTEX_M3",
    "mps2_an521": "CPU_CORTEX_M33",
    "mps3_an547": _M55,
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
    own = of_processor(kconfig)
    if not own or any((value == "y") != (s.removeprefix("CONFIG_") in symbols) for s, value in own.items()):
        return False
    # The FPU of a RISC-V processor is an option, its precision is not.
    double = kconfig.get("CONFIG_CPU_HAS_FPU_DOUBLE_PRECISION")
    if machine == "riscv" and double and (double == "y") != ("CPU_HAS_FPU_DOUBLE_PRECISION" in symbols):
        return False
    needed = isa_extensions(arch) & set(_INTEGER) if machine == "riscv" and arch else frozenset()
    return all(f"RISCV_ISA_EXT_{extension.upper()}" in symbols for extension in needed)


def of_processor(kconfig: Mapping[str, str]) -> dict[str, str]:
    """Return the conditions of a target that are properties of the processor: options of a build do not change them."""
    return {symbol: value for symbol, value in kconfig.items() if _OF_PROCESSOR.fullmatch(symbol)}


def processor_symbols(board: str, workspace: Workspace | None) -> frozenset[str] | None:
    """Return the symbols of Kconfig (without CONFIG_) of a board's firmware; None if its processor is unknown.

    They include options such as FPU, as the board configures them.
    """
    symbols = simulated_symbols(board)
    if symbols is None and workspace is not None:
        configuration = known_configuration(board, workspace)
        symbols = configuration.true() if configuration is not None else None
    return symbols if symbols is not None and architecture(symbols) else None


def flash_of_board(board: str, workspace: Workspace | None) -> Flash | None:
    """Return the flash of a board's SoC; None if it is unknown: the SoC has no row, or no tree has the board."""
    return flash_of_symbols(processor_symbols(board, workspace) or ())


def simulated_symbols(board: str) -> frozenset[str] | None:
    """Return the symbols of Kconfig that the processor of a simulated board selects; None for any other board."""
    name = re.sub("@[^/]*", "", board)  # the revision
    if re.match(r"native_(sim|posix)(_64)?(/|$)", name):
        return frozenset(["ARCH_POSIX", "64BIT"] if name.endswith(("/64", "_64")) else ["ARCH_POSIX"])
    return frozenset(_SIMULATED[name].split()) if name in _SIMULATED else None


def known_configuration(board: str, workspace: Workspace | None) -> Configuration | None:
    """Return the configuration of a board, from the tree if there is one; None if it is unknown."""
    from opwest.zephyr.configuration import board_configuration, standalone  # only for boards

    if workspace is not None:
        return board_configuration(board, workspace)
    symbols = simulated_symbols(board)
    return standalone(symbols) if symbols is not None else None


def architecture(symbols: frozenset[str]) -> str | None:
    """Return the name of a processor, None if the symbols are those of no processor."""
    if "ARCH_POSIX" in symbols:
        return "POSIX, 64 bits" if "64BIT" in symbols else "POSIX, 32 bits"
    if "RISCV" in symbols:
        return f"RISC-V {riscv_isa(symbols)}"
    cores = sorted(symbol for symbol in symbols if _CPU.fullmatch(symbol))
    if len(cores) == 1:
        family, number = cores[0].removeprefix("CPU_CORTEX_")[0], cores[0].removeprefix("CPU_CORTEX_")[1:]
        return f"Cortex-{family}{number.replace('PLUS', '+')}"
    return next((name for symbol, name in _OTHERS.items() if symbol in symbols and not cores), None)


def has_options_of_fpu(symbols: frozenset[str]) -> bool:
    """Whether CPU_HAS_FPU and FPU determine the use of a processor's FPU; Xtensa's compilers use it without them."""
    return not symbols.isdisjoint(["ARCH_POSIX", "RISCV"]) or any(_CPU.fullmatch(symbol) for symbol in symbols)


def riscv_isa(symbols: frozenset[str]) -> str:
    """Return the ISA of a RISC-V processor, such as rv32imac, without the extensions of names with several letters."""
    base = "rv64i" if "64BIT" in symbols else "rv32e" if "RISCV_ISA_RV32E" in symbols else "rv32i"
    double = "CPU_HAS_FPU_DOUBLE_PRECISION" in symbols
    floats = ("fd" if double else "f") if "CPU_HAS_FPU" in symbols else ""
    m, a, c = (letter if f"RISCV_ISA_EXT_{letter.upper()}" in symbols else "" for letter in _INTEGER)
    return f"{base}{m}{a}{floats}{c}"
