# SPDX-License-Identifier: Apache-2.0
"""Small models of compiled operators: an arena, results in the memory of arguments, functions that open calls."""

from c_support import build, execute, read_record, run
from golden_support import generate_quickly
from requirements_support import need_compiler

START = """#include <stdio.h>
#include <m.h>

M_WORKSPACE_DEFINE(workspace);
static const struct m_devices devices = M_DEVICES_DT_INIT;

int main(void)
{
"""


def generated(work, manifest, metadata="c", archive="", **sources):
    """Generate the application of a model whose operators are objects, or the members of an archive."""
    need_compiler("gcc")
    work.mkdir(exist_ok=True)
    for name, code in sources.items():
        (work / f"{name}.c").write_text(f"#include <stdint.h>\n{code}")
        run(["gcc", "-O1", "-ffunction-sections", "-c", f"{name}.c"], work)
    if archive:
        run(["ar", "rc", archive, *(f"{name}.o" for name in sources)], work)
    (work / "manifest.yaml").write_text(manifest)
    return generate_quickly([work / "manifest.yaml"], work / "app", vendored=True, metadata=metadata)


def memory_of(app):
    (model,) = read_record(app)["models"]
    return model["memory"]


def built(app, main):
    """Return the program of a main function that begins with START."""
    (app.parent / "main.c").write_text(START + main)
    return build(app, app.parent / "build", app.parent / "main.c")


ARENA_OPERATORS = """void whole(uint8_t *arena)
{
	for (int i = 0; i < 4; i++) {
		arena[16 + i] = (uint8_t)(arena[i] + 1);
	}
	for (int i = 0; i < 16; i++) {
		arena[i] = 0xaa;
	}
}
void twice(const int8_t *x, int8_t *y)
{
	for (int i = 0; i < 4; i++) {
		y[i] = (int8_t)(2 * x[i]);
	}
}
"""
# The image and the scores have bytes 2 and 3 in common; `other` has memory beside the arena.
ARENA_MANIFEST = """version: 1
model: m
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
ARENA_MAIN = """	static const struct m_inputs inputs;
	static const struct m_outputs outputs;
	int rc = m_open(&workspace, &devices);

	printf("%d\\n", (int)((uint8_t *)workspace.output.scores - (uint8_t *)workspace.input.image));
	for (int round = 0; round < 2 && rc == 0; round++) {
		for (int i = 0; i < 4; i++) {
			workspace.input.image[i] = (int8_t)(10 * round + i);
		}
		rc = m_run(&inputs, &outputs, &workspace, &devices);
		for (int i = 0; i < 4; i++) {
			printf("%d ", workspace.output.scores[i]);
		}
	}
	return rc != 0 || m_close(&workspace, &devices) != 0;
}
"""


def test_inputs_and_outputs_are_views_of_an_arena(tmp_path, metadata):
    app = generated(tmp_path, ARENA_MANIFEST, metadata, operators=ARENA_OPERATORS)
    assert memory_of(app)["pools"]["sram"]["size"] == 32 + 8
    done = execute(built(app, ARENA_MAIN))
    assert (done.returncode, done.stdout) == (0, "2\n4 8 12 16 44 48 52 56 "), done.stderr


IN_PLACE_OPERATORS = """int32_t twice(const int8_t *x, int8_t *y)
{
	for (int i = 0; i < 100; i++) {
		y[i] = (int8_t)(2 * x[i]);
	}
	return 0;
}
int32_t sum(const int8_t *a, const int8_t *b, int8_t *y)
{
	for (int i = 0; i < 100; i++) {
		y[i] = (int8_t)(a[i] + b[i]);
	}
	return 0;
}
"""
IN_PLACE_MANIFEST = """version: 1
model: m
objects: [{{target: x86-64, files: [operators.o]}}]
operators:
  twice:
    args: [{{name: x, dtype: int8, shape: [100]}}, {{name: y, dtype: int8, shape: [100], direction: out{twice}}}]
  sum:
    args: [{{name: a, dtype: int8, shape: [100]}}, {{name: b, dtype: int8, shape: [100]}},
           {{name: y, dtype: int8, shape: [100], direction: out{sum}}}]
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
IN_PLACE_MAIN = """	int8_t x[100], y[100];
	int rc = 0;

	for (int round = 0; round < 2 && rc == 0; round++) {
		for (int i = 0; i < 100; i++) {
			x[i] = (int8_t)(i % 3 - 1 + round);
		}
		rc |= m_open(&workspace, &devices);
		rc |= m_run(&(struct m_inputs){.x = x}, &(struct m_outputs){.y = y}, &workspace, &devices);
		rc |= m_close(&workspace, &devices);
		for (int i = 0; i < 100; i++) {
			/* a = 2x, b = c = 2a, d = b + c, e = d + d, f = 2e, y = 2f */
			rc |= y[i] != (int8_t)(64 * x[i]);
		}
	}
	return rc != 0;
}
"""


def test_in_place_needs_less_memory_with_equal_results(tmp_path, metadata):
    for name, twice, total, size in (
        # a, b and c are alive at the same time; in place, c uses the memory of a.
        ("apart", "", "", 3 * 104),
        ("both", ", in_place: [x]", ", in_place: [a, b]", 2 * 104),
        # `sum` of d and d may not overwrite d unless both arguments permit it, which needs no more memory here.
        ("one", ", in_place: [x]", ", in_place: [a]", 2 * 104),
    ):
        manifest = IN_PLACE_MANIFEST.format(twice=twice, sum=total)
        app = generated(tmp_path / name, manifest, metadata, operators=IN_PLACE_OPERATORS)
        assert memory_of(app) == {"planner": "greedy", "pools": {"sram": {"size": size, "lower_bound": size}}}
        done = execute(built(app, IN_PLACE_MAIN))
        assert done.returncode == 0, done.stderr


CHECK_OPERATORS = """int32_t fits;
int32_t twice(const int8_t *x, int8_t *y)
{
	y[0] = (int8_t)(2 * x[0]);
	return 0;
}
int32_t first_check(void)
{
	return fits == 1 ? -12 : 0;
}
int32_t second_check(void)
{
	return fits == 2 ? -95 : 0;
}
int32_t set(const int32_t *value, int8_t *y)
{
	fits = *value;
	y[0] = 0;
	return 0;
}
"""
CHECK_MANIFEST = """version: 1
model: m
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
CHECK_MAIN = """	int8_t x[1] = {5}, y[1] = {0}, z[1];
	int value;
	int rc = scanf("%d", &value) - 1;

	for (int round = 0; round < 3 && rc == 0; round++) {
		rc = m_open(&workspace, &devices);
		printf("open %d, step %d\\n", rc, workspace.status.step);
		printf("run %d\\n", m_run(&(struct m_inputs){.x = x, .value = &(int32_t){value}},
					 &(struct m_outputs){.y = y, .z = z}, &workspace, &devices));
		printf("%d\\n", y[0]);
		(void)m_close(&workspace, &devices);
	}
	return 0;
}
"""


def test_open_returns_the_failure_of_a_check(tmp_path, metadata):
    """The failure is that of the first step of the operator; there is no run without open."""
    program = built(generated(tmp_path, CHECK_MANIFEST, metadata, operators=CHECK_OPERATORS), CHECK_MAIN)
    right = ["open 0, step 65535", "run 0", "40"]
    for value, lines in (
        ("0", right * 3),
        ("1", [*right, "open -12, step 1", "run -1", "40"]),
        ("2", [*right, "open -95, step 3", "run -1", "40"]),
    ):
        done = execute(program, text=value)
        assert (done.returncode, done.stdout.splitlines()) == (0, lines), done.stderr


def test_library_that_needs_a_check_only(tmp_path):
    """A member of an archive that only defines a check is linked."""
    app = generated(
        tmp_path,
        CHECK_MANIFEST.replace("operators.o", "libboth.a"),
        archive="libboth.a",
        operators=CHECK_OPERATORS.replace("second_check", "other"),
        check="int second_check(void)\n{\n\treturn -95;\n}\n",
    )
    done = execute(built(app, CHECK_MAIN), text="0")
    assert done.stdout.splitlines() == ["open -95, step 3", "run -1", "0"], done.stderr
