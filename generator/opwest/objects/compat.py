# SPDX-License-Identifier: Apache-2.0
"""Check the ABI of an object against a target before the link, with readable errors."""

from __future__ import annotations

import re
from collections.abc import Iterator

from opwest.base.frozen_dataclass import dataclass
from opwest.base.result import counted
from opwest.objects.facts import Abi, Endian, EnumSize, FloatAbi, Fpu, Mve

EABI_VERSION = 5

# Each M-profile architecture with the older ones that it is compatible with.
_M_OLDER: dict[str, tuple[str, ...]] = {
    "v6-M": (),
    "v6S-M": ("v6-M",),
    "v7-M": ("v6S-M",),
    "v7E-M": ("v7-M",),
    "v8-M.baseline": ("v6S-M",),
    "v8-M.mainline": ("v7E-M", "v8-M.baseline"),
    "v8.1-M.mainline": ("v8-M.mainline",),
}
# The application and real-time profiles, oldest first; v7-A and v7-R are incompatible, as are v8-A and v8-R.
_CLASSIC = ("pre-v4", "v4", "v4T", "v5T", "v5TE", "v5TEJ", "v6", "v6KZ", "v6T2", "v6K", "v7")
_A_PROFILE = (*_CLASSIC, "v7-A", "v8-A", "v8.1-A", "v8.2-A", "v8.3-A", "v9-A")
_R_PROFILE = (*_CLASSIC, "v7-R", "v8-R")
ARM_ARCHITECTURES = (*_M_OLDER, *dict.fromkeys((*_A_PROFILE, *_R_PROFILE)))
ISA_STRING = re.compile(r"rv(32|64)[iegIEG][a-z0-9_]*")
WORD_SIZES = {"x86-64": 64, "i386": 32, "arm": 32, "aarch64": 64}
"""Word sizes in bits of machines with a single one."""
FLOAT_ABIS: dict[str, tuple[FloatAbi, ...]] = {"arm": ("soft", "softfp", "hard"), "riscv": ("soft", "single", "double")}

MARCH = {
    "v6-M": "armv6-m",
    "v6S-M": "armv6s-m",
    "v7-M": "armv7-m",
    "v7E-M": "armv7e-m",
    "v8-M.baseline": "armv8-m.base",
    "v8-M.mainline": "armv8-m.main",
    "v8.1-M.mainline": "armv8.1-m.main",
    "v7-A": "armv7-a",
    "v7-R": "armv7-r",
    "v8-A": "armv8-a",
    "v8-R": "armv8-r",
}
_ARM_FLOAT_SEEN: dict[FloatAbi, str] = {
    "soft": "passes floating-point arguments in integer registers (soft float ABI)",
    "softfp": "uses FPU instructions, with arguments in integer registers (softfp float ABI)",
    "hard": "passes floating-point arguments in FPU registers (hard float ABI)",
}
_RISCV_SUFFIX = {"soft": "", "single": "f", "double": "d", "quad": "q"}
_COMPILERS = {
    "x86-64": "gcc -m64 -c",
    "i386": "gcc -m32 -c",
    "arm": "arm-none-eabi-gcc -mthumb -c",
    "aarch64": "aarch64-none-elf-gcc -c",
    "riscv": "riscv64-unknown-elf-gcc -c",
}


@dataclass(frozen=True, slots=True)
class TargetAbi:
    """The ABI that a target requires; None where any value is accepted."""

    name: str
    machine: str
    bits: int
    endian: Endian
    arch: str | None = None
    float_abi: FloatAbi | None = None
    dsp: bool | None = None
    """Arm: whether a v8-M processor has the DSP instructions (v7E-M always does)."""
    mve: Mve | None = None
    """Arm: which part of the vector extension (Helium) the processor has."""
    fpu: Fpu | None = None
    """Arm: which FPU the processor has."""
    enum_size: EnumSize = "short"
    """Arm: the size of enumerations in the rest of the firmware; see `abi_warnings`."""
    wchar_size: int = 4


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault of an object, of IR or of a payload: message, expected form, hint."""

    message: str
    expected: str | None = None
    hint: str | None = None


def abi_faults(abi: Abi, target: TargetAbi) -> list[Fault]:
    """Return why an object cannot be linked for a target; empty when it can."""
    if (abi.machine, abi.bits, abi.endian) != (target.machine, target.bits, target.endian):
        # Further comparisons require the same machine.
        return [_machine_fault(abi, target)]
    checks = {"arm": _arm_faults, "riscv": _riscv_faults}
    return list(checks[abi.machine](abi, target)) if abi.machine in checks else []


def abi_warnings(abi: Abi, target: TargetAbi) -> list[Fault]:
    """Return differences that are harmless outside of interfaces, as warnings.

    These are the sizes of enumerations and of `wchar_t`. GNU ld warns about them as well, and twister
    treats linker warnings as errors. Zephyr passes neither -fshort-enums nor -fno-short-enums, nor
    -fshort-wchar (cmake/compiler/gcc, cmake/compiler/clang; the one exception is the board nrf_bsim of
    native_sim), so the compiler's default holds: for GCC of the GNU Arm Embedded toolchain and of the Zephyr
    SDK, `-mabi=aapcs` means short enumerations, and `wchar_t` of 4 bytes. clang and LLVM have
    enumerations of `int` by default.
    """
    if abi.machine != "arm" or target.machine != "arm":
        return []
    warnings = []
    if abi.enum_size and abi.enum_size != target.enum_size:
        words = {"short": "enumerations as small as their values allow", "int": "enumerations of 4 bytes"}
        flag = "-fshort-enums" if target.enum_size == "short" else "-fno-short-enums"
        text = f"has {words[abi.enum_size]}; the rest of the firmware has {words[target.enum_size]}"
        hint = f"compile with {flag}; this matters only for functions with an enumeration in their interface"
        warnings.append(Fault(text, flag, hint))
    if abi.wchar_size and abi.wchar_size != target.wchar_size:
        flag = "-fno-short-wchar" if target.wchar_size == 4 else "-fshort-wchar"
        text = f"has a wchar_t of {counted(abi.wchar_size, 'byte')}; the rest of the firmware has {target.wchar_size}"
        hint = f"compile with {flag}; this matters only for functions with wchar_t in their interface"
        warnings.append(Fault(text, flag, hint))
    return warnings


def _machine_fault(abi: Abi, target: TargetAbi) -> Fault:
    command = _COMPILERS.get(target.machine)
    flag = ""
    if target.machine == "arm" and target.arch in MARCH:
        flag = f" -march={MARCH[target.arch]}"
    if target.machine == "riscv":
        abi_name = riscv_abi_name(target.bits, target.float_abi)
        flag = f" -march={target.arch or f'rv{target.bits}imac'} -mabi={abi_name}"
    if target.machine in ("arm", "aarch64") and target.endian == "big":
        flag += " -mbig-endian"
    hint = f"compile for {target.name}"
    return Fault(
        f"compiled for {_machine(abi.machine, abi.bits, abi.endian)}",
        _machine(target.machine, target.bits, target.endian),
        f"{hint}, for example with `{command}{flag}`" if command else hint,
    )


def _machine(machine: str, bits: int, endian: Endian) -> str:
    return f"{machine}, {bits} bits, {endian}-endian"


def runs_on(arch: str, target: str) -> bool:
    """Whether code for the Arm architecture `arch` runs on `target`."""
    if arch == target:
        return True
    if target in _M_OLDER:
        return any(runs_on(arch, older) for older in _M_OLDER[target])
    for profile in (_A_PROFILE, _R_PROFILE):
        if target in profile and arch in profile:
            return profile.index(arch) <= profile.index(target)
    return False


def _arm_faults(abi: Abi, target: TargetAbi) -> Iterator[Fault]:
    # A mismatch of the architecture or of the float ABI explains differences of extensions.
    yield from list(_arm_basic_faults(abi, target)) or _arm_extension_faults(abi, target)
    if abi.static_base:
        expected = "data at absolute addresses: Zephyr does not set R9"
        hint = "compile without -frwpi and -msingle-pic-base"
        yield Fault("accesses writable data relative to a static base in R9", expected, hint)
    if abi.be8:
        hint = "use the .o files from before the link with --be8"
        yield Fault("has little-endian code (BE8), the output of a linker", "an object that is not linked", hint)


def _arm_basic_faults(abi: Abi, target: TargetAbi) -> Iterator[Fault]:
    if abi.eabi is not None and abi.eabi != EABI_VERSION:
        seen = f"EABI version {abi.eabi}" if abi.eabi else "the obsolete GNU ABI (EABI version 0)"
        yield Fault(f"uses {seen}", f"EABI version {EABI_VERSION}", "compile with an arm-none-eabi compiler")
    if abi.arch and target.arch and not runs_on(abi.arch, target.arch):
        march = MARCH.get(target.arch)
        flag = f"with -march={march} -mthumb" if march else f"for Arm {target.arch}"
        expected = f"{target.arch} or an older compatible architecture"
        hint = f"compile {flag}, or with the -mcpu of {target.name}"
        yield Fault(f"compiled for the Arm architecture {abi.arch}", expected, hint)
    yield from _arm_float_faults(abi.float_abi, target)


MVE_ORDER: tuple[Mve, ...] = ("none", "integer", "float")
FPU_ORDER: tuple[Fpu, ...] = ("none", "single", "double")


def _arm_extension_faults(abi: Abi, target: TargetAbi) -> Iterator[Fault]:
    """Yield faults of optional parts of the processor; parts that the target does not specify are not checked."""
    if abi.dsp and target.dsp is False:
        hint = f"compile for {target.name}, with +nodsp appended to -mcpu"
        yield Fault("uses the DSP instructions", "no DSP instructions", hint)
    if abi.mve and target.mve and MVE_ORDER.index(abi.mve) > MVE_ORDER.index(target.mve):
        expected = {"none": "no vector extension", "integer": "its integer instructions only"}[target.mve]
        option = {"none": "+nomve", "integer": "+nomve.fp"}[target.mve]
        hint = f"compile for {target.name}, with {option} appended to -mcpu"
        yield Fault(f"uses the M-profile vector extension (MVE, {abi.mve})", expected, hint)
    if abi.fpu and target.fpu and FPU_ORDER.index(abi.fpu) > FPU_ORDER.index(target.fpu):
        seen = "double-precision" if abi.fpu == "double" else "single-precision"
        expected = {"none": "no FPU", "single": "a single-precision FPU"}[target.fpu]
        option = {"none": "-mfloat-abi=soft", "single": "a single-precision -mfpu such as fpv5-sp-d16"}[target.fpu]
        yield Fault(f"uses {seen} FPU instructions", expected, f"compile with {option}")


def _arm_float_faults(seen: FloatAbi | None, target: TargetAbi) -> Iterator[Fault]:
    """Yield a fault if arguments are passed in other registers, or the target has no FPU."""
    required = target.float_abi
    if seen is None or required is None or seen in ("any", required) or required == "any":
        return
    if (seen, required) == ("soft", "softfp"):
        return
    flag = f"-mfloat-abi={required}"
    hint = f"recompile with {flag}"
    if required == "hard":
        hint += f", and with the -mfpu or -mcpu of {target.name}"
    elif required == "soft" and seen == "softfp":
        hint += f" (the target {target.name} has no FPU)"
    yield Fault(_ARM_FLOAT_SEEN.get(seen, f"has the float ABI {seen}"), flag, hint)


def riscv_abi_name(bits: int, float_abi: str | None) -> str:
    """Return the name of an ABI of RISC-V: `ilp32f`."""
    return ("lp64" if bits == 64 else "ilp32") + _RISCV_SUFFIX.get(float_abi or "soft", "")


def _riscv_faults(abi: Abi, target: TargetAbi) -> Iterator[Fault]:
    explained: frozenset[str] = frozenset()
    if abi.float_abi and target.float_abi and abi.float_abi != target.float_abi:
        explained = _FLOAT_EXTENSIONS
        seen, required = riscv_abi_name(abi.bits, abi.float_abi), riscv_abi_name(target.bits, target.float_abi)
        text = f"has the {abi.float_abi} float ABI ({seen})"
        yield Fault(text, f"-mabi={required}", f"recompile with -mabi={required}")
    if not target.arch:
        return
    hint = f"recompile with -march={target.arch}"
    if abi.rve != (re.match(r"rv(32|64)e", target.arch.lower()) is not None):
        seen, required = (_RVE_SEEN, _RVI_SEEN) if abi.rve else (_RVI_SEEN, _RVE_SEEN)
        yield Fault(seen, required, f"{hint} and the -mabi of {target.name}")
    expected, extensions = f"at most the extensions of {target.arch}", isa_extensions(target.arch)
    if abi.rvc and not abi.arch and not extensions & {"c", "zca"}:
        yield Fault("uses compressed instructions (RVC)", expected, hint)
    missing = sorted(isa_extensions(abi.arch) - extensions) if abi.arch else []
    if not explained.issuperset(missing):
        yield Fault(f"uses the RISC-V extensions {', '.join(missing)} ({abi.arch})", expected, hint)


_FLOAT_EXTENSIONS = frozenset(("f", "d", "q", "zcf", "zcd"))
_RVE_SEEN, _RVI_SEEN = "the ABI of RV32E (16 registers)", "the ABI of RV32I or RV64I (32 registers)"


_IMPLIED: dict[str, tuple[str, ...]] = {
    "g": ("i", "m", "a", "f", "d", "zicsr", "zifencei"),
    "q": ("d",),
    "d": ("f",),
    "f": ("zicsr",),
    "m": ("zmmul",),
    "a": ("zaamo", "zalrsc"),
    "c": ("zca",),
    "i": ("e",),
    "v": ("zve64d", "zvl128b"),
    "b": ("zba", "zbb", "zbs"),
}


def isa_extensions(isa: str) -> frozenset[str]:
    """Return the extensions that an ISA string names or implies, without versions.

    Accepts `rv32i2p1_m2p0_c2p0_zicsr2p0` and `rv32imc_zicsr`.
    """
    text = re.sub(r"^rv(32|64|128)", "", isa.lower())
    extensions: set[str] = set()
    for part in text.split("_"):
        plain = re.sub(r"\d+p\d+", "", part)
        # A part consists of single letters, optionally followed by one name of several letters.
        name = plain.lstrip("abcdefghijklmnopqrtuvwy")
        extensions.update(plain.removesuffix(name), [name] if name else ())
    pending = list(extensions)
    while pending:
        implied = set(_IMPLIED.get(pending.pop(), ())) - extensions
        extensions |= implied
        pending += implied
    if "c" in extensions:  # c with f or d implies the compressed floating-point loads
        extensions.update(f"zc{letter}" for letter in "fd" if letter in extensions)
    return frozenset(extensions)
