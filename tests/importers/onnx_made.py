# SPDX-License-Identifier: Apache-2.0
"""Small ONNX models that tests make themselves."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper


def node(kind, inputs, output, name=None, **attributes):
    """Return a node of one output; `inputs` are names, separated by spaces."""
    return helper.make_node(kind, inputs.split(), [output], name=name, **attributes)


def model_of(nodes, inputs, outputs, arrays, kind=TensorProto.FLOAT):
    """Return a model of float inputs with their shapes, outputs of a kind, and constants."""
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info(name, kind, shape) for name, shape in outputs.items()],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in arrays.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 9
    return model


def from_onnx(model):
    """Return the Relax module of a model, by TVM's own reader."""
    from tvm.relax.frontend.onnx import from_onnx as read

    return read(model)


def two_by_two():
    """Return an ONNX model: two inputs, two outputs, a branch, a reshape."""
    random = np.random.default_rng(3)
    shapes = {"w": (4, 2, 3, 3), "m": (64, 5)}
    arrays = {name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    nodes = [
        node("Conv", "image w", "c", "conv", pads=[1, 1, 1, 1], strides=[2, 2]),
        node("Relu", "c", "left", "relu"),
        node("Sigmoid", "c", "right", "gate"),
        node("Mul", "left right", "joined", "join"),
        node("Reshape", "joined flat", "flattened", "flatten"),
        node("MatMul", "flattened m", "scores", "dense"),
        node("Add", "scores offset", "sum", "add"),
        node("Softmax", "sum", "probabilities", "softmax", axis=1),
    ]
    outputs = {"probabilities": [1, 5], "flattened": [1, 64]}
    return model_of(nodes, {"image": [1, 2, 8, 8], "offset": [1, 5]}, outputs, arrays | {"flat": np.array([1, 64])})


def small_network():
    """Return an ONNX network of images: convolution, batch normalisation, maximum, matrix, softmax."""
    random = np.random.default_rng(6)
    shapes = {"w": (8, 3, 3, 3), "b": (8,), "scale": (8,), "shift": (8,), "mean": (8,), "m": (10, 128), "mb": (10,)}
    weights = {name: (random.standard_normal(shape) * 0.3).astype(np.float32) for name, shape in shapes.items()}
    weights["variance"] = random.uniform(0.5, 1.0, 8).astype(np.float32)
    nodes = [
        node("Conv", "x w b", "c", "conv", pads=[1, 1, 1, 1]),
        node("BatchNormalization", "c scale shift mean variance", "n", "norm"),
        node("Relu", "n", "r", "relu"),
        node("MaxPool", "r", "p", "pool", kernel_shape=[2, 2], strides=[2, 2]),
        node("Flatten", "p", "f", "flatten"),
        node("Gemm", "f m mb", "g", "gemm", transB=1),
        node("Softmax", "g", "y", "softmax", axis=1),
    ]
    return model_of(nodes, {"x": [1, 3, 8, 8]}, {"y": [1, 10]}, weights)
