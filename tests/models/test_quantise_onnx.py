# SPDX-License-Identifier: Apache-2.0
"""`opwest quantise` of ONNX files, by onnxruntime's quantiser."""

import importlib.util
import re

import numpy as np
import pytest
from in_process import fail, succeed
from opwest import OpwestError, quantise
from requirements_support import need

need("onnx", "onnxruntime")

import onnx  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402


def network(batch="N"):
    """Return a convolution with a batch normalisation, a depthwise one, a sum, a pool, a dense layer and a softmax."""
    random = np.random.default_rng(0)
    constants = {
        "w1": random.standard_normal((8, 3, 3, 3)) * 0.3, "b1": random.standard_normal(8) * 0.1,
        "gain": random.uniform(0.5, 1.5, 8), "shift": random.standard_normal(8),
        "mean": random.standard_normal(8) * 0.1,
        "variance": random.uniform(0.5, 1.5, 8), "w2": random.standard_normal((8, 1, 3, 3)) * 0.4,
        "w3": random.standard_normal((5, 8)), "b3": random.standard_normal(5),
    }  # fmt: skip
    nodes = [
        helper.make_node("Conv", ["x", "w1", "b1"], ["c1"], pads=[1, 1, 1, 1]),
        helper.make_node("BatchNormalization", ["c1", "gain", "shift", "mean", "variance"], ["n1"]),
        helper.make_node("Relu", ["n1"], ["r1"]),
        helper.make_node("Conv", ["r1", "w2"], ["c2"], group=8, pads=[1, 1, 1, 1]),
        helper.make_node("Add", ["c2", "r1"], ["a"]),
        helper.make_node("GlobalAveragePool", ["a"], ["p"]),
        helper.make_node("Flatten", ["p"], ["f"]),
        helper.make_node("Gemm", ["f", "w3", "b3"], ["l"], transB=1),
        helper.make_node("Softmax", ["l"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "network",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, 3, 8, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [batch, 5])],
        [numpy_helper.from_array(array.astype(np.float32), name) for name, array in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


@pytest.fixture
def place(tmp_path):
    onnx.save(network(), tmp_path / "net.onnx")
    samples = np.random.default_rng(1).standard_normal((24, 3, 8, 8)).astype(np.float32)
    np.savez(tmp_path / "x.npz", x=samples)
    return tmp_path


def test_the_import_is_exact(place):
    """Layers are int8 from the input to the output, and the import has onnxruntime's results."""
    done = succeed("quantise", place / "net.onnx", "--samples", place / "x.npz", "-o", place / "new.onnx")
    assert re.search(r"  0 \(Conv\) +int8 +[\d.]+ +[\d.]+ +[\d.]+\n", done.stdout)
    assert re.search(r"error of the outputs: [\d.]+ %; the class is that of the float model in \d", done.stdout)
    assert done.stdout.endswith(" -o DIR --exact\n")
    model = onnx.load(place / "new.onnx")
    kinds = {value.name: value.type.tensor_type.elem_type for value in (*model.graph.input, *model.graph.output)}
    assert kinds == {"x": TensorProto.INT8, "y": TensorProto.INT8}
    weights = [one for one in model.graph.initializer if one.data_type == TensorProto.INT8 and len(one.dims) > 1]
    assert len(weights) == 3
    axes = [node for node in model.graph.node if any(attribute.name == "axis" for attribute in node.attribute)]
    assert len([node for node in axes if node.op_type == "DequantizeLinear"]) >= 3, "a scale for each channel"
    done = succeed("import", place / "new.onnx", "-o", place / "new", "--exact", "--compare", "3")
    assert "no difference" in done.stdout


def test_layers_that_stay_float(place):
    """The bound holds with the float32 layers that are named."""
    free = quantise(place / "net.onnx", output=place / "free.onnx", samples=place / "x.npz", float_io=True)
    bound = free.after.error * 0.8
    done = quantise(
        place / "net.onnx", output=place / "new.onnx", samples=place / "x.npz", float_io=True, keep_accuracy=bound
    )
    assert done.loss <= bound < free.loss and 1 <= len(done.kept) <= 4
    assert {layer.precision for layer in done.kept} == {"float"}
    model = onnx.load(place / "new.onnx")
    assert model.graph.input[0].type.tensor_type.elem_type == TensorProto.FLOAT
    succeed("import", place / "new.onnx", "-o", place / "new", "--vectors", "1")


@pytest.mark.parametrize("option", [["--dtype", "int16x8"], ["--keep", "int16x8", "--keep-accuracy", "1"]])
def test_int16_is_of_tflite(option, place):
    done = fail("quantise", place / "net.onnx", "--samples", place / "x.npz", "-o", place / "new.onnx", *option)
    assert f"error: {option[0]} int16x8 has no effect on .onnx files" in done.stderr
    assert "hint: int16x8 is an arithmetic of TFLite: quantise a .tflite file" in done.stderr


def test_a_quantised_model_is_refused(place):
    quantise(place / "net.onnx", output=place / "new.onnx", samples=place / "x.npz")
    with pytest.raises(OpwestError, match=r"quantised already: it has the operator \w+Linear"):
        quantise(place / "new.onnx", output=place / "again.onnx", samples=place / "x.npz")


def test_onnxruntime_is_absent(place, monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == "onnxruntime" else find(name))
    done = fail("quantise", place / "net.onnx", "--samples", place / "x.npz", "-o", place / "new.onnx")
    assert "error: quantised ONNX files require onnxruntime, which is not installed" in done.stderr
    assert 'hint: pip install "opwest[quantise]"' in done.stderr
    assert sorted(path.name for path in place.iterdir()) == ["net.onnx", "x.npz"]
