# SPDX-License-Identifier: Apache-2.0
"""Operators that overflow their stack: a named fault of the image, and one error of `opwest run --board`."""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from cover import configured
from requirements_support import need
from zephyr_support import Workspace

pytestmark = pytest.mark.zephyr
Opwest = Callable[..., subprocess.CompletedProcess[str]]

GUARDS = {
    "mps2/an385": "CONFIG_MPU_STACK_GUARD=y",
    "qemu_riscv32": "CONFIG_PMP_STACK_GUARD=y",
    "qemu_cortex_m3": "CONFIG_STACK_SENTINEL=y",
}
SIZE = 4200
"""Bytes of the operator, a little more than the stack: below the word of the sentinel are the stacks of others."""
OPERATOR = """\
#include <stdint.h>

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
MANIFEST = """\
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
MAIN = """\
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
def app(opwest: Opwest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("overflow")
    (folder / "deep.c").write_text(OPERATOR.replace("BYTES", str(SIZE)))
    (folder / "main.c").write_text(MAIN)
    (folder / "manifest.yaml").write_text(MANIFEST)
    opwest("generate", folder / "manifest.yaml", "-o", folder / "app")
    return folder / "app"


@configured("board", GUARDS)
def test_application(workspace: Workspace, app: Path, board: str) -> None:
    built = workspace.build(app, board)
    assert GUARDS[board] in (built.folder / "zephyr" / ".config").read_text()
    console = built.run(r"opwest: fatal error .*|^wrong: .*")
    assert re.search(r"^opwest: fatal error 2: stack overflow in thread main\r?$", console, re.MULTILINE)
    assert "wrong: " not in console


@configured("board", ["mps2/an385", "qemu_cortex_m3"])
def test_run_on_a_board(workspace: Workspace, app: Path, board: str, tmp_path: Path) -> None:
    need("smpclient")
    np.save(tmp_path / "x.npy", np.array([3], np.int32))
    command = [sys.executable, "-m", "opwest", "run", str(app), "--board", board, "--quiet"]
    command += ["--input", f"x={tmp_path / 'x.npy'}"]
    done = subprocess.run(
        command, env=workspace.opwest_environment(board), capture_output=True, text=True, check=False, timeout=600
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "opwest: error: the image stopped while the host waited for the end of overflow_run: "
        "stack overflow in thread 'opwest'\n"
        "  hint: raise CONFIG_OPWEST_SERVICE_STACK_SIZE; operators run on this stack, and `stack:` of an operator is "
        "the most bytes that it needs\n"
    )
