# SPDX-License-Identifier: Apache-2.0
"""`opwest import mlf`: output and exit codes."""

import json

import mlf_made as made
import pytest
from in_process import opwest


def run(*arguments):
    return opwest("import", "mlf", *arguments)


@pytest.fixture
def tar(tmp_path):
    path = tmp_path / "net.tar"
    path.write_bytes(made.tar_of(made.usmp(bare=True)))
    return path


def test_summary_and_notes(tmp_path):
    path = tmp_path / "net.tar"
    path.write_bytes(made.tar_of(made.cmsis_nn()))
    done = run(path, "-o", tmp_path / "out")
    assert done.returncode == 0
    assert f"{tmp_path}/out/manifest.yaml: 2 operators, 2 steps, 100 bytes of constants" in done.stdout
    assert f"next: opwest generate {tmp_path}/out/manifest.yaml -o app" in done.stdout
    for note in (
        "the calls of CMSIS-NN are only for cortex-m4 (DSP)",
        "the model is named 'model_default': 'default' is a keyword of C; --model selects another name",
        "main is unpacked: 2 steps, 1 intermediate tensors; memory: 48 bytes in TVM's plan, 32 bytes in opwest's",
    ):
        assert f"note: {note}" in done.stderr
    assert done.stderr.count(" is named ") == 1
    assert "model: model_default\n" in (tmp_path / "out/manifest.yaml").read_text()


def test_missing_shape_can_be_given_as_an_option(tar, tmp_path):
    done = run(tar, "-o", tmp_path / "out")
    assert done.returncode == 1
    assert "error: the directory does not record the shape of input 'x' (float32)" in done.stderr
    assert "hint: specify it, for example --tensor x=1,10" in done.stderr
    done = run(tar, "-o", tmp_path / "out", "--tensor", "x=1,4", "--tensor", "y=float32:2", "--json")
    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout)
    assert "operators/default_lib1.c" in json.dumps(printed)
    assert "y: {dtype: float32, shape: [2]}" in (tmp_path / "out/manifest.yaml").read_text()


@pytest.mark.parametrize("text", ["x", "x=", "x=int9:1", "x=1x4", "=1"])
def test_invalid_tensor_options(text, tar, tmp_path):
    done = run(tar, "-o", tmp_path / "out", "--tensor", text)
    assert done.returncode == 1
    assert f"error: invalid --tensor {text!r}" in done.stderr
    assert "expected: NAME=SHAPE or NAME=DTYPE:SHAPE" in done.stderr


def test_names_and_targets_are_checked_first(tar, tmp_path):
    done = run(tar, "-o", tmp_path / "out", "--model", "int")
    assert done.returncode == 1 and "model name 'int' is a keyword of C" in done.stderr
    done = run(tar, "-o", tmp_path / "out", "--target", "cortex-m44")
    assert done.returncode == 1 and "unknown target 'cortex-m44'" in done.stderr
    assert not (tmp_path / "out").exists()
