# SPDX-License-Identifier: Apache-2.0
"""Sizes and alignments of structures, from debug information, against those of the compiler."""

from __future__ import annotations

from pathlib import Path

import pytest
from objects_factory import compile_object
from opwest.objects.dwarf import signatures
from opwest.objects.facts import ObjectFile
from opwest.objects.inspect import inspect_object

STRUCTURES = {
    "bytes": "char a[3]; unsigned char b;",
    "halves": "short a; char b;",
    "wide": "char a; long long b;",
    "doubles": "char a; double b[2]; float c;",
    "pointers": "char a; void (*f)(int); const int *p;",
    "nested": "char a; struct { short x; struct { int y; } z[2]; } b;",
    "unions": "char a; union { char c; long long d; } b;",
    "bits": "unsigned a : 3; unsigned b : 7; char c;",
    "enums": "enum { A, B } a; _Bool b;",
    "empty": "char a[0]; short b;",
    "complex": "float _Complex a[2];",
    "set": "char a; int b __attribute__((aligned(32)));",
    "vectors": "float a; ints_t b;",
    "short_vectors": "const shorts_t a[2]; char b;",
    "typed": "char a; index_t b; const volatile index_t c;",
}
FLAGS = [
    ("gcc", []), ("gcc", ["-m32"]), ("clang", []), ("arm-none-eabi-gcc", ["-mcpu=cortex-m4", "-mthumb"]),
    ("riscv64-unknown-elf-gcc", ["-march=rv32imac", "-mabi=ilp32", "-msmall-data-limit=0"]),
]  # fmt: skip


@pytest.mark.parametrize(("compiler", "flags"), FLAGS)
def test_sizes_and_alignments(tmp_path: Path, compiler: str, flags: list[str]) -> None:
    """The sizes and alignments of structures are those that the compiler uses."""
    lines = ["typedef long long index_t;"]
    lines.append("typedef int ints_t __attribute__((vector_size(16)));")
    lines.append("typedef short shorts_t __attribute__((vector_size(8)));")
    for name, members in STRUCTURES.items():
        lines += [
            f"struct {name} {{ {members} }}; int use_{name}(struct {name} *s) {{ return !s; }}",
            f"const unsigned char facts_{name}[] = {{ sizeof(struct {name}), _Alignof(struct {name}) }};",
        ]
    lines.append("typedef struct { char a; short b; } __attribute__((packed)) tight;")
    lines.append("int use_tight(const tight *s) { return !s; } const unsigned char facts_tight[] = { 3, 1 };")
    lines.append("struct opaque; int use_opaque(struct opaque *s) { return !s; }")
    path = compile_object(tmp_path, "\n".join(lines), compiler, [*flags, "-g", "-O0", "-fno-pic", "-fdata-sections"])
    item = inspect_object(path)
    assert isinstance(item, ObjectFile)
    found = signatures(item.members[0])
    assert isinstance(found, dict)
    from elftools.elf.elffile import ELFFile

    with path.open("rb") as file:
        elf = ELFFile(file)
        expected = {
            name: tuple(elf.get_section_by_name(f".rodata.facts_{name}").data()[:2]) for name in (*STRUCTURES, "tight")
        }
    seen = {}
    for name in expected:
        target = found[f"use_{name}"].parameters[0].target
        assert target is not None
        seen[name] = (target.size, target.align)
    assert seen == expected
    opaque = found["use_opaque"].parameters[0].target
    assert opaque is not None and (opaque.size, opaque.align) == (0, 1)
