# SPDX-License-Identifier: Apache-2.0
"""Inputs and outputs in an arena: written and read in place, in one memory with the tensors of the steps."""

import subprocess

from c_support import build, execute, read_record
from golden_support import generate_quickly
from requirements_support import need_compiler

OPERATORS = """#include <stdint.h>
void whole(uint8_t *arena);
void whole(uint8_t *arena)
{
	for (int i = 0; i < 4; i++) {
		arena[16 + i] = (uint8_t)(arena[i] + 1);
	}
	for (int i = 0; i < 16; i++) {
		arena[i] = 0xaa;
	}
}
void twice(const int8_t *x, int8_t *y);
void twice(const int8_t *x, int8_t *y)
{
	for (int i = 0; i < 4; i++) {
		y[i] = (int8_t)(2 * x[i]);
	}
}
"""

# The image and the scores have bytes 2 and 3 in common; `other` has memory beside the arena.
MANIFEST = """version: 1
model: placed
objects: [{target: x86-64, files: [operators.o]}]
operators:
  whole: {returns: void, args: [{name: arena, dtype: uint8, shape: [32], direction: inout}]}
  twice:
    returns: void
    args: [{name: x, dtype: int8, shape: [4]}, {name: y, dtype: int8, shape: [4], direction: out}]
run:
  inputs: {image: {dtype: int8, shape: [4], view_of: arena}}
  outputs: {scores: {dtype: int8, shape: [4], view_of: arena, offset: 2}}
  tensors:
    arena: {dtype: uint8, shape: [32], align: 16, arena: true}
    middle: {view_of: arena, offset: 16, dtype: int8, shape: [4]}
  steps:
    - {call: whole, args: [arena]}
    - {call: twice, args: [middle, other]}
    - {call: twice, args: [other, scores]}
"""

MAIN = """#include <stdio.h>
#include <placed.h>

PLACED_WORKSPACE_DEFINE(workspace);

int main(void)
{
	static const struct placed_devices devices = PLACED_DEVICES_DT_INIT;
	static const struct placed_inputs inputs;
	static const struct placed_outputs outputs;

	if (placed_open(&workspace, &devices) != 0) {
		return 1;
	}
	printf("%d\\n", (int)((uint8_t *)workspace.output.scores - (uint8_t *)workspace.input.image));
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 4; i++) {
			workspace.input.image[i] = (int8_t)(10 * round + i);
		}
		if (placed_run(&inputs, &outputs, &workspace, &devices) != 0) {
			return 1;
		}
		for (int i = 0; i < 4; i++) {
			printf("%d ", workspace.output.scores[i]);
		}
	}
	return placed_close(&workspace, &devices);
}
"""


def test_inputs_and_outputs_are_views_of_an_arena(tmp_path, metadata):
    need_compiler("gcc")
    (tmp_path / "operators.c").write_text(OPERATORS)
    command = ["gcc", "-O1", "-ffunction-sections", "-c", "operators.c", "-o", "operators.o"]
    subprocess.run(command, cwd=tmp_path, check=True)
    (tmp_path / "manifest.yaml").write_text(MANIFEST)
    (tmp_path / "main.c").write_text(MAIN)
    app = generate_quickly([tmp_path / "manifest.yaml"], tmp_path / "app", vendored=True, metadata=metadata)
    (model,) = read_record(app)["models"]
    assert model["memory"]["pools"]["sram"]["size"] == 32 + 8
    done = execute(build(app, tmp_path / "build", tmp_path / "main.c"))
    assert (done.returncode, done.stdout) == (0, "2\n4 8 12 16 44 48 52 56 "), done.stderr
