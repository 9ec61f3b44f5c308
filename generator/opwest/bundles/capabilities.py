# SPDX-License-Identifier: Apache-2.0
"""The capabilities of processors that code requires: OPWEST_BUNDLE_CPU_* of opwest/bundle_format.h."""

from __future__ import annotations

from opwest.objects.compat import isa_extensions
from opwest.objects.facts import Abi

NAMES = (
    "ARMV6M", "ARMV7M", "ARMV8M_BASE", "ARMV8M_MAIN", "ARMV81M_MAIN", "ARM_DSP", "ARM_FP_HALF", "ARM_FP_SINGLE",
    "ARM_FP_DOUBLE", "ARM_MVE", "ARM_MVE_FP", None, "RISCV_E", "RISCV_M", "RISCV_A", "RISCV_F", "RISCV_D", "RISCV_C",
    "RISCV_B", "RISCV_V",
)  # fmt: skip
"""The name of each bit, from the lowest one."""

OTHER = 0x80000000
"""An extension without a bit of its own."""

_BITS = {name: 1 << bit for bit, name in enumerate(NAMES) if name}

_ARM = {
    "v6-M": "ARMV6M",
    "v6S-M": "ARMV6M",
    "v7-M": "ARMV7M",
    "v7E-M": "ARMV7M",
    "v8-M.baseline": "ARMV8M_BASE",
    "v8-M.mainline": "ARMV8M_MAIN",
    "v8.1-M.mainline": "ARMV81M_MAIN",
}

# Empty: an extension without instructions that generated code contains.
_RISCV = {
    "m": "RISCV_M", "a": "RISCV_A", "f": "RISCV_F", "d": "RISCV_D", "c": "RISCV_C", "v": "RISCV_V",
    "zicsr": "", "zifencei": "", "zmmul": "RISCV_M", "zaamo": "RISCV_A", "zalrsc": "RISCV_A", "zca": "RISCV_C",
    "zcf": "RISCV_C", "zcd": "RISCV_C", "zba": "RISCV_B", "zbb": "RISCV_B", "zbs": "RISCV_B", "b": "RISCV_B",
    "i": "", "e": "", "g": "", "zicntr": "", "zihpm": "",
}  # fmt: skip


def capabilities(abi: Abi) -> int:
    """Return the capabilities that code with an ABI requires; 0 for machines without them, such as x86."""
    if abi.machine == "arm":
        return _arm(abi)
    return _riscv(abi) if abi.machine == "riscv" else 0


def _arm(abi: Abi) -> int:
    name = _ARM.get(abi.arch or "")
    extensions = {
        "ARM_DSP": abi.arch == "v7E-M" or abi.dsp,
        "ARM_FP_SINGLE": abi.fpu in ("single", "double"),
        "ARM_FP_DOUBLE": abi.fpu == "double",
        "ARM_MVE": abi.mve in ("integer", "float"),
        "ARM_MVE_FP": abi.mve == "float",
    }
    return (_BITS[name] if name else OTHER) | sum(_BITS[bit] for bit, is_used in extensions.items() if is_used)


def _riscv(abi: Abi) -> int:
    bits = _BITS["RISCV_E"] if abi.rve else 0
    bits |= _BITS["RISCV_C"] if abi.rvc else 0
    for extension in isa_extensions(abi.arch or ""):
        of_v = "RISCV_V" if extension.startswith(("zve", "zvl")) else None  # zve*, zvl*: parts of V
        name = _RISCV.get(extension, of_v)
        bits |= OTHER if name is None else _BITS[name] if name else 0
    return bits


def names(cpu: int) -> list[str]:
    """Return the names of the bits that are set; of an unknown bit, its value."""
    known = [name or f"0x{1 << bit:x}" for bit, name in enumerate(NAMES) if cpu >> bit & 1]
    rest = cpu & ~((1 << len(NAMES)) - 1)
    return known + [f"0x{1 << bit:x}" if 1 << bit != OTHER else "OTHER" for bit in range(32) if rest >> bit & 1]
