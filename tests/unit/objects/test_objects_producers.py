# SPDX-License-Identifier: Apache-2.0
"""Options that change the ABI, as debug information records them."""

from __future__ import annotations

from pathlib import Path

import pytest
from objects_factory import compile_object
from opwest.objects.dwarf import DeclaredParameter, compare, signatures
from opwest.objects.facts import Member, ObjectFile
from opwest.objects.inspect import inspect_object
from opwest.objects.judgement import judge_file, unrecorded_options
from opwest.objects.producers import abi_options
from opwest.objects.report import as_json, as_text
from requirements_support import need

SOURCE = "int op(const int *x, int *y);\nint op(const int *x, int *y) { *y = *x; return 0; }\n"


def made(folder: Path, compiler: str, *flags: str, source: str = SOURCE) -> Member:
    item = inspect_object(compile_object(folder, source, compiler, flags))
    assert isinstance(item, ObjectFile)
    return item.members[0]


@pytest.mark.parametrize(
    ("compiler", "flags", "faults", "known"),
    [
        ("gcc", ["-g"], [], True),
        ("gcc", ["-g", "-ffixed-rbx", "-mno-red-zone", "-mabi=sysv"], [], True),
        ("gcc", ["-g", "-mabi=ms", "-fcall-saved-rcx"], ["-fcall-saved-rcx", "-mabi=ms"], True),
        ("gcc", ["-g", "-m32", "-mregparm=3", "-mrtd"], ["-mregparm=3", "-mrtd"], True),
        ("gcc", ["-g", "-m32", "-mregparm=0"], [], True),
        ("gcc", ["-g", "-gno-record-gcc-switches", "-mabi=ms"], [], False),
        ("gcc", ["-mabi=ms"], [], False),
        ("clang", ["-g"], [], False),
        ("clang", ["-g", "-grecord-command-line"], [], True),
        ("clang", ["-g", "-m32", "-mregparm=3", "-grecord-command-line"], ["-mregparm=3"], True),
        ("arm-none-eabi-gcc", ["-g", "-mcpu=cortex-m3", "-mthumb", "-fcall-used-r4"], ["-fcall-used-r4"], True),
    ],
)
def test_options(tmp_path: Path, compiler: str, flags: list[str], faults: list[str], known: bool) -> None:
    """Options that change the ABI are errors; without a record of the options they are unknown."""
    found = made(tmp_path, compiler, *flags)
    assert [option for option, _ in abi_options(found).faults] == faults
    assert unrecorded_options(found) is not known
    reasons = [r for r in judge_file(found) if r.kind == "abi"]
    assert [r.hint for r in reasons] == [f"compile without {option}" for option in faults]
    item = ObjectFile(Path("op.o"), "elf", (found,))
    assert ("ABI options   unknown: " in as_text("op.o", item)) is not known
    assert as_json("op.o", item)["members"][0]["abi_options"] == ("verified" if known else "unknown")


def test_calling_convention_of_one_function(tmp_path: Path) -> None:
    """The debug information of clang records an attribute for the calling convention of a function."""
    need("clang")
    source = f"__attribute__((ms_abi)) {SOURCE.splitlines()[0]}\n__attribute__((ms_abi)) {SOURCE.splitlines()[1]}\n"
    seen = signatures(made(tmp_path, "clang", "-g", source=source))
    assert isinstance(seen, dict)
    declared = [DeclaredParameter("x", "const int32_t *"), DeclaredParameter("y", "int32_t *")]
    assert compare(seen["op"], "status", declared) == ["its calling convention is ms_abi, expected that of C"]
