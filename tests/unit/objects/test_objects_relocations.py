# SPDX-License-Identifier: Apache-2.0
"""Unresolvable relocations: messages, and the behaviour of linkers with the same objects."""

import random
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest
from campaign import sized
from objects_factory import compile_object
from opwest.objects.compat import TargetAbi
from opwest.objects.facts import ObjectError
from opwest.objects.inspect import read_member
from opwest.objects.relocations import relocation_faults
from requirements_support import need

SOURCE = """
extern int v; extern int f(int); static int s; int tab[4]; const char *const names[2] = {"a", "b"};
int op(int a) { s += a; tab[a] = v; return f(v) + s; }
int (*get(void))(int) { return f; }
const char *name(int i) { return names[i]; }
"""
MAIN = "int v = 3; int f(int a) { return a; } int op(int); int main(void) { return op(1) ? 0 : 1; }"
THREAD_LOCAL = "extern __thread int t; __thread int u = 1; int op(int a) { t += a; return u; }"
# As in include/zephyr/arch/arm/cortex_m/scripts/linker.ld for these sections.
CORTEX_M = """
MEMORY { ROM (rx) : ORIGIN = 0x0, LENGTH = 1M
         RAM (rw) : ORIGIN = 0x20000000, LENGTH = 1M }
SECTIONS { .text : { *(.text*) *(.rodata*) } >ROM
  .ARM.exidx : { *(.ARM.exidx*) } >ROM
  /DISCARD/ : { *(.got.plt) *(.igot.plt) *(.got) *(.igot) }
  .data : { *(.data*) } >RAM
  .bss : { *(.bss*) *(COMMON) } >RAM }
"""
ARM, RISCV, LLVM_ARM = "arm-none-eabi-gcc", "riscv64-unknown-elf-gcc", "--target=thumbv7m-none-unknown-eabi"
M3 = ["-mcpu=cortex-m3", "-mthumb"]
TARGETS = {
    "x86-64": TargetAbi("x86-64", "x86-64", 64, "little"),
    "i386": TargetAbi("i386", "i386", 32, "little"),
    "m3": TargetAbi("cortex-m3", "arm", 32, "little", "v7-M", "soft"),
    "a9": TargetAbi("cortex-a9", "arm", 32, "little", "v7-A", "soft"),
    "aarch64": TargetAbi("aarch64", "aarch64", 64, "little"),
    "rv32": TargetAbi("riscv32", "riscv", 32, "little", "rv32imac", "soft"),
    "rv64": TargetAbi("riscv64", "riscv", 64, "little", "rv64imac", "soft"),
}


def faults(path: Path, target: str) -> list[str]:
    return relocation_faults(read_member(path.name, path.read_bytes()), TARGETS[target])


def links(folder: Path, *command: str) -> bool:
    """Whether a command succeeds."""
    return subprocess.run(command, cwd=folder, capture_output=True, check=False).returncode == 0


def native_sim(folder: Path, bits: str) -> bool:
    """Link as scripts/native_simulator does: -r, localize, then an executable that is not PIE."""
    need("objcopy")
    undefined = "-Wl,--unresolved-symbols=ignore-all"
    partial = ["gcc", bits, "-r", "-nostdlib", "-o", "part.o", "operators.o", "main.o", undefined]
    assert links(folder, *partial)
    assert links(folder, "objcopy", "--localize-hidden", "part.o", "local.o", "-w", "--localize-symbol=_*")
    return links(folder, "gcc", bits, "-no-pie", "local.o", "-o", "x.exe") and links(folder, "./x.exe")


@pytest.mark.parametrize("flags", [["-fno-pic"], ["-fPIC"], ["-fpie"], ["-fno-pic", "-mcmodel=large"]])
def test_native_sim_64_links_everything(tmp_path: Path, flags: list[str]) -> None:
    compile_object(tmp_path, MAIN, flags=["-m64", "-O0"], name="main.o")
    path = compile_object(tmp_path, SOURCE, flags=["-m64", *flags])
    assert faults(path, "x86-64") == []
    assert native_sim(tmp_path, "-m64")


@pytest.mark.parametrize("flags", [["-fno-pic"], ["-fPIC"], ["-fpie"]])
def test_native_sim_and_the_helper_of_position_independent_code(tmp_path: Path, flags: list[str]) -> None:
    compile_object(tmp_path, MAIN, flags=["-m32", "-O0", "-fno-pic"], name="main.o")
    path = compile_object(tmp_path, SOURCE, flags=["-m32", *flags])
    clashes = b"__x86.get_pc_thunk.bx" in path.read_bytes()
    assert clashes == (flags != ["-fno-pic"])
    found = faults(path, "i386")
    assert len(found) == clashes == (not native_sim(tmp_path, "-m32"))
    for fault in found:
        assert fault.startswith("R_386_PC32 in .text for __x86.get_pc_thunk.bx") and fault.endswith("with -fno-pic")


def test_objects_with_another_pc_thunk_link(tmp_path: Path) -> None:
    compile_object(
        tmp_path, "int op(int); int main(void) { return op(1) - 1; }", flags=["-m32", "-fno-pic"], name="main.o"
    )
    path = compile_object(tmp_path, "int n; int op(int a) { n += a; return n; }", flags=["-m32", "-fPIC"])
    assert b"__x86.get_pc_thunk." in path.read_bytes() and b"get_pc_thunk.bx" not in path.read_bytes()
    assert faults(path, "i386") == [] and native_sim(tmp_path, "-m32")


@pytest.mark.parametrize(
    ("compiler", "flags", "relocation"),
    [
        (ARM, [*M3, "-fno-pic"], None),
        (ARM, [*M3, "-fPIC"], "R_ARM_BASE_PREL"),
        (ARM, [*M3, "-fPIC", "-msingle-pic-base"], "R_ARM_GOT_BREL"),
        ("clang", [LLVM_ARM, "-fno-pic"], None),
        ("clang", [LLVM_ARM, "-fPIC"], "R_ARM_GOT_PREL"),
        ("clang", [LLVM_ARM, "-fropi"], None),
        ("clang", [LLVM_ARM, "-frwpi"], "R_ARM_THM_MOVW_BREL_NC"),
    ],
)
def test_cortex_m(tmp_path: Path, compiler: str, flags: list[str], relocation: str | None) -> None:
    need("arm-none-eabi-ld")
    path = compile_object(tmp_path, SOURCE, compiler, [*flags, "-w"])
    found = faults(path, "m3")
    assert len(found) == (relocation is not None)
    compile_object(tmp_path, MAIN, ARM, M3, name="main.o")
    (tmp_path / "x.ld").write_text(CORTEX_M)
    command = ["arm-none-eabi-ld", "-T", "x.ld", "-e", "main", "main.o", "operators.o", "-o", "x.elf"]
    assert links(tmp_path, *command) == (relocation is None)
    if relocation:
        assert relocation in found[0] or relocation == "R_ARM_BASE_PREL"  # the first of several is named
        assert "R_ARM_" in found[0] and " in .text for " in found[0] and "compile with" in found[0]
        for arch in ("v6S-M", "v8-M.baseline", "v8.1-M.mainline"):
            member = read_member("x.o", path.read_bytes())
            assert relocation_faults(member, replace(TARGETS["m3"], arch=arch)) == found
        # Cortex-A keeps the table.
        assert (faults(path, "a9") == []) == ("BREL_NC" not in relocation)


def test_riscv(tmp_path: Path) -> None:
    rv32 = ["-march=rv32imac", "-mabi=ilp32"]
    assert faults(compile_object(tmp_path, SOURCE, RISCV, [*rv32, "-fno-pic"]), "rv32") == []
    (fault,) = faults(compile_object(tmp_path, SOURCE, RISCV, [*rv32, "-fPIC"]), "rv32")
    assert fault.startswith("R_RISCV_GOT_HI20 in .text for ") and fault.endswith("compile with -fno-pic")


@pytest.mark.parametrize(("model", "reaches"), [("medlow", False), ("medany", True)])
def test_riscv_at_2_gib(tmp_path: Path, model: str, reaches: bool) -> None:
    need("riscv64-unknown-elf-ld")
    flags = ["-march=rv64imac", "-mabi=lp64", "-fno-pic"]
    compile_object(tmp_path, MAIN, RISCV, [*flags, "-mcmodel=medany"], name="main.o")
    found = faults(compile_object(tmp_path, SOURCE, RISCV, [*flags, f"-mcmodel={model}"]), "rv64")
    command = "riscv64-unknown-elf-ld -m elf64lriscv -Ttext=0x80000000 -e main main.o operators.o -o x.elf"
    assert links(tmp_path, *command.split()) == reaches == (found == [])
    for fault in found:
        assert fault.startswith("R_RISCV_HI20 in .text for ") and fault.endswith("-mcmodel=medany")


@pytest.mark.parametrize(
    ("compiler", "flags", "target", "start"),
    [
        ("gcc", ["-m64"], "x86-64", "R_X86_64_"),
        ("gcc", ["-m64", "-fPIC"], "x86-64", "R_X86_64_"),
        ("gcc", ["-m32", "-fno-pic"], "i386", "R_386_TLS_"),
        (ARM, [*M3, "-mtp=soft", "-ftls-model=local-exec"], "m3", "R_ARM_TLS_LE32"),
        (ARM, [*M3, "-mtp=soft", "-ftls-model=initial-exec"], "m3", "R_ARM_TLS_"),
        ("clang", ["--target=aarch64-none-elf"], "aarch64", "R_AARCH64_"),
        (RISCV, ["-march=rv32imac", "-mabi=ilp32"], "rv32", "R_RISCV_"),
    ],
)
def test_thread_local_variables(tmp_path: Path, compiler: str, flags: list[str], target: str, start: str) -> None:
    (fault,) = faults(compile_object(tmp_path, THREAD_LOCAL, compiler, flags), target)
    assert fault.startswith(start) and "accesses thread-local variables; remove _Thread_local" in fault
    assert " for t" in fault or " for u" in fault or " for .t" in fault


def test_debug_sections_do_not_count(tmp_path: Path) -> None:
    path = compile_object(tmp_path, "static __thread int t; int op(void) { return 1; }", flags=["-g"])
    assert faults(path, "x86-64") == []


def test_other_machines_have_no_thread_local_faults(tmp_path: Path) -> None:
    assert faults(compile_object(tmp_path, THREAD_LOCAL), "m3") == []


def test_damaged_relocations(tmp_path: Path) -> None:
    content = compile_object(tmp_path, SOURCE, flags=["-m32", "-fPIC", "-ffunction-sections"]).read_bytes()
    chance = random.Random(4)
    started = time.process_time()
    for _ in range(sized(400, 1500)):
        damaged = bytearray(content)
        for _ in range(chance.choice((1, 5, 50))):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        try:
            assert all(relocation_faults(read_member("x.o", bytes(damaged)), TARGETS["i386"]))
        except ObjectError as fault:
            assert fault.message
    assert time.process_time() - started < 30
