# SPDX-License-Identifier: Apache-2.0
"""Unsupported models: errors with the operator's name and position, no output, no traceback."""

import random
import subprocess
import sys

import pytest
from importers.importers_support import need_tvm
from in_process import fail, succeed

need_tvm("tflite", "onnx")

import onnx  # noqa: E402
from importers.onnx_made import two_by_two  # noqa: E402
from importers.tflite_made import average_pool, custom_operator, magnitudes  # noqa: E402
from onnx import TensorProto, helper  # noqa: E402
from opwest.diagnostics import OpwestError  # noqa: E402
from opwest.importers.tvm import Options, import_model  # noqa: E402


def refused(path, folder, **options):
    """Return the message for an unsupported model."""
    with pytest.raises(OpwestError) as caught:
        import_model(path, folder, Options(**options))
    assert not folder.exists()
    assert not list(folder.parent.glob(".*"))
    text = str(caught.value)
    assert "Traceback" not in text
    return text


def onnx_file(path, nodes, shape):
    tensors = [helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n in ("x", "y")]
    model = helper.make_model(
        helper.make_graph(nodes, "g", tensors[:1], tensors[1:]), opset_imports=[helper.make_opsetid("", 17)]
    )
    model.ir_version = 9
    onnx.save(model, path)
    return path


def test_unsupported_operator_of_onnx(tmp_path):
    nodes = [
        helper.make_node("Relu", ["x"], ["r"], name="first"),
        helper.make_node("Bernoulli", ["r"], ["y"], name="block/noise"),
    ]
    text = refused(onnx_file(tmp_path / "m.onnx", nodes, [1, 4]), tmp_path / "out")
    assert "m.onnx: error: operator 1 'block/noise' (Bernoulli, which writes 'y') has no lowering in TVM" in text


def test_operator_without_lowering(tmp_path):
    nodes = [helper.make_node("CumSum", ["x", "axis"], ["y"], name="totals")]
    model = onnx.load(onnx_file(tmp_path / "m.onnx", [helper.make_node("Relu", ["x"], ["y"])], [2, 4]))
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    model.graph.initializer.append(helper.make_tensor("axis", TensorProto.INT64, [], [1]))
    onnx.save(model, tmp_path / "m.onnx")
    text = refused(tmp_path / "m.onnx", tmp_path / "out")
    assert "operator cumsum" in text
    assert "has no lowering in TVM; in the file, operator 0 'totals' (CumSum, which writes 'y')" in text


def test_data_dependent_branch(tmp_path):
    ways = [
        helper.make_graph([helper.make_node(kind, ["x"], [kind])], kind, [], [out])
        for kind in ("Relu", "Neg")
        for out in [helper.make_tensor_value_info(kind, TensorProto.FLOAT, [1, 4])]
    ]
    nodes = [
        helper.make_node("ReduceSum", ["x"], ["sum"], keepdims=0),
        helper.make_node("Greater", ["sum", "limit"], ["more"]),
        helper.make_node("If", ["more"], ["y"], name="gate", then_branch=ways[0], else_branch=ways[1]),
    ]
    model = onnx.load(onnx_file(tmp_path / "m.onnx", nodes[2:], [1, 4]))
    model.graph.initializer.append(helper.make_tensor("limit", TensorProto.FLOAT, [], [0.0]))
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    onnx.save(model, tmp_path / "m.onnx")
    text = refused(tmp_path / "m.onnx", tmp_path / "out")
    assert "unsupported control flow at run time: a branch; in the file, operator 2 'gate' (If" in text


def test_result_of_unknown_size(tmp_path):
    path = onnx_file(tmp_path / "m.onnx", [helper.make_node("NonZero", ["x"], ["y"], name="where")], [1, 4])
    model = onnx.load(path)
    model.graph.output[0].type.tensor_type.elem_type = TensorProto.INT64
    del model.graph.output[0].type.tensor_type.shape.dim[1:]
    model.graph.output[0].type.tensor_type.shape.dim.add().dim_param = "n"
    onnx.save(model, path)
    text = refused(path, tmp_path / "out")
    assert "operator nonzero, which writes" in text
    assert "it has a dynamic shape" in text
    assert "in the file, operator 0 'where' (NonZero, which writes 'y')" in text


def test_dynamic_shape_of_onnx(tmp_path):
    path = onnx_file(tmp_path / "m.onnx", [helper.make_node("Relu", ["x"], ["y"])], ["batch", 4])
    assert "input 'x' has a dynamic shape, [batch, 4]" in refused(path, tmp_path / "out")


def test_dynamic_shape_of_tflite(tmp_path):
    path = tmp_path / "m.tflite"
    path.write_bytes(magnitudes([-1, -1, 4]))
    text = refused(path, tmp_path / "out")
    assert "m.tflite: error: input 'x' has a dynamic shape, [-1, -1, 4]" in text
    assert "set a fixed input shape before converting the model" in text
    path.write_bytes(magnitudes([-1, 1, 4]))
    done = import_model(path, tmp_path / "out", Options(vectors=0))
    assert done.remarks == ("input 'x' of shape [-1, 1, 4] is imported as [1, 1, 4]",)


def test_quantised_models_are_not_computed_in_float(tmp_path):
    path = tmp_path / "m.tflite"
    path.write_bytes(average_pool(quantised=True))
    text = refused(path, tmp_path / "out")
    assert "operator 0 (AVERAGE_POOL_2D, which writes 'y') is quantised, and TVM computes it in float" in text
    assert "hint: opwest import tflite MODEL computes quantised operators in integers" in text
    scale = [helper.make_tensor("s", TensorProto.FLOAT, [], [0.1])]
    path = onnx_file(tmp_path / "m.onnx", [helper.make_node("QuantizeLinear", ["x", "s"], ["y"])], [1, 4])
    model = onnx.load(path)
    model.graph.initializer.extend(scale)
    model.graph.output[0].type.tensor_type.elem_type = TensorProto.UINT8
    onnx.save(model, path)
    text = refused(path, tmp_path / "out")
    assert "operator 0 (QuantizeLinear, which writes 'y') is quantised" in text


def test_custom_operator_of_tflite(tmp_path):
    path = tmp_path / "m.tflite"
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
        damaged = bytearray(content)
        for _ in range(source.randint(1, 4)):
            damaged[source.randrange(len(damaged))] = source.randrange(256)
        path.write_bytes(damaged[: source.randrange(len(damaged))] if number % 4 == 0 else damaged)
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
    for words in (
        ("check", tmp_path / "made" / "manifest.yaml"),
        ("generate", tmp_path / "made" / "manifest.yaml", "-o", tmp_path / "app"),
        ("run", tmp_path / "app", "--host"),
    ):
        succeed(*words)
    path.write_bytes(average_pool(quantised=True))
    done = fail("import", "tvm", path, "-o", tmp_path / "other")
    assert "is quantised" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "other").exists()


def test_ended_process_is_reported(monkeypatch, tmp_path):
    from opwest.importers.tvm import child

    path = tmp_path / "pool.tflite"
    path.write_bytes(average_pool())
    dying = "import os, sys; print('opwest: lowering the graph', file=sys.stderr, flush=True); os.kill(os.getpid(), 11)"
    popen = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda command, **more: popen([sys.executable, "-c", dying], **more))
    with pytest.raises(OpwestError, match="the import was terminated by SIGSEGV, after: lowering the graph"):
        child.import_in_child(path, tmp_path / "out", Options())
    assert not (tmp_path / "out").exists()
