# SPDX-License-Identifier: Apache-2.0
"""The life cycle, tests/compile/programs/lifecycle.c case by case, with both back ends.

All C is compiled with sanitizers; the object of LLVM is not.
"""

import re

import pytest
from backends_support import BACK_ENDS
from c_support import ROOT, SANITIZED, execute
from c_support import build as build_program
from requirements_support import need_compiler

SOURCE = ROOT / "tests" / "compile" / "programs" / "lifecycle.c"
CASES = re.findall(r"CASE\(([a-z_]+)\)[,\s]", SOURCE.read_text().split("cases[] = {")[1])
BUILDS = {
    "gcc": ("gcc", ()),
    "gcc-m32": ("gcc", ("-m32", "-no-pie")),
    "clang": ("clang", ()),
}


@pytest.fixture(scope="module", params=[(build, back) for build in BUILDS for back in BACK_ENDS], ids="-".join)
def program(request, apps, tmp_path_factory):
    build, metadata = request.param
    compiler, machine = BUILDS[build]
    flags = [*machine, *SANITIZED]
    need_compiler(compiler, flags, link=True)
    return build_program(apps[metadata], tmp_path_factory.mktemp("program"), SOURCE, compiler, flags)


def test_lifecycle(program):
    failed = {}
    for case in CASES:
        done = execute(program, case)
        if (done.returncode, done.stdout) != (0, "done\n"):
            failed[case] = done.stderr
    assert not failed
    assert len(CASES) >= 17


def test_failures_are_logged_with_model_step_and_code(program):
    lines = execute(program, "status").stderr.splitlines()
    assert lines[0] == "opwest: accelerated: step 0 returned 1"
    assert "opwest: accelerated: step 7 returned -2147483647" in lines
    assert len(lines) == 7 * 5
