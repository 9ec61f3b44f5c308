# SPDX-License-Identifier: Apache-2.0
"""Sections that are state, and those that only look like it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from judgements import compare_judgements
from objects_factory import compile_object
from opwest.objects.facts import Member, ObjectFile
from opwest.objects.inspect import inspect_object
from opwest.objects.judgement import state_of
from requirements_support import need

HEAD = (
    ' .globl count\n .type count,%function\n .section .ramfunc,"awx"\ncount:\n .long 0x12345678\n .size count,.-count\n'
)
VARIABLE = " .type n,%object\n .size n,4\nn: .long 0\n"


def assembled(folder: Path, text: str) -> Member:
    need("gcc")
    path = folder / "one.o"
    command = ["gcc", "-c", "-x", "assembler", "-", "-o", path]
    subprocess.run(command, input=text, text=True, check=True, capture_output=True)
    compare_judgements(path)
    item = inspect_object(path)
    assert isinstance(item, ObjectFile)
    return item.members[0]


@pytest.mark.parametrize(
    ("text", "state", "code"),
    [
        (HEAD, "none", 4),
        (HEAD + VARIABLE, "4 bytes: n", 4),
        (HEAD + " .zero 64\n", "64 bytes: unnamed data", 4),
        (HEAD + " .zero 8\n .type f,%function\nf: .long 1\n .size f,4\n", "none", 16),  # padding
        (HEAD.replace(" .size count,.-count\n", "") + " .zero 64\n", "none", 68),  # assembly without sizes
        (' .section .ram,"awx"\n' + VARIABLE, "4 bytes: n", 0),
        (' .section .ram,"awx"\nlabel: .long 0\n', "4 bytes: label", 0),
        (' .section .ram,"awx",%nobits\n .type n,%object\n .size n,4\nn: .zero 4\n', "4 bytes: n", 0),
        (' .section .ram,"awx"\nlabel:\n', "none", 0),
        (HEAD.replace("awx", "ax"), "none", 4),
        (" .data\nempty:\n .bss\nnothing:\n", "none", 0),
        (' .section .data.rel.ro.local,"aw"\nt: .quad t\n', "none", 0),
        (' .section .data.rel.local.DW.ref.rust_eh_personality,"aw"\n .quad t\n', "none", 0),
        (' .section .data.rel.local,"aw"\nt: .quad t\n', "8 bytes: t", 0),
    ],
)
def test_state_of_sections(tmp_path: Path, text: str, state: str, code: int) -> None:
    """Variables in sections for code are state; code in RAM, relocated constants and empty sections are not."""
    found = assembled(tmp_path, text)
    assert str(state_of(found)) == state
    assert found.sizes.code == code


@pytest.mark.parametrize("compiler", ["gcc", "clang", "arm-none-eabi-gcc"])
def test_state_of_compiled_sections(tmp_path: Path, compiler: str) -> None:
    """A variable is state, and a function is not, in a section with the flags of both."""
    need(compiler)
    comment = "@" if compiler.startswith("arm") else "#"
    place = f'__attribute__((section(".fast,\\"awx\\",%progbits {comment}")))'
    variable = f"{place} static int counter;\nint count(int *y); int count(int *y) {{ *y = ++counter; return 0; }}\n"
    function = f"{place} int count(int *y); int count(int *y) {{ *y = 1; return 0; }}\n"
    for text, state in ((variable, "4 bytes: counter"), (function, "none")):
        item = inspect_object(compile_object(tmp_path, text, compiler))
        assert isinstance(item, ObjectFile)
        assert str(state_of(item.members[0])) == state
