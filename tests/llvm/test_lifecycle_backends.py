# SPDX-License-Identifier: Apache-2.0
"""The life cycle, tests/compile/programs/lifecycle.c case by case, with both back ends.

All C is under sanitizers; the object that LLVM made is as it is.
"""

import re

import pytest
from backends_support import BACK_ENDS, RUNTIME, includes, read_record, run_tool
from c_support import ROOT, SANITIZED, execute, need_compiler

SOURCE = ROOT / "tests" / "compile" / "programs" / "lifecycle.c"
CASES = re.findall(r"CASE\(([a-z_]+)\)[,\s]", SOURCE.read_text().split("cases[] = {")[1])
BUILDS = {
    "gcc": ("x86-64", "gcc", ()),
    "gcc-m32": ("i386", "gcc", ("-m32", "-no-pie")),
    "clang": ("x86-64", "clang", ()),
}


@pytest.fixture(scope="module", params=[(build, back) for build in BUILDS for back in BACK_ENDS], ids="-".join)
def program(request, apps, tmp_path_factory):
    build, metadata = request.param
    target, compiler, machine = BUILDS[build]
    flags = [*machine, *SANITIZED]
    need_compiler(compiler, flags, link=True)
    app, work = apps[metadata], tmp_path_factory.mktemp("program")
    folder = app / "models" / "accelerated"
    chosen = next(m for m in read_record(app)["models"] if m["name"] == "accelerated")["builds"]
    chosen = next(b for b in chosen if b["target"] == target)
    runtime = app / "modules" / "opwest" / "src"
    sources = [SOURCE, runtime / "port_host.c", *(runtime / name for name in RUNTIME)]
    if metadata == "c":
        sources += [folder / "src" / f"accelerated_{part}.c" for part in ("metadata", "registry", "run")]
        objects = []
    else:
        objects = [folder / "objects" / target / "accelerated_metadata.o"]
    operators = work / "operators.o"
    rename = ["-include", folder / chosen["rename"]]
    run_tool([compiler, *flags, *includes(app), *rename, "-c", folder / chosen["sources"][0], "-o", operators], work)
    objects += [folder / item for item in chosen["objects"]]
    target = work / "program"
    run_tool([compiler, *flags, *includes(app), *sources, operators, *objects, "-o", target, "-pthread"], work)
    return target


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
