# SPDX-License-Identifier: Apache-2.0
"""The registers that pass arguments in the calling convention of C, and those of other conventions.

Sources: System V ABI for x86-64, 3.2.3; System V ABI for i386, 2.2.3; AAPCS32, 6.4 and 6.1.2; GCC manual, "x86
Function Attributes" and "ARM Function Attributes". Attributes of 64-bit Arm and RISC-V change only which registers a
function preserves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from opwest.objects.facts import Member
from opwest.records import dataclass

STACK = "the stack"
_X86_64: Mapping[str, tuple[str, ...]] = {
    "rdi": ("rdi", "edi", "di", "dil"),
    "rsi": ("rsi", "esi", "si", "sil"),
    "rdx": ("rdx", "edx", "dx", "dl", "dh"),
    "rcx": ("rcx", "ecx", "cx", "cl", "ch"),
    "r8": ("r8", "r8d", "r8w", "r8b"),
    "r9": ("r9", "r9d", "r9w", "r9b"),
}
_I386: Mapping[str, tuple[str, ...]] = {
    "eax": ("eax", "ax", "al", "ah"),
    "edx": ("edx", "dx", "dl", "dh"),
    "ecx": ("ecx", "cx", "cl", "ch"),
}
_ARM_CORE: Mapping[str, tuple[str, ...]] = {f"r{n}": (f"r{n}",) for n in range(4)}
_ARM_FLOATS: Mapping[str, tuple[str, ...]] = {f"s{n}": (f"s{n}", f"d{n // 2}", f"q{n // 4}") for n in range(16)}


@dataclass(frozen=True, slots=True)
class CallRegisters:
    """The registers of a function's arguments."""

    machine: str
    watched: Mapping[str, tuple[str, ...]]
    """Registers that pass arguments in any convention, each with the names that contain a part of it."""
    used: tuple[str, ...]
    """Those that pass an argument of this function in the convention of C, in order."""
    decisive: frozenset[str]
    """The places whose use shows that the function has this convention; STACK for arguments on the stack."""

    @property
    def words(self) -> str:
        """The places of the arguments, for messages."""
        return f"arguments in {', '.join(self.used)}" if self.used else f"arguments on {STACK}"


def call_registers(member: Member, parameters: Sequence[str], result: str) -> CallRegisters | None:
    """Return the registers of a function with C types such as `const int8_t *` and `float`.

    None if every convention of the machine passes these arguments in the same places.
    """
    machine = member.abi.machine
    if machine == "x86-64":
        whole = [one for one in parameters if not is_float(one)]
        used = tuple(_X86_64)[: len(whole)]
        return CallRegisters(machine, _X86_64, used, frozenset(used[:2]))
    if machine == "i386":
        return CallRegisters(machine, _I386, (), frozenset((STACK,) if parameters else ()))
    if machine != "arm" or not any(map(is_float, (*parameters, result))):
        return None
    if member.abi.float_abi == "hard":
        used, floats = _with_float_registers(parameters)
        watched = {**_ARM_CORE, **{name: _ARM_FLOATS[name] for name in floats}}
    else:
        used, floats = _base(parameters)
        watched = {**_ARM_CORE, **_ARM_FLOATS}
    return CallRegisters(machine, watched, used, frozenset(floats))


def is_float(c_type: str) -> bool:
    """Return whether a value is passed as a floating-point number."""
    return c_type.strip() in ("float", "double")


def _is_double_word(c_type: str) -> bool:
    return c_type.strip() in ("double", "int64_t", "uint64_t")


def _base(parameters: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the core registers of AAPCS32, 6.4.1 (base standard), and those of floats."""
    used: list[str] = []
    floats: list[str] = []
    at = 0
    for one in parameters:
        count = 2 if _is_double_word(one) else 1
        at += at % count  # pairs begin at an even register
        taken = [f"r{n}" for n in range(at, at + count) if at + count <= 4]
        used += taken
        floats += taken if is_float(one) else []
        at += count
    return tuple(used), tuple(floats)


def _with_float_registers(parameters: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the registers of AAPCS32, 6.1.2 (variant with registers of the FPU), and those of floats."""
    whole, _ = _base([one for one in parameters if not is_float(one)])
    free = list(range(16))
    floats: list[str] = []
    for one in filter(is_float, parameters):
        count = 2 if _is_double_word(one) else 1
        first = next((n for n in free if n % count == 0 and {n, n + count - 1} <= set(free)), None)
        if first is not None:
            taken = range(first, first + count)
            free = [n for n in free if n not in taken]
            floats += [f"s{n}" for n in taken]
    return (*whole, *floats), tuple(floats)
