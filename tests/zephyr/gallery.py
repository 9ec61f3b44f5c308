# SPDX-License-Identifier: Apache-2.0
"""One image of a board and a back end for the programs of many tests: built once and run once in a session.

A test file declares its program as a Program in a variable. The image runs all programs one after another, those of
other files too, and each test reads the output of its own.
"""

import functools
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import cover
from requirements_support import need
from session_support import made_once

TARGETS = {"native_sim/native/64": "x86-64", "mps2/an385": "cortex-m3"}
"""By board: the target of metadata as objects."""
_MAIN = """\
#include <stdio.h>

{declarations}
int main(void)
{{
{calls}
	printf("programs: {count}\\n");
	return 0;
}}
"""
_PROGRAM = '#define main main_{name}\n#include "main.c"\n'


@dataclass(frozen=True)
class Program:
    """Models, and a main() that uses them and returns."""

    name: str
    """A word in C."""
    write: Callable[[Path], Sequence[Path]]
    """Write the manifests, without `application`, their files, and main.c with its headers; return the manifests."""
    rows: Sequence[tuple[str, str]]
    """Boards with back ends."""
    kconfig: str = ""
    """Lines of prj.conf; the image has those of all programs."""


def output(workspace, opwest, board, back_end, program):
    """Return what a program printed in the image of a board and a back end."""
    need(*([] if board.startswith("native_") else ["arm-none-eabi-gcc", "qemu-system-arm"]))
    if back_end == "llvm":
        need("llvmlite")
    shown = made_once(
        f"gallery-{board.replace('/', '_')}-{back_end}",
        lambda folder: _make(workspace, opwest, board, back_end, folder),
    )
    console = (shown / "console.txt").read_text(encoding="utf-8")
    found = re.search(rf"^begin {program.name}\n(.*?)^end {program.name}$", console, re.MULTILINE | re.DOTALL)
    assert found, console[-6000:]
    return found[1]


@functools.cache
def programs():
    """Return the programs of all tests of this directory, by name."""
    found = [value for module in cover.modules() for value in vars(module).values() if isinstance(value, Program)]
    return {program.name: program for program in sorted(found, key=lambda program: program.name)}


def _make(workspace, opwest, board, back_end, folder):
    chosen = [program for program in programs().values() if (board, back_end) in program.rows]
    manifests = []
    for program in chosen:
        (folder / program.name).mkdir()
        manifests += program.write(folder / program.name)
    app = folder / "app"
    words = ["--target", TARGETS[board]] if back_end == "llvm" else []
    opwest("generate", *manifests, "-o", app, f"--metadata={back_end}", *words)
    names = [program.name for program in chosen]
    for name in names:
        (app / "src" / name).mkdir()
        for path in (folder / name / "main.c", *(folder / name).glob("*.h")):
            shutil.copy(path, app / "src" / name)
        (app / "src" / name / "program.c").write_text(_PROGRAM.format(name=name))
    (app / "src" / "main.c").write_text(
        _MAIN.format(
            declarations="".join(f"int main_{name}(void);\n" for name in names),
            calls="".join(f'\tprintf("begin {n}\\n");\n\tmain_{n}();\n\tprintf("end {n}\\n");\n' for n in names),
            count=len(names),
        )
    )
    with (app / "CMakeLists.txt").open("a") as file:
        file.write(f"target_sources(app PRIVATE {' '.join(f'src/{name}/program.c' for name in names)})\n")
    with (app / "prj.conf").open("a") as file:
        file.write("".join(program.kconfig for program in chosen))
    console = workspace.build(app, board).run("^programs: ")
    (folder / "console.txt").write_text(console, encoding="utf-8")
