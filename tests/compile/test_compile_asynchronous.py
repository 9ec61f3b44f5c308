# SPDX-License-Identifier: Apache-2.0
"""The golden model with devices of every kind, under sanitizers: programs/asynchronous.c with both back ends."""

import re
from pathlib import Path

import pytest
from c_support import SANITIZED, build, execute, golden_app
from requirements_support import need_compiler

SOURCE = Path(__file__).parent / "programs" / "asynchronous.c"
CASES = re.findall(r"CASE\(([a-z_]+)\)[,\s]", SOURCE.read_text().split("cases[] = {")[1])
BUILDS = {"gcc": ("gcc", SANITIZED), "gcc-m32": ("gcc", ["-m32", *SANITIZED]), "clang": ("clang", SANITIZED)}


@pytest.fixture(scope="module", params=BUILDS)
def program(request, metadata, tmp_path_factory):
    compiler, flags = BUILDS[request.param]
    # LLVM's code for i386 is not position-independent.
    flags = [*flags, *(["-no-pie"] if "-m32" in flags and metadata == "llvm" else [])]
    need_compiler(compiler, flags, link=True)
    work = tmp_path_factory.mktemp(f"asynchronous_{request.param}_{metadata}")
    return build(golden_app("asynchronous", work, metadata), work / "build", SOURCE, compiler, flags)


def test_cases(program):
    assert execute(program).stdout.split() == CASES
    failed = {}
    for case in CASES:
        done = execute(program, case)
        if (done.returncode, done.stdout) != (0, "done\n"):
            failed[case] = done.stderr
    assert not failed
