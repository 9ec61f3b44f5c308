# SPDX-License-Identifier: Apache-2.0
"""Small models that tests make themselves."""

import flatbuffers
import numpy as np
import tflite

FLOAT32, INT32, INT8 = 0, 2, 9
AVERAGE_POOL_2D, FULLY_CONNECTED, CUSTOM, ADD = 1, 9, 32, 0


def tflite_model(tensors, operators, inputs, outputs):
    """Return a TFLite file.

    tensors: (name, shape, type, array or None, scale or None, zero point); operators: (code, inputs, outputs, options),
    where options are None or (type, function of a builder).
    """
    b = flatbuffers.Builder(1024)

    def vector(items, start):
        start(b, len(items))
        for item in reversed(items):
            b.PrependUOffsetTRelative(item)
        return b.EndVector()

    def numbers(values, dtype):
        return b.CreateNumpyVector(np.asarray(values, dtype))

    buffers, made = [], []
    tflite.BufferStart(b)
    buffers.append(tflite.BufferEnd(b))
    for name, shape, kind, array, scale, zero in tensors:
        index = 0
        if array is not None:
            data = b.CreateByteVector(array.tobytes())
            tflite.BufferStart(b)
            tflite.BufferAddData(b, data)
            index = len(buffers)
            buffers.append(tflite.BufferEnd(b))
        quantization = None
        if scale is not None:
            scales, zeros = numbers([scale], np.float32), numbers([zero], np.int64)
            tflite.QuantizationParametersStart(b)
            tflite.QuantizationParametersAddScale(b, scales)
            tflite.QuantizationParametersAddZeroPoint(b, zeros)
            quantization = tflite.QuantizationParametersEnd(b)
        text, dims = b.CreateString(name), numbers(shape, np.int32)
        tflite.TensorStart(b)
        tflite.TensorAddName(b, text)
        tflite.TensorAddShape(b, dims)
        tflite.TensorAddType(b, kind)
        tflite.TensorAddBuffer(b, index)
        if quantization is not None:
            tflite.TensorAddQuantization(b, quantization)
        made.append(tflite.TensorEnd(b))
    codes, listed = [], []
    for number, (code, reads, writes, options) in enumerate(operators):
        custom = b.CreateString("MyOwn") if code == CUSTOM else None
        tflite.OperatorCodeStart(b)
        tflite.OperatorCodeAddDeprecatedBuiltinCode(b, min(code, 127))
        tflite.OperatorCodeAddBuiltinCode(b, code)
        tflite.OperatorCodeAddVersion(b, 1)
        if custom is not None:
            tflite.OperatorCodeAddCustomCode(b, custom)
        codes.append(tflite.OperatorCodeEnd(b))
        built = options[1](b) if options else None
        r, w = numbers(reads, np.int32), numbers(writes, np.int32)
        tflite.OperatorStart(b)
        tflite.OperatorAddOpcodeIndex(b, number)
        tflite.OperatorAddInputs(b, r)
        tflite.OperatorAddOutputs(b, w)
        if built is not None:
            tflite.OperatorAddBuiltinOptionsType(b, options[0])
            tflite.OperatorAddBuiltinOptions(b, built)
        listed.append(tflite.OperatorEnd(b))
    t = vector(made, tflite.SubGraphStartTensorsVector)
    o = vector(listed, tflite.SubGraphStartOperatorsVector)
    i, x = numbers(inputs, np.int32), numbers(outputs, np.int32)
    tflite.SubGraphStart(b)
    tflite.SubGraphAddTensors(b, t)
    tflite.SubGraphAddInputs(b, i)
    tflite.SubGraphAddOutputs(b, x)
    tflite.SubGraphAddOperators(b, o)
    graphs = vector([tflite.SubGraphEnd(b)], tflite.ModelStartSubgraphsVector)
    c = vector(codes, tflite.ModelStartOperatorCodesVector)
    data = vector(buffers, tflite.ModelStartBuffersVector)
    tflite.ModelStart(b)
    tflite.ModelAddVersion(b, 3)
    tflite.ModelAddOperatorCodes(b, c)
    tflite.ModelAddSubgraphs(b, graphs)
    tflite.ModelAddBuffers(b, data)
    b.Finish(tflite.ModelEnd(b), b"TFL3")
    return bytes(b.Output())


def pool_options(padding, stride, size):
    """Return the options of an average pool: padding 0 is SAME, 1 is VALID."""

    def build(b):
        tflite.Pool2DOptionsStart(b)
        tflite.Pool2DOptionsAddPadding(b, padding)
        tflite.Pool2DOptionsAddStrideH(b, stride)
        tflite.Pool2DOptionsAddStrideW(b, stride)
        tflite.Pool2DOptionsAddFilterHeight(b, size)
        tflite.Pool2DOptionsAddFilterWidth(b, size)
        return tflite.Pool2DOptionsEnd(b)

    return (tflite.BuiltinOptions.Pool2DOptions, build)


def dense_options():
    """Return the options of a fully connected layer."""

    def build(b):
        tflite.FullyConnectedOptionsStart(b)
        return tflite.FullyConnectedOptionsEnd(b)

    return (tflite.BuiltinOptions.FullyConnectedOptions, build)


def average_pool(padding=1, stride=2, size=2, edge=6):
    """Return an int8 model that is one average pool."""
    out = (edge - size) // stride + 1 if padding else -(-edge // stride)
    tensors = [
        ("x", [1, edge, edge, 3], INT8, None, 0.5, -3),
        ("y", [1, out, out, 3], INT8, None, 0.5, -3),
    ]
    return tflite_model(tensors, [(AVERAGE_POOL_2D, [0], [1], pool_options(padding, stride, size))], [0], [1])


def dynamic_range():
    """Return a model with int8 weights and float data."""
    weights = np.arange(12, dtype=np.int8).reshape(3, 4)
    tensors = [
        ("x", [1, 4], FLOAT32, None, None, 0),
        ("weights", [3, 4], INT8, weights, 0.1, 0),
        ("layer/out", [1, 3], FLOAT32, None, None, 0),
    ]
    return tflite_model(tensors, [(FULLY_CONNECTED, [0, 1], [2], dense_options())], [0], [2])


def custom_operator():
    """Return a model with an operator that is nobody's."""
    tensors = [("x", [1, 4], FLOAT32, None, None, 0), ("y", [1, 4], FLOAT32, None, None, 0)]
    return tflite_model(tensors, [(CUSTOM, [0], [1], None)], [0], [1])


def two_by_two():
    """Return an ONNX model: two inputs, two outputs, a branch, a reshape."""
    from onnx import TensorProto, helper, numpy_helper

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
