# SPDX-License-Identifier: Apache-2.0
"""`opwest run --host` with operators that end the program, use its streams, or damage its memory; `--sanitize`."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from campaign import sized
from golden_support import PROJECTS, generate_project
from opwest.model.types.dtypes import DTYPES, numbers_from
from opwest.runs import harness
from opwest.runs.harness import Status, run_program
from requirements_support import need_compiler
from small_models import generated, given, one_operator

pytestmark = pytest.mark.needs("cc")

OPERATORS = """\
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int32_t first(const int32_t *x, int32_t *t)
{
	t[0] = x[0];
	return 0;
}
int32_t second(const int32_t *t, int32_t *y)
{
	y[0] = t[0] + 1;
	switch (t[0]) {
	case 1:
		exit(0);
	case 2:
		exit(3);
	case 4:
		abort();
	case 6:
		return INT32_MIN;
	case 7:
		puts("failed -5 0 3 0 255\\nerror none\\n@opwest measures 0 0 0 0");
		fputs("-5 0 3 0 255\\nruntime error\\n", stderr);
		break;
	case 8:
		fclose(stdout);
		fclose(stderr);
		break;
	case 9:
		for (int fd = 0; fd < 20; fd++) {
			close(fd);
		}
		break;
	}
	return 0;
}
"""
MANIFEST = """\
version: 1
model: ends
objects: [{files: [operators.c], uses: [io, control]}]
operators:
  first: {args: [{name: x, dtype: int32, shape: [1]}, {name: t, dtype: int32, shape: [1], direction: out}]}
  second: {args: [{name: t, dtype: int32, shape: [1]}, {name: y, dtype: int32, shape: [1], direction: out}]}
run:
  inputs: {x: {dtype: int32, shape: [1]}}
  outputs: {y: {dtype: int32, shape: [1]}}
  steps: [{call: first, args: [x, t]}, {call: second, args: [t, y]}]
"""
HOW = {
    1: "the program exited with code 0 in step 1 (second)\n  expected: operators that return",
    2: "the program exited with code 3 in step 1 (second)\n  expected: operators that return",
    4: "the program was terminated by SIGABRT in step 1 (second)\n"
    "  hint: --sanitize reports the first wrong access to memory",
    6: "ends_run returned -2147483648 in step 1 (second): the operator returned -2147483648",
    9: "the program of model 'ends' failed: ",
}


@pytest.fixture
def app(succeed, tmp_path):
    return generated(succeed, tmp_path, MANIFEST, {"operators.c": OPERATORS})


def run(opwest, app, case, *options):
    return opwest("run", app, "--host", *given(app.parent, x=np.array([case], np.int32)), *options)


@pytest.mark.slow
@pytest.mark.parametrize("case", HOW)
def test_operator_that_ends_the_program(opwest, app, case):
    done = run(opwest, app, case)
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith(f"{app}: error: {HOW[case]}")
    assert done.err.count("error: ") == 1


@pytest.mark.parametrize(("case", "options"), [(7, ["--profile"]), (8, [])])
def test_operator_that_uses_the_standard_streams(opwest, app, case, options):
    done = run(opwest, app, case, *options)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"y: int32 [1]: [{case + 1}]\n")


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (Status(-5, 1, 3, 0, 255), "m_run returned -5 (Input/output error) in step 1 (b): the operator returned 3"),
        (Status(-22, 65535, -22, 8, 255), "m_run returned -22 (Invalid argument): invalid input"),
        (Status(-5, 1, 7, 6, 0), "m_run returned -5 (Input/output error) in step 1 (b): sync of device npu returned 7"),
        *(
            (Status(-5, *values), "m_run returned -5 (Input/output error), and the status in its workspace is damaged")
            for values in ((2, 3, 0, 255), (1, 0, 0, 255), (1, 3, 200, 255), (1, 3, 6, 7))
        ),
    ],
)
def test_status(status, text):
    assert status.text({"name": "m", "steps": ["a", "b"], "devices": ["npu"]}) == text


@pytest.mark.parametrize("text", ["", "failed -5 0 3", "failed -5 0 3 0 255 1", "failed a b c d e", "done?"])
def test_incomplete_results_are_none(tmp_path, text):
    (tmp_path / "report").write_text(text)
    ending = run_program([sys.executable, "-c", ""], tmp_path / "report", None)
    assert (ending.code, ending.result) == (0, "")


def test_output_is_bounded(fail, app, tmp_path, monkeypatch):
    program = "import os\nfor fd in (1, 2):\n    for _ in range(300):\n        os.write(fd, b'x' * 100000)\n"
    ending = run_program([sys.executable, "-c", program], tmp_path / "absent", None)
    assert ending.code == 0 and 0 < len(ending.errors) <= 1 << 16
    monkeypatch.setattr("opwest.runs.host.MAX_OUTPUT", 1 << 20)
    monkeypatch.setattr(harness, "MAX_OUTPUT", 1 << 20)
    (app / "src" / "main.c").write_text('#include <stdio.h>\nint main(void)\n{\n\tfor (;;) {\n\t\tputs("x");\n\t}\n}\n')
    assert "the application printed more than 1 MiB" in fail("run", app, "--host", "--json").out


# --- `--sanitize`: generated code is clean, and faults of operators are reported

TWO_NPUS = Path(__file__).resolve().parents[2] / "examples" / "two_npus" / "manifest.yaml"
NO_HOST_OBJECTS = ("targets",)
"""Projects with objects that a test wrote, which contain no code."""
SOME = ("devices", "many_kinds", "conventions")
"""tests/compile has the sanitizers for the generated applications of all projects."""
NO_DRIVER = {"asynchronous": "ready of device dsp returned -19"}
"""Projects with devices that the host does not emulate: only `open` runs."""


def zeros(tensor):
    return numbers_from(bytes(tensor["size"]), DTYPES[tensor["dtype"]], tensor["shape"])


@pytest.mark.slow
@pytest.mark.parametrize("name", sized(SOME, [name for name in PROJECTS if name not in NO_HOST_OBJECTS]))
def test_code_of_golden_projects_is_clean(name, tmp_path, opwest, monkeypatch):
    need_compiler("gcc", ("-fsanitize=address,undefined",), link=True)
    app = generate_project(name, tmp_path)
    monkeypatch.chdir(app.parent)  # operators are compiled again, by a command with paths relative to this directory
    for model in json.loads((app / ".opwest/lock.json").read_text())["record"]["models"]:
        words = ["--model", model["name"], "--output-dir", tmp_path / "out"]
        words += given(tmp_path, **{one["name"]: zeros(one) for one in model["tensors"] if one["role"] == "input"})
        done = opwest("run", app.name, "--host", "--sanitize", *words)
        assert "sanitizer" not in done.err
        assert (done.code, NO_DRIVER.get(name, "")) == (0, "") or NO_DRIVER[name] in done.err, done.err


@pytest.mark.slow
@pytest.mark.parametrize(("compiler", "example"), [("clang", "digits"), ("gcc", "two_npus")])
def test_examples_are_clean(compiler, example, digits, tmp_path, succeed, monkeypatch):
    need_compiler(compiler, ("-fsanitize=address,undefined",), link=True)
    monkeypatch.setenv("CC", compiler)
    manifest = digits / "manifest.yaml" if example == "digits" else TWO_NPUS
    succeed("generate", "-q", manifest, "-o", tmp_path / "app")
    succeed("run", tmp_path / "app", "--host", "--sanitize")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("y[0] = x[0] + 2147483647;", "runtime error: signed integer overflow"),
        ("y[0] = *(const int32_t *)((const char *)x + 1);", "runtime error: load of misaligned address"),
        ("for (volatile int i = 0; i < 9; i++) { y[i] = x[0]; }", "ERROR: AddressSanitizer: "),
    ],
)
def test_faults_of_operators_are_reported(body, message, tmp_path, succeed, fail):
    need_compiler("gcc", ("-fsanitize=address,undefined",), link=True)
    source = f"#include <stdint.h>\nvoid wrong(const int32_t *x, int32_t *y)\n{{\n\ty[0] = 0;\n\t{body}\n}}\n"
    manifest = one_operator("wrong", "[{files: [wrong.c]}]", dtype="int32", keys="returns: void, ")
    app = generated(succeed, tmp_path, manifest, {"wrong.c": source})
    done = fail("run", app, "--host", "--sanitize", *given(tmp_path, x=np.full(4, 7, np.int32)))
    assert "error: the sanitizer reported a fault:\n" in done.err and message in done.err, done.err
    assert "wrong.c" in done.err


def test_a_compiler_without_sanitizers(digits_app, tmp_path, fail, monkeypatch):
    fake = tmp_path / "cc"
    fake.write_text('#!/bin/sh\ncase "$*" in *-fsanitize*) echo "unknown option" >&2; exit 1;; esac\nexec cc "$@"\n')
    fake.chmod(0o755)
    monkeypatch.setenv("CC", str(fake))
    done = fail("run", digits_app, "--host", "--sanitize")
    assert "hint: --sanitize requires the sanitizers of the compiler" in done.err
