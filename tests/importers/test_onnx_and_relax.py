# SPDX-License-Identifier: Apache-2.0
"""ONNX graphs and Relax modules, and operators of TFLite that TVM's importer rejects or misinterprets."""

import numpy as np
import pytest
from importers.importers_support import Built, need_tvm, planned

need_tvm("onnx", "onnxruntime", "tflite", "ai_edge_litert")

import onnx  # noqa: E402
import onnxruntime  # noqa: E402
from importers.onnx_made import computed_shape, small_network, two_by_two  # noqa: E402
from importers.tflite_made import float_operators  # noqa: E402
from opwest.compiler.reference.runtimes import Call, run  # noqa: E402
from opwest.frontends.tvm import Options, import_model, import_module  # noqa: E402


def saved(model, folder):
    """Save a model; return the file, and onnxruntime's session of it."""
    onnx.save(model, folder / "m.onnx")
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return folder / "m.onnx", session


def test_two_inputs_two_outputs_a_branch_and_a_reshape(tmp_path):
    file, session = saved(two_by_two(), tmp_path)
    import_model(file, tmp_path / "model")
    resolved, plan = planned(tmp_path / "model")
    assert [t.name for t in resolved.inputs] == ["image", "offset"]
    assert [t.name for t in resolved.outputs] == ["probabilities", "flattened"]
    assert plan.pools["sram"].size == plan.pools["sram"].lower_bound
    assert "scratch" not in (tmp_path / "model" / "manifest.yaml").read_text()
    random = np.random.default_rng(5)
    cases = [
        [random.standard_normal((1, 2, 8, 8)).astype(np.float32), random.standard_normal((1, 5)).astype(np.float32)]
        for _ in range(100)
    ]
    found = Built(tmp_path / "model", tmp_path).run(cases)
    for (image, offset), outputs in zip(cases, found, strict=True):
        expected = session.run(None, {"image": image, "offset": offset})
        for one, other in zip(outputs, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("made", [computed_shape, small_network])
def test_small_models_equal_onnxruntime(made, tmp_path):
    file, session = saved(made(), tmp_path)
    import_model(file, tmp_path / "model", Options(vectors=0))
    random = np.random.default_rng(8)
    cases = [[random.standard_normal(session.get_inputs()[0].shape).astype(np.float32)] for _ in range(20)]
    for [data], [found] in zip(cases, Built(tmp_path / "model", tmp_path).run(cases), strict=True):
        np.testing.assert_allclose(found, session.run(None, {"x": data})[0], rtol=2e-5, atol=2e-6)


@pytest.fixture
def module():
    """A Relax module whose results are an input, a constant, a sum, and the sum again in another shape."""
    from tvm import relax

    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((2, 3), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            total = builder.emit(relax.op.add(x, relax.const(np.float32(0.1))))
            flat = builder.emit(relax.op.reshape(total, (6,)))
            result = builder.emit_output(relax.Tuple([x, total, flat, relax.const(np.arange(3, dtype=np.int32))]))
        builder.emit_func_output(result)
    return builder.get()


def test_relax_module(module, tmp_path):
    import_module(module, tmp_path / "model", Options(model="sums"), outputs=["same", "total", "flat", "three"])
    cases = [[np.array([[1, -2, 3], [0.5, 1e-8, -7]], np.float32)]]
    [[same, total, flat, three]] = Built(tmp_path / "model", tmp_path).run(cases)
    expected = cases[0][0] + np.float32(0.1)
    assert np.array_equal(same, cases[0][0])
    assert np.array_equal(total, expected)
    assert np.array_equal(flat, expected.reshape(6))
    assert three.tolist() == [0, 1, 2]


def test_buffers_between_loops_are_planned(tmp_path):
    from tvm import relax

    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((200, 3), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            result = builder.emit_output(relax.op.nn.softmax(x, axis=1))
        builder.emit_func_output(result)
    import_module(builder.get(), tmp_path / "model", Options(model="rows"), outputs=["y"])
    assert "direction: scratch" in (tmp_path / "model" / "manifest.yaml").read_text()
    random = np.random.default_rng(2)
    cases = [[random.standard_normal((200, 3)).astype(np.float32)] for _ in range(5)]
    for [data], [found] in zip(cases, Built(tmp_path / "model", tmp_path).run(cases), strict=True):
        powers = np.exp(data.astype(np.float64))
        np.testing.assert_allclose(found, powers / powers.sum(axis=1, keepdims=True), rtol=1e-5)


def test_float_operators_of_tflite(tmp_path):
    """Against LiteRT."""
    file = tmp_path / "m.tflite"
    file.write_bytes(float_operators())
    import_model(file, tmp_path / "model", Options(vectors=0))
    assert "#include <math.h>" in (tmp_path / "model" / "operators.c").read_text()
    random = np.random.default_rng(2)
    cases = [[random.standard_normal((1, 5, 5, 3)).astype(np.float32)] for _ in range(10)]
    expected = run(Call("tflite"), file.read_bytes(), cases).outputs
    for [one], [other] in zip(Built(tmp_path / "model", tmp_path).run(cases), expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)
