# SPDX-License-Identifier: Apache-2.0
"""Operators that TVM builds by default, C and LLVM, with and without assertions, and a plain one on native_sim."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from cover import configured
from importers.importers_support import need_tvm
from importers.stock_project import VARIANTS, expected, inputs, write_project
from requirements_support import need_x86_64
from zephyr_support import Workspace

need_tvm()
pytestmark = pytest.mark.zephyr

MAIN_C = """
#include <math.h>
#include <stdio.h>
#include <stock.h>
#include <stock_devicetree.h>

STOCK_WORKSPACE_DEFINE(workspace);
static const struct stock_devices devices = STOCK_DEVICES_DT_INIT;
static OPWEST_ALIGNED(64) const float a[32] = {@a@};
static OPWEST_ALIGNED(64) const uint8_t mask[8] = {@mask@};
static OPWEST_ALIGNED(64) const float x[1024] = {@x@};
static const float sums[32] = {@sums@}, halves[32] = {@halves@};
static OPWEST_ALIGNED(64) float sum[@count@][32], half[@count@][32];

int main(void)
{
	const struct stock_inputs in = {.a = a, .mask = mask, .x = x};
	const struct stock_outputs out = {@outputs@};
	int wrong = 0;

	printf("open %d\\n", stock_open(&workspace, &devices));
	for (int run = 0; run < 3; run++) {
		printf("run %d\\n", stock_run(&in, &out, &workspace, &devices));
	}
	for (int variant = 0; variant < @count@; variant++) {
		for (int i = 0; i < 32; i++) {
			wrong += sum[variant][i] != sums[i];
			wrong += !(fabsf(half[variant][i] - halves[i]) <= 2e-4f);
		}
	}
	printf("wrong: %d\\n", wrong);
	return 0;
}
"""


@configured(board="native_sim/native/64", convention=("packed", "ffi", "unpacked"))
def test_every_variant_in_one_image(
    workspace: Workspace, opwest: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    need_x86_64()
    manifest = write_project(tmp_path / "stock")
    opwest("generate", manifest, "-o", tmp_path / "app")
    a, mask, x = inputs(1)
    sums, halves = expected(a, mask, x)

    def floats(array: np.ndarray) -> str:
        return ", ".join(f"{float(value):.9e}f" for value in array.ravel())

    outputs = [f".sum_{v} = sum[{i}], .half_{v} = half[{i}]" for i, v in enumerate(VARIANTS)]
    text = MAIN_C
    for name, value in (
        *(("a", floats(a)), ("mask", ", ".join(map(str, mask))), ("x", floats(x)), ("sums", floats(sums))),
        *(("halves", floats(halves)), ("count", str(len(VARIANTS))), ("outputs", ", ".join(outputs))),
    ):
        text = text.replace(f"@{name}@", value)
    (tmp_path / "app" / "src" / "main.c").write_text(text)
    console = workspace.build(tmp_path / "app", "native_sim/native/64").run("^wrong: ")
    assert console.count("run 0\n") == 3 and "open 0" in console, console
    assert "wrong: 0\n" in console
