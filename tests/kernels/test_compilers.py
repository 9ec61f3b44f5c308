# SPDX-License-Identifier: Apache-2.0
"""GCC and clang compile the C of every variant without warnings: all of a class of processors in one file."""

import functools
import subprocess

import numpy as np
import pytest
from campaign import sized
from models.executor import joined
from opwest.compiler.emission.function import VARIANTS
from opwest.compiler.output.emit import candidates, emit_program
from opwest.objects.targets import PAIRED
from opwest.tuning.random_layers import MAKERS
from requirements_support import need

WARNINGS = "-std=c11 -ffreestanding -Wall -Wextra -Wconversion -Wsign-conversion -Werror -c -o /dev/null".split()
GCC, CLANG, RISCV = (
    "arm-none-eabi-gcc -mthumb",
    "clang --target=thumbv8.1m.main-none-eabi",
    "clang --target=riscv32-unknown-elf",
)
TARGETS = {
    "portable": ("-mcpu=cortex-m0plus",),
    "mla": ("-mcpu=cortex-m3",),
    "dsp": (
        "-mcpu=cortex-m4 -mfloat-abi=soft",
        "-mcpu=cortex-m4 -mfloat-abi=hard -mfpu=fpv4-sp-d16",
        f"-mcpu=cortex-m7 -mfloat-abi=hard -mfpu=fpv5-d16 -D{PAIRED}=1",
    ),
    "mve": ("-mcpu=cortex-m55 -mfloat-abi=hard", "-mcpu=cortex-m55+nomve.fp -mfloat-abi=hard"),
}
"""By class of processors, which is the start of the names of its variants: the options of a compiler."""
COMMANDS = [
    *(
        (kernels, f"{compiler} {words}")
        for kernels, some in TARGETS.items()
        for words in some
        for compiler in (GCC, CLANG)
    ),
    ("rvv", f"{RISCV} -march=rv32imac_zve32x -mabi=ilp32"),
]
STRINGS = """#include <stddef.h>
void *memcpy(void *, const void *, size_t);
void *memmove(void *, const void *, size_t);
void *memset(void *, int, size_t);
int memcmp(const void *, const void *, size_t);
"""
HEADERS = {
    "string.h": STRINGS,
    "math.h": '#define INFINITY __builtin_inff()\n#define NAN __builtin_nanf("")\n'
    + "".join(
        f"{kind} {name}{end}({', '.join([kind] * count)});\n"
        for name, count in {
            **dict.fromkeys("sqrt fabs exp round rint tanh floor ceil log sin cos trunc".split(), 1),
            **dict.fromkeys("fmax fmin pow fmod atan2".split(), 2),
        }.items()
        for kind, end in (("float", "f"), ("double", ""))
    ),
}
"""The headers of a C library: clang has none for these targets."""


def is_of(name, kernels):
    """Whether a variant is of a class; tests/models/test_warnings.py compiles the portable one."""
    return name.startswith(f"{kernels}-")


@functools.cache
def source_of(kernels):
    """Return one C file of random layers with every variant of a class."""
    emitted, found = [], set()
    for place, maker in enumerate(MAKERS):
        for dtype in maker.dtypes:
            for number in range(sized(4, 20)):
                made = maker.make(np.random.default_rng((place, number)), dtype=dtype)
                [operation] = made.operations
                for name in candidates(operation, "" if kernels == "portable" else kernels):
                    if is_of(name, kernels):
                        found.add((type(operation), name))
                        emitted.append(emit_program(made, "made by a test", name, f"p{len(emitted)}_"))
    every = {(kind, one.name) for kind, some in VARIANTS.items() for one in some if is_of(one.name, kernels)}
    missing = {name for _, name in every} - {name for _, name in found}
    assert not missing, missing
    return joined(emitted)[0]


@pytest.mark.parametrize("level", sized(["-O0", "-O2"], ["-O0", "-Os", "-O1", "-O2"]))
@pytest.mark.parametrize(("kernels", "command"), COMMANDS, ids=lambda one: one.replace(" ", ""))
def test_variants_have_no_warnings(kernels, command, level, tmp_path):
    need(command.split()[0])
    for name, text in HEADERS.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "made.c").write_text(source_of(kernels))
    words = [*command.split(), "-isystem", ".", *WARNINGS, level, "made.c"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.stderr == "" and done.returncode == 0, done.stderr[:4000]
