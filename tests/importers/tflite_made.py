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


def average_pool(padding=1, stride=2, size=2, edge=6):
    """Return an int8 model that is one average pool."""
    out = (edge - size) // stride + 1 if padding else -(-edge // stride)
    tensors = [
        ("x", [1, edge, edge, 3], INT8, None, 0.5, -3),
        ("y", [1, out, out, 3], INT8, None, 0.5, -3),
    ]
    return tflite_model(tensors, [(AVERAGE_POOL_2D, [0], [1], pool_options(padding, stride, size))], [0], [1])


def dynamic_range(data=FLOAT32):
    """Return a model with int8 weights and float data, or other data."""
    weights, scale = np.arange(12, dtype=np.int8).reshape(3, 4), None if data == FLOAT32 else 0.1
    tensors = [
        ("x", [1, 4], data, None, scale, 0),
        ("weights", [3, 4], INT8, weights, 0.1, 0),
        ("layer/out", [1, 3], data, None, scale, 0),
    ]
    return tflite_model(tensors, [(FULLY_CONNECTED, [0, 1], [2], dense_options())], [0], [2])


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


def int8_operators():
    """Return an int8 model with padding, mean, maximum, and a reshape to a shape computed from that of the input.

    The outputs: padded [1,9,8,3], mean [1,3] of 7 by 7 elements, largest [1,7,7], flat [1,147].
    """
    op, q = tflite.BuiltinOperator, (0.5, -3)
    tensors = [
        ("x", [1, 7, 7, 3], INT8, None, *q),
        ("border", [4, 2], INT32, np.array([[0, 0], [1, 1], [0, 1], [0, 0]], np.int32), None, 0),
        ("padded", [1, 9, 8, 3], INT8, None, *q),
        ("plane", [2], INT32, np.array([1, 2], np.int32), None, 0),
        ("mean", [1, 3], INT8, None, 0.06, 5),
        ("last", [1], INT32, np.array([3], np.int32), None, 0),
        ("largest", [1, 7, 7], INT32, None, None, 0),
        ("shape", [4], INT32, None, None, 0),
        ("zero", [1], INT32, np.array([0], np.int32), None, 0),
        ("one", [1], INT32, np.array([1], np.int32), None, 0),
        ("batch", [], INT32, None, None, 0),
        ("rest", [], INT32, np.array(-1, np.int32), None, 0),
        ("wanted", [2], INT32, None, None, 0),
        ("flat", [1, 147], INT8, None, *q),
    ]
    operators = [
        (op.PAD, [0, 1], [2], _built("PadOptions")),
        (op.MEAN, [0, 3], [4], _built("ReducerOptions", KeepDims=False)),
        (op.ARG_MAX, [0, 5], [6], _built("ArgMaxOptions", OutputType=INT32)),
        (op.SHAPE, [0], [7], _built("ShapeOptions", OutType=INT32)),
        (op.STRIDED_SLICE, [7, 8, 9, 9], [10], _built("StridedSliceOptions", ShrinkAxisMask=1)),
        (op.PACK, [10, 11], [12], _built("PackOptions", ValuesCount=2, Axis=0)),
        (op.RESHAPE, [0, 12], [13], _built("ReshapeOptions")),
    ]
    return tflite_model(tensors, operators, [0], [2, 4, 6, 13])


def rows_of_dense(bias, first=0):
    """Return an int8 model: a fully connected layer on [1,5,4] with seven results each, and `first` added to a bias."""
    random = np.random.default_rng(9)
    biases = random.integers(-900, 900, 7).astype(np.int32)
    biases[0] += first
    tensors = [
        ("x", [1, 5, 4], INT8, None, 0.1, 7),
        ("weights", [7, 4], INT8, random.integers(-127, 128, (7, 4)).astype(np.int8), 0.02, 0),
        ("bias", [7], INT32, biases, 0.002, 0),
        ("y", [1, 5, 7], INT8, None, 0.15, -20),
    ]
    options = _built("FullyConnectedOptions", KeepNumDims=True)
    reads = [0, 1, 2] if bias else [0, 1, -1]
    return tflite_model(tensors, [(FULLY_CONNECTED, reads, [3], options)], [0], [3])


def convolution(channels, results, padding, stride=1, dilation=1, multiplier=0):
    """Return an int8 model that is a convolution of [1,9,6,channels] by 3 by 2: padding 0 is SAME, 1 is VALID.

    With a multiplier it is depthwise, and has that many results for each channel. Each result has a scale of its own.
    """
    random = np.random.default_rng(channels + 10 * results)
    reach = [(size - 1) * dilation + 1 for size in (3, 2)]
    edges = [-(-n // stride) if padding == 0 else (n - r) // stride + 1 for n, r in zip((9, 6), reach, strict=True)]
    shape = [1, 3, 2, results] if multiplier else [results, 3, 2, channels]
    name = "depthwise" if multiplier else "weights"
    scales = random.uniform(0.005, 0.02, results)
    tensors = [
        ("x", [1, 9, 6, channels], INT8, None, 0.1, 7),
        (name, shape, INT8, random.integers(-127, 128, shape).astype(np.int8), scales, 0),
        ("bias", [results], INT32, random.integers(-900, 900, results).astype(np.int32), 0.1 * scales, 0),
        ("y", [1, *edges, results], INT8, None, 0.3, -20),
    ]
    values = {"Padding": padding, "StrideW": stride, "StrideH": stride}
    values |= {"DilationWFactor": dilation, "DilationHFactor": dilation}
    if multiplier:
        values["DepthMultiplier"] = multiplier
    code = tflite.BuiltinOperator.DEPTHWISE_CONV_2D if multiplier else tflite.BuiltinOperator.CONV_2D
    options = _built("DepthwiseConv2DOptions" if multiplier else "Conv2DOptions", **values)
    return tflite_model(tensors, [(code, [0, 1, 2], [3], options)], [0], [3])


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
