# SPDX-License-Identifier: Apache-2.0
"""Small ONNX models that tests make themselves."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper


def two_by_two():
    """Return an ONNX model: two inputs, two outputs, a branch, a reshape."""
    random = np.random.default_rng(3)
    weights = numpy_helper.from_array(random.standard_normal((4, 2, 3, 3)).astype(np.float32), "w")
    matrix = numpy_helper.from_array(random.standard_normal((64, 5)).astype(np.float32), "m")
    shape = numpy_helper.from_array(np.array([1, 64], np.int64), "flat")
    nodes = [
        helper.make_node("Conv", ["image", "w"], ["c"], name="conv", pads=[1, 1, 1, 1], strides=[2, 2]),
        helper.make_node("Relu", ["c"], ["left"], name="relu"),
        helper.make_node("Sigmoid", ["c"], ["right"], name="gate"),
        helper.make_node("Mul", ["left", "right"], ["joined"], name="join"),
        helper.make_node("Reshape", ["joined", "flat"], ["flattened"], name="flatten"),
        helper.make_node("MatMul", ["flattened", "m"], ["scores"], name="dense"),
        helper.make_node("Add", ["scores", "offset"], ["sum"], name="add"),
        helper.make_node("Softmax", ["sum"], ["probabilities"], name="softmax", axis=1),
    ]
    graph = helper.make_graph(
        nodes,
        "two_by_two",
        [
            helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 2, 8, 8]),
            helper.make_tensor_value_info("offset", TensorProto.FLOAT, [1, 5]),
        ],
        [
            helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, [1, 5]),
            helper.make_tensor_value_info("flattened", TensorProto.FLOAT, [1, 64]),
        ],
        [weights, matrix, shape],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 9
    return model


def computed_shape():
    """Return an ONNX model as PyTorch writes a view: a reshape to a shape computed from that of the input."""
    numbers = {"zero": np.array([0], np.int64), "rest": np.array([-1], np.int64), "small": np.float32(0.5)}
    nodes = [
        helper.make_node("Abs", ["x"], ["a"], name="abs"),
        helper.make_node("Add", ["a", "small"], ["b"], name="add"),
        helper.make_node("Softplus", ["b"], ["c"], name="soft"),
        helper.make_node("Shape", ["c"], ["shape"], name="shape"),
        helper.make_node("Gather", ["shape", "zero"], ["batch"], name="batch"),
        helper.make_node("Concat", ["batch", "rest"], ["wanted"], name="join", axis=0),
        helper.make_node("Reshape", ["c", "wanted"], ["y"], name="view"),
    ]
    graph = helper.make_graph(
        nodes,
        "view",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 12])],
        [numpy_helper.from_array(array, name) for name, array in numbers.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 9
    return model


def small_network():
    """Return an ONNX network of images: convolution, batch normalisation, maximum, matrix, softmax."""
    random = np.random.default_rng(6)
    shapes = {"w": (8, 3, 3, 3), "b": (8,), "scale": (8,), "shift": (8,), "mean": (8,), "m": (10, 128), "mb": (10,)}
    weights = {name: (random.standard_normal(shape) * 0.3).astype(np.float32) for name, shape in shapes.items()}
    weights["variance"] = random.uniform(0.5, 1.0, 8).astype(np.float32)
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], name="conv", pads=[1, 1, 1, 1]),
        helper.make_node("BatchNormalization", ["c", "scale", "shift", "mean", "variance"], ["n"], name="norm"),
        helper.make_node("Relu", ["n"], ["r"], name="relu"),
        helper.make_node("MaxPool", ["r"], ["p"], name="pool", kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Flatten", ["p"], ["f"], name="flatten"),
        helper.make_node("Gemm", ["f", "m", "mb"], ["g"], name="gemm", transB=1),
        helper.make_node("Softmax", ["g"], ["y"], name="softmax", axis=1),
    ]
    graph = helper.make_graph(
        nodes,
        "network",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 8, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 10])],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 9
    return model
