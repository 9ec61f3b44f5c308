# SPDX-License-Identifier: Apache-2.0
"""Functions that open calls to check the firmware: the first failure is the result, and names its step."""

import subprocess

from c_support import build, execute
from golden_support import generate_quickly
from requirements_support import need_compiler

OPERATORS = """#include <stdint.h>
int32_t fits;
int32_t twice(const int8_t *x, int8_t *y);
int32_t twice(const int8_t *x, int8_t *y)
{
	y[0] = (int8_t)(2 * x[0]);
	return 0;
}
int32_t first_check(void);
int32_t first_check(void)
{
	return fits == 1 ? -12 : 0;
}
int32_t second_check(void);
int32_t second_check(void)
{
	return fits == 2 ? -95 : 0;
}
int32_t set(const int32_t *value, int8_t *y);
int32_t set(const int32_t *value, int8_t *y)
{
	fits = *value;
	y[0] = 0;
	return 0;
}
"""

MANIFEST = """version: 1
model: checked
objects: [{target: x86-64, files: [operators.o], stateful: true}]
operators:
  one: {symbol: twice, check: first_check, args: [{name: x, dtype: int8, shape: [1]},
        {name: y, dtype: int8, shape: [1], direction: out}]}
  two: {symbol: twice, check: second_check, args: [{name: x, dtype: int8, shape: [1]},
        {name: y, dtype: int8, shape: [1], direction: out}]}
  set: {args: [{name: value, dtype: int32, shape: [1]}, {name: y, dtype: int8, shape: [1], direction: out}]}
run:
  inputs: {x: {dtype: int8, shape: [1]}, value: {dtype: int32, shape: [1]}}
  outputs: {y: {dtype: int8, shape: [1]}, z: {dtype: int8, shape: [1]}}
  steps:
    - {call: set, args: [value, z]}
    - {call: one, args: [x, a]}
    - {call: one, args: [a, b]}
    - {call: two, args: [b, y]}
"""

MAIN = """#include <stdio.h>
#include <checked.h>

CHECKED_WORKSPACE_DEFINE(workspace);

int main(void)
{
	static const struct checked_devices devices = CHECKED_DEVICES_DT_INIT;
	int8_t x[1] = {5}, y[1], z[1];

	for (int32_t value = 1; value < 4; value++) {
		int rc = checked_open(&workspace, &devices);

		printf("open %d, step %d\\n", rc, workspace.status.step);
		if (rc != 0) {
			printf("run %d\\n", checked_run(&(struct checked_inputs){.x = x, .value = &value},
			       &(struct checked_outputs){.y = y, .z = z}, &workspace, &devices));
			return 0;
		}
		rc = checked_run(&(struct checked_inputs){.x = x, .value = &(int32_t){VALUE}},
				 &(struct checked_outputs){.y = y, .z = z}, &workspace, &devices);
		printf("run %d: %d\\n", rc, y[0]);
		checked_close(&workspace, &devices);
	}
	return 0;
}
"""


def test_open_returns_the_failure_of_a_check(tmp_path, metadata):
    need_compiler("gcc")
    (tmp_path / "operators.c").write_text(OPERATORS)
    subprocess.run(["gcc", "-O1", "-c", "operators.c", "-o", "operators.o"], cwd=tmp_path, check=True)
    (tmp_path / "manifest.yaml").write_text(MANIFEST)
    app = generate_quickly([tmp_path / "manifest.yaml"], tmp_path / "app", vendored=True, metadata=metadata)
    found = {}
    for value in (0, 1, 2):
        main = tmp_path / f"main{value}.c"
        main.write_text(MAIN.replace("VALUE", str(value)))
        done = execute(build(app, tmp_path / f"build{value}", main))
        assert done.returncode == 0, done.stderr
        found[value] = done.stdout.splitlines()
    right = ["open 0, step 65535", "run 0: 40"]
    assert found[0] == right * 3
    # the first step of the operator, and no run without open
    assert found[1] == [*right, "open -12, step 1", "run -1"]
    assert found[2] == [*right, "open -95, step 3", "run -1"]


def test_library_that_needs_a_check_only(tmp_path):
    """A member of an archive that only defines a check is linked."""
    need_compiler("gcc")
    (tmp_path / "operators.c").write_text(OPERATORS.replace("second_check", "other"))
    (tmp_path / "check.c").write_text("int second_check(void);\nint second_check(void)\n{\n\treturn -95;\n}\n")
    for name in ("operators", "check"):
        subprocess.run(["gcc", "-O1", "-c", f"{name}.c", "-o", f"{name}.o"], cwd=tmp_path, check=True)
    subprocess.run(["ar", "rc", "libboth.a", "operators.o", "check.o"], cwd=tmp_path, check=True)
    manifest = MANIFEST.replace("operators.o", "libboth.a")
    (tmp_path / "manifest.yaml").write_text(manifest)
    app = generate_quickly([tmp_path / "manifest.yaml"], tmp_path / "app", vendored=True)
    (tmp_path / "main.c").write_text(MAIN.replace("VALUE", "0"))
    done = execute(build(app, tmp_path / "build", tmp_path / "main.c"))
    assert done.stdout.splitlines() == ["open -95, step 3", "run -1"], done.stderr
