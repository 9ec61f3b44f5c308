# SPDX-License-Identifier: Apache-2.0
"""Changed objects: renamed symbols, and removed sections."""

import random
import subprocess
from pathlib import Path

import pytest
from elf_writer import build_elf
from objects_factory import compile_object
from opwest.objects.elf import parse_elf
from opwest.objects.facts import ObjectError
from opwest.objects.inspect import read_member
from opwest.objects.rename import rename_symbols
from opwest.objects.sections import without_sections
from requirements_support import need

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
TARGETS = [
    ("gcc", []),
    ("gcc", ["-m32"]),
    ("arm-none-eabi-gcc", ["-mcpu=cortex-m3", "-mthumb"]),
    ("riscv64-unknown-elf-gcc", ["-march=rv32imac", "-mabi=ilp32"]),
]


def names_of(path: Path) -> set[str]:
    need("nm")
    out = subprocess.run(["nm", path], check=True, capture_output=True, text=True)
    assert not out.stderr
    return {line.split()[-1] for line in out.stdout.splitlines()}


@pytest.mark.parametrize(("compiler", "flags"), TARGETS)
def test_nm_reads_it_and_it_links(tmp_path: Path, compiler: str, flags: list[str]) -> None:
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


def test_archive_tools_accept_it(tmp_path: Path) -> None:
    need("objcopy", "ld")
    path = compile_object(tmp_path, OPERATOR, flags=["-g", "-ffunction-sections"])
    (tmp_path / "renamed.o").write_bytes(rename_symbols(path.read_bytes(), NAMES))
    subprocess.run(["objcopy", tmp_path / "renamed.o", tmp_path / "copy.o"], check=True)
    subprocess.run(["ld", "-r", tmp_path / "renamed.o", "-o", tmp_path / "linked.o"], check=True)
    assert "model__op" in names_of(tmp_path / "copy.o") and "model__op" in names_of(tmp_path / "linked.o")


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("endian", ["little", "big"])
@pytest.mark.parametrize("shared", [False, True])
def test_every_layout(bits: int, endian: str, shared: bool) -> None:
    content = build_elf(bits=bits, endian=endian, machine=20, shared_strings=shared)
    renamed = rename_symbols(content, {"op": "model__op", "memcpy": "model__memcpy"})
    one = read_member("x.o", renamed)
    assert set(one.defined) == {"model__op"} and one.undefined == ("model__memcpy",)
    assert one.sizes == read_member("x.o", content).sizes  # .text is found by name: section names stay


def test_other_bytes_are_unchanged(tmp_path: Path) -> None:
    content = compile_object(tmp_path, OPERATOR).read_bytes()
    before, after = (read_member("x.o", c) for c in (content, rename_symbols(content, NAMES)))
    assert [NAMES.get(s.name, s.name) for s in before.symbols] == [s.name for s in after.symbols]
    assert "op_local" not in NAMES
    assert before.sizes == after.sizes and before.abi == after.abi


def test_empty_renaming_changes_no_bytes() -> None:
    content = build_elf()
    assert rename_symbols(content, {}) == content
    assert rename_symbols(content, {"other": "model__other", "op": "op"}) == content
    assert rename_symbols(build_elf(symbol_table=False), {"op": "x"}) == build_elf(symbol_table=False)


def test_renaming_is_deterministic_and_repeatable() -> None:
    content = build_elf()
    assert rename_symbols(content, {"op": "a", "memcpy": "b"}) == rename_symbols(content, {"memcpy": "b", "op": "a"})
    twice = rename_symbols(rename_symbols(content, {"op": "first"}), {"first": "second"})
    assert set(read_member("x.o", twice).defined) == {"second"}


def test_local_symbols_keep_their_names() -> None:
    content = build_elf(symbols=[("op", 0, 2, 1), ("other", 1, 2, 1)])
    assert rename_symbols(content, {"op": "model__op"}) == content


def test_names_can_be_swapped() -> None:
    content = build_elf(symbols=[("a", 1, 2, 1), ("b", 1, 2, 1)])
    assert list(read_member("x.o", rename_symbols(content, {"a": "b", "b": "a"})).defined) == ["b", "a"]


@pytest.mark.parametrize("names", [{"a": "b"}, {"a": "c", "b": "c"}])
def test_clashes_are_rejected(names: dict[str, str]) -> None:
    content = build_elf(symbols=[("a", 1, 2, 1), ("b", 1, 2, 1)])
    with pytest.raises(ObjectError, match="the name is in use"):
        rename_symbols(content, names)


@pytest.mark.parametrize("new", ["", "a\0b"])
def test_impossible_names(new: str) -> None:
    with pytest.raises(ValueError, match="cannot be renamed"):
        rename_symbols(build_elf(), {"op": new})


def test_invalid_objects_are_rejected() -> None:
    with pytest.raises(ObjectError):
        rename_symbols(b"\x7fELF", {"op": "x"})


# --- Objects without the sections that firmware cannot use

SOURCE = """
static const int table[4] = {1, 2, 3, 4};
static int inner(int x) { return table[x & 3]; }
int op(const int *x, int *y);
int op(const int *x, int *y) { int room[8]; for (int i = 0; i < 8; i++) { room[i] = inner(x[i]); }
*y = room[x[0] & 7]; return 0; }
"""
FLAGS = ["-mcpu=cortex-m3", "-mthumb", "-funwind-tables", "-ffunction-sections", "-O0", "-g"]


def test_tables_and_their_references_are_removed(tmp_path: Path) -> None:
    """An object of GCC with unwind tables links without libgcc once they are removed, without warnings."""
    need("arm-none-eabi-gcc")
    made = compile_object(tmp_path, SOURCE, "arm-none-eabi-gcc", FLAGS)
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


def test_damaged_objects(tmp_path: Path) -> None:
    """Objects that opwest accepts can be changed, however their sections look."""
    need("gcc")
    content = compile_object(tmp_path, SOURCE, flags=["-ffunction-sections"]).read_bytes()
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
