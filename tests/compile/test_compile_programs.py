# SPDX-License-Identifier: Apache-2.0
"""Golden models under sanitizers: the cases of programs/ with both back ends, and with threads."""

import subprocess
from pathlib import Path

import pytest
from c_support import SANITIZED, build, execute, golden_app, pass_all_cases
from campaign import SANITIZED_LEVEL
from golden_support import Metadata
from requirements_support import absent, fault_of_compiler, need, need_compiler

SOURCES = Path(__file__).parent / "programs"
PROGRAMS = {"lifecycle": "devices", "asynchronous": "asynchronous", "conventions": "conventions", "tvmgen": "tvmgen"}
"""The golden project of each program."""
BUILDS: list[tuple[str, tuple[str, ...], Metadata]] = [
    ("gcc", (), "c"),
    ("gcc", (), "llvm"),
    ("gcc", ("-m32",), "c"),
    ("gcc", ("-m32", "-no-pie"), "llvm"),  # LLVM's code for i386 is not position-independent
    ("clang", (), "c"),
]
THREADS = ["-std=c11", SANITIZED_LEVEL, "-g", "-Wall", "-Wextra", "-Werror", "-fsanitize=thread"]


@pytest.mark.parametrize(
    ("name", "built"),
    [
        pytest.param(*(name, one), id=f"{name}-{one[0]}{'-m32' if one[1] else ''}-{one[2]}")
        for name in PROGRAMS
        for one in BUILDS
    ],
)
def test_cases(name: str, built: tuple[str, tuple[str, ...], Metadata], tmp_path: Path) -> None:
    compiler, machine, metadata = built
    flags = [*machine, *SANITIZED]
    need_compiler(compiler, flags, link=True)
    if metadata == "llvm":
        need("llvmlite")
    app = golden_app(PROGRAMS[name], tmp_path, metadata)
    program = build(app, tmp_path / "build", SOURCES / f"{name}.c", compiler, flags)
    pass_all_cases(program)
    if name == "lifecycle":
        lines = execute(program, "status").stderr.splitlines()
        assert lines[0] == "opwest: accelerated: step 0 returned 1"
        assert "opwest: accelerated: step 7 returned -2147483647" in lines
        assert len(lines) == 7 * 5
    if name == "conventions":
        assert execute(program, "refused").stderr == "opwest: operator: Assert fail: arguments of scale\n"


@pytest.mark.parametrize("name", ["lifecycle", "conventions", "tvmgen"])
def test_two_threads_under_thread_sanitizer(name: str, tmp_path: Path) -> None:
    fault = fault_of_compiler("gcc", tuple(THREADS), True)
    if fault and "unexpected memory mapping" not in fault:
        absent(fault, "gcc")
    program = build(golden_app(PROGRAMS[name], tmp_path), tmp_path / "build", SOURCES / f"{name}.c", "gcc", THREADS)
    # This sanitizer may not support the range of the kernel's address randomisation: run without it.
    command = [*(["setarch", "-R"] if fault else []), str(program), "threads"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    assert "WARNING: ThreadSanitizer" not in done.stderr
