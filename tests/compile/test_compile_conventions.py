# SPDX-License-Identifier: Apache-2.0
"""Operators of TVM's calling conventions, under sanitizers: programs/conventions.c with both back ends."""

import re
import subprocess
from pathlib import Path

import pytest
from c_support import SANITIZED, build, execute, fault_of_compiler, golden_app, need_compiler

SOURCE = Path(__file__).parent / "programs" / "conventions.c"
CASES = re.findall(r"CASE\(([a-z_]+)\)[,\s]", SOURCE.read_text().split("cases[] = {")[1])
BUILDS = {"gcc": ("gcc", SANITIZED), "gcc-m32": ("gcc", ["-m32", *SANITIZED]), "clang": ("clang", SANITIZED)}
THREADS = ["-std=c11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-fsanitize=thread"]


@pytest.fixture(scope="module", params=BUILDS)
def program(request, metadata, tmp_path_factory):
    compiler, flags = BUILDS[request.param]
    # Code that LLVM makes for i386 is not position-independent.
    flags = [*flags, *(["-no-pie"] if "-m32" in flags and metadata == "llvm" else [])]
    need_compiler(compiler, flags, link=True)
    work = tmp_path_factory.mktemp(f"conventions_{request.param}_{metadata}")
    return build(golden_app("conventions", work, metadata), work / "build", SOURCE, compiler, flags)


def test_cases(program):
    assert execute(program).stdout.split() == CASES
    failed = {}
    for case in CASES:
        done = execute(program, case)
        if (done.returncode, done.stdout) != (0, "done\n"):
            failed[case] = done.stderr
    assert not failed


def test_an_operator_that_fails_says_why(program):
    done = execute(program, "refused")
    assert done.stderr == "opwest: operator: Assert fail: arguments of scale\n"


def test_two_threads_under_thread_sanitizer(tmp_path):
    fault = fault_of_compiler("gcc", tuple(THREADS), True)
    if fault and "unexpected memory mapping" not in fault:
        pytest.skip(fault)
    program = build(golden_app("conventions", tmp_path), tmp_path / "build", SOURCE, "gcc", THREADS)
    # The kernel's address randomisation may be wider than this sanitizer knows: run without it.
    command = ["setarch", "-R", str(program), "threads"] if fault else [str(program), "threads"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    assert "WARNING: ThreadSanitizer" not in done.stderr
