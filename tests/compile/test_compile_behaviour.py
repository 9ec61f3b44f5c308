# SPDX-License-Identifier: Apache-2.0
"""open, run and close as the public header documents them, under sanitizers: programs/lifecycle.c case by case."""

import re
import subprocess
from pathlib import Path

import pytest
from c_support import SANITIZED, build, execute, golden_app
from requirements_support import absent, fault_of_compiler, need_compiler

SOURCE = Path(__file__).parent / "programs" / "lifecycle.c"
CASES = re.findall(r"CASE\(([a-z_]+)\)[,\s]", SOURCE.read_text().split("cases[] = {")[1])
THREADS = ["-std=c11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-fsanitize=thread"]
BUILDS = {
    "gcc": ("gcc", SANITIZED),
    "gcc-m32": ("gcc", ["-m32", *SANITIZED]),
    "clang": ("clang", SANITIZED),
}


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    return golden_app("devices", tmp_path_factory.mktemp("lifecycle"))


@pytest.fixture(scope="module", params=BUILDS)
def program(request, app, tmp_path_factory):
    compiler, flags = BUILDS[request.param]
    need_compiler(compiler, flags, link=True)
    return build(app, tmp_path_factory.mktemp(request.param), SOURCE, compiler, flags)


def test_all_cases_exist(program):
    assert execute(program).stdout.split() == CASES


@pytest.mark.parametrize("case", CASES)
def test_lifecycle(program, case):
    done = execute(program, case)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


def test_failures_are_logged_with_model_step_and_code(program):
    lines = execute(program, "status").stderr.splitlines()
    assert lines[0] == "opwest: accelerated: step 0 returned 1"
    assert "opwest: accelerated: step 7 returned -2147483647" in lines
    assert len(lines) == 7 * 5


def test_two_threads_under_thread_sanitizer(app, tmp_path):
    flags = THREADS
    fault = fault_of_compiler("gcc", tuple(flags), True)
    if fault and "unexpected memory mapping" not in fault:
        absent(fault, "gcc")
    program = build(app, tmp_path, SOURCE, "gcc", flags)
    # This sanitizer may not support the range of the kernel's address randomisation: run without it.
    command = ["setarch", "-R", str(program), "threads"] if fault else [str(program), "threads"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    assert "WARNING: ThreadSanitizer" not in done.stderr
