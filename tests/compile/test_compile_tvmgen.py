# SPDX-License-Identifier: Apache-2.0
"""microTVM's C interface under sanitizers: programs/tvmgen.c with both back ends, and an application in C++."""

import subprocess
from pathlib import Path

import pytest
from c_support import SANITIZED, build, execute, golden_app, includes, run
from requirements_support import absent, fault_of_compiler, need, need_compiler

SOURCE = Path(__file__).parent / "programs" / "tvmgen.c"
BUILDS = {"gcc": ("gcc", SANITIZED), "gcc-m32": ("gcc", ["-m32", *SANITIZED]), "clang": ("clang", SANITIZED)}
THREADS = ["-std=c11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-fsanitize=thread"]


@pytest.mark.parametrize("kind", BUILDS)
def test_application_of_microtvm(kind, metadata, tmp_path):
    compiler, flags = BUILDS[kind]
    flags = [*flags, *(["-no-pie"] if "-m32" in flags and metadata == "llvm" else [])]
    need_compiler(compiler, flags, link=True)
    program = build(golden_app("tvmgen", tmp_path, metadata), tmp_path / "build", SOURCE, compiler, flags)
    done = execute(program)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


def test_two_threads_under_thread_sanitizer(tmp_path):
    fault = fault_of_compiler("gcc", tuple(THREADS), True)
    if fault and "unexpected memory mapping" not in fault:
        absent(fault, "gcc")
    program = build(golden_app("tvmgen", tmp_path), tmp_path / "build", SOURCE, "gcc", THREADS)
    # This sanitizer may not support the range of the kernel's address randomisation: run without it.
    command = ["setarch", "-R", str(program), "threads"] if fault else [str(program), "threads"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    assert "WARNING: ThreadSanitizer" not in done.stderr


def test_headers_in_cpp(tmp_path):
    need("g++")
    app = golden_app("tvmgen", tmp_path)
    source = tmp_path / "main.cpp"
    source.write_text(
        "#include <tvmgen_default.h>\n#include <tvmgen_detection.h>\nint main() { return tvmgen_default_close(); }\n"
    )
    run(["g++", "-std=c++11", "-Wall", "-Wextra", "-Werror", *includes(app), "-c", source], tmp_path)
