# SPDX-License-Identifier: Apache-2.0
"""Threads: user threads, float operators in two threads at once, and operators that overflow their stack."""

import re
import shutil
import subprocess

import numpy as np
import pytest
import streams
import yaml
from cover import MAIN, configured
from requirements_support import need
from zephyr_support import OTHER_VERSIONS, ROOT

pytestmark = pytest.mark.zephyr

# --- User threads on mps2/an385: a model without devices, one with devices through a runner, the class of accelerators.
# Boards of native_sim have no userspace. Zephyr 3.4 has other names for the verification of system calls, and other
# paths of the generated headers.

PROGRAMS = ROOT / "tests" / "zephyr" / "programs" / "userspace"
BOARD = "mps2/an385"
KCONFIG = {
    "CONFIG_USERSPACE": "y",
    "CONFIG_OPWEST_RUNNER": "y",
    "CONFIG_LOG": "y",
    "CONFIG_LOG_PRINTK": "n",
    "CONFIG_MAIN_THREAD_PRIORITY": 7,
    "CONFIG_SYS_CLOCK_TICKS_PER_SEC": 1000,
}


def application(opwest, tmp_path):
    """Generate an application with a model on the processor, one on accelerators, and the programs of this test."""
    source = tmp_path / "source"
    ignored = shutil.ignore_patterns("__pycache__", "objects")
    shutil.copytree(streams.PROJECT, source / "streams", ignore=ignored)
    shutil.copytree(ROOT / "examples" / "two_npus", source / "two_npus", ignore=ignored)
    shutil.copytree(PROGRAMS, source / "two_npus", dirs_exist_ok=True)
    manifest = source / "two_npus" / "manifest.yaml"
    content = yaml.safe_load(manifest.read_text())
    content["boards"] = ["mps2/an385"]
    content["application"] = {
        "sources": [*sorted(file.name for file in PROGRAMS.iterdir()), "application/held_out.h"],
        "overlays": {"mps2/an385": "overlays/npus.overlay"},
        "kconfig": KCONFIG,
    }
    manifest.write_text(yaml.safe_dump(content))
    opwest("generate", manifest, source / "streams" / "manifest.yaml", "-o", tmp_path / "app")
    return tmp_path / "app"


@configured("version", [MAIN, *OTHER_VERSIONS], board=BOARD, cost=9)
def test_user_threads(workspaces, opwest, tmp_path, version):
    """Every thread has the expected end and results; the log can interrupt lines of the console."""
    zephyr = workspaces(version)
    console = zephyr.build(application(opwest, tmp_path), zephyr.board(BOARD)).run(r"done: -?\d+ failed")
    checks = re.findall(r"ok: (.*) \(-?\d+\)$", console, re.MULTILINE)
    faults = re.findall(r"fault: reason (\d+)$", console, re.MULTILINE)
    print(f"mps2/an385 in QEMU, Zephyr {version}: {len(checks)} checks, {len(faults)} threads ended by the kernel")
    assert "done: 0 failed" in console, console
    assert "FAILED" not in console, console
    assert "3" in faults, console  # K_ERR_KERNEL_OOPS: an invalid argument of a system call


# --- Float operators in two threads at once on a processor with an FPU, with the float ABI of their objects

# The sum is in a register of the FPU while the other thread runs.
FLOAT_OPERATOR = """#include <stdint.h>
void switch_threads(void);
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
FLOAT_MANIFEST = """version: 1
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
FLOAT_MAIN = """#include <stdio.h>
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
def test_two_threads_with_float_operators(abi, workspace, opwest, tmp_path):
    """C sources get the hard ABI, which is Zephyr's default, and objects their own."""
    need("arm-none-eabi-gcc", "qemu-system-arm")
    (tmp_path / "operator.c").write_text(FLOAT_OPERATOR)
    (tmp_path / "main.c").write_text(FLOAT_MAIN)
    files = "files: [operator.c]"
    if abi == "softfp":
        flags = ["-mcpu=cortex-m4", "-mthumb", "-mfpu=fpv4-sp-d16", "-mfloat-abi=softfp", "-O2"]
        subprocess.run(["arm-none-eabi-gcc", *flags, "-c", "operator.c"], cwd=tmp_path, check=True)
        files = "files: [operator.o], target: cortex-m4f-softfp"
    (tmp_path / "manifest.yaml").write_text(FLOAT_MANIFEST.format(files=files))
    opwest("generate", tmp_path / "manifest.yaml", "-o", tmp_path / "app")
    built = workspace.build(tmp_path / "app", "mps2/an386")
    other = {"hard": "CONFIG_FP_HARDABI=y", "softfp": "CONFIG_FP_SOFTABI=y"}[abi]
    assert {"CONFIG_FPU=y", "CONFIG_FPU_SHARING=y", other} <= set(built.options)
    console = built.run("finished 2\r?\n")
    assert f"{int(1.5 * SUM)} {int(-40.25 * SUM)}\n" in console
    assert "thread 1: 0 wrong\n" in console and "thread 2: 0 wrong\n" in console


# --- Operators that overflow their stack: a named fault of the image, and one error of `opwest run --board`

GUARDS = {
    "mps2/an385": "CONFIG_MPU_STACK_GUARD=y",
    "qemu_riscv32": "CONFIG_PMP_STACK_GUARD=y",
    "qemu_cortex_m3": "CONFIG_STACK_SENTINEL=y",
}
DEEP_OPERATOR = """\
#include <stdint.h>

/* A little more than the stack: below the word of the sentinel are the stacks of others. */
#define BYTES 4200

static int32_t __attribute__((noinline)) sum(const volatile int32_t *values, int count)
{
	int32_t result = 0;

	for (int i = 0; i < count; i++) {
		result += values[i];
	}
	return result;
}

int32_t deep(const int32_t *x, int32_t *y)
{
	volatile int32_t values[BYTES / 4];

	for (int i = BYTES / 4 - 1; i >= 0; i--) {
		values[i] = x[0];
	}
	y[0] = sum(values, BYTES / 4);
	return 0;
}
"""
DEEP_MANIFEST = """\
version: 1
model: overflow
objects: [{files: [deep.c]}]
application:
  kconfig: {CONFIG_MAIN_STACK_SIZE: 4096, CONFIG_THREAD_NAME: y}
  sources: [main.c]
operators:
  deep: {args: [{name: x, dtype: int32, shape: [1]}, {name: y, dtype: int32, shape: [1], direction: out}]}
run:
  inputs: {x: {dtype: int32, shape: [1]}}
  outputs: {y: {dtype: int32, shape: [1]}}
  steps: [{call: deep, args: [x, y]}]
"""
DEEP_MAIN = """\
#include <stdio.h>

#include <zephyr/kernel.h>

#include <overflow.h>
#include <overflow_devicetree.h>

OVERFLOW_WORKSPACE_DEFINE(workspace);
static const struct overflow_devices devices = OVERFLOW_DEVICES_DT_INIT;

int main(void)
{
	int32_t x = 3, y = 0;

	if (IS_ENABLED(CONFIG_OPWEST_SERVICE)) {
		return 0; /* the host runs the model */
	}

	int rc = overflow_open(&workspace, &devices);

	rc |= overflow_run(&(struct overflow_inputs){&x}, &(struct overflow_outputs){&y}, &workspace, &devices);
	k_msleep(10);
	printf("wrong: %d %d\\n", (int)y, rc);
	return 0;
}
"""


@pytest.fixture(scope="module")
def app(opwest, tmp_path_factory):
    folder = tmp_path_factory.mktemp("overflow")
    (folder / "deep.c").write_text(DEEP_OPERATOR)
    (folder / "main.c").write_text(DEEP_MAIN)
    (folder / "manifest.yaml").write_text(DEEP_MANIFEST)
    opwest("generate", folder / "manifest.yaml", "-o", folder / "app")
    return folder / "app"


@configured("board", GUARDS)
def test_stack_overflow_of_an_application(workspace, app, board):
    built = workspace.build(app, board)
    assert GUARDS[board] in built.options
    console = built.run(r"opwest: fatal error .*|^wrong: .*")
    assert re.search(r"^opwest: fatal error 2: stack overflow in thread main\r?$", console, re.MULTILINE)
    assert "wrong: " not in console


@configured("board", ["mps2/an385", "qemu_cortex_m3"])
def test_stack_overflow_of_a_run_on_a_board(on_board, app, board, tmp_path):
    np.save(tmp_path / "x.npy", np.array([3], np.int32))
    done = on_board(app, board, "--quiet", "--input", f"x={tmp_path / 'x.npy'}", code=1)
    assert done.stdout == ""
    assert done.stderr == (
        "opwest: error: the image stopped while the host waited for the end of overflow_run: "
        "stack overflow in thread 'opwest'\n"
        "  hint: raise CONFIG_OPWEST_SERVICE_STACK_SIZE; operators run on this stack, and `stack:` of an operator is "
        "the most bytes that it needs\n"
    )
