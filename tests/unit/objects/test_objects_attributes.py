# SPDX-License-Identifier: Apache-2.0
"""Build attributes besides the calling convention, and their comparison with targets."""

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from objects_factory import compile_object
from opwest.objects.compat import TargetAbi, abi_faults, abi_warnings
from opwest.objects.facts import Abi
from opwest.objects.inspect import read_member
from requirements_support import need

ARM, RISCV = "arm-none-eabi-gcc", "riscv64-unknown-elf-gcc"
SOURCE = "enum e { A, B }; enum e state(enum e x) { return x; } __WCHAR_TYPE__ wide(__WCHAR_TYPE__ x) { return x; }"
HARD = "-mfloat-abi=hard"
M33 = TargetAbi("cortex-m33", "arm", 32, "little", "v8-M.mainline", "soft")
M7 = TargetAbi("cortex-m7", "arm", 32, "little", "v7E-M", "hard")
M55 = TargetAbi("cortex-m55", "arm", 32, "little", "v8.1-M.mainline", "hard")


def abi_of(tmp_path: Path, flags: list[str], compiler: str = ARM) -> Abi:
    path = compile_object(tmp_path, SOURCE, compiler, flags)
    return read_member(path.name, path.read_bytes()).abi


@pytest.mark.parametrize(
    ("flags", "details"),
    [
        (["-mcpu=cortex-m3"], {"fpu": "none", "mve": "none", "dsp": None, "static_base": False, "be8": False}),
        (["-mcpu=cortex-m33"], {"dsp": True}),
        (["-mcpu=cortex-m33+nodsp"], {"dsp": None}),
        (["-mcpu=cortex-m4", HARD], {"fpu": "single"}),
        (["-mcpu=cortex-m4", "-mfloat-abi=soft"], {"fpu": "none"}),
        (["-mcpu=cortex-m7", "-mfpu=fpv5-sp-d16", HARD], {"fpu": "single"}),
        (["-mcpu=cortex-m7", "-mfpu=fpv5-d16", HARD], {"fpu": "double"}),
        (["-mcpu=cortex-m55", HARD], {"mve": "float", "fpu": "double"}),
        (["-mcpu=cortex-m55+nomve.fp", HARD], {"mve": "integer", "fpu": "double"}),
        (["-mcpu=cortex-m55+nomve", HARD], {"mve": "none", "fpu": "double"}),
        (["-mcpu=cortex-m55+nofp", HARD], {"mve": "integer", "fpu": "none"}),
        (["-mcpu=cortex-m3"], {"enum_size": "short", "wchar_size": 4}),
        (["-mcpu=cortex-m3", "-fno-short-enums", "-fshort-wchar"], {"enum_size": "int", "wchar_size": 2}),
    ],
)
def test_attributes_written_by_gcc(tmp_path: Path, flags: list[str], details: dict[str, Any]) -> None:
    abi = abi_of(tmp_path, ["-mthumb", *flags])
    assert {name: getattr(abi, name) for name in details} == details


def test_tool_chain_of_zephyr_has_short_enumerations(tmp_path: Path) -> None:
    """The compiler's default with the flags Zephyr gives (cmake/compiler/gcc/target_arm.cmake) is expected."""
    abi = abi_of(tmp_path, ["-mcpu=cortex-m33", "-mthumb", "-mabi=aapcs", "-ffreestanding"])
    assert (abi.enum_size, abi.wchar_size) == (M33.enum_size, M33.wchar_size) == ("short", 4)
    assert abi_warnings(abi, M33) == []


def test_sizes_of_enumerations_and_wchar_are_warnings(tmp_path: Path) -> None:
    need("arm-none-eabi-ld")
    flags = ["-mcpu=cortex-m33", "-mthumb"]
    abi = abi_of(tmp_path, [*flags, "-fno-short-enums", "-fshort-wchar"])
    assert abi_faults(abi, M33) == []
    enum, wchar = abi_warnings(abi, M33)
    assert enum.warning and enum.expected == "-fshort-enums" and "enumerations of 4 bytes" in enum.message
    assert wchar.warning and wchar.expected == "-fno-short-wchar" and "wchar_t of 2 bytes" in wchar.message
    # GNU ld reports the same.
    other = compile_object(tmp_path, SOURCE.replace("state", "two").replace("wide", "three"), ARM, flags, name="two.o")
    command = ["arm-none-eabi-ld", "-r", "-o", tmp_path / "x.o", other, tmp_path / "operators.o"]
    warnings = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    assert "32-bit enums yet the output is to use variable-size enums" in warnings and "2-byte wchar_t" in warnings


def test_clang_has_enumerations_of_int(tmp_path: Path) -> None:
    abi = abi_of(tmp_path, ["--target=thumbv7m-none-unknown-eabi"], "clang")
    assert abi.enum_size == "int" and len(abi_warnings(abi, M33)) == 1
    assert abi_warnings(abi, replace(M33, enum_size="int")) == []


def test_static_base_register(tmp_path: Path) -> None:
    path = compile_object(
        tmp_path, "int n; int op(void) { return n++; }", "clang", ["--target=thumbv7em-none-unknown-eabi", "-frwpi"]
    )
    abi = read_member("x.o", path.read_bytes()).abi
    assert abi.static_base
    (fault,) = abi_faults(abi, M33)
    assert "static base in R9" in fault.message and "-frwpi" in fault.hint and not fault.warning


def test_optional_parts_of_a_processor(tmp_path: Path) -> None:
    m33 = abi_of(tmp_path, ["-mcpu=cortex-m33", "-mthumb"])
    assert abi_faults(m33, M33) == [] == abi_faults(m33, replace(M33, dsp=True))
    (fault,) = abi_faults(m33, replace(M33, dsp=False))
    assert fault.message == "uses the DSP instructions" and "+nodsp" in fault.hint
    m55 = abi_of(tmp_path, ["-mcpu=cortex-m55", "-mthumb", HARD])
    assert abi_faults(m55, M55) == [] == abi_faults(m55, replace(M55, mve="float", fpu="double"))
    (fault,) = abi_faults(m55, replace(M55, mve="integer"))
    assert fault.message == "uses the M-profile vector extension (MVE, float)" and "+nomve.fp" in fault.hint
    (fault,) = abi_faults(m55, replace(M55, mve="none"))
    assert fault.expected == "no vector extension"
    m7 = abi_of(tmp_path, ["-mcpu=cortex-m7", "-mfpu=fpv5-d16", "-mthumb", HARD])
    assert abi_faults(m7, M7) == [] == abi_faults(m7, replace(M7, fpu="double"))
    (fault,) = abi_faults(m7, replace(M7, fpu="single"))
    assert fault.message == "uses double-precision FPU instructions" and "fpv5-sp-d16" in fault.hint
    single = abi_of(tmp_path, ["-mcpu=cortex-m4", "-mthumb", HARD])
    assert abi_faults(single, replace(M7, fpu="single")) == []


def test_be8_flag_is_set_by_linkers_only(tmp_path: Path) -> None:
    flags = ["-mcpu=cortex-r5", "-marm", "-mbig-endian"]
    target = TargetAbi("cortex-r5", "arm", 32, "big", "v7-R", "soft")
    content = bytearray(compile_object(tmp_path, SOURCE, ARM, flags).read_bytes())
    assert abi_faults(read_member("x.o", bytes(content)).abi, target) == []
    content[37] |= 0x80  # EF_ARM_BE8 in e_flags
    (fault,) = abi_faults(read_member("x.o", bytes(content)).abi, target)
    assert "BE8" in fault.message


def test_riscv_flags(tmp_path: Path) -> None:
    plain = abi_of(tmp_path, ["-march=rv32im", "-mabi=ilp32"], RISCV)
    assert not plain.rvc and not plain.rve
    compressed = abi_of(tmp_path, ["-march=rv32imc", "-mabi=ilp32"], RISCV)
    assert compressed.rvc
    small = abi_of(tmp_path, ["-march=rv32e", "-mabi=ilp32e"], RISCV)
    assert small.rve
    target = TargetAbi("riscv32", "riscv", 32, "little", "rv32im", "soft")
    assert abi_faults(plain, target) == []
    assert "uses the RISC-V extensions c" in abi_faults(compressed, target)[0].message
    (fault,) = abi_faults(replace(compressed, arch=None), target)
    assert fault.message == "uses compressed instructions (RVC)"
    assert abi_faults(small, target)[0].message == "the ABI of RV32E (16 registers)"
    (fault,) = abi_faults(small, TargetAbi("rv32e", "riscv", 32, "little", "rv32e", "soft")) or [None]
    assert fault is None
    assert abi_faults(plain, TargetAbi("rv32e", "riscv", 32, "little", "rv32em", "soft"))[0].message.endswith(
        "(32 registers)"
    )
