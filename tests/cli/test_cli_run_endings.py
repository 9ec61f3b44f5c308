# SPDX-License-Identifier: Apache-2.0
"""`opwest run --host` with operators that end the program, use its streams, or damage its memory."""

import sys

import numpy as np
import pytest
from opwest.host import endings
from opwest.host.endings import Status, run_program

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
	default:
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


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    from opwest.cli.main import main

    folder = tmp_path_factory.mktemp("endings")
    (folder / "operators.c").write_text(OPERATORS)
    (folder / "manifest.yaml").write_text(MANIFEST)
    assert main(["generate", str(folder / "manifest.yaml"), "-o", str(folder / "app")]) == 0
    return folder / "app"


def run(opwest, app, tmp_path, case, *options):
    np.save(tmp_path / "x.npy", np.array([case], np.int32))
    return opwest("run", app, "--host", "--input", f"x={tmp_path / 'x.npy'}", *options)


@pytest.mark.slow
@pytest.mark.parametrize("case", HOW)
def test_operator_that_ends_the_program(opwest, app, tmp_path, case):
    done = run(opwest, app, tmp_path, case)
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith(f"{app}: error: {HOW[case]}")
    assert done.err.count("error: ") == 1


@pytest.mark.parametrize(("case", "options"), [(7, ["--profile"]), (8, [])])
def test_operator_that_uses_the_standard_streams(opwest, app, tmp_path, case, options):
    done = run(opwest, app, tmp_path, case, *options)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"y: int32 [1]: [{case + 1}]\n")


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (Status(-5, 1, 3, 0, 255), "m_run returned -5 (Input/output error) in step 1 (b): the operator returned 3"),
        (Status(-22, 65535, -22, 8, 255), "m_run returned -22 (Invalid argument): invalid input"),
        (Status(-5, 1, 7, 6, 0), "m_run returned -5 (Input/output error) in step 1 (b): sync of device npu returned 7"),
        *(
            (status, "m_run returned -5 (Input/output error), and the status in its workspace is damaged")
            for status in (
                Status(-5, 2, 3, 0, 255),
                Status(-5, 1, 0, 0, 255),
                Status(-5, 1, 3, 200, 255),
                Status(-5, 1, 3, 6, 7),
            )
        ),
    ],
)
def test_status(status, text):
    assert status.text({"name": "m", "steps": ["a", "b"], "devices": ["npu"]}) == text


@pytest.mark.parametrize("text", ["", "failed -5 0 3", "failed -5 0 3 0 255 1", "failed a b c d e", "done?"])
def test_incomplete_results_are_none(tmp_path, text):
    (tmp_path / "report").write_text(text)
    ending = run_program([sys.executable, "-c", ""], tmp_path / "report", None)
    assert (ending.code, ending.result, ending.is_done) == (0, "", False)


def test_output_without_end_is_bounded(tmp_path, monkeypatch):
    program = "import os\nfor fd in (1, 2):\n    for _ in range(300):\n        os.write(fd, b'x' * 100000)\n"
    ending = run_program([sys.executable, "-c", program], tmp_path / "absent", None)
    assert ending.code == 0 and 0 < len(ending.errors) <= 1 << 16


def test_output_of_an_application_is_bounded(opwest, app, monkeypatch):
    monkeypatch.setattr("opwest.host.run.LARGEST_OUTPUT", 1 << 20)
    monkeypatch.setattr(endings, "LARGEST_OUTPUT", 1 << 20)
    (app / "src" / "main.c").write_text('#include <stdio.h>\nint main(void)\n{\n\tfor (;;) {\n\t\tputs("x");\n\t}\n}\n')
    done = opwest("run", app, "--host", "--json")
    assert done.code == 1 and "the application printed more than 1 MiB" in done.out
