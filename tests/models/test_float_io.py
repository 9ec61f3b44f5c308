# SPDX-License-Identifier: Apache-2.0
"""`opwest import` of TFLite files as a command, `--float-io` and `--dequantise-weights`, against LiteRT."""

import io
import json
import zipfile

import flatbuffers
import numpy as np
import pytest
from importers.importers_support import Built
from in_process import fail, succeed
from models.commands import arrays_of, check_vectors, dense, run_on_host
from models.made import Model, of_one
from models.oracle import litert
from requirements_support import need

need("cc", "ai_edge_litert")


def rounded(array, scale, zero, dtype):
    """Return TFLite's QUANTIZE: halves away from zero, clamped."""
    limits = np.iinfo(dtype)
    real = array.astype(np.float32) / np.float32(scale)
    nearest = np.where(real < 0, np.ceil(real - np.float32(0.5)), np.floor(real + np.float32(0.5)))
    return np.clip(nearest + zero, limits.min, limits.max).astype(dtype)


@pytest.mark.parametrize(("dtype", "zero"), [("int8", -3), ("uint8", 140), ("int16", 0)])
def test_float_io_is_quantize_and_dequantize(dtype, zero, tmp_path):
    """A quantised and a float input, and outputs of both kinds; one is also an input."""
    model, scale = Model(), 0.031
    data = model.input(dtype, (2, 30), scale, zero, name="data")
    plain = model.input("float32", (2, 30), name="plain")
    total = model.operator("ADD", [data, data], (dtype, 0.05, zero))
    total.name = "total"
    file = model.output(total, data, model.operator("NEG", [plain], ("float32",))).save(tmp_path / "m.tflite")
    out = succeed("import", file, "-o", tmp_path / "model", "--float-io", "--compare", "3").stdout
    assert "3 inputs, 5 results of operators: no difference" in out
    manifest = (tmp_path / "model/manifest.yaml").read_text()
    assert "quantization" not in manifest and "data: {dtype: float32, shape: [2, 30]}" in manifest
    assert {array.dtype for array in arrays_of(tmp_path / "model/vectors.npz").values()} == {np.dtype(np.float32)}
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


@pytest.mark.parametrize(
    ("dtype", "option", "message"),
    [
        ("float32", "--float-io", "no input or output is quantised"),
        ("int8", "--dequantise-weights", "no layer has int8 weights and float32 data"),
    ],
)
def test_options_without_effect(dtype, option, message, tmp_path):
    file = dense(dtype).save(tmp_path / "m.tflite")
    err = fail("import", file, "-o", tmp_path / "out", option).stderr
    assert f"error: {option}: {message}" in err
    assert not (tmp_path / "out").exists()


def test_dequantised_weights_are_compared_with_a_tolerance(tmp_path):
    """Two layers with int8 weights."""
    random, model = np.random.default_rng(9), Model()
    data = model.input("float32", (1, 6, 6, 3), name="image")
    kernel = model.constant(random.integers(-127, 128, (4, 3, 3, 3)).astype(np.int8), [0.01, 0.02, 0.005, 0.01])
    bias = model.constant(random.standard_normal(4).astype(np.float32))
    options = {"padding": "SAME", "stride_w": 1, "stride_h": 1, "version": 5}
    data = model.operator("CONV_2D", [data, kernel, bias], ("float32",), **options)
    data = model.operator("RESHAPE", [data, model.constant(np.array([1, 144], np.int32))], ("float32",))
    inputs = [data, model.constant(random.integers(-127, 128, (5, 144)).astype(np.int8), 0.01), None]
    file = model.ending_with("FULLY_CONNECTED", inputs, ("float32",), version=9).save(tmp_path / "m.tflite")
    succeed("import", file, "-o", tmp_path / "int8", "--compare", "2")
    out = succeed("import", file, "-o", tmp_path / "model", "--compare", "2", "--dequantise-weights").stdout
    assert "2 results of operators: largest difference" in out
    assert "tolerance 0.05 of the largest element of a result" in out
    assert "--dequantise-weights changes the" in (tmp_path / "model/manifest.yaml").read_text()
    assert {array.dtype for array in arrays_of(tmp_path / "model/constants.npz").values()} == {np.dtype(np.float32)}
    check_vectors(tmp_path / "model", 1e-4)


def test_signatures_are_models_of_their_own(tmp_path):
    model = dense()
    first = model.graph
    model.subgraph()
    data = model.input("float32", (1, 3), name="x")
    model.output(model.operator("ABS", [data], ("float32",)))
    model.signatures = [
        ("classify", {"picture": first.inputs[0]}, {"classes": first.outputs[0]}, 0),
        ("size", {"v": data}, {"w": model.graph.outputs[0]}, 1),
    ]
    file = model.save(tmp_path / "m.tflite")
    out = succeed("import", "tflite", file, "-o", tmp_path / "all", "--json").stdout
    assert json.loads(out)["result"]["models"] == ["m_classify", "m_size"]
    assert "picture:" in (tmp_path / "all/m_classify/manifest.yaml").read_text()
    out = succeed("import", file, "-o", tmp_path / "single", "--signature", "size", "--compare", "2").stdout
    assert "compared with the reference on 2 inputs, 1 result of operators: no difference" in out
    assert "The outputs in vectors.npz are from LiteRT" in (tmp_path / "single/manifest.yaml").read_text()
    assert f"next: opwest generate {tmp_path}/single/manifest.yaml -o app" in out
    assert f"{tmp_path}/single/manifest.yaml: 1 operator" in out and (tmp_path / "single/manifest.yaml").is_file()
    out = succeed("import", file, "-o", tmp_path / "both", "--compare", "1").stdout
    assert "m_classify: compared with the reference on 1 input, 2 results of operators" in out
    assert "m_size: compared with the reference on 1 input, 1 result of operators: no difference" in out
    err = fail("import", "tflite", file, "-o", tmp_path / "one", "--signature", "nothing").stderr
    assert "error: the model has no signature 'nothing'" in err and "expected: one of: classify, size" in err
    assert not (tmp_path / "one").exists()


def test_missing_damaged_and_foreign_files(tmp_path):
    file, content = tmp_path / "m.tflite", dense().build()
    assert "cannot read the model: No such file or directory" in fail("import", file, "-o", tmp_path / "out").stderr
    file.write_bytes(b"not a model at all")
    assert "error: not a TFLite, PyTorch or ONNX model" in fail("import", file, "-o", tmp_path / "out").stderr
    file.write_bytes(content)
    err = fail("import", "onnx", file, "-o", tmp_path / "out").stderr
    assert "error: the file is a TFLite model" in err and "expected: an ONNX model" in err
    assert "opwest: reading m.tflite, a TFLite model" in err
    file.write_bytes(content[: len(content) // 2])
    err = fail("import", file, "-o", tmp_path / "out").stderr
    assert "the file is damaged" in err and "Traceback" not in err
    assert not (tmp_path / "out").exists()


def test_class_names_of_the_metadata(tmp_path):
    b = flatbuffers.Builder(256)

    def table(fields):
        b.StartObject(8)
        for number, (kind, value) in fields.items():
            (b.PrependUOffsetTRelativeSlot if kind == "offset" else b.PrependInt8Slot)(number, value, 0)
        return b.EndObject()

    def vector(item):
        b.StartVector(4, 1, 4)
        b.PrependUOffsetTRelative(item)
        return b.EndVector()

    name = b.CreateString("labels.txt")
    one = vector(table({0: ("offset", name), 2: ("byte", 2)}))
    tensor = vector(table({6: ("offset", one)}))
    graph = vector(table({3: ("offset", tensor)}))
    b.Finish(table({3: ("offset", graph)}), b"M001")
    model = dense()
    model.metadata["TFLITE_METADATA"] = bytes(b.Output())
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as files:
        files.writestr("labels.txt", "yes\nno\nup\ndown\n")
    file = tmp_path / "m.tflite"
    file.write_bytes(model.build() + archive.getvalue())
    succeed("import", file, "-o", tmp_path / "model")
    assert "labels: [yes, no, up, down]" in (tmp_path / "model/manifest.yaml").read_text()
    succeed("generate", tmp_path / "model/manifest.yaml", "-o", tmp_path / "app")
    done = run_on_host(tmp_path / "app", {"image": np.zeros((1, 40), np.float32)})
    assert done.stdout.endswith("\n  yes\n"), done.stdout


def test_infinite_results(tmp_path):
    """The first vector is 0, the second -1: the results are -inf and NaN."""
    model = of_one("LOG", [("float32", (4,))], ("float32",))
    model.graph.inputs[0].name, model.graph.outputs[0].name = "x", "y"
    file = model.save(tmp_path / "m.tflite")
    _, out, err = succeed("import", file, "-o", tmp_path / "model", "--compare", "2")
    assert "no difference" in out and "differ" not in err and "Warning" not in err, err
    assert "are from LiteRT" in (tmp_path / "model/manifest.yaml").read_text()
    succeed("generate", tmp_path / "model/manifest.yaml", "-o", tmp_path / "app")
    arrays = {"x": np.zeros(4, np.float32)}, {"y": np.full(4, -np.inf, np.float32)}
    assert "equal to the reference" in run_on_host(tmp_path / "app", arrays[0], references=arrays[1]).stdout
