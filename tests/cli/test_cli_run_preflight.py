# SPDX-License-Identifier: Apache-2.0
"""What a build lacks, before CMake starts: the tools and the compiler of a machine made of scripts."""

import pytest
from doctor_machines import DEBIAN, script
from opwest.runs.preflight import tool_lacks
from opwest.zephyr.workspace import build_workspace

ARM, RISCV = frozenset({"CPU_CORTEX_M3"}), frozenset({"RISCV", "QEMU_TARGET"})
SDK = "a compiler for {}: a Zephyr SDK 0.16 or newer with its toolchain"


@pytest.fixture
def machine(fake_machine, monkeypatch):
    monkeypatch.setattr("opwest.zephyr.toolchains.examine_system", lambda: DEBIAN)
    monkeypatch.setattr("opwest.base.system.os.geteuid", lambda: 0)
    monkeypatch.setattr("opwest.zephyr.sdk._PLACES", ("~",))
    return fake_machine


def found(symbols, *, started=True, board="b"):
    return tool_lacks(board, build_workspace(), symbols, is_started=started)


def test_an_installed_compiler_replaces_a_missing_sdk(machine, monkeypatch):
    arm = {"ZEPHYR_TOOLCHAIN_VARIANT": "gnuarmemb", "GNUARMEMB_TOOLCHAIN_PATH": str(machine.bin.parent)}
    assert found(ARM) == ([], arm)
    monkeypatch.setenv("ZEPHYR_TOOLCHAIN_VARIANT", "gnuarmemb")
    assert found(ARM) == ([], arm), "the path of the selected compiler"
    monkeypatch.setenv("GNUARMEMB_TOOLCHAIN_PATH", str(machine.bin.parent))
    assert found(ARM) == ([], {})
    monkeypatch.delenv("ZEPHYR_TOOLCHAIN_VARIANT")
    monkeypatch.delenv("GNUARMEMB_TOOLCHAIN_PATH")
    machine.sdk(machine.home / "zephyr-sdk-0.17.0", "0.17.0", "arm-zephyr-eabi")
    assert found(ARM) == ([], {})


def test_a_compiler_for_riscv_needs_libraries_of_zephyrs_isa(machine):
    """Debian's compiler has none: it prints the directory of those for 64 bits."""
    compiler = machine.bin / "riscv64-unknown-elf-gcc"
    sdk = (SDK.format("RISC-V"), f"cd {machine.top} && west sdk install")
    for directory, expected in ((".", ([sdk], {})), ("rv32imac/ilp32", ([], None))):
        script(compiler, f'case "$*" in *-print-multi-directory*) echo {directory};; *) echo 13.2.0;; esac')
        lacks, variables = found(RISCV)
        assert lacks == expected[0]
        prefix = {"ZEPHYR_TOOLCHAIN_VARIANT": "cross-compile", "CROSS_COMPILE": str(compiler).removesuffix("gcc")}
        assert variables == (prefix if expected[1] is None else {})


def test_everything_that_is_missing_is_named(machine, monkeypatch):
    machine.remove("ninja", "arm-none-eabi-gcc", "qemu-system-riscv32")
    script(machine.bin / "cmake", "echo cmake version 3.10.2")
    lacks, variables = found(ARM)
    assert [what for what, _ in lacks] == ["cmake 3.20 or newer (found 3.10.2)", "ninja", SDK.format("Arm")]
    assert (lacks[1][1], variables) == ("apt-get install ninja-build", {})
    monkeypatch.setenv("ZEPHYR_TOOLCHAIN_VARIANT", "gnuarmed")
    monkeypatch.setattr("opwest.zephyr.workspace.Workspace.toolchains", ("gnuarmemb", "zephyr"))
    wrong = "a toolchain of Zephyr: ZEPHYR_TOOLCHAIN_VARIANT is 'gnuarmed', not one of gnuarmemb, zephyr"
    assert (wrong, "unset ZEPHYR_TOOLCHAIN_VARIANT") in found(ARM)[0]
    emulator = ("qemu-system-riscv32", "apt-get install qemu-system-misc")
    assert emulator in found(RISCV)[0] and emulator not in found(RISCV, started=False)[0]
    assert [what for what, _ in found(frozenset(), board="native_sim")[0]] == [lacks[0][0], "ninja"]
