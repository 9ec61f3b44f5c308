# SPDX-License-Identifier: Apache-2.0
"""Objects without the sections that firmware cannot use."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest
from objects_factory import compile_object
from opwest.objects.elf import parse_elf
from opwest.objects.facts import ObjectError
from opwest.objects.inspect import read_member
from opwest.objects.sections import without_sections
from requirements_support import need

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
