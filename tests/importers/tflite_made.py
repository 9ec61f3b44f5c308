# SPDX-License-Identifier: Apache-2.0
"""Small models that tests make themselves."""

import flatbuffers
import numpy as np
import tflite

FLOAT32, INT32, INT16, INT8 = 0, 2, 7, 9
AVERAGE_POOL_2D, FULLY_CONNECTED, CUSTOM, ADD = 1, 9, 32, 0


def tflite_model(tensors, operators, inputs, outputs, signature=None):
    """Return a TFLite file; a signature is the shape of the first tensor with unknown dimensions.

    tensors: (name, shape, type, array or None, scale, one per channel or None, zero point); operators: (code, inputs,
    outputs, options), where options are None or (type, function of a builder).
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
            each = np.atleast_1d(scale)
            scales, zeros = numbers(each, np.float32), numbers([zero] * len(each), np.int64)
            tflite.QuantizationParametersStart(b)
            tflite.QuantizationParametersAddScale(b, scales)
            tflite.QuantizationParametersAddZeroPoint(b, zeros)
            tflite.QuantizationParametersAddQuantizedDimension(b, max(len(shape) - 1 if name == "depthwise" else 0, 0))
            quantization = tflite.QuantizationParametersEnd(b)
        text, dims = b.CreateString(name), numbers(shape, np.int32)
        fixed = numbers(signature, np.int32) if signature is not None and not made else None
        tflite.TensorStart(b)
        tflite.TensorAddName(b, text)
        tflite.TensorAddShape(b, dims)
        tflite.TensorAddType(b, kind)
        tflite.TensorAddBuffer(b, index)
        if fixed is not None:
            tflite.TensorAddShapeSignature(b, fixed)
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


def average_pool(quantised=False, padding=1, stride=2, size=2, edge=6):
    """Return a model that is one average pool, of float32 or int8."""
    out = (edge - size) // stride + 1 if padding else -(-edge // stride)
    kind = (INT8, None, 0.5, -3) if quantised else (FLOAT32, None, None, 0)
    tensors = [("x", [1, edge, edge, 3], *kind), ("y", [1, out, out, 3], *kind)]
    return tflite_model(tensors, [(AVERAGE_POOL_2D, [0], [1], pool_options(padding, stride, size))], [0], [1])


def magnitudes(signature):
    """Return a float model of one input, [1,1,4], with the shape signature `signature`."""
    tensors = [("x", [1, 1, 4], FLOAT32, None, None, 0), ("y", [1, 1, 4], FLOAT32, None, None, 0)]
    operators = [(tflite.BuiltinOperator.ABS, [0], [1], _built("AbsOptions"))]
    return tflite_model(tensors, operators, [0], [1], signature)


def custom_operator():
    """Return a model with an unknown custom operator."""
    tensors = [("x", [1, 4], FLOAT32, None, None, 0), ("y", [1, 4], FLOAT32, None, None, 0)]
    return tflite_model(tensors, [(CUSTOM, [0], [1], None)], [0], [1])


def _built(kind, **values):
    """Return the options of an operator by the name of their table."""

    def build(b):
        getattr(tflite, f"{kind}Start")(b)
        for key, value in values.items():
            getattr(tflite, f"{kind}Add{key}")(b, value)
        return getattr(tflite, f"{kind}End")(b)

    return (getattr(tflite.BuiltinOptions, kind), build)


def float_operators():
    """Return a float model: a transposed convolution of channels last, then a dimension more, then magnitudes."""
    op, random = tflite.BuiltinOperator, np.random.default_rng(4)
    tensors = [
        ("x", [1, 5, 5, 3], FLOAT32, None, None, 0),
        ("shape", [4], INT32, np.array([1, 10, 10, 2], np.int32), None, 0),
        ("weights", [2, 3, 3, 3], FLOAT32, random.standard_normal((2, 3, 3, 3)).astype(np.float32), None, 0),
        ("wide", [1, 10, 10, 2], FLOAT32, None, None, 0),
        ("axis", [1], INT32, np.array([1], np.int32), None, 0),
        ("more", [1, 1, 10, 10, 2], FLOAT32, None, None, 0),
        ("y", [1, 1, 10, 10, 2], FLOAT32, None, None, 0),
    ]
    operators = [
        (op.TRANSPOSE_CONV, [1, 2, 0], [3], _built("TransposeConvOptions", Padding=0, StrideH=2, StrideW=2)),
        (op.EXPAND_DIMS, [3, 4], [5], _built("ExpandDimsOptions")),
        (op.ABS, [5], [6], _built("AbsOptions")),
    ]
    return tflite_model(tensors, operators, [0], [6])
