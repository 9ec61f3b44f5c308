# SPDX-License-Identifier: Apache-2.0
"""Operators of TVM's calling conventions, under sanitizers: programs/conventions.c with both back ends."""

import re
import subprocess
import textwrap
from pathlib import Path

import pytest
from c_support import SANITIZED, build, execute, golden_app
from golden_support import generate_quickly
from requirements_support import absent, fault_of_compiler, need_compiler

SOURCE = Path(__file__).parent / "programs" / "conventions.c"
CASES = re.findall(r"CASE\(([a-z_]+)\)[,\s]", SOURCE.read_text().split("cases[] = {")[1])
BUILDS = {"gcc": ("gcc", SANITIZED), "gcc-m32": ("gcc", ["-m32", *SANITIZED]), "clang": ("clang", SANITIZED)}
THREADS = ["-std=c11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-fsanitize=thread"]


@pytest.fixture(scope="module", params=BUILDS)
def program(request, metadata, tmp_path_factory):
    compiler, flags = BUILDS[request.param]
    # LLVM's code for i386 is not position-independent.
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


def test_failing_operator_reports_its_reason(program):
    done = execute(program, "refused")
    assert done.stderr == "opwest: operator: Assert fail: arguments of scale\n"


def test_two_threads_under_thread_sanitizer(tmp_path):
    fault = fault_of_compiler("gcc", tuple(THREADS), True)
    if fault and "unexpected memory mapping" not in fault:
        absent(fault, "gcc")
    program = build(golden_app("conventions", tmp_path), tmp_path / "build", SOURCE, "gcc", THREADS)
    # This sanitizer may not support the range of the kernel's address randomisation: run without it.
    command = ["setarch", "-R", str(program), "threads"] if fault else [str(program), "threads"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    assert "WARNING: ThreadSanitizer" not in done.stderr


# As TVM's C output: every source has a context of the same name.
_SOURCE_OF_TVM = """
#include "tvm/runtime/c_runtime_api.h"
void* __tvm_module_ctx = NULL;
TVM_DLL int32_t SYMBOL(void* args, int32_t* codes, int32_t n, void* ret, int32_t* ret_code, void* resource) {
  const int8_t* x = ((DLTensor*)((TVMValue*)args)[0].v_handle)->data;
  int8_t* y = ((DLTensor*)((TVMValue*)args)[1].v_handle)->data;
  for (int i = 0; i < 4; i++) { y[i] = (int8_t)(x[i] + ADDED); }
  return STATUS;
}
"""
_MANIFEST_OF_TVM = """
version: 1
model: MODEL
convention: packed
compat: tvm-crt
objects:
  - {files: [MODEL/a.c, MODEL/b.c]}
operators:
  a: {symbol: MODEL_a, args: [{name: x, dtype: int8, shape: [4]}, {name: y, dtype: int8, shape: [4], direction: out}]}
  b: {symbol: MODEL_b, args: [{name: x, dtype: int8, shape: [4]}, {name: y, dtype: int8, shape: [4], direction: out}]}
run:
  inputs: {x: {dtype: int8, shape: [4]}}
  outputs: {y: {dtype: int8, shape: [4]}}
  steps:
    - {call: a, args: [x, between]}
    - {call: b, args: [between, y]}
"""
_MAIN_OF_TVM = """
#include <stdio.h>
#include <string.h>
#include <one.h>
#include <two.h>
#include <opwest/tvm_packed.h>

ONE_WORKSPACE_DEFINE(first);
TWO_WORKSPACE_DEFINE(second);
static const struct one_devices none;
static const struct two_devices none_too;

int main(void)
{
	static _Alignas(16) int8_t x[4] = {1, 2, 3, 4}, y[4];
	const TVMFuncRegistry *const table = TVMSystemLibEntryPoint()->registry;
	uint16_t count;

	memcpy(&count, table->names, 2);
	printf("%d", count);
	for (const char *name = table->names + 2; *name != 0; name += strlen(name) + 1) {
		printf(" %s", name);
	}
	printf(" open %d %d", one_open(&first, &none), two_open(&second, &none_too));
	printf(" run %d", one_run(&(struct one_inputs){x}, &(struct one_outputs){y}, &first, &none));
	printf(" %d", y[3]);
	printf(" run %d", two_run(&(struct two_inputs){x}, &(struct two_outputs){y}, &second, &none_too));
	printf(" code %d step %d\\n", (int)second.status.code, second.status.step);
	return 0;
}
"""


def test_two_models_in_one_table(tmp_path, metadata):
    """Contexts of equal names do not clash. The second operator of the second model fails."""
    need_compiler("gcc", SANITIZED, link=True)
    manifests = []
    for model in ("one", "two"):
        folder = tmp_path / "source" / model
        folder.mkdir(parents=True)
        for name, added in (("a", 10), ("b", 100)):
            text = _SOURCE_OF_TVM.replace("SYMBOL", f"{model}_{name}").replace("ADDED", str(added))
            status = "-1" if (model, name) == ("two", "b") else "0"
            (folder / f"{name}.c").write_text(text.replace("STATUS", status))
        manifest = folder.parent / f"{model}.yaml"
        manifest.write_text(_MANIFEST_OF_TVM.replace("MODEL", model))
        manifests.append(manifest)
    app = generate_quickly(manifests, tmp_path / "app", vendored=True, metadata=metadata)
    main = tmp_path / "main.c"
    main.write_text(textwrap.dedent(_MAIN_OF_TVM))
    done = execute(build(app, tmp_path / "build", main, operator_flags=["-Wno-unused-parameter"]))
    assert done.stdout == "4 one_a one_b two_a two_b open 0 0 run 0 114 run -5 code -5 step 1\n"
    assert done.stderr == "opwest: two: step 1 returned -5\n"
