# SPDX-License-Identifier: Apache-2.0
"""What a file with a model is, by its content: each kind of an import, and each file of another tool."""

import gzip
import io
import pickle
import random
import re
import struct
import tarfile
import zipfile
import zlib
from pathlib import Path

import pytest
from campaign import sized
from opwest.objects.foreign_models import FOREIGN
from opwest.objects.model_files import identify, identify_content, way_of
from opwest.objects.model_kinds import KINDS as MODEL_KINDS

TFLITE = b"\x1c\0\0\0TFL3" + bytes(24)


def archive(*names, content=b"x"):
    with io.BytesIO() as stream:
        with zipfile.ZipFile(stream, "w") as made:
            for name in names:
                made.writestr(name, content)
        return stream.getvalue()


def tar():
    with io.BytesIO() as stream:
        with tarfile.open(fileobj=stream, mode="w") as made:
            made.addfile(tarfile.TarInfo("metadata.json"))
        return stream.getvalue()


def field(number, value):
    """Return a field of a protocol buffer: a number below 128, or bytes."""
    wire = 0 if isinstance(value, int) else 2
    tag = number << 3 | wire
    head = bytes([tag]) if tag < 128 else bytes([tag & 127 | 128, tag >> 7])
    return head + (bytes([value]) if wire == 0 else varint(len(value)) + value)


def varint(value):
    return bytes([value]) if value < 128 else bytes([value & 127 | 128]) + varint(value >> 7)


ONNX = field(1, 9) + field(2, b"pytorch") + field(7, b"graph" * 50) + field(8, b"\x10\x12")
NODE = field(1, field(1, b"input") + field(2, b"Placeholder"))
LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:1f\nsize 12\n"
KINDS = {
    "m.bin": (TFLITE, "tflite"),
    "m.onnx": (TFLITE, "tflite"),
    "m_vela.tflite": (TFLITE, "vela"),
    "npu.tflite": (TFLITE + b"\7\0\0\0ethos-u\0", "vela"),
    "raw.npz": (archive("cmd_data.npy", "weight_data.npy"), "vela"),
    "no suffix": (ONNX, "onnx"),
    "cut": (ONNX[:-30], "onnx"),
    "m.pt2": (archive("m/archive_format", "m/models/model.json", "m/data/weights/weight_0"), "torch"),
    "m.zip": (archive("serialized_exported_program.json", "serialized_state_dict.pt", "version"), "torch"),
    "m.tar": (b"damaged", "mlf"),
    "module": (tar(), "mlf"),
    "model.txt": (b"const char m[] = {0x1c, 0, 0, 0, 'T', 'F', 'L', '3', 0, 0};\n", "tflite"),
}


@pytest.mark.parametrize("name", KINDS)
def test_kinds(name, tmp_path):
    content, kind = KINDS[name]
    (tmp_path / name).write_bytes(content)
    assert identify(tmp_path / name).kind == kind


LEGACY = b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.\x80\x02"
HDF = b"\x89HDF\r\n\x1a\n" + bytes(40)
FILES = {
    "empty.onnx": (b"", "empty", "fetch or convert the model again"),
    "m.tflite": (LFS, "a Git LFS pointer", "git lfs pull"),
    "page.onnx": (b"\n<!DOCTYPE html>\n<html>", "an HTML page", "'raw'"),
    "m.xml": (b'<?xml version="1.0"?>\n<net name="m" version="11">', "an OpenVINO model", "openvino2onnx "),
    "answer.tflite": (b"<?xml version='1.0'?><Error><Code>AccessDenied</Code>", "XML, not a model", "fetch the file"),
    "x.json": (b'{"learner": {"gradient_booster": {}}}', "an XGBoost model", "tl2cgen.md"),
    "lgbm.txt": (b"tree\nversion=v4\nnum_class=1\ntree_sizes=300 200\n", "a LightGBM model", "tl2cgen.md"),
    "model.json": (b'{"format": "layers-model", "modelTopology": {}}', "a TensorFlow.js model", "TFLiteConverter"),
    "m.onnx": (b'{"error": "not found"}', "JSON, not a model", "an answer of the server"),
    "manifest.yaml": (b"# of a test\nversion: 1\nmodel: m\n", "a manifest", "opwest generate "),
    "m.weights.h5": (HDF, "Keras weights without their model", "load the weights"),
    "m.h5": (HDF, "a Keras model (HDF5)", "load_model('"),
    "m.keras": (archive("metadata.json", "config.json", "model.weights.h5"), "a Keras model", "from_keras_model"),
    "saved_model.pb": (field(1, 1) + field(2, field(1, b"")), "a TensorFlow SavedModel", "--saved_model_dir="),
    "frozen.pb": (NODE * 3 + field(4, b"\x08\x1b"), "a frozen TensorFlow graph", "tf2onnx.convert --graphdef "),
    "m.ptl": (archive("m/data.pkl", "m/bytecode.pkl", "m/constants.pkl"), "a TorchScript model of", "torch.export"),
    "m.pt": (archive("m/data.pkl", "m/constants.pkl", "m/code/a.py"), "a TorchScript model", "model.pt2"),
    "m.pth": (archive("m/data.pkl", "m/version", "m/data/0"), "a pickle of torch.save", "load its weights"),
    "old.pth": (LEGACY, "a pickle of torch.save", "model.pt2"),
    "m.pte": (b"\x30\0\0\0ET12" + bytes(40), "an ExecuTorch program", "torch.export.save("),
    "m.mlmodel": (field(1, 4) + field(2, b"\x0a\0") + field(500, b"\x0a\0"), "a Core ML model", "export the model"),
    "m.mlpackage.zip": (archive("Manifest.json", "Data/com.apple.CoreML/m.mlmodel"), "a Core ML package", "export"),
    "m.safetensors": (struct.pack("<Q", 20) + b'{"a":{}}'.ljust(40), "safetensors", "load its weights"),
    "m.gguf": (b"GGUF\3\0\0\0", "a GGUF file", "import a smaller"),
    "m.pkl": (pickle.dumps({"a": 1}), "a pickle, such as of scikit-learn", "scikit-learn.md"),
    "m.joblib": (zlib.compress(pickle.dumps([1] * 99)), "a pickle, such as of scikit-learn", "emlearn"),
    "w.npz": (archive("a.npy", "b.npy"), "arrays of NumPy", "opwest run --input"),
    "x.npy": (b"\x93NUMPY\1\0", "an array of NumPy", "opwest run --input"),
    "m.bundle": (b"OPWB" + bytes(20), "a bundle of opwest", "opwest bundle install "),
    "ops.o": (b"\x7fELF\1\1\1", "an object or a program (ELF)", "opwest init "),
    "libops.a": (b"!<arch>\n", "an archive of objects", "opwest init "),
    "ops.bc": (b"BC\xc0\xde", "LLVM bitcode", "opwest init "),
    "ops.ll": (b"; ModuleID = 'a'\n", "LLVM IR", "opwest init "),
    "m.mlir": (b"#map = affine_map<(d0) -> (d0)>\nmodule {\n", "MLIR", "emitc.md"),
    "ops.c": (b"#include <stdint.h>\nint f(int a) { return a; }\n", "a C source without a model", "opwest init "),
    "one.zip": (archive("m/a.tflite"), "a zip file with 'm/a.tflite'", "unzip "),
    "some.zip": (archive("a.txt", "b.txt"), "a zip file", "unzip "),
    "cut.zip": (archive("a.tflite")[:40], "a damaged zip file", "again"),
    "m.tflite.gz": (gzip.compress(TFLITE), "a gzip file with a model (tflite)", " > m.tflite; then opwest"),
    "m.tgz": (gzip.compress(tar()), "a gzip file with a model (mlf)", " > m.tar; then opwest import m.tar"),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_files_of_other_tools(name, tmp_path):
    content, what, hint = FILES[name]
    (tmp_path / name).write_bytes(content)
    found = identify(tmp_path / name)
    assert found.kind is None and found.what.startswith(what) and hint in found.hint, found
    assert way_of(tmp_path / name) == f"the file is {found.what}: {found.hint}"


def test_every_row_has_a_file():
    described = {found.what for found in FOREIGN}
    assert {what for what in described if not any(what.startswith(row[1]) for row in FILES.values())} == set()


@pytest.mark.parametrize("content", [b"\xff\xfe\x00 other", b"some text\n", b"\x08\x01", bytes(300)])
def test_unknown_content(content, tmp_path):
    (tmp_path / "m").write_bytes(content)
    assert identify(tmp_path / "m")[:2] == (None, None)
    assert way_of(tmp_path / "m") is None


def test_damaged_files():
    """Any content is a kind, a file of another tool, or unknown."""
    chosen = random.Random(2)
    contents = [row[0] for row in (*KINDS.values(), *FILES.values()) if row[0]]
    for _ in range(sized(1500, 50_000)):
        content = bytearray(chosen.choice(contents))
        for _ in range(chosen.randint(1, 4)):
            at = chosen.randrange(len(content) + 1)
            content[at : at + chosen.choice((0, 1, 20))] = chosen.choice(contents)[: chosen.choice((0, 1, 2, 30))]
        found = identify_content(io.BytesIO(bytes(content)), Path("m"))
        assert found.kind is None or found.kind in {row.name for row in MODEL_KINDS}


def test_directories(tmp_path):
    def found(name, *files):
        for file in files:
            path = tmp_path / name / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"")
        return identify(tmp_path / name)

    assert found("saved", "saved_model.pb", "variables/variables.index").what == "a TensorFlow SavedModel"
    assert found("m.mlpackage", "Manifest.json", "Data/com.apple.CoreML/m.mlmodel").what == "a Core ML package"
    assert re.search("opwest generate .*/model/manifest.yaml", found("model", "manifest.yaml", "operators.c").hint)
    assert re.search("import a file in it: opwest import .*/two/a.tflite", found("two", "a.tflite", "b.onnx").hint)
    assert found("mlf", "metadata.json", "codegen/host/src/lib0.c").kind == "mlf"
    assert identify(tmp_path / "absent").kind is None and way_of(tmp_path / "mlf") is None


def test_names_in_commands_are_quoted(tmp_path):
    path = tmp_path / "my model.h5"
    path.write_bytes(HDF)
    assert f"load_model('{path}')" in identify(path).hint
    assert f"opwest generate '{tmp_path}/my m.yaml' " in _hint_of(tmp_path / "my m.yaml", b"version: 1\n")


def _hint_of(path: Path, content: bytes) -> str:
    path.write_bytes(content)
    return identify(path).hint
