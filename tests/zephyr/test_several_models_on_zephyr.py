# SPDX-License-Identifier: Apache-2.0
"""Models whose objects define the same symbols, in one image: called in turn and from two threads, both back ends."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from cover import configured
from gallery import Program, output
from objects_factory import compile_object
from requirements_support import need
from zephyr_support import BACK_ENDS, Workspace

pytestmark = pytest.mark.zephyr
Opwest = Callable[..., subprocess.CompletedProcess[str]]

FUSED = """
#include <stdint.h>
int32_t helper(int32_t x);
int32_t helper(int32_t x) {{ return x {operation}; }}
int32_t tvmgen_default_fused_conv2d(const int32_t *data, int32_t *result)
{{
	for (int i = 0; i < 16; i++) {{ result[i] = helper(data[i]); }}
	return 0;
}}
"""
MANIFEST = """
version: 1
model: {model}
objects:
  - {{target: x86-64, files: [{objects}_x86-64.o]}}
  - {{target: cortex-m3, files: [{objects}_cortex-m3.o]}}
operators:
  fused:
    symbol: tvmgen_default_fused_conv2d
    args:
      - {{name: data, dtype: int32, shape: [16]}}
      - {{name: result, dtype: int32, shape: [16], direction: out}}
run:
  inputs: {{x: {{dtype: int32, shape: [16]}}}}
  outputs: {{y: {{dtype: int32, shape: [16]}}}}
  steps:
    - {{call: fused, args: [x, a]}}
    - {{call: fused, args: [a, b]}}
    - {{call: fused, args: [b, y]}}
"""
MAIN_C = """
#include <stdio.h>
#include <zephyr/kernel.h>
#include <plus.h>
#include <plus_devicetree.h>
#include <again.h>
#include <again_devicetree.h>
#include <times.h>
#include <times_devicetree.h>

#define RUNS 500
#define USE(m, M)                                                                                  \\
	M##_WORKSPACE_DEFINE(m##_workspace);                                                       \\
	static const struct m##_devices m##_context = M##_DEVICES_DT_INIT;                         \\
	static int m##_once(int32_t start, int32_t expected)                                       \\
	{                                                                                          \\
		int32_t x[16], y[16];                                                              \\
		for (int i = 0; i < 16; i++) {                                                     \\
			x[i] = start;                                                              \\
		}                                                                                  \\
		int rc = m##_run(&(struct m##_inputs){x}, &(struct m##_outputs){y}, &m##_workspace, &m##_context); \\
		for (int i = 0; i < 16; i++) {                                                     \\
			rc = rc != 0 || y[i] != expected ? 1 : rc;                                 \\
		}                                                                                  \\
		return rc;                                                                         \\
	}
USE(plus, PLUS)
USE(again, AGAIN)
USE(times, TIMES)

static int wrong;
static K_SEM_DEFINE(done, 0, 1);

static void other(void *a, void *b, void *c)
{
	for (int i = 0; i < RUNS; i++) {
		wrong += times_once(i, i * 27);
		k_yield();
	}
	k_sem_give(&done);
}
static K_THREAD_STACK_DEFINE(stack, 2048);
static struct k_thread thread;

int main(void)
{
	wrong += plus_open(&plus_workspace, &plus_context);
	wrong += again_open(&again_workspace, &again_context);
	wrong += times_open(&times_workspace, &times_context);
	k_thread_create(&thread, stack, K_THREAD_STACK_SIZEOF(stack), other, NULL, NULL, NULL,
			k_thread_priority_get(k_current_get()), 0, K_NO_WAIT);
	for (int i = 0; i < RUNS; i++) {
		wrong += plus_once(i, i + 15);
		k_yield();
		wrong += again_once(i, i + 15);
	}
	k_sem_take(&done, K_FOREVER);
	printf("plus %d again %d times %d\\n", (int)plus_registry.count, (int)again_registry.count,
	       (int)times_registry.count);
	printf("wrong: %d of %d\\n", wrong, 3 * RUNS);
	return 0;
}
"""


def write(folder: Path) -> list[Path]:
    """Write the models and main.c; return the manifests."""
    for name, operation in (("plus", "+ 5"), ("times", "* 3")):
        for target, compiler, flags in (
            ("x86-64", "gcc", ["-O1", "-fPIC"]),
            ("cortex-m3", "arm-none-eabi-gcc", ["-O1", "-mcpu=cortex-m3", "-mthumb"]),
        ):
            made = compile_object(folder, FUSED.format(operation=operation), compiler=compiler, flags=flags)
            made.rename(folder / f"{name}_{target}.o")
    (folder / "main.c").write_text(MAIN_C)
    manifests = []
    for model, objects in (("plus", "plus"), ("again", "plus"), ("times", "times")):
        manifests.append(folder / f"{model}.yaml")
        manifests[-1].write_text(MANIFEST.format(model=model, objects=objects))
    return manifests


PROGRAM = Program("several", write, BACK_ENDS)


@configured("board, back_end", BACK_ENDS)
def test_three_models_two_with_equal_operators(workspace: Workspace, opwest: Opwest, board: str, back_end: str) -> None:
    need("arm-none-eabi-gcc")
    console = output(workspace, opwest, board, back_end, PROGRAM)
    assert "plus 1 again 1 times 1" in console
    assert "wrong: 0 of 1500" in console
