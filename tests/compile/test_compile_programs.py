# SPDX-License-Identifier: Apache-2.0
"""Models under sanitizers: the cases of programs/ with both back ends, and with threads."""

import subprocess
from pathlib import Path

import pytest
from busy_project import write_manifest
from c_support import SANITIZED, build, execute, golden_app, pass_all_cases
from campaign import SANITIZED_LEVEL
from golden_support import Metadata, generate_quickly
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
THREADS = ["-std=gnu11", SANITIZED_LEVEL, "-g", "-Wall", "-Wextra", "-Werror", "-fsanitize=thread"]


@pytest.mark.parametrize("built", BUILDS, ids=lambda one: f"{one[0]}{'-m32' if one[1] else ''}-{one[2]}")
@pytest.mark.parametrize("name", PROGRAMS)
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


def pass_with_thread_sanitizer(app: Path, name: str, *cases: str) -> None:
    """Run cases of a program; its operators are compiled with the sanitizer too, which sees all accesses."""
    fault = fault_of_compiler("gcc", tuple(THREADS), True)
    if fault and "unexpected memory mapping" not in fault:
        absent(fault, "gcc")
    program = build(app, app.parent / "build", SOURCES / f"{name}.c", flags=THREADS)
    for case in cases:
        # This sanitizer may not support the range of the kernel's address randomisation: run without it.
        command = [*(["setarch", "-R"] if fault else []), program, case]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
        assert "WARNING: ThreadSanitizer" not in done.stderr


@pytest.mark.parametrize("name", ["lifecycle", "conventions", "tvmgen"])
def test_two_threads_under_thread_sanitizer(name: str, tmp_path: Path) -> None:
    pass_with_thread_sanitizer(golden_app(PROGRAMS[name], tmp_path), name, "threads")


def test_of_two_runs_of_a_workspace_one_is_refused(metadata: Metadata, tmp_path: Path) -> None:
    """Functions of a running workspace return -EBUSY, and nothing else changes."""
    app = generate_quickly([write_manifest(tmp_path)], tmp_path / "app", metadata=metadata)
    pass_with_thread_sanitizer(app, "busy", "held", "nested", "race")
