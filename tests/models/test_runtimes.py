# SPDX-License-Identifier: Apache-2.0
"""Runtimes of the formats that do not run a model, or that a signal ends: golden vectors, messages."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from requirements_support import need, skip_here

need("cc", "tflite", "ai_edge_litert")

from models.made import Model  # noqa: E402
from models.test_commands import opwest  # noqa: E402
from models.test_user_operators import custom_model, flex, given  # noqa: E402
from opwest.diagnostics import OpwestError  # noqa: E402
from opwest.importers import runtimes  # noqa: E402
from opwest.importers.models.convert import import_model  # noqa: E402
from opwest.importers.models.request import Options  # noqa: E402

ENDED = "LiteRT 9.9 was terminated by SIGABRT"


def long_softmax():
    """Return int8 SOFTMAX of 1,000 elements: LiteRT 2.3 aborts if their exponentials have a sum of 512 and more."""
    model = Model()
    data = model.input("int8", (1, 1000), 0.05, 3)
    model.output(model.operator("SOFTMAX", [data], ("int8", 1 / 256, -128), beta=1.0))
    return model.build()


def planted(monkeypatch, code):
    """Let the process of a runtime end with an exit code, whether the runtime is installed or not."""
    monkeypatch.setattr(runtimes, "name_of", lambda format_: "LiteRT 9.9")
    monkeypatch.setattr("opwest.importers.models.references.name_of", lambda format_: "LiteRT 9.9")
    monkeypatch.setattr(runtimes, "_run", lambda command: code)


def test_kernels_that_abort_do_not_end_an_import(tmp_path):
    (tmp_path / "m.tflite").write_bytes(long_softmax())
    code, _, err = opwest("import", tmp_path / "m.tflite", "-o", tmp_path / "model")
    assert code == 0, err
    text = (tmp_path / "model/manifest.yaml").read_text()
    if "SIGABRT" in err:  # LiteRT 2.3
        words = "was terminated by SIGABRT: the golden vectors are from opwest's own interpreter of the model"
        assert f"{tmp_path / 'm.tflite'}: note: LiteRT " in err and words in err
        assert "# The outputs in vectors.npz are from opwest's own interpreter of the model, because LiteRT" in text
    with np.load(tmp_path / "model/vectors.npz") as vectors:
        [data, result] = (vectors[name] for name in vectors.files)
    powers = np.exp(0.05 * (data.astype(float) - data.max(axis=-1, keepdims=True)))
    real = np.round(256 * powers / powers.sum(axis=-1, keepdims=True)) - 128
    assert np.abs(result - np.minimum(real, 127)).max() <= 1
    code, _, err = opwest("generate", tmp_path / "model/manifest.yaml", "-o", tmp_path / "app")
    assert code == 0, err
    code, out, err = opwest("run", tmp_path / "app", "--host")
    assert code == 0, out + err


def test_termination_is_a_note(monkeypatch, tmp_path):
    planted(monkeypatch, -signal.SIGABRT)
    (tmp_path / "m.tflite").write_bytes(long_softmax())
    done = import_model(tmp_path / "m.tflite", tmp_path / "model")
    assert done.remarks == (f"{ENDED}: the golden vectors are from opwest's own interpreter of the model",)
    assert (tmp_path / "model/vectors.npz").exists()


def test_exit_code_of_a_runtime(monkeypatch, tmp_path):
    planted(monkeypatch, 3)
    (tmp_path / "m.tflite").write_bytes(long_softmax())
    done = import_model(tmp_path / "m.tflite", tmp_path / "model")
    assert done.remarks[0].startswith("LiteRT 9.9 failed with exit code 3: the golden vectors")


def test_termination_refuses_a_comparison(monkeypatch, tmp_path):
    planted(monkeypatch, -signal.SIGABRT)
    (tmp_path / "m.tflite").write_bytes(long_softmax())
    options = Options(compare=2, vectors=0, arrays=str(tmp_path / "arrays.npz"))
    with pytest.raises(OpwestError) as caught:
        import_model(tmp_path / "m.tflite", tmp_path / "model", options)
    [found] = caught.value.diagnostics
    assert found.message == f"--compare: there is nothing to compare with: {ENDED}"
    assert found.hint == "import without --compare; golden vectors are then those of opwest's interpreter"
    assert not (tmp_path / "model").exists()


def test_termination_with_operators_of_the_user(monkeypatch, tmp_path):
    planted(monkeypatch, -signal.SIGABRT)
    _, file, _, folder, _, operator = given(tmp_path, custom_model(lambda gain: flex(gain=gain)))
    done = import_model(file, folder, Options(operators=[operator.split("=")]))
    assert done.remarks == (f"there are no golden vectors: {ENDED}",)
    assert not (folder / "vectors.npz").exists()


def test_termination_of_onnxruntime(monkeypatch, tmp_path):
    need("onnx")
    from onnx import TensorProto, helper

    planted(monkeypatch, -signal.SIGSEGV)
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, (1, 4)) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", ports[:1], ports[1:])
    (tmp_path / "m.onnx").write_bytes(helper.make_model(graph).SerializeToString())
    done = import_model(tmp_path / "m.onnx", tmp_path / "model")
    assert done.remarks[0].startswith("LiteRT 9.9 was terminated by SIGSEGV: the golden vectors are from opwest's own")


def test_manifest_has_the_reason_of_a_runtime(tmp_path):
    model = Model()
    data = model.input("int8", (1, 4), 0.5, 0)
    axes = model.constant(np.int32([1]))
    model.output(model.operator("SUM", [data, axes], ("int8", 0.5, 0), keep_dims=False))
    (tmp_path / "m.tflite").write_bytes(model.build())
    done = import_model(tmp_path / "m.tflite", tmp_path / "model")
    assert not done.remarks
    text = " ".join((tmp_path / "model/manifest.yaml").read_text().replace("#", "").split())
    assert "opwest's own interpreter of the model, because the reference kernel of LiteRT" in text
    assert "for SUM is wrong." in text


def test_runtime_returns_its_reason():
    with pytest.raises(runtimes.UnavailableError, match=r"^LiteRT [0-9.]+ cannot run the model: .") as caught:
        runtimes.run(runtimes.Call("tflite"), b"\x1c\0\0\0TFL3" + bytes(40), [])
    assert not isinstance(caught.value, runtimes.TerminatedError)
    assert "\n" not in str(caught.value)


def test_absent_runtime(monkeypatch):
    monkeypatch.setattr(runtimes.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(runtimes.UnavailableError, match="the package ai-edge-litert is not installed"):
        runtimes.name_of("tflite")


def test_process_ends_with_the_import(tmp_path):
    """An import that is killed leaves no process."""
    if not hasattr(os, "mkfifo"):
        skip_here("the system has no named pipes")
    os.mkfifo(tmp_path / "request.json")  # a read of it waits
    command = [sys.executable, "-P", "-m", runtimes.__name__, tmp_path]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        assert process.poll() is None
        process.stdin.close()
        assert process.wait(60) == 1


def test_warning_of_the_import_from_tvm(monkeypatch, tmp_path):
    need("tvm", "tflite")
    from importers.tflite_made import average_pool
    from opwest.importers.tvm import Options as TvmOptions
    from opwest.importers.tvm import import_model as import_from_tvm

    planted(monkeypatch, -signal.SIGABRT)
    monkeypatch.setattr("opwest.importers.tvm.vectors.name_of", lambda format_: "LiteRT 9.9")
    (tmp_path / "m.tflite").write_bytes(average_pool())
    done = import_from_tvm(tmp_path / "m.tflite", tmp_path / "model", TvmOptions(vectors=2))
    assert done.warnings == (f"{ENDED}: the golden vectors are from TVM's own execution of the model",)
