# SPDX-License-Identifier: Apache-2.0
"""The table of functions of two models with TVM's calling convention, and the replacements of TVM's headers."""

import pytest
from c_support import RUNTIME, SANITIZED, build, execute, run
from golden_support import generate_quickly
from requirements_support import need, need_compiler

# As TVM's C output: every source has a context of the same name.
_SOURCE_OF_TVM = """
#include "tvm/runtime/c_runtime_api.h"
void* __tvm_module_ctx = NULL;
TVM_DLL int32_t %s(void* args, int32_t* codes, int32_t n, void* ret, int32_t* ret_code, void* resource) {
  const int8_t* x = ((DLTensor*)((TVMValue*)args)[0].v_handle)->data;
  int8_t* y = ((DLTensor*)((TVMValue*)args)[1].v_handle)->data;
  for (int i = 0; i < 4; i++) { y[i] = (int8_t)(x[i] + %d); }
  return %d;
}
"""
_MANIFEST_OF_TVM = """
version: 1
model: MODEL
convention: packed
compat: tvm-crt
objects:
  - {files: [MODEL_a.c, MODEL_b.c]}
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
    for name, added, status in (("one_a", 10, 0), ("one_b", 100, 0), ("two_a", 10, 0), ("two_b", 100, -1)):
        (tmp_path / f"{name}.c").write_text(_SOURCE_OF_TVM % (name, added, status))
    manifests = [tmp_path / "one.yaml", tmp_path / "two.yaml"]
    for path in manifests:
        path.write_text(_MANIFEST_OF_TVM.replace("MODEL", path.stem))
    app = generate_quickly(manifests, tmp_path / "app", vendored=True, metadata=metadata)
    main = tmp_path / "main.c"
    main.write_text(_MAIN_OF_TVM)
    done = execute(build(app, tmp_path / "build", main, operator_flags=["-Wno-unused-parameter"]))
    assert done.stdout == "4 one_a one_b two_a two_b open 0 0 run 0 114 run -5 code -5 step 1\n"
    assert done.stderr == "opwest: two: step 1 returned -5\n"


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
    source, program = tmp_path / "main.c", tmp_path / "program"
    source.write_text(_HEADERS_OF_TVM)
    flags = SANITIZED if compiler == "gcc" else ["-xc++", *(flag for flag in SANITIZED if not flag.startswith("-std"))]
    folders = [f"-I{RUNTIME / folder}" for folder in ("include", "include_tvm")]
    run([compiler, *flags, *folders, source, "-o", program], tmp_path)
    assert execute(program).returncode == 0
