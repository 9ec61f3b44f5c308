# SPDX-License-Identifier: Apache-2.0
"""Renamed objects: unchanged except for the names, valid for nm and the linker."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from elf_writer import build_elf
from objects_factory import compile_object
from opwest.objects.facts import ObjectError
from opwest.objects.inspect import read_member
from opwest.objects.rename import rename_symbols
from requirements_support import need

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
