# SPDX-License-Identifier: Apache-2.0
"""An operator of TVM in two threads with workspaces, both back ends; test_matrix_on_zephyr.py has all conventions."""

import pytest
from cover import configured
from gallery import Program, output
from zephyr_support import BACK_ENDS

pytestmark = pytest.mark.zephyr

# As in TVM's C output: its headers, its context. The other thread runs between allocation and release.
PACKED = """
#include "tvm/runtime/c_runtime_api.h"
#include "tvm/runtime/c_backend_api.h"
#include <zephyr/kernel.h>
void* __tvm_module_ctx = NULL;
TVM_DLL int32_t tvmgen_default_fused_add(void* args, int32_t* codes, int32_t num_args, void* ret, int32_t* ret_code,
                                         void* resource) {
  int32_t* data = (((DLTensor*)(((TVMValue*)args)[0].v_handle))[0].data);
  int32_t* result = (((DLTensor*)(((TVMValue*)args)[2].v_handle))[0].data);
  int32_t by = (int32_t)((TVMValue*)args)[1].v_int64;
  if (num_args != 3 || codes[0] != 7 || codes[1] != 0 || resource != NULL) {
    TVMAPISetLastError("arguments of fused_add");
    return -1;
  }
  int32_t* a = TVMBackendAllocWorkspace(1, 0, (uint64_t)64, 0, 32);
  if (a == NULL) {
    return -1;
  }
  for (int i = 0; i < 16; i++) { a[i] = data[i]; }
  k_yield();
  int32_t* b = TVMBackendAllocWorkspace(1, 0, (uint64_t)(by > 100 ? 4096 : 64), 0, 32);
  if (b == NULL) {
    return -1;
  }
  k_yield();
  for (int i = 0; i < 16; i++) { b[i] = a[i] + by; }
  k_yield();
  for (int i = 0; i < 16; i++) { result[i] = b[i]; }
  if (TVMBackendFreeWorkspace(1, 0, b) != 0) { return -1; }
  if (TVMBackendFreeWorkspace(1, 0, a) != 0) { return -1; }
  return 0;
}
"""
MANIFEST = """
version: 1
model: mixed
convention: packed
compat: tvm-crt
objects: [{files: [packed.c]}]
operators:
  plus:
    symbol: tvmgen_default_fused_add
    uses: [control]  # k_yield
    workspace: 128
    args:
      - {name: data, dtype: int32, shape: [16]}
      - {name: by, dtype: int32, scalar: true}
      - {name: result, dtype: int32, shape: [16], direction: out}
run:
  inputs: {x: {dtype: int32, shape: [16]}}
  outputs: {y: {dtype: int32, shape: [16]}}
  steps:
    - {call: plus, args: [x, 7, a]}
    - {call: plus, args: [a, 3, y]}
"""
MAIN_C = """
#include <stdio.h>
#include <string.h>
#include <zephyr/kernel.h>
#include <mixed.h>
#include <mixed_devicetree.h>
#include <opwest/tvm_packed.h>

#define RUNS 300
MIXED_WORKSPACE_DEFINE(first);
MIXED_WORKSPACE_DEFINE(second);
static const struct mixed_devices devices = MIXED_DEVICES_DT_INIT;
static int wrong, turns, last = -1;

static void many(struct mixed_workspace *workspace, int which)
{
	static OPWEST_ALIGNED(64) int32_t x[2][16], y[2][16];

	wrong += mixed_open(workspace, &devices) != 0;
	for (int run = 0; run < RUNS; run++) {
		for (int i = 0; i < 16; i++) {
			x[which][i] = run * (which + 1) + i;
		}
		wrong += mixed_run(&(struct mixed_inputs){x[which]}, &(struct mixed_outputs){y[which]}, workspace,
				   &devices) != 0;
		for (int i = 0; i < 16; i++) {
			wrong += y[which][i] != run * (which + 1) + i + 10;
		}
		turns += last != which;
		last = which;
	}
}

static void other(void *a, void *b, void *c)
{
	many(&second, 1);
}
static K_THREAD_STACK_DEFINE(stack, 2048);
static struct k_thread thread;

static int exhausted(void)
{
	static OPWEST_ALIGNED(64) int32_t x[16], y[16];
	static OPWEST_ALIGNED(64) uint8_t memory[256];
	struct opwest_value args[] = {opwest_in(OPWEST_INT32, x, sizeof(x)), opwest_integer(OPWEST_INT32, 101),
				      opwest_out(OPWEST_INT32, y, sizeof(y)),
				      opwest_out(OPWEST_UINT8, memory, sizeof(memory))};

	return opwest_call(opwest_find(&mixed_registry, "plus"), args, 4, NULL);
}

int main(void)
{
	k_thread_create(&thread, stack, K_THREAD_STACK_SIZEOF(stack), other, NULL, NULL, NULL,
			k_thread_priority_get(k_current_get()), 0, K_NO_WAIT);
	many(&first, 0);
	k_thread_join(&thread, K_FOREVER);
	printf("turns: %s\\n", turns > RUNS ? "many" : "few");
	printf("exhausted: %d\\n", exhausted());
	printf("table: %d %s %d\\n", *(const uint16_t *)TVMSystemLibEntryPoint()->registry->names,
	       TVMSystemLibEntryPoint()->registry->names + 2, TVMSystemLibEntryPoint()->registry->funcs[0] != NULL);
	printf("wrong: %d\\n", wrong);
	return 0;
}
"""


def write(folder):
    """Write the model and main.c; return the manifest."""
    for name, text in (("packed.c", PACKED), ("manifest.yaml", MANIFEST), ("main.c", MAIN_C)):
        (folder / name).write_text(text)
    return [folder / "manifest.yaml"]


# A message of a deferred log may follow the last line of main().
PROGRAM = Program("conventions", write, BACK_ENDS, "CONFIG_LOG=y\nCONFIG_LOG_MODE_IMMEDIATE=y\n")


@configured("board, back_end", BACK_ENDS, convention=("packed",))
def test_two_threads_with_workspaces(workspace, opwest, board, back_end):
    console = output(workspace, opwest, board, back_end, PROGRAM)
    assert "turns: many" in console
    assert "exhausted: -12" in console
    assert "TVMBackendAllocWorkspace: `workspace` in the manifest is too small" in console
    assert "table: 1 tvmgen_default_fused_add 1" in console
    assert "wrong: 0" in console
