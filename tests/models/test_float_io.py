# SPDX-License-Identifier: Apache-2.0
"""`--float-io` and `--dequantise-weights`, against LiteRT."""

import json

import numpy as np
import pytest
from importers.importers_support import Built
from in_process import fail, opwest, succeed
from requirements_support import need

need("cc", "tflite", "ai_edge_litert")

from models.made import Model  # noqa: E402
from models.oracle import litert  # noqa: E402
from models.real import model_file  # noqa: E402
from models.test_commands import dense  # noqa: E402


def check_vectors(folder, bound=0.0):
    """Compare the emitted C with the golden vectors of a model of one input and one output."""
    with np.load(folder / "model/vectors.npz") as vectors:
        cases, expected = (vectors[name] for name in vectors.files)
    for one, wanted in zip(Built(folder / "model", folder).run([[one] for one in cases]), expected, strict=True):
        assert np.abs(one[0] - wanted).max() <= bound * max(1, np.abs(wanted).max())


def rounded(array, scale, zero, dtype):
    """Return TFLite's QUANTIZE: halves away from zero, clamped."""
    limits = np.iinfo(dtype)
    real = array.astype(np.float32) / np.float32(scale)
    nearest = np.where(real < 0, np.ceil(real - np.float32(0.5)), np.floor(real + np.float32(0.5)))
    return np.clip(nearest + zero, limits.min, limits.max).astype(dtype)


def two_ends(dtype, zero):
    """Return a model with a quantised and a float input, and outputs of both kinds; one is also an input."""
    model = Model()
    scale = 0.031
    data = model.input(dtype, (2, 30), scale, zero, name="data")
    plain = model.input("float32", (2, 30), name="plain")
    total = model.operator("ADD", [data, data], (dtype, 0.05, zero))
    total.name = "total"
    model.output(total, data, model.operator("NEG", [plain], ("float32",)))
    return model, scale


@pytest.mark.parametrize(("dtype", "zero"), [("int8", -3), ("uint8", 140), ("int16", 0)])
def test_float_io_is_quantize_and_dequantize(dtype, zero, tmp_path):
    model, scale = two_ends(dtype, zero)
    file = model.save(tmp_path / "m.tflite")
    out = succeed("import", file, "-o", tmp_path / "model", "--float-io", "--compare", "3").stdout
    assert "3 inputs, 5 results of operators: no difference" in out
    manifest = (tmp_path / "model/manifest.yaml").read_text()
    assert "quantization" not in manifest and "data: {dtype: float32, shape: [2, 30]}" in manifest
    vectors = np.load(tmp_path / "model/vectors.npz")
    assert {vectors[name].dtype for name in vectors.files} == {np.dtype(np.float32)}
    random = np.random.default_rng(5)
    cases = [[random.standard_normal((2, 30)).astype(np.float32) * 3 for _ in range(2)] for _ in range(8)]
    cases[0][0][:] = (np.arange(60).reshape(2, 30) - 30 + 0.5) * np.float32(scale)  # ties
    cases[1][0][0, :4] = [np.inf, -np.inf, 1e30, -1e30]
    found = Built(tmp_path / "model", tmp_path).run(cases)
    inner = [[rounded(one, scale, zero, dtype), other] for one, other in cases]
    for one, wanted in zip(found, litert(file.read_bytes(), inner), strict=True):
        for array, expected, step in zip(one, wanted, (0.05, scale, None), strict=True):
            real = expected if step is None else (expected.astype(np.int32) - zero) * np.float32(step)
            assert np.array_equal(array, real.astype(np.float32))


def test_float_io_without_quantised_ends(tmp_path):
    file = dense().save(tmp_path / "m.tflite")
    code, _, err = opwest("import", file, "-o", tmp_path / "out", "--float-io")
    assert code == 1 and "error: --float-io: no input or output is quantised" in err
    assert not (tmp_path / "out").exists()


def test_keyword_model_with_float_io(tmp_path):
    file = model_file("kws_int8.tflite")
    out = succeed("import", file, "-o", tmp_path / "model", "--float-io", "--compare", "2", "--json").stdout
    assert json.loads(out)["result"]["models"] == ["kws_int8"]
    check_vectors(tmp_path)


def dynamic():
    """Return two layers with int8 weights."""
    random = np.random.default_rng(9)
    model = Model()
    data = model.input("float32", (1, 6, 6, 3), name="image")
    kernel = model.constant(random.integers(-127, 128, (4, 3, 3, 3)).astype(np.int8), [0.01, 0.02, 0.005, 0.01], 0, 0)
    bias = model.constant(random.standard_normal(4).astype(np.float32))
    options = {"padding": "SAME", "stride_w": 1, "stride_h": 1}
    data = model.operator("CONV_2D", [data, kernel, bias], ("float32",), version=5, **options)
    data = model.operator("RESHAPE", [data, model.constant(np.array([1, 144], np.int32))], ("float32",))
    weights = model.constant(random.integers(-127, 128, (5, 144)).astype(np.int8), 0.01)
    model.output(model.operator("FULLY_CONNECTED", [data, weights, None], ("float32",), version=9))
    return model


def test_dequantised_weights_are_compared_with_a_tolerance(tmp_path):
    file = dynamic().save(tmp_path / "m.tflite")
    succeed("import", file, "-o", tmp_path / "int8", "--compare", "2")
    out = succeed("import", file, "-o", tmp_path / "model", "--compare", "2", "--dequantise-weights").stdout
    assert "2 results of operators: largest difference" in out
    assert "tolerance 0.05 of the largest element of a result" in out
    assert "--dequantise-weights changes the" in (tmp_path / "model/manifest.yaml").read_text()
    constants = np.load(tmp_path / "model/constants.npz")
    assert {constants[name].dtype for name in constants.files} == {np.dtype(np.float32)}
    check_vectors(tmp_path, 1e-4)


def test_dequantised_weights_without_such_a_layer(tmp_path):
    file = dense("int8").save(tmp_path / "m.tflite")
    err = fail("import", file, "-o", tmp_path / "out", "--dequantise-weights").stderr
    assert "error: --dequantise-weights: no layer has int8 weights and float32 data" in err
