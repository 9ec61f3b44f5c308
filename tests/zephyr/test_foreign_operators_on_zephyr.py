# SPDX-License-Identifier: Apache-2.0
"""Operators of Halide and MLIR, a header with static functions, and values that functions return, in one image."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from foreign_support import HALIDE_TARGETS, make_mlir, make_pipeline
from requirements_support import need
from zephyr_support import Workspace

pytestmark = pytest.mark.zephyr
Opwest = Callable[..., subprocess.CompletedProcess[str]]

# Like the output of emlearn: static functions, in a header with headers of its own.
MODEL_H = """
#include <stdint.h>
#include <tree.h>
#if !defined(LEAVES) || !defined(__OPTIMIZE__)
#error "options of the manifest"
#endif
static int32_t helper(int32_t x) { return x * 2; }
static int32_t never(int32_t x) { return x; }
static inline uint8_t label(const int32_t *total) { return helper(total[0]) > LIMIT ? LEAVES : 1; }
"""
MANIFEST = """
version: 1
model: foreign
boards: [native_sim/native/64, mps2/an385]
objects:
  - {target: x86-64, files: [scale.o]}
  - {targets: [x86-64], files: [half64.ll]}
  - {targets: [cortex-m3], files: [scale.ll, half32.ll]}
  - {files: [code/model.h], include_dirs: [include], defines: [LEAVES=200, 'T="a b"'], cflags: [-O2, -fno-math-errno]}
operators:
  scale:
    convention: halide
    workspace: 192
    args:
      - {name: image, dtype: int16, shape: [4, 5]}
      - {name: factor, dtype: int32, scalar: true}
      - {name: result, dtype: int16, shape: [4, 5], direction: out}
  half:
    symbol: _mlir_ciface_half
    convention: memref
    args:
      - {name: x, dtype: int16, shape: [4, 5]}
      - {name: by, dtype: int16, scalar: true}
      - {name: y, dtype: int16, shape: [5, 4], direction: out}
  total:
    symbol: _mlir_ciface_total
    convention: memref
    returns: {name: total, dtype: int32}
    args:
      - {name: x, dtype: int16, shape: [5, 4]}
  label:
    returns: {name: label, dtype: uint8}
    args:
      - {name: total, dtype: int32, shape: [1]}
run:
  inputs: {image: {dtype: int16, shape: [4, 5]}}
  outputs: {y: {dtype: int16, shape: [5, 4]}, total: {dtype: int32, shape: [1]}, label: {dtype: uint8, shape: [1]}}
  steps:
    - {call: scale, args: [image, 3, scaled]}
    - {call: half, args: [scaled, -7, y]}
    - {call: total, args: [y, total]}
    - {call: label, args: [total, label]}
"""
MAIN_C = """
#include <stdio.h>
#include <foreign.h>
#include <foreign_devicetree.h>

FOREIGN_WORKSPACE_DEFINE(workspace);
static const struct foreign_devices devices = FOREIGN_DEVICES_DT_INIT;

int main(void)
{
	static int16_t image[20], y[20];
	int32_t total[1], sum = 0;
	uint8_t label[1];
	int wrong = foreign_open(&workspace, &devices);

	for (int run = 0; run < 20; run++) {
		for (int i = 0; i < 20; i++) {
			image[i] = (int16_t)(run * 31 - 7 * i);
		}
		wrong += foreign_run(&(struct foreign_inputs){image}, &(struct foreign_outputs){y, total, label},
				     &workspace, &devices) != 0;
		sum = 0;
		for (int i = 0; i < 20; i++) {
			const int expected = image[i] * 3 + image[i % 5] - 7;

			wrong += y[i % 5 * 4 + i / 5] != expected;
			sum += expected;
		}
		wrong += total[0] != sum || label[0] != (sum * 2 > 500 ? 200 : 1);
	}
	printf("last: %d\\n", (int)sum);
	printf("wrong: %d\\n", wrong);
	return 0;
}
"""


@pytest.mark.parametrize(("board", "metadata"), [("native_sim/native/64", "c"), ("mps2/an385", "llvm")])
def test_foreign_operators_in_one_image(
    workspace: Workspace, opwest: Opwest, tmp_path: Path, board: str, metadata: str
) -> None:
    need("arm-none-eabi-gcc", "llvmlite")
    make_pipeline(tmp_path / "scale.o", HALIDE_TARGETS["x86-64"])
    make_pipeline(tmp_path / "scale.ll", HALIDE_TARGETS["arm"], "llvm_assembly")
    for bits in (32, 64):
        make_mlir(tmp_path / f"half{bits}.ll", bits)
    for name, text in (
        ("code/model.h", MODEL_H),
        ("include/tree.h", "#define LIMIT 500\n"),
        ("manifest.yaml", MANIFEST),
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    opwest("generate", tmp_path / "manifest.yaml", "-o", tmp_path / "app", f"--metadata={metadata}")
    (tmp_path / "app" / "src" / "main.c").write_text(MAIN_C)
    console = workspace.build(tmp_path / "app", board).run("^wrong: ")
    assert "last: " in console
    assert "wrong: 0" in console
