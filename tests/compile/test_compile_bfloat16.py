# SPDX-License-Identifier: Apache-2.0
"""bfloat16 on every path: init, check, generate with both back ends, the three calling conventions, runs, vectors."""

import json

import numpy as np
import pytest
from bfloat16_support import MANIFEST, W, X, Y, bits_of, write_project
from c_support import SANITIZED, execute
from golden_support import name_host_targets
from in_process import fail, succeed
from requirements_support import need_compiler
from test_compile_suites import program_of


@pytest.fixture
def project(tmp_path):
    """Return the directory of a manifest whose model takes bfloat16 through the three conventions."""
    folder = write_project(tmp_path / "project")
    name_host_targets([folder / "manifest.yaml"])
    return folder


def generated(project, metadata="c"):
    app = project.parent / f"app_{metadata}"
    succeed("generate", project / "manifest.yaml", "-o", app, f"--metadata={metadata}")
    return app


def test_init_reads_uint16_as_before(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    source = tmp_path / "kinds.c"
    source.write_text("#include <stdint.h>\nvoid f(const uint16_t *a, const __bf16 *b, _Float16 *c) {}\n")
    text = succeed("init", source.name, "-o", "-").stdout
    types = ["uint16", "bfloat16", "float16"]
    assert [text.index(f"name: {name}, dtype: {dtype}") for name, dtype in zip("abc", types, strict=True)]


def test_check_notes_what_is_rounded(project):
    shown = succeed("check", project / "manifest.yaml")
    assert "constant 'w': 1 value was rounded to bfloat16" in shown.stderr
    assert "array 'y': 4 values were rounded to bfloat16" in shown.stderr


def test_check_rejects_other_types_and_scalars_in_arrays(project):
    manifest = project / "manifest.yaml"
    np.save(project / "w.npy", W.astype(np.int32))
    shown = fail("check", manifest).stderr
    assert "dtype mismatch: the file of constant 'w' has int32, the manifest bfloat16" in shown
    scalar = "args: [{name: by, dtype: bfloat16, scalar: true}, {name: x, dtype: bfloat16, shape: [4]}, "
    manifest.write_text(MANIFEST.replace("args: [{name: x, dtype: bfloat16, shape: [4]}, ", scalar))
    shown = fail("check", manifest).stderr
    for convention in ("packed", "ffi"):
        assert f"argument 'by' is a bfloat16 scalar, which {convention} operators cannot take" in shown
    manifest.write_text(MANIFEST.replace("0x4000", "2.5"))
    assert "expected: bfloat16 bits as a whole number from 0 to 65535" in fail("check", manifest).stderr


@pytest.mark.parametrize(
    ("kind", "metadata"), [("float32", "c"), ("uint16", "llvm"), ("V2", "c")], indirect=["metadata"]
)
def test_run_on_the_host(project, metadata, kind, tmp_path):
    need_compiler("cc")
    app = generated(project, metadata)
    path = tmp_path / "x.npy"
    np.save(path, X if kind == "float32" else bits_of(X).view(kind))
    output = succeed("run", app, "--host", "--input", f"x={path}", "--output-dir", tmp_path, "--json").stdout
    assert json.loads(output)["result"]["outputs"] == {"y": Y.tolist()}
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), Y, strict=True)


def test_inputs_that_are_rounded_are_noted(project, tmp_path):
    need_compiler("cc")
    given = ("run", generated(project), "--host", "--input", f"x={tmp_path / 'x.npy'}", "--output-dir", tmp_path)
    np.save(tmp_path / "x.npy", X * np.float32(1.001))
    shown = succeed(*given)
    assert "input 'x': 4 values were rounded to bfloat16" in shown.stderr
    assert shown.stdout.splitlines()[0] == "y: bfloat16 [4]: [    5.     -7.      3.5 -2048. ]"
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), Y)
    np.save(tmp_path / "x.npy", X.astype(np.float16))
    shown = fail(*given)
    assert "contains float16 [4]" in shown.stderr and "expected: bfloat16 [4]" in shown.stderr


def test_main_prints_bits(project):
    need_compiler("cc")
    output = succeed("run", generated(project, "llvm"), "--host", "--json").stdout
    shown = json.loads(output)["result"]["stdout"]
    assert "(bfloat16 bits)" in shown
    assert f" {bits_of(np.array([3.0]))[0]}" in shown  # of zeros


@pytest.mark.parametrize("metadata", ["c", "llvm"], indirect=True)
def test_vectors_within_a_tolerance(project, metadata, tmp_path):
    need_compiler("gcc", SANITIZED, link=True)
    app = generated(project, metadata)
    done = execute(program_of(app, "brain", tmp_path / "right"))
    assert done.returncode == 0 and "PASS test_vectors" in done.stdout, done.stdout + done.stderr
    np.savez(project / "cases.npz", x=bits_of(X)[np.newaxis], y=(Y * np.float32(1.02))[np.newaxis])
    succeed("generate", project / "manifest.yaml", "-o", app, f"--metadata={metadata}")
    done = execute(program_of(app, "brain", tmp_path / "wrong"))
    assert done.returncode == 1
    assert "output y[0] is 5, expected 5.094 within 0.01 * |expected|; 4 of 4 elements differ" in done.stdout
