# SPDX-License-Identifier: Apache-2.0
"""microTVM's C interface under sanitizers: programs/tvmgen.c with both back ends, and an application in C++."""

import subprocess
from pathlib import Path

import pytest
from c_support import RUNTIME, SANITIZED, build, execute, golden_app, includes, run
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


_HEADERS_OF_TVM = """
#include <tvm/runtime/c_runtime_api.h>
#include <tvm/runtime/crt/logging.h>
#include <tvm/runtime/crt/platform.h>
#include <tvm/runtime/crt/stack_allocator.h>

int main(void)
{
	static uint8_t memory[64];
	tvm_workspace_t workspace;
	void *a, *b, *c;
	int wrong = StackMemoryManager_Init(&workspace, memory, sizeof(memory)) != kTvmErrorNoError;

	wrong |= StackMemoryManager_Allocate(&workspace, 17, &a) != kTvmErrorNoError || a != memory;
	wrong |= StackMemoryManager_Allocate(&workspace, 32, &b) != kTvmErrorNoError || b != memory + 32;
	wrong |= StackMemoryManager_Allocate(&workspace, 1, &c) != kTvmErrorPlatformNoMemory || c != NULL;
	wrong |= StackMemoryManager_Allocate(&workspace, -1, &c) != kTvmErrorPlatformNoMemory;
	wrong |= StackMemoryManager_Free(&workspace, b) != kTvmErrorNoError;
	wrong |= StackMemoryManager_Free(&workspace, b) != kTvmErrorPlatformStackAllocBadFree;
	wrong |= StackMemoryManager_Allocate(&workspace, 32, &b) != kTvmErrorNoError || b != memory + 32;
	return wrong;
}
"""


@pytest.mark.parametrize("compiler", ["gcc", "g++"])
def test_replacements_of_the_runtime_headers(compiler, tmp_path):
    need(compiler)
    source = tmp_path / ("main.c" if compiler == "gcc" else "main.cpp")
    source.write_text(_HEADERS_OF_TVM)
    flags = [flag for flag in SANITIZED if compiler == "gcc" or not flag.startswith("-std")]
    folders = [f"-I{RUNTIME / folder}" for folder in ("include", "include_tvm")]
    run([compiler, *flags, *folders, source, "-o", tmp_path / "program"], tmp_path)
    assert execute(tmp_path / "program").returncode == 0
