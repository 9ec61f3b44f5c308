# SPDX-License-Identifier: Apache-2.0
"""Results in the memory of arguments: a smaller workspace and equal results, under sanitizers."""

import subprocess

from c_support import build, execute, read_record
from golden_support import generate_quickly
from requirements_support import need_compiler

COUNT = 100

OPERATORS = """#include <stdint.h>
int32_t twice(const int8_t *x, int8_t *y);
int32_t twice(const int8_t *x, int8_t *y)
{
	for (int i = 0; i < 100; i++) {
		y[i] = (int8_t)(2 * x[i]);
	}
	return 0;
}
int32_t sum(const int8_t *a, const int8_t *b, int8_t *y);
int32_t sum(const int8_t *a, const int8_t *b, int8_t *y)
{
	for (int i = 0; i < 100; i++) {
		y[i] = (int8_t)(a[i] + b[i]);
	}
	return 0;
}
"""

MANIFEST = """version: 1
model: placed
objects: [{{target: x86-64, files: [operators.o]}}]
operators:
  twice:
    args:
      - {{name: x, dtype: int8, shape: [100]}}
      - {{name: y, dtype: int8, shape: [100], direction: out{twice}}}
  sum:
    args:
      - {{name: a, dtype: int8, shape: [100]}}
      - {{name: b, dtype: int8, shape: [100]}}
      - {{name: y, dtype: int8, shape: [100], direction: out{sum}}}
run:
  inputs: {{x: {{dtype: int8, shape: [100]}}}}
  outputs: {{y: {{dtype: int8, shape: [100]}}}}
  steps:
    - {{call: twice, args: [x, a]}}
    - {{call: twice, args: [a, b]}}
    - {{call: twice, args: [a, c]}}
    - {{call: sum, args: [b, c, d]}}
    - {{call: sum, args: [d, d, e]}}
    - {{call: twice, args: [e, f]}}
    - {{call: twice, args: [f, y]}}
"""

MAIN = """#include <stdio.h>
#include <placed.h>

PLACED_WORKSPACE_DEFINE(workspace);

int main(void)
{
	static const struct placed_devices devices = PLACED_DEVICES_INIT_HERE;
	int8_t x[100], y[100];

	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 100; i++) {
			x[i] = (int8_t)(i % 3 - 1 + round);
		}
		if (placed_open(&workspace, &devices) != 0 ||
		    placed_run(&(struct placed_inputs){.x = x}, &(struct placed_outputs){.y = y}, &workspace,
			       &devices) != 0 ||
		    placed_close(&workspace, &devices) != 0) {
			return 1;
		}
		for (int i = 0; i < 100; i++) {
			/* a = 2x, b = c = 2a, d = b + c, e = d + d, f = 2e, y = 2f */
			if (y[i] != (int8_t)(64 * x[i])) {
				printf("%d: %d -> %d\\n", i, x[i], y[i]);
				return 1;
			}
		}
	}
	puts("right");
	return 0;
}
""".replace("PLACED_DEVICES_INIT_HERE", "PLACED_DEVICES_DT_INIT")


def made(work, metadata, twice, total):
    """Generate the model with `in_place` as given for its two operators; return the directory and the arena's size."""
    work.mkdir()
    (work / "operators.c").write_text(OPERATORS)
    command = ["gcc", "-O1", "-ffunction-sections", "-c", "operators.c", "-o", "operators.o"]
    subprocess.run(command, cwd=work, check=True)
    (work / "manifest.yaml").write_text(MANIFEST.format(twice=twice, sum=total))
    app = generate_quickly([work / "manifest.yaml"], work / "app", vendored=True, metadata=metadata)
    (model,) = read_record(app)["models"]
    return app, model["memory"]["pools"]["sram"]["size"]


def answers(app, work):
    (work / "main.c").write_text(MAIN)
    return execute(build(app, work / "build", work / "main.c"))


def test_in_place_needs_less_memory_with_equal_results(tmp_path, metadata):
    need_compiler("gcc")
    apart, size_apart = made(tmp_path / "apart", metadata, "", "")
    both, size_both = made(tmp_path / "both", metadata, ", in_place: [x]", ", in_place: [a, b]")
    one, size_one = made(tmp_path / "one", metadata, ", in_place: [x]", ", in_place: [a]")
    unit = 104
    # a, b and c are alive at the same time; in place, c uses the memory of a.
    assert size_apart == 3 * unit
    assert size_both == 2 * unit
    # `sum` of d and d may not overwrite d unless both arguments permit it, which needs no more memory here
    assert size_one == 2 * unit
    for app, work in ((apart, tmp_path / "apart"), (both, tmp_path / "both"), (one, tmp_path / "one")):
        done = answers(app, work)
        assert (done.returncode, done.stdout) == (0, "right\n"), done.stderr


def test_lock_records_the_memory_planner(tmp_path):
    need_compiler("gcc")
    app, size = made(tmp_path / "app", "c", "", "")
    (model,) = read_record(app)["models"]
    assert model["memory"] == {"planner": "greedy", "pools": {"sram": {"size": size, "lower_bound": 312}}}
