# SPDX-License-Identifier: Apache-2.0
"""Float operators in two threads at once on a processor with an FPU, with the float ABI of their objects."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from cover import configured
from requirements_support import need
from zephyr_support import Workspace

pytestmark = pytest.mark.zephyr
Opwest = Callable[..., subprocess.CompletedProcess[str]]

# The sum is in a register of the FPU while the other thread runs.
OPERATOR = """#include <stdint.h>
void switch_threads(void);
int32_t filter(const float *x, float by, float *y);
int32_t filter(const float *x, float by, float *y)
{
	float sum = 0.0f;
	for (int i = 0; i < 16; i++) {
		sum = sum * by + x[i];
		switch_threads();
	}
	y[0] = sum;
	return 0;
}
"""
MANIFEST = """version: 1
model: fp
boards: [mps2/an386]
objects: [{{{files}}}]
externals: [{{symbol: switch_threads, from: main.c}}]
operators:
  filter:
    args:
      - {{name: x, dtype: float32, shape: [16]}}
      - {{name: by, dtype: float32, scalar: true}}
      - {{name: y, dtype: float32, shape: [1], direction: out}}
run:
  inputs: {{x: {{dtype: float32, shape: [16]}}}}
  outputs: {{y: {{dtype: float32, shape: [1]}}}}
  steps: [{{call: filter, args: [x, 0.75, y]}}]
application: {{sources: [main.c]}}
"""
MAIN = """#include <stdio.h>
#include <zephyr/kernel.h>
#include <fp.h>
#include <fp_devicetree.h>

static bool switching;
static int finished;
static const struct fp_devices devices = FP_DEVICES_DT_INIT;
FP_WORKSPACE_DEFINE(first);
FP_WORKSPACE_DEFINE(second);

void switch_threads(void)
{
	if (switching) {
		k_yield();
	}
}

static float once(struct fp_workspace *workspace, float seed)
{
	float x[16], y = 0.0f;

	for (int i = 0; i < 16; i++) {
		x[i] = seed * (float)(i + 1);
	}
	if (fp_run(&(struct fp_inputs){.x = x}, &(struct fp_outputs){.y = &y}, workspace, &devices) != 0) {
		return -1.0f;
	}
	return y;
}

static void thread(void *workspace, void *name, void *expected)
{
	int wrong = 0;

	for (int i = 0; i < 500; i++) {
		wrong += once(workspace, name != NULL ? 1.5f : -40.25f) != *(const float *)expected;
	}
	finished++;
	printf("thread %d: %d wrong\\n", name != NULL ? 1 : 2, wrong);
}

K_THREAD_STACK_DEFINE(stack, 2048);
static struct k_thread other;

int main(void)
{
	static float expected[2];

	printf("open %d %d\\n", fp_open(&first, &devices), fp_open(&second, &devices));
	expected[0] = once(&first, 1.5f);
	expected[1] = once(&second, -40.25f);
	printf("%d %d\\n", (int)expected[0], (int)expected[1]);
	switching = true;
	k_thread_create(&other, stack, K_THREAD_STACK_SIZEOF(stack), thread, &second, NULL, &expected[1],
			k_thread_priority_get(k_current_get()), 0, K_NO_WAIT);
	thread(&first, "1", &expected[0]);
	k_thread_join(&other, K_FOREVER);
	printf("finished %d\\n", finished);
	return 0;
}
"""
SUM = sum((i + 1) * 0.75 ** (15 - i) for i in range(16))


@configured("abi", ["hard", "softfp"], board="mps2/an386")
def test_two_threads_with_float_operators(abi: str, workspace: Workspace, opwest: Opwest, tmp_path: Path) -> None:
    """C sources get the hard ABI, which is Zephyr's default, and objects their own."""
    need("arm-none-eabi-gcc", "qemu-system-arm")
    (tmp_path / "operator.c").write_text(OPERATOR)
    (tmp_path / "main.c").write_text(MAIN)
    files = "files: [operator.c]"
    if abi == "softfp":
        flags = ["-mcpu=cortex-m4", "-mthumb", "-mfpu=fpv4-sp-d16", "-mfloat-abi=softfp", "-O2"]
        subprocess.run(["arm-none-eabi-gcc", *flags, "-c", "operator.c"], cwd=tmp_path, check=True)
        files = "files: [operator.o], target: cortex-m4f-softfp"
    (tmp_path / "manifest.yaml").write_text(MANIFEST.format(files=files))
    opwest("generate", tmp_path / "manifest.yaml", "-o", tmp_path / "app")
    built = workspace.build(tmp_path / "app", "mps2/an386")
    config = (built.folder / "zephyr" / ".config").read_text()
    other = {"hard": "CONFIG_FP_HARDABI=y", "softfp": "CONFIG_FP_SOFTABI=y"}[abi]
    assert {"CONFIG_FPU=y", "CONFIG_FPU_SHARING=y", other} <= set(config.splitlines())
    console = built.run("finished 2\r?\n")
    assert f"{int(1.5 * SUM)} {int(-40.25 * SUM)}\n" in console
    assert "thread 1: 0 wrong\n" in console and "thread 2: 0 wrong\n" in console
