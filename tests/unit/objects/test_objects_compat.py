# SPDX-License-Identifier: Apache-2.0
"""Which objects link for which targets."""

import pytest
from opwest.objects.compat import TargetAbi, abi_faults, isa_extensions, runs_on
from opwest.objects.facts import Abi, FloatAbi

HOST = TargetAbi("x86-64", "x86-64", 64, "little")
M3 = TargetAbi("cortex-m3", "arm", 32, "little", "v7-M", "soft")


def arm(arch: str | None = "v7-M", float_abi: FloatAbi | None = "soft", eabi: int = 5) -> Abi:
    return Abi("arm", 32, "little", arch, float_abi, eabi)


def test_machine_word_size_and_byte_order() -> None:
    assert abi_faults(Abi("x86-64", 64, "little"), HOST) == []
    for abi in (Abi("i386", 32, "little"), Abi("x86-64", 32, "little"), arm()):
        (fault,) = abi_faults(abi, HOST)
        assert fault.message.startswith(f"compiled for {abi.machine}, {abi.bits} bits")
        assert fault.expected == "x86-64, 64 bits, little-endian"
        assert "gcc -m64" in fault.hint
    (fault,) = abi_faults(Abi("arm", 32, "big", "v7-M", "soft", 5), M3)
    assert "big-endian" in fault.message and "-march=armv7-m" in fault.hint


M_ORDER = ["v6S-M", "v7-M", "v7E-M", "v8-M.mainline", "v8.1-M.mainline"]


def test_architectures_of_the_m_profile() -> None:
    for index, target in enumerate(M_ORDER):
        for other, arch in enumerate(M_ORDER):
            assert runs_on(arch, target) == (other <= index), (arch, target)
    assert runs_on("v6S-M", "v8-M.baseline") and runs_on("v8-M.baseline", "v8.1-M.mainline")
    assert not runs_on("v7-M", "v8-M.baseline") and not runs_on("v8-M.baseline", "v7E-M")


def test_architecture_profiles_are_incompatible() -> None:
    for arch in ("v4T", "v5TE", "v7", "v7-A", "v7-R", "v8-A", "v8-R", "unknown-99"):
        assert not any(runs_on(arch, target) for target in M_ORDER)
    assert not any(runs_on(arch, "v7-A") for arch in M_ORDER)
    assert runs_on("v5TE", "v7-A") and runs_on("v7-A", "v8-A") and runs_on("v7-R", "v8-R")
    assert not runs_on("v7-A", "v7-R") and not runs_on("v8-A", "v7-A")


def test_architecture_fault() -> None:
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
def test_float_abi_of_arm(seen: FloatAbi | None, required: FloatAbi | None, links: bool) -> None:
    target = TargetAbi("board", "arm", 32, "little", "v7-M", required)
    faults = abi_faults(arm(float_abi=seen), target)
    assert (faults == []) == links
    for fault in faults:
        assert fault.expected == f"-mfloat-abi={required}" and f"-mfloat-abi={required}" in fault.hint


def test_hard_float_is_explained() -> None:
    (fault,) = abi_faults(arm(float_abi="hard"), M3)
    assert fault.message == "passes floating-point arguments in FPU registers (hard float ABI)"


def test_eabi() -> None:
    (fault,) = abi_faults(arm(eabi=0), M3)
    assert "obsolete GNU ABI" in fault.message and fault.expected == "EABI version 5"
    (fault,) = abi_faults(arm(eabi=4), M3)
    assert "EABI version 4" in fault.message


def test_several_faults_are_all_reported() -> None:
    assert len(abi_faults(arm("v8-A", "hard", 4), M3)) == 3


def test_riscv() -> None:
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


def test_isa_strings() -> None:
    assert isa_extensions("rv64gc") >= {"i", "m", "a", "f", "d", "c", "zicsr", "zifencei"}
    assert isa_extensions("rv32i2p0_m2p0_zba1p0") == {"i", "e", "m", "zmmul", "zba"}
    assert isa_extensions("rv32e") == {"e"}
    assert isa_extensions("rv32imc_zicsr_xvendor1p0") >= {"zicsr", "xvendor"}
