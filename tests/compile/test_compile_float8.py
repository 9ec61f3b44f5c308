# SPDX-License-Identifier: Apache-2.0
"""float8_e4m3 and float8_e5m2 on every path: check, both back ends, runs, golden vectors; values of narrow floats."""

import json

import numpy as np
import pytest
from c_support import RUNTIME, SANITIZED, compile_program, execute
from golden_support import name_host_targets
from in_process import fail, succeed
from opwest.model.types.dtypes import DTYPES, numbers_of
from requirements_support import need_compiler
from test_compile_suites import program_of

OPERATORS = """#include <stdint.h>
/* The negative of x where w is positive: only the signs change, so the result is exact. */
int32_t negate(const uint8_t *x, const uint8_t *w, uint8_t *y)
{
	for (int i = 0; i < 4; i++) {
		y[i] = (w[i] & 0x80U) != 0U ? x[i] : (uint8_t)(x[i] ^ 0x80U);
	}
	return 0;
}
"""
MANIFEST = """
version: 1
model: eight
objects: [{files: [operators.c]}]
operators:
  negate:
    args:
      - {name: x, dtype: DTYPE, shape: [4]}
      - {name: w, dtype: DTYPE, shape: [4]}
      - {name: y, dtype: DTYPE, shape: [4], direction: out}
constants: {w: {file: w.npy, dtype: DTYPE}}
run:
  inputs: {x: {dtype: DTYPE, shape: [4]}}
  outputs: {y: {dtype: DTYPE, shape: [4]}}
  steps: [{call: negate, args: [x, w, y]}]
tests: {vectors: [cases.npz], tolerance: {y: {relative: 0.01}}}
"""
X = np.array([448.0, -2.5, 0.015625, 1.125], np.float32)
"""448 is the greatest number of E4M3, and is none of its NaN; E5M2 has 448 too, and rounds 1.125 to 1."""
Y = {"float8_e4m3": [-448.0, -2.5, -0.015625, -1.125], "float8_e5m2": [-448.0, -2.5, -0.015625, -1.0]}


@pytest.fixture(params=Y)
def project(request, tmp_path):
    """Return the dtype, and the directory of a manifest."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "manifest.yaml").write_text(MANIFEST.replace("DTYPE", request.param))
    (folder / "operators.c").write_text(OPERATORS)
    np.save(folder / "w.npy", np.array([1.0, -3.01, 1.0, 1.0], np.float32))
    expected = np.array(Y[request.param], np.float32)
    np.savez(folder / "cases.npz", x=X[np.newaxis], y=expected[np.newaxis])
    name_host_targets([folder / "manifest.yaml"])
    return request.param, folder


@pytest.mark.parametrize("metadata", ["c", "llvm"], indirect=True)
def test_runs_and_vectors(project, metadata, tmp_path):
    need_compiler("gcc", SANITIZED, link=True)
    dtype, folder = project
    app = tmp_path / "app"
    shown = succeed("generate", folder / "manifest.yaml", "-o", app, f"--metadata={metadata}").stderr
    assert f"constant 'w': 1 value was rounded to {dtype}" in shown
    np.save(tmp_path / "x.npy", X)
    output = succeed("run", app, "--host", "--input", f"x={tmp_path / 'x.npy'}", "--json").stdout
    assert json.loads(output)["result"]["outputs"] == {"y": Y[dtype]}
    done = execute(program_of(app, "eight", tmp_path / "right"))
    assert done.returncode == 0 and "PASS test_vectors" in done.stdout, done.stdout + done.stderr
    wrong = np.array([448.0, *Y[dtype][1:]], np.float32)
    np.savez(folder / "cases.npz", x=X[np.newaxis], y=wrong[np.newaxis])
    succeed("generate", folder / "manifest.yaml", "-o", app, f"--metadata={metadata}")
    done = execute(program_of(app, "eight", tmp_path / "wrong"))
    number = {"float8_e4m3": "448", "float8_e5m2": "4.5e+02"}[dtype]  # the digits that distinguish values of the type
    message = f"output y[0] is -{number}, expected {number} within 0.01 * |expected|; 1 of 4 elements differ"
    assert message in done.stdout


def test_conventions_without_the_type_are_rejected(project):
    dtype, folder = project
    manifest = folder / "manifest.yaml"
    text = manifest.read_text()
    for convention in ("packed", "halide"):
        manifest.write_text(text.replace("  negate:\n", f"  negate:\n    convention: {convention}\n"))
        shown = fail("check", manifest).stderr
        assert f"argument 'x' is a {dtype} tensor, which {convention} operators cannot take" in shown


def numbers_of_bfloat16(bits):
    with np.errstate(invalid="ignore"):  # signalling NaNs
        return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


@pytest.mark.parametrize("name", [*Y, "bfloat16"])
def test_runtime_has_the_described_values(name, tmp_path):
    """opwest_float_value on every value."""
    need_compiler("gcc", SANITIZED, link=True)
    size = 16 if name == "bfloat16" else 8
    (tmp_path / "main.c").write_text(
        "#include <stdio.h>\n#include <opwest/compare.h>\nint main(void)\n{\n"
        f"\tfor (uint32_t i = 0U; i <= UINT{size}_MAX; i++) {{\n\t\tconst uint{size}_t bits = (uint{size}_t)i;\n"
        f'\t\tprintf("%a\\n", opwest_float_value(OPWEST_{name.upper()}, &bits));\n\t}}\n\treturn 0;\n}}\n'
    )
    sources = [tmp_path / "main.c", RUNTIME / "src" / "compare.c", RUNTIME / "src" / "metadata.c"]
    program = compile_program(tmp_path, sources, SANITIZED, [f"-I{RUNTIME / 'include'}"])
    seen = np.array([float.fromhex(line) for line in execute(program).stdout.split()])
    bits = np.arange(1 << size, dtype=f"uint{size}")
    expected = numbers_of_bfloat16(bits) if name == "bfloat16" else numbers_of(bits, DTYPES[name])
    np.testing.assert_array_equal(seen, expected)
