# SPDX-License-Identifier: Apache-2.0
"""Unsupported models: errors with the operator's name and position, no output, no traceback."""

import random
import subprocess
import sys

import pytest
from importers.importers_support import need_tvm
from in_process import fail, succeed

need_tvm("tflite", "onnx")

import numpy as np  # noqa: E402
import onnx  # noqa: E402
from importers.onnx_made import model_of, node, two_by_two  # noqa: E402
from importers.tflite_made import average_pool, custom_operator, magnitudes  # noqa: E402
from models.damage import damaged  # noqa: E402
from onnx import TensorProto, helper  # noqa: E402
from opwest.base.diagnostics import OpwestError  # noqa: E402
from opwest.frontends.tvm import Options, import_model  # noqa: E402


def refused(path, folder):
    """Return the message for an unsupported model."""
    with pytest.raises(OpwestError) as caught:
        import_model(path, folder, Options())
    assert not folder.exists()
    assert not list(folder.parent.glob(".*"))
    text = str(caught.value)
    assert "Traceback" not in text
    return text


def branch(kind):
    result = helper.make_tensor_value_info(kind, TensorProto.FLOAT, [1, 4])
    return helper.make_graph([node(kind, "x", kind)], kind, [], [result])


ROW = {"x": [1, 4]}, {"y": [1, 4]}
ONNX = {
    "an operator that TVM does not know": (
        model_of([node("Relu", "x", "r", "first"), node("Bernoulli", "r", "y", "block/noise")], *ROW, {}),
        ["m.onnx: error: operator 1 'block/noise' (Bernoulli, which writes 'y') has no lowering in TVM"],
    ),
    "an operator without lowering": (
        model_of([node("CumSum", "x axis", "y", "totals")], {"x": [2, 4]}, {"y": [2, 4]}, {"axis": np.int64(1)}),
        ["operator cumsum", "has no lowering in TVM; in the file, operator 0 'totals' (CumSum, which writes 'y')"],
    ),
    "a branch that depends on data": (
        model_of(
            [
                node("ReduceSum", "x", "sum", keepdims=0),
                node("Greater", "sum limit", "more"),
                node("If", "more", "y", "gate", then_branch=branch("Relu"), else_branch=branch("Neg")),
            ],
            *ROW,
            {"limit": np.float32(0)},
        ),
        ["unsupported control flow at run time: a branch; in the file, operator 2 'gate' (If"],
    ),
    "a result of unknown size": (
        model_of([node("NonZero", "x", "y", "where")], {"x": [1, 4]}, {"y": [1, "n"]}, {}, TensorProto.INT64),
        [
            *("operator nonzero, which writes", "it has a dynamic shape"),
            "in the file, operator 0 'where' (NonZero, which writes 'y')",
        ],
    ),
    "a dynamic shape": (
        model_of([node("Relu", "x", "y")], {"x": ["batch", 4]}, {"y": ["batch", 4]}, {}),
        ["input 'x' has a dynamic shape, [batch, 4]"],
    ),
    "a quantised model": (
        model_of([node("QuantizeLinear", "x s", "y")], *ROW, {"s": np.float32(0.1)}, TensorProto.UINT8),
        ["operator 0 (QuantizeLinear, which writes 'y') is quantised"],
    ),
}


@pytest.mark.parametrize("case", ONNX)
def test_unsupported_models_of_onnx(case, tmp_path):
    model, words = ONNX[case]
    onnx.save(model, tmp_path / "m.onnx")
    text = refused(tmp_path / "m.onnx", tmp_path / "out")
    for one in words:
        assert one in text


def test_dynamic_shape_of_tflite(tmp_path):
    path = tmp_path / "m.tflite"
    path.write_bytes(magnitudes([-1, -1, 4]))
    text = refused(path, tmp_path / "out")
    assert "m.tflite: error: input 'x' has a dynamic shape, [-1, -1, 4]" in text
    assert "set a fixed input shape before converting the model" in text
    path.write_bytes(magnitudes([-1, 1, 4]))
    done = import_model(path, tmp_path / "out", Options(vectors=0))
    assert done.remarks == ("input 'x' of shape [-1, 1, 4] is imported as [1, 1, 4]",)


def test_unsupported_operators_of_tflite(tmp_path):
    path = tmp_path / "m.tflite"
    path.write_bytes(average_pool(quantised=True))
    text = refused(path, tmp_path / "out")
    assert "operator 0 (AVERAGE_POOL_2D, which writes 'y') is quantised, and TVM computes it in float" in text
    assert "hint: opwest import tflite MODEL computes quantised operators in integers" in text
    path.write_bytes(custom_operator())
    assert "cannot import operator 0 (CUSTOM 'MyOwn', which writes 'y')" in refused(path, tmp_path / "out")


@pytest.mark.parametrize("name", ["m.tflite", "m.onnx"])
def test_corrupt_files(name, tmp_path):
    path = tmp_path / name
    for content in (b"", b"hello", bytes(2000), b"\x20\x00\x00\x00TFL3" + bytes(40)):
        path.write_bytes(content)
        assert "error: " in refused(path, tmp_path / "out")


def test_other_files_and_directories(tmp_path):
    (tmp_path / "m.pb").write_bytes(b"x")
    assert "a .tflite or an .onnx file" in refused(tmp_path / "m.pb", tmp_path / "out")
    assert "cannot read the file: No such file" in refused(tmp_path / "none.tflite", tmp_path / "out")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("mine")
    (tmp_path / "p.tflite").write_bytes(average_pool())
    with pytest.raises(OpwestError, match="the directory is not empty"):
        import_model(tmp_path / "p.tflite", tmp_path / "full")
    assert [p.name for p in (tmp_path / "full").iterdir()] == ["mine"]


@pytest.mark.parametrize("kind", ["tflite", "onnx"])
def test_mutated_models_give_clean_errors(kind, tmp_path):
    content = average_pool() if kind == "tflite" else two_by_two().SerializeToString()
    source, path = random.Random(11), tmp_path / f"m.{kind}"
    for number in range(40):
        path.write_bytes(damaged(content, source))
        try:
            import_model(path, tmp_path / f"out{number}", Options(vectors=0))
        except OpwestError as error:
            assert "error: " in str(error)
            assert not (tmp_path / f"out{number}").exists()


def test_command_line(tmp_path):
    path = tmp_path / "pool.tflite"
    path.write_bytes(average_pool())
    done = succeed("import", "tvm", path, "-o", tmp_path / "made")
    assert "opwest: lowering the graph" in done.stderr
    succeed("check", tmp_path / "made" / "manifest.yaml")
    succeed("generate", tmp_path / "made" / "manifest.yaml", "-o", tmp_path / "app")
    succeed("run", tmp_path / "app", "--host")
    path.write_bytes(average_pool(quantised=True))
    messages = fail("import", "tvm", path, "-o", tmp_path / "other").stderr
    assert "is quantised" in messages and "Traceback" not in messages
    assert not (tmp_path / "other").exists()


def test_ended_process_is_reported(monkeypatch, tmp_path):
    from opwest.frontends.tvm import child

    path = tmp_path / "pool.tflite"
    path.write_bytes(average_pool())
    dying = "import os, sys; print('opwest: lowering the graph', file=sys.stderr, flush=True); os.kill(os.getpid(), 11)"
    popen = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda command, **more: popen([sys.executable, "-c", dying], **more))
    with pytest.raises(OpwestError, match="the import was terminated by SIGSEGV, after: lowering the graph"):
        child.import_in_child(path, tmp_path / "out", Options())
    assert not (tmp_path / "out").exists()
