# SPDX-License-Identifier: Apache-2.0
"""Runtimes of the formats that do not run a model, or that a signal ends: golden vectors, messages."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from in_process import succeed
from models.commands import arrays_of
from models.made import Model, of_one
from models.test_user_operators import custom_model, given
from opwest.base.diagnostics import OpwestError
from opwest.compiler.reference import runtimes
from opwest.compiler.request import Options
from opwest.imports.child import import_in_child
from opwest.imports.convert import import_model
from requirements_support import need

ENDED = "LiteRT 9.9 was terminated by SIGABRT"


def long_softmax():
    """Return int8 SOFTMAX of 1,000 elements: LiteRT 2.3 aborts if their exponentials have a sum of 512 and more."""
    return of_one("SOFTMAX", [("int8", (1, 1000), 0.05, 3)], ("int8", 1 / 256, -128), beta=1.0)


def onnx_model(kind, dtype, **options):
    need("onnx", "onnxruntime")
    from onnx import TensorProto, helper

    ends = ("x", TensorProto.FLOAT), ("y", getattr(TensorProto, dtype))
    ends = [[helper.make_tensor_value_info(name, kind, (2,))] for name, kind in ends]
    graph = helper.make_graph([helper.make_node(kind, ["x"], ["y"], **options)], "g", *ends)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9).SerializeToString()


def planted(monkeypatch, code):
    """Let the process of a runtime end with an exit code, whether the runtime is installed or not."""
    monkeypatch.setattr(runtimes, "name_of", lambda format_: "LiteRT 9.9")
    monkeypatch.setattr("opwest.imports.vectors.name_of", lambda format_: "LiteRT 9.9")
    monkeypatch.setattr(runtimes, "_run", lambda command, request: (code, b""))


def test_kernels_that_abort_do_not_end_an_import(tmp_path):
    file = long_softmax().save(tmp_path / "m.tflite")
    err = succeed("import", file, "-o", tmp_path / "model").stderr
    text = (tmp_path / "model/manifest.yaml").read_text()
    if "SIGABRT" in err:  # LiteRT 2.3
        words = "was terminated by SIGABRT: the golden vectors are from opwest's own interpreter of the model"
        assert f"{file}: note: LiteRT " in err and words in err
        assert "# The outputs in vectors.npz are from opwest's own interpreter of the model, because LiteRT" in text
    data, result = arrays_of(tmp_path / "model/vectors.npz").values()
    powers = np.exp(0.05 * (data.astype(float) - data.max(axis=-1, keepdims=True)))
    real = np.round(256 * powers / powers.sum(axis=-1, keepdims=True)) - 128
    assert np.abs(result - np.minimum(real, 127)).max() <= 1
    succeed("generate", tmp_path / "model/manifest.yaml", "-o", tmp_path / "app")
    succeed("run", tmp_path / "app", "--host")


@pytest.mark.parametrize(
    ("code", "name", "reason"),
    [
        (-signal.SIGABRT, "m.tflite", "was terminated by SIGABRT"),
        (3, "m.tflite", "failed with exit code 3"),
        (-signal.SIGSEGV, "m.onnx", "was terminated by SIGSEGV"),
    ],
)
def test_the_end_of_a_runtime_is_a_note(code, name, reason, monkeypatch, tmp_path):
    planted(monkeypatch, code)
    (tmp_path / name).write_bytes(long_softmax().build() if name == "m.tflite" else onnx_model("Relu", "FLOAT"))
    done = import_model(tmp_path / name, tmp_path / "model")
    assert done.remarks == (f"LiteRT 9.9 {reason}: the golden vectors are from opwest's own interpreter of the model",)
    assert (tmp_path / "model/vectors.npz").exists()


def test_termination_refuses_a_comparison(monkeypatch, tmp_path):
    planted(monkeypatch, -signal.SIGABRT)
    file = long_softmax().save(tmp_path / "m.tflite")
    options = Options(compare=2, vectors=0, arrays=str(tmp_path / "arrays.npz"))
    with pytest.raises(OpwestError) as caught:
        import_model(file, tmp_path / "model", options)
    [found] = caught.value.diagnostics
    assert found.message == f"--compare: there is nothing to compare with: {ENDED}"
    assert found.hint == "import without --compare; golden vectors are then those of opwest's interpreter"
    assert not (tmp_path / "model").exists()


def test_termination_with_operators_of_the_user(monkeypatch, tmp_path):
    planted(monkeypatch, -signal.SIGABRT)
    _, file, _, folder, _, operator = given(tmp_path, custom_model())
    done = import_model(file, folder, Options(operators=[operator.split("=")]))
    assert done.remarks == (f"there are no golden vectors: {ENDED}",)
    assert not (folder / "vectors.npz").exists()


def test_manifest_has_the_reason_of_a_runtime(tmp_path):
    inputs = [("int8", (1, 4), 0.5, 0), (np.int32([1]),)]
    of_one("SUM", inputs, ("int8", 0.5, 0), keep_dims=False).save(tmp_path / "m.tflite")
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
    """An import that is killed leaves no process, and no files."""
    begin = b'{"call": {"format": "tflite"}, "cases": 1, "sizes": [3, 5]}\nabc'
    command = [sys.executable, "-P", "-m", runtimes.__name__]
    where = {**os.environ, "TMPDIR": str(tmp_path)}
    for request in (begin, begin + b"12345"):
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        with subprocess.Popen(command, env=where, **pipes) as process:
            process.stdin.write(request)
            process.stdin.close()
            assert process.wait(60) in (0, 1)
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("size", [10, 1 << 20])
def test_process_that_ends_before_it_reads(size):
    """The request is larger than the buffer of a pipe, or smaller."""
    command = [sys.executable, "-c", "raise SystemExit(5)"]
    assert runtimes._run(command, [b"{}\n", bytes(size)]) == (5, b"")


def test_process_that_cannot_be_started(monkeypatch):
    monkeypatch.setattr(runtimes.sys, "executable", "/nowhere/python")
    with pytest.raises(runtimes.UnavailableError, match=r"^LiteRT [0-9.]+ cannot be started: No such file"):
        runtimes.run(runtimes.Call("tflite"), b"", [])


def test_output_of_libraries_is_no_answer(monkeypatch):
    """Words on standard output, from Python or from a library in C, do not reach the answer."""
    content = of_one("NEG", [("float32", (2,))], ("float32",)).build()
    noisy = (
        "import os, runpy, sys, ai_edge_litert.interpreter as litert\n"
        "right = litert.Interpreter.invoke\n"
        "def invoke(self):\n"
        "    os.write(1, b'words'); print('words', flush=True); right(self)\n"
        "litert.Interpreter.invoke = invoke\n"
        f"runpy.run_module({runtimes.__name__!r}, run_name='__main__')\n"
    )
    right = runtimes._run
    monkeypatch.setattr(runtimes, "_run", lambda command, request: right([sys.executable, "-c", noisy], request))
    found = runtimes.run(runtimes.Call("tflite"), content, [[np.float32([1, -2])]])
    assert found.outputs[0][0].tolist() == [-1, 2]


def test_result_without_a_portable_type():
    """A string of ONNX: a reason, not the end of the process."""
    model = onnx_model("Cast", "STRING", to=8)
    reason = "cannot run the model: Object arrays cannot be saved"
    with pytest.raises(runtimes.UnavailableError, match=reason) as caught:
        runtimes.run(runtimes.Call("onnx"), model, [[np.float32([1, 2])]])
    assert not isinstance(caught.value, runtimes.TerminatedError)


def test_variant_of_a_package(monkeypatch):
    """Distributions such as onnxruntime-gpu have the module of another name."""
    monkeypatch.setattr(runtimes.metadata, "version", Mock(side_effect=runtimes.metadata.PackageNotFoundError("x")))
    assert runtimes.name_of("tflite") == "LiteRT"


def session(leader):
    """Return the processes of a session that have not ended, on Linux."""
    found = []
    for file in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, _, number = file.read_text().rpartition(")")[2].split()[:4]
            found += [file] if int(number) == leader and state != "Z" else []
    return found


def test_interrupted_import_leaves_nothing(tmp_path):
    """Ctrl-C while the runtime runs: no process, no files."""
    model = Model()
    data = model.input("float32", (1, 400, 400))
    for _ in range(60):
        data = model.operator("BATCH_MATMUL", [data, data], ("float32",), adj_x=False, adj_y=False)
    model.output(data)
    model.save(tmp_path / "m.tflite")
    (tmp_path / "temporary").mkdir()
    words = ["import", tmp_path / "m.tflite", "-o", tmp_path / "model", "--vectors", "200"]
    where = {**os.environ, "TMPDIR": str(tmp_path / "temporary")}
    # Processes that a shell starts in the background ignore SIGINT, and so do those that they start.
    command = (
        "import runpy, signal\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "runpy.run_module('opwest', run_name='__main__')\n"
    )
    command = [sys.executable, "-c", command, *words]
    options = {"stderr": subprocess.PIPE, "text": True, "env": where, "start_new_session": True}
    with subprocess.Popen(command, **options) as process:
        next(line for line in process.stderr if "running a reference" in line)
        end = time.monotonic() + 60
        while len(session(process.pid)) < 3 and time.monotonic() < end:  # the command, the import, the runtime
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
    while session(process.pid) and time.monotonic() < end:
        time.sleep(0.05)
    assert not session(process.pid)
    assert not [*(tmp_path / "temporary").iterdir()]
    assert not (tmp_path / "model").exists()


def test_ended_process_of_an_import(monkeypatch, tmp_path):
    path = tmp_path / "m.tflite"
    path.write_bytes(long_softmax().build())
    dying = "import os, sys; print('opwest: lowering', file=sys.stderr, flush=True); os.kill(os.getpid(), 11)"
    popen = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda command, **more: popen([sys.executable, "-c", dying], **more))
    with pytest.raises(OpwestError, match="the import was terminated by SIGSEGV, after: lowering"):
        import_in_child(path, tmp_path / "out", Options(), lambda text: None)
    assert not (tmp_path / "out").exists()
