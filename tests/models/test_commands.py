# SPDX-License-Identifier: Apache-2.0
"""`opwest import tflite` as a command."""

import io
import json
import zipfile

import numpy as np
import pytest
from in_process import opwest, succeed
from requirements_support import need

need("cc", "tflite", "ai_edge_litert")

from models.made import Model  # noqa: E402


def dense(dtype="float32", results=4, layers=2):
    """Return a model of fully connected layers of one shape."""
    random = np.random.default_rng(3)
    model = Model()
    quantised = dtype != "float32"
    data = model.input(dtype, (1, 40), *((0.05, 3) if quantised else ()), name="image")
    for number in range(layers):
        length = 40 if number == 0 else results
        if quantised:
            weights = model.constant(random.integers(-127, 128, (results, length)).astype(np.int8), 0.01)
        else:
            weights = model.constant(random.standard_normal((results, length)).astype(np.float32))
        data = model.operator("FULLY_CONNECTED", [data, weights, None], (dtype, *((0.1, -7) if quantised else ())))
    data.name = "scores"
    model.output(data)
    return model


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_import_compares_every_operator_with_the_reference(dtype, tmp_path):
    file = dense(dtype, results=40, layers=3).save(tmp_path / "m.tflite")
    out = succeed("import", file, "-o", tmp_path / "model", "--compare", "2").stdout
    assert "compared with the reference on 2 inputs, 3 results of operators" in out
    assert f"next: opwest generate {tmp_path}/model/manifest.yaml -o app" in out


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
    assert "compared with the reference on 2 inputs, 1 results of operators: no difference" in out
    assert "The outputs in vectors.npz are from LiteRT" in (tmp_path / "single/manifest.yaml").read_text()
    assert f"{tmp_path}/single/manifest.yaml: 1 operators" in out and (tmp_path / "single/manifest.yaml").is_file()
    out = succeed("import", file, "-o", tmp_path / "both", "--compare", "1").stdout
    assert "m_classify: compared with the reference on 1 inputs, 2 results of operators" in out
    assert "m_size: compared with the reference on 1 inputs, 1 results of operators: no difference" in out
    code, out, err = opwest("import", "tflite", file, "-o", tmp_path / "one", "--signature", "nothing")
    assert code == 1 and "error: the model has no signature 'nothing'" in err
    assert "expected: one of: classify, size" in err
    assert not (tmp_path / "one").exists()


def test_missing_damaged_and_foreign_files(tmp_path):
    code, _, err = opwest("import", tmp_path / "absent.tflite", "-o", tmp_path / "out")
    assert code == 1 and "cannot read the model: No such file or directory" in err
    file = tmp_path / "m.tflite"
    file.write_bytes(b"not a model at all")
    code, _, err = opwest("import", file, "-o", tmp_path / "out")
    assert code == 1 and "error: not a TFLite or ONNX model" in err
    content = dense().build()
    file.write_bytes(content)
    code, _, err = opwest("import", "onnx", file, "-o", tmp_path / "out")
    assert code == 1 and "error: the file is a TFLite model" in err and "expected: an ONNX model" in err
    assert "opwest: reading m.tflite, a TFLite model" in err
    file.write_bytes(content[: len(content) // 2])
    code, _, err = opwest("import", file, "-o", tmp_path / "out")
    assert code == 1 and "the file is damaged" in err and "Traceback" not in err
    assert not (tmp_path / "out").exists()


def test_class_names_of_the_metadata(tmp_path):
    import flatbuffers

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
    np.save(tmp_path / "image.npy", np.zeros((1, 40), np.float32))
    done = succeed("run", tmp_path / "app", "--host", "--input", f"image={tmp_path / 'image.npy'}")
    assert done.stdout.endswith("\n  yes\n"), done.stdout


def test_infinite_results(tmp_path):
    """The first vector is 0, the second -1: the results are -inf and NaN."""
    model = Model()
    found = model.operator("LOG", [model.input("float32", (4,), name="x")], ("float32",))
    found.name = "y"
    model.output(found)
    file = model.save(tmp_path / "m.tflite")
    code, out, err = opwest("import", file, "-o", tmp_path / "model", "--compare", "2")
    assert code == 0 and "no difference" in out and "differ" not in err and "Warning" not in err, err
    assert "are from LiteRT" in (tmp_path / "model/manifest.yaml").read_text()
    succeed("generate", tmp_path / "model/manifest.yaml", "-o", tmp_path / "app")
    np.save(tmp_path / "x.npy", np.zeros(4, np.float32))
    np.save(tmp_path / "y.npy", np.full(4, -np.inf, np.float32))
    given = ["--input", f"x={tmp_path / 'x.npy'}", "--reference", f"y={tmp_path / 'y.npy'}"]
    code, out, err = opwest("run", tmp_path / "app", "--host", *given)
    assert code == 0 and "equal to the reference" in out, out + err
