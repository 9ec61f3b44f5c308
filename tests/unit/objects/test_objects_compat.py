# SPDX-License-Identifier: Apache-2.0
"""Which objects link for which targets."""

import subprocess
from dataclasses import replace

import pytest
from objects_factory import compile_object
from opwest.objects.compat import TargetAbi, abi_faults, abi_warnings, isa_extensions, runs_on
from opwest.objects.facts import Abi
from opwest.objects.inspect import read_member
from requirements_support import need

HOST = TargetAbi("x86-64", "x86-64", 64, "little")
M3 = TargetAbi("cortex-m3", "arm", 32, "little", "v7-M", "soft")


def arm(arch="v7-M", float_abi="soft", eabi=5):
    return Abi("arm", 32, "little", arch, float_abi, eabi)


def test_machine_word_size_and_byte_order():
    assert abi_faults(Abi("x86-64", 64, "little"), HOST) == []
    for abi in (Abi("i386", 32, "little"), Abi("x86-64", 32, "little"), arm()):
        (fault,) = abi_faults(abi, HOST)
        assert fault.message.startswith(f"compiled for {abi.machine}, {abi.bits} bits")
        assert fault.expected == "x86-64, 64 bits, little-endian"
        assert "gcc -m64" in fault.hint
    (fault,) = abi_faults(Abi("arm", 32, "big", "v7-M", "soft", 5), M3)
    assert "big-endian" in fault.message and "-march=armv7-m" in fault.hint


M_ORDER = ["v6S-M", "v7-M", "v7E-M", "v8-M.mainline", "v8.1-M.mainline"]


def test_architectures_of_the_m_profile():
    for index, target in enumerate(M_ORDER):
        for other, arch in enumerate(M_ORDER):
            assert runs_on(arch, target) == (other <= index), (arch, target)
    assert runs_on("v6S-M", "v8-M.baseline") and runs_on("v8-M.baseline", "v8.1-M.mainline")
    assert not runs_on("v7-M", "v8-M.baseline") and not runs_on("v8-M.baseline", "v7E-M")


def test_architecture_profiles_are_incompatible():
    for arch in ("v4T", "v5TE", "v7", "v7-A", "v7-R", "v8-A", "v8-R", "unknown-99"):
        assert not any(runs_on(arch, target) for target in M_ORDER)
    assert not any(runs_on(arch, "v7-A") for arch in M_ORDER)
    assert runs_on("v5TE", "v7-A") and runs_on("v7-A", "v8-A") and runs_on("v7-R", "v8-R")
    assert not runs_on("v7-A", "v7-R") and not runs_on("v8-A", "v7-A")


def test_architecture_fault():
    (fault,) = abi_faults(arm("v7E-M"), M3)
    assert fault.message == "compiled for the Arm architecture v7E-M"
    assert fault.expected == "v7-M or an older compatible architecture"
    assert "-march=armv7-m" in fault.hint and "cortex-m3" in fault.hint
    assert abi_faults(arm(None), M3) == []


@pytest.mark.parametrize(
    ("seen", "required", "links"),
    [
        ("soft", "soft", True),
        ("softfp", "soft", False),
        ("hard", "soft", False),
        ("soft", "softfp", True),
        ("softfp", "softfp", True),
        ("hard", "softfp", False),
        ("soft", "hard", False),
        ("softfp", "hard", False),
        ("hard", "hard", True),
        ("any", "soft", True),
        ("any", "hard", True),
        (None, "hard", True),
        ("hard", None, True),
    ],
)
def test_float_abi_of_arm(seen, required, links):
    target = TargetAbi("board", "arm", 32, "little", "v7-M", required)
    faults = abi_faults(arm(float_abi=seen), target)
    assert (faults == []) == links
    for fault in faults:
        assert fault.expected == f"-mfloat-abi={required}" and f"-mfloat-abi={required}" in fault.hint


def test_hard_float_is_explained():
    (fault,) = abi_faults(arm(float_abi="hard"), M3)
    assert fault.message == "passes floating-point arguments in FPU registers (hard float ABI)"


def test_eabi():
    (fault,) = abi_faults(arm(eabi=0), M3)
    assert "obsolete GNU ABI" in fault.message and fault.expected == "EABI version 5"
    (fault,) = abi_faults(arm(eabi=4), M3)
    assert "EABI version 4" in fault.message


def test_several_faults_are_all_reported():
    assert len(abi_faults(arm("v8-A", "hard", 4), M3)) == 3


def test_riscv():
    target = TargetAbi("riscv32", "riscv", 32, "little", "rv32imac", "soft")
    good = Abi("riscv", 32, "little", "rv32i2p1_m2p0_a2p1_c2p0_zmmul1p0", "soft")
    assert abi_faults(good, target) == []
    assert abi_faults(Abi("riscv", 32, "little", None, "soft"), target) == []
    float_fault, isa_fault = abi_faults(Abi("riscv", 32, "little", "rv32i2p1_f2p2_d2p2_zicsr2p0", "double"), target)
    assert float_fault.message == "has the double float ABI (ilp32d)"
    assert float_fault.expected == "-mabi=ilp32"
    assert "d, f, zicsr" in isa_fault.message and "-march=rv32imac" in isa_fault.hint
    (fault,) = abi_faults(Abi("i386", 32, "little"), target)
    assert "-march=rv32imac -mabi=ilp32`" in fault.hint


def test_isa_strings():
    assert isa_extensions("rv64gc") >= {"i", "m", "a", "f", "d", "c", "zicsr", "zifencei"}
    assert isa_extensions("rv32i2p0_m2p0_zba1p0") == {"i", "e", "m", "zmmul", "zba"}
    assert isa_extensions("rv32e") == {"e"}
    assert isa_extensions("rv32imc_zicsr_xvendor1p0") >= {"zicsr", "xvendor"}


# --- Build attributes besides the calling convention, and their comparison with targets

ARM, RISCV = "arm-none-eabi-gcc", "riscv64-unknown-elf-gcc"
SOURCE = "enum e { A, B }; enum e state(enum e x) { return x; } __WCHAR_TYPE__ wide(__WCHAR_TYPE__ x) { return x; }"
HARD = "-mfloat-abi=hard"
M33 = TargetAbi("cortex-m33", "arm", 32, "little", "v8-M.mainline", "soft")
M7 = TargetAbi("cortex-m7", "arm", 32, "little", "v7E-M", "hard")
M55 = TargetAbi("cortex-m55", "arm", 32, "little", "v8.1-M.mainline", "hard")


def abi_of(tmp_path, flags, compiler=ARM):
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
def test_attributes_written_by_gcc(tmp_path, flags, details):
    abi = abi_of(tmp_path, ["-mthumb", *flags])
    assert {name: getattr(abi, name) for name in details} == details


def test_tool_chain_of_zephyr_has_short_enumerations(tmp_path):
    """The compiler's default with the flags Zephyr gives (cmake/compiler/gcc/target_arm.cmake) is expected."""
    abi = abi_of(tmp_path, ["-mcpu=cortex-m33", "-mthumb", "-mabi=aapcs", "-ffreestanding"])
    assert (abi.enum_size, abi.wchar_size) == (M33.enum_size, M33.wchar_size) == ("short", 4)
    assert abi_warnings(abi, M33) == []


def test_sizes_of_enumerations_and_wchar_are_warnings(tmp_path):
    need("arm-none-eabi-ld")
    flags = ["-mcpu=cortex-m33", "-mthumb"]
    abi = abi_of(tmp_path, [*flags, "-fno-short-enums", "-fshort-wchar"])
    assert abi_faults(abi, M33) == []
    enum, wchar = abi_warnings(abi, M33)
    assert enum.expected == "-fshort-enums" and "enumerations of 4 bytes" in enum.message
    assert wchar.expected == "-fno-short-wchar" and "wchar_t of 2 bytes" in wchar.message
    # GNU ld reports the same.
    other = compile_object(tmp_path, SOURCE.replace("state", "two").replace("wide", "three"), ARM, flags, name="two.o")
    command = ["arm-none-eabi-ld", "-r", "-o", tmp_path / "x.o", other, tmp_path / "operators.o"]
    warnings = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    assert "32-bit enums yet the output is to use variable-size enums" in warnings and "2-byte wchar_t" in warnings


def test_clang_has_enumerations_of_int(tmp_path):
    abi = abi_of(tmp_path, ["--target=thumbv7m-none-unknown-eabi"], "clang")
    assert abi.enum_size == "int" and len(abi_warnings(abi, M33)) == 1
    assert abi_warnings(abi, replace(M33, enum_size="int")) == []


def test_static_base_register(tmp_path):
    path = compile_object(
        tmp_path, "int n; int op(void) { return n++; }", "clang", ["--target=thumbv7em-none-unknown-eabi", "-frwpi"]
    )
    abi = read_member("x.o", path.read_bytes()).abi
    assert abi.static_base
    (fault,) = abi_faults(abi, M33)
    assert "static base in R9" in fault.message and "-frwpi" in fault.hint


def test_optional_parts_of_a_processor(tmp_path):
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


def test_be8_flag_is_set_by_linkers_only(tmp_path):
    flags = ["-mcpu=cortex-r5", "-marm", "-mbig-endian"]
    target = TargetAbi("cortex-r5", "arm", 32, "big", "v7-R", "soft")
    content = bytearray(compile_object(tmp_path, SOURCE, ARM, flags).read_bytes())
    assert abi_faults(read_member("x.o", bytes(content)).abi, target) == []
    content[37] |= 0x80  # EF_ARM_BE8 in e_flags
    (fault,) = abi_faults(read_member("x.o", bytes(content)).abi, target)
    assert "BE8" in fault.message


def test_riscv_flags(tmp_path):
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
