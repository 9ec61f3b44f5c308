# SPDX-License-Identifier: Apache-2.0
"""Which archive members are linked: the rules of a linker, compared with a linker."""

from __future__ import annotations

import subprocess
from pathlib import Path

from elf_writer import build_elf
from objects_factory import compile_object, make_archive
from opwest.objects.closure import needed_members
from opwest.objects.facts import Member, ObjectFile
from opwest.objects.inspect import inspect_object, read_member
from requirements_support import need


def piece(name: str, defines: str = "", needs: str = "", weak: str = "", *, loose: bool = False) -> Member:
    symbols = [(s, 1, 2, 1) for s in defines.split()]
    symbols += [(s, 1, 0, 0) for s in needs.split()] + [(s, 2, 0, 0) for s in weak.split()]
    return read_member(name, build_elf(symbols=symbols), loose=loose)


def names(members: list[Member]) -> list[str]:
    return [m.name for m in members]


def test_transitive_and_in_archive_order() -> None:
    members = [piece("c", "c"), piece("unused", "u", "c"), piece("a", "a", "b"), piece("b", "b", "c")]
    assert names(needed_members(members, ["a"])) == ["c", "a", "b"]
    assert names(needed_members(members, [])) == []
    assert names(needed_members(members, ["nowhere"])) == []


def test_cycles_terminate() -> None:
    members = [piece("a", "a", "b"), piece("b", "b", "a")]
    assert names(needed_members(members, ["a"])) == ["a", "b"]


def test_first_definition_is_used() -> None:
    members = [piece("one", "f"), piece("two", "f g")]
    assert names(needed_members(members, ["f"])) == ["one"]
    assert names(needed_members(members, ["g", "f"])) == ["two"]


def test_loose_objects_are_always_linked_and_come_first() -> None:
    members = [piece("archived", "f"), piece("loose", "f", "g", loose=True), piece("g", "g")]
    assert names(needed_members(members, ["f"])) == ["loose", "g"]
    assert names(needed_members(members, [])) == ["loose", "g"]


def test_weak_references_select_no_members() -> None:
    assert names(needed_members([piece("a", "a", weak="b"), piece("b", "b")], ["a"])) == ["a"]


def test_members_equal_those_of_a_linker(tmp_path: Path) -> None:
    need("gcc", "ar", "ld")
    sources = {
        "d": "int d(void) { return 4; }",
        "a": "int b(void), a2; int a(void) { return b(); }",
        "u": "int u(void) { return 9; }",
        "b": "int d(void); extern int w(void) __attribute__((weak)); int b(void) { return d() + (w ? w() : 0); }",
        "w": "int w(void) { return 1; }",
    }
    objects = [compile_object(tmp_path, text, flags=["-fno-pic"], name=f"{n}.o") for n, text in sources.items()]
    archive = make_archive(tmp_path / "lib.a", objects)
    link = ["ld", "-e", "a", "-u", "a", "-t", archive, "-o", tmp_path / "out"]
    result = subprocess.run(link, check=True, capture_output=True, text=True)
    taken = {line.rsplit("(", 1)[-1].rstrip(")") for line in result.stdout.splitlines() if "(" in line}
    item = inspect_object(archive)
    assert isinstance(item, ObjectFile)
    assert set(names(needed_members(item.members, ["a"]))) == (taken or {"a.o", "b.o", "d.o"})
    assert names(needed_members(item.members, ["a"])) == ["d.o", "a.o", "b.o"]
