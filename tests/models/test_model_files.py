# SPDX-License-Identifier: Apache-2.0
"""The benchmark of whole directories of model files: a row for each model, and the reason of each refusal."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
from requirements_support import need

need("cc", "arm-none-eabi-gcc", "tflite", "ai_edge_litert")

from models.made import Model  # noqa: E402

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks/model_files.py"


def dense(kind):
    model = Model()
    data = model.input("float32", (1, 4))
    weights = model.constant(np.ones((3, 4), np.float32))
    found = model.operator(kind, [data, weights, None] if kind == "FULLY_CONNECTED" else [data], ("float32",))
    return model.ending_with("TANH", [found], ("float32",)).build()


def measured(files, tmp_path):
    command = [sys.executable, SCRIPT, files, "--json", tmp_path / "rows.json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads((tmp_path / "rows.json").read_text())


def test_directories_without_refusals_and_without_models(tmp_path):
    files = tmp_path / "files"
    files.mkdir()
    assert measured(files, tmp_path)["skipped"] == [f"model files: no .tflite, .lite, .onnx in {files}"]
    (files / "dense.tflite").write_bytes(dense("FULLY_CONNECTED"))
    [models] = measured(files, tmp_path)["tables"]
    assert [row[2] for row in models["rows"]] == ["equal"]


def test_rows_of_a_directory(tmp_path):
    files = tmp_path / "files"
    (files / "inner").mkdir(parents=True)
    (files / "inner/dense.tflite").write_bytes(dense("FULLY_CONNECTED"))
    (files / "other.tflite").write_bytes(dense("COMPLEX_ABS"))
    (files / "text.tflite").write_bytes(b"version https://git-lfs.github.com/spec/v1")
    (files / "notes.txt").write_text("no model")
    models, reasons = measured(files, tmp_path)["tables"]
    [good, *refused] = models["rows"]
    assert good[0] == "inner/dense.tflite" and good[2] == "equal"
    assert good[3] == good[4] > 0 and good[5] == 48 and good[6] > 100
    assert [row[2:4] for row in refused] == [
        ["COMPLEX_ABS: unsupported operator", "-"],
        ["not a TFLite, PyTorch or ONNX model", "-"],
    ]
    assert sorted(reasons["rows"]) == [
        ["COMPLEX_ABS: unsupported operator", 1],
        ["not a TFLite, PyTorch or ONNX model", 1],
    ]
