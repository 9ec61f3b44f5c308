# SPDX-License-Identifier: Apache-2.0
"""`opwest import --compare` that fails: the way out, and no directory."""

import importlib.util

import numpy as np
import pytest
from in_process import fail
from requirements_support import need

need("onnx", "onnxruntime", "tflite", "ai_edge_litert", "cc")

from models.commands import dense  # noqa: E402
from models.onnx_quantised import quantised  # noqa: E402
from models.onnx_support import Made, floats  # noqa: E402
from opwest.imports import comparison  # noqa: E402

WORDS = ("--vectors", "0", "--kernels", "portable")


@pytest.fixture(scope="module")
def rounded(tmp_path_factory):
    """A QDQ model whose layers onnxruntime rounds otherwise than TFLite."""
    random = np.random.default_rng(5)
    made = Made(17)
    x = made.input(1, 8, 8, 8)
    for _ in range(2):
        x = made.add("Relu", made.add("Conv", x, floats(random, 8, 8, 3, 3), floats(random, 8), pads=[1, 1, 1, 1]))
    folder = tmp_path_factory.mktemp("qdq")
    path = folder / "m.onnx"
    path.write_bytes(quantised(made.output(x).model(), folder, random))
    return path


def test_a_rounding_of_onnxruntime(rounded, tmp_path):
    arguments = ("import", rounded, "--compare", "2", *WORDS)
    err = fail(*arguments, "-o", tmp_path / "m").stderr
    assert "differs from the reference\n  hint: " in err
    assert "; with --exact, which rounds as onnxruntime does, all results agree\n" in err, err
    assert not (tmp_path / "m").exists() and [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("suffix", ["tflite", "onnx"])
def test_a_difference_of_another_cause(suffix, rounded, tmp_path, monkeypatch):
    """--exact is named only where it is the cure."""
    run = comparison.host_results

    def other(*words):
        return {key: result + 1 for key, result in run(*words).items()}

    monkeypatch.setattr(comparison, "host_results", other)
    file = rounded if suffix == "onnx" else dense("int8").save(tmp_path / "m.tflite")
    (tmp_path / "m").mkdir()
    err = fail("import", file, "--compare", "1", *WORDS, "-o", tmp_path / "m").stderr
    assert "differs from the reference\n  hint: " in err and "; with --exact" not in err
    assert [*(tmp_path / "m").iterdir()] == []


@pytest.mark.parametrize(("suffix", "package"), [("tflite", "ai-edge-litert"), ("onnx", "onnxruntime")])
def test_an_absent_runtime(suffix, package, rounded, tmp_path, monkeypatch):
    find = importlib.util.find_spec
    absent = package.replace("-", "_")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *more: None if name == absent else find(name, *more))
    file = rounded if suffix == "onnx" else dense("int8").save(tmp_path / "m.tflite")
    err = fail("import", file, "--compare", "1", *WORDS, "-o", tmp_path / "m").stderr
    assert f"error: --compare requires {package}, which is not installed\n  hint: pip install {package}\n" in err
    assert not (tmp_path / "m").exists()
