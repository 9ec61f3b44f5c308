# SPDX-License-Identifier: Apache-2.0
"""Unresolvable relocations: messages, and the behaviour of linkers with the same objects; and changed objects."""

import random
import subprocess
import time
from dataclasses import replace

import pytest
from campaign import sized
from elf_writer import build_elf
from objects_factory import compile_object
from opwest.objects.compat import TargetAbi
from opwest.objects.elf import parse_elf
from opwest.objects.facts import ObjectError
from opwest.objects.inspect import read_member
from opwest.objects.relocations import relocation_faults
from opwest.objects.rewriting import rename_symbols, without_sections
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


def faults(path, target):
    return relocation_faults(read_member(path.name, path.read_bytes()), TARGETS[target])


def links(folder, *command):
    return subprocess.run(command, cwd=folder, capture_output=True, check=False).returncode == 0


def native_sim(folder, bits):
    """Link as scripts/native_simulator does: -r, localize, then an executable that is not PIE."""
    need("objcopy")
    undefined = "-Wl,--unresolved-symbols=ignore-all"
    partial = ["gcc", bits, "-r", "-nostdlib", "-o", "part.o", "operators.o", "main.o", undefined]
    assert links(folder, *partial)
    assert links(folder, "objcopy", "--localize-hidden", "part.o", "local.o", "-w", "--localize-symbol=_*")
    return links(folder, "gcc", bits, "-no-pie", "local.o", "-o", "x.exe") and links(folder, "./x.exe")


@pytest.mark.parametrize("flags", [["-fno-pic"], ["-fPIC"], ["-fpie"], ["-fno-pic", "-mcmodel=large"]])
def test_native_sim_64_links_everything(tmp_path, flags):
    compile_object(tmp_path, MAIN, flags=["-m64", "-O0"], name="main.o")
    path = compile_object(tmp_path, SOURCE, flags=["-m64", *flags])
    assert faults(path, "x86-64") == []
    assert native_sim(tmp_path, "-m64")


@pytest.mark.parametrize("flags", [["-fno-pic"], ["-fPIC"], ["-fpie"]])
def test_native_sim_and_the_helper_of_position_independent_code(tmp_path, flags):
    compile_object(tmp_path, MAIN, flags=["-m32", "-O0", "-fno-pic"], name="main.o")
    path = compile_object(tmp_path, SOURCE, flags=["-m32", *flags])
    clashes = b"__x86.get_pc_thunk.bx" in path.read_bytes()
    assert clashes == (flags != ["-fno-pic"])
    found = faults(path, "i386")
    assert len(found) == clashes == (not native_sim(tmp_path, "-m32"))
    for fault in found:
        assert fault.startswith("R_386_PC32 in .text for __x86.get_pc_thunk.bx") and fault.endswith("with -fno-pic")


def test_objects_with_another_pc_thunk_link(tmp_path):
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
def test_cortex_m(tmp_path, compiler, flags, relocation):
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


def test_riscv(tmp_path):
    rv32 = ["-march=rv32imac", "-mabi=ilp32"]
    assert faults(compile_object(tmp_path, SOURCE, RISCV, [*rv32, "-fno-pic"]), "rv32") == []
    (fault,) = faults(compile_object(tmp_path, SOURCE, RISCV, [*rv32, "-fPIC"]), "rv32")
    assert fault.startswith("R_RISCV_GOT_HI20 in .text for ") and fault.endswith("compile with -fno-pic")


@pytest.mark.parametrize(("model", "reaches"), [("medlow", False), ("medany", True)])
def test_riscv_at_2_gib(tmp_path, model, reaches):
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
def test_thread_local_variables(tmp_path, compiler, flags, target, start):
    (fault,) = faults(compile_object(tmp_path, THREAD_LOCAL, compiler, flags), target)
    assert fault.startswith(start) and "accesses thread-local variables; remove _Thread_local" in fault
    assert " for t" in fault or " for u" in fault or " for .t" in fault


def test_debug_sections_do_not_count(tmp_path):
    path = compile_object(tmp_path, "static __thread int t; int op(void) { return 1; }", flags=["-g"])
    assert faults(path, "x86-64") == []


def test_other_machines_have_no_thread_local_faults(tmp_path):
    assert faults(compile_object(tmp_path, THREAD_LOCAL), "m3") == []


def test_damaged_relocations(tmp_path):
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


# --- Renamed objects: unchanged except for the names, valid for nm and the linker

OPERATOR = """
extern int given(int);
static int op_local(int a) { return a + 1; }
__attribute__((weak)) int weak_op(int a) { return a; }
int op(int a) { return given(op_local(a)) + weak_op(a); }
"""
CALLER = """
int given(int a) { return a * 10; }
extern int model__op(int);
int main(void) { return model__op(3) == 43 ? 0 : 1; }
"""
NAMES = {"op": "model__op", "weak_op": "model__weak_op", "not_there": "model__not_there"}
TARGETS_RENAME = [
    ("gcc", []),
    ("gcc", ["-m32"]),
    ("arm-none-eabi-gcc", ["-mcpu=cortex-m3", "-mthumb"]),
    ("riscv64-unknown-elf-gcc", ["-march=rv32imac", "-mabi=ilp32"]),
]


def names_of(path):
    need("nm")
    out = subprocess.run(["nm", path], check=True, capture_output=True, text=True)
    assert not out.stderr
    return {line.split()[-1] for line in out.stdout.splitlines()}


@pytest.mark.parametrize(("compiler", "flags"), TARGETS_RENAME)
def test_nm_reads_it_and_it_links(tmp_path, compiler, flags):
    path = compile_object(tmp_path, OPERATOR, compiler, flags)
    renamed = rename_symbols(path.read_bytes(), NAMES)
    target = tmp_path / "renamed.o"
    target.write_bytes(renamed)
    if "riscv" not in compiler and "arm" not in compiler:
        found = names_of(target)
        assert {"model__op", "model__weak_op", "given"} <= found
        assert not {"op", "weak_op"} & found
    one = read_member("x.o", renamed)
    assert {"model__op", "model__weak_op"} <= set(one.defined)
    caller = compile_object(tmp_path, CALLER, compiler, flags, name="caller.o")
    program = tmp_path / "program"
    if compiler == "gcc":
        subprocess.run([compiler, *flags, caller, target, "-o", program], check=True)
        assert subprocess.run([program], check=False).returncode == 0
    else:
        link = [compiler, *flags, "-nostdlib", "-Wl,-e,main", caller, target, "-o", program]
        subprocess.run(link, check=True, capture_output=True)


def test_archive_tools_accept_it(tmp_path):
    need("objcopy", "ld")
    path = compile_object(tmp_path, OPERATOR, flags=["-g", "-ffunction-sections"])
    (tmp_path / "renamed.o").write_bytes(rename_symbols(path.read_bytes(), NAMES))
    subprocess.run(["objcopy", tmp_path / "renamed.o", tmp_path / "copy.o"], check=True)
    subprocess.run(["ld", "-r", tmp_path / "renamed.o", "-o", tmp_path / "linked.o"], check=True)
    assert "model__op" in names_of(tmp_path / "copy.o") and "model__op" in names_of(tmp_path / "linked.o")


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("endian", ["little", "big"])
@pytest.mark.parametrize("shared", [False, True])
def test_every_layout(bits, endian, shared):
    content = build_elf(bits=bits, endian=endian, machine=20, shared_strings=shared)
    renamed = rename_symbols(content, {"op": "model__op", "memcpy": "model__memcpy"})
    one = read_member("x.o", renamed)
    assert set(one.defined) == {"model__op"} and one.undefined == ("model__memcpy",)
    assert one.sizes == read_member("x.o", content).sizes  # .text is found by name: section names stay


def test_other_bytes_are_unchanged(tmp_path):
    content = compile_object(tmp_path, OPERATOR).read_bytes()
    before, after = (read_member("x.o", c) for c in (content, rename_symbols(content, NAMES)))
    assert [NAMES.get(s.name, s.name) for s in before.symbols] == [s.name for s in after.symbols]
    assert "op_local" not in NAMES
    assert before.sizes == after.sizes and before.abi == after.abi


def test_empty_renaming_changes_no_bytes():
    content = build_elf()
    assert rename_symbols(content, {}) == content
    assert rename_symbols(content, {"other": "model__other", "op": "op"}) == content
    assert rename_symbols(build_elf(symbol_table=False), {"op": "x"}) == build_elf(symbol_table=False)


def test_renaming_is_deterministic_and_repeatable():
    content = build_elf()
    assert rename_symbols(content, {"op": "a", "memcpy": "b"}) == rename_symbols(content, {"memcpy": "b", "op": "a"})
    twice = rename_symbols(rename_symbols(content, {"op": "first"}), {"first": "second"})
    assert set(read_member("x.o", twice).defined) == {"second"}


def test_local_symbols_keep_their_names():
    content = build_elf(symbols=[("op", 0, 2, 1), ("other", 1, 2, 1)])
    assert rename_symbols(content, {"op": "model__op"}) == content


def test_names_can_be_swapped():
    content = build_elf(symbols=[("a", 1, 2, 1), ("b", 1, 2, 1)])
    assert list(read_member("x.o", rename_symbols(content, {"a": "b", "b": "a"})).defined) == ["b", "a"]


@pytest.mark.parametrize(
    ("names", "error"),
    [
        ({"a": "b"}, "the name is in use"),
        ({"a": "c", "b": "c"}, "the name is in use"),
        ({"a": ""}, "cannot be renamed"),
        ({"a": "a\0b"}, "cannot be renamed"),
    ],
)
def test_names_that_are_rejected(names, error):
    with pytest.raises(ValueError if "cannot" in error else ObjectError, match=error):
        rename_symbols(build_elf(symbols=[("a", 1, 2, 1), ("b", 1, 2, 1)]), names)


def test_invalid_objects_are_rejected():
    with pytest.raises(ObjectError):
        rename_symbols(b"\x7fELF", {"op": "x"})


# --- Objects without the sections that firmware cannot use

TABLE_SOURCE = """
static const int table[4] = {1, 2, 3, 4};
static int inner(int x) { return table[x & 3]; }
int op(const int *x, int *y);
int op(const int *x, int *y) { int room[8]; for (int i = 0; i < 8; i++) { room[i] = inner(x[i]); }
*y = room[x[0] & 7]; return 0; }
"""
FLAGS = ["-mcpu=cortex-m3", "-mthumb", "-funwind-tables", "-ffunction-sections", "-O0", "-g"]


def test_tables_and_their_references_are_removed(tmp_path):
    """An object of GCC with unwind tables links without libgcc once they are removed, without warnings."""
    need("arm-none-eabi-gcc")
    made = compile_object(tmp_path, TABLE_SOURCE, "arm-none-eabi-gcc", FLAGS)
    content = made.read_bytes()
    before = read_member("op.o", content)
    assert [name[:-1] for name in before.undefined_strong] == ["__aeabi_unwind_cpp_pr"]
    changed = without_sections(content, unwind_tables=True, stack_note=True)
    after = read_member("op.o", changed)
    assert after.undefined_weak == before.undefined_strong and not after.undefined_strong
    assert after.defined == before.defined and after.sizes.code == before.sizes.code
    assert not [s.name for s in parse_elf(changed).sections if "exidx" in s.name or "extab" in s.name]
    made.write_bytes(changed)
    link = ["arm-none-eabi-gcc", *FLAGS[:2], "-nostdlib", "-Wl,--fatal-warnings,-eop", made.name, "-o", "op.elf"]
    subprocess.run(link, cwd=tmp_path, check=True)
    assert not [s for s in parse_elf((tmp_path / "op.elf").read_bytes()).sections if ".ARM.ex" in s.name]
    assert without_sections(content, unwind_tables=False, stack_note=True) == content


def test_damaged_objects(tmp_path):
    """Objects that opwest accepts can be changed, however their sections look."""
    need("gcc")
    content = compile_object(tmp_path, TABLE_SOURCE, flags=["-ffunction-sections"]).read_bytes()
    source = random.Random(13)
    accepted = 0
    for _ in range(400):
        damaged = bytearray(content)
        for _ in range(source.randint(1, 4)):
            damaged[source.randrange(len(damaged) - 1500 if source.random() < 0.5 else 0, len(damaged))] = (
                source.choice((0, 1, 2, 17, 0x70, 255))
            )
        try:
            read_member("op.o", bytes(damaged))
        except ObjectError:
            continue
        accepted += 1
        assert len(without_sections(bytes(damaged), unwind_tables=True, stack_note=True)) == len(content)
    assert accepted > 100
    with pytest.raises(ObjectError):
        read_member("op.o", content[:40])
