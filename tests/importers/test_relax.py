# SPDX-License-Identifier: Apache-2.0
"""Relax modules: made here, and by TVM's reader of ONNX."""

import numpy as np
import pytest
from importers.importers_support import Built, need_tvm, planned

need_tvm("onnx", "onnxruntime")

import onnxruntime  # noqa: E402
from importers.onnx_made import from_onnx, small_network, two_by_two  # noqa: E402
from opwest.frontends.tvm import Options, import_module  # noqa: E402


def session_of(model):
    """Return onnxruntime's session of a model."""
    return onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


def test_two_inputs_two_outputs_a_branch_and_a_reshape(tmp_path):
    session = session_of(two_by_two())
    import_module(from_onnx(two_by_two()), tmp_path / "model", outputs=["probabilities", "flattened"])
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


def test_network_of_images_equals_onnxruntime(tmp_path):
    session = session_of(small_network())
    import_module(from_onnx(small_network()), tmp_path / "model", Options(vectors=0))
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
