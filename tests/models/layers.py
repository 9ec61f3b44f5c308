# SPDX-License-Identifier: Apache-2.0
"""Random convolutions, fully connected layers, and LSTMs with any combination of their parts."""

import numpy as np
from models.made import Model

ACTIVATIONS = ["NONE", "NONE", "RELU", "RELU6", "RELU_N1_TO_1"]
RANGES = {"int8": (-128, 128), "uint8": (0, 256), "int16": (0, 1)}


def quantised(random, dtype):
    if dtype == "float32":
        return None, 0
    zero = 0 if dtype == "int16" else int(random.integers(*RANGES[dtype]))
    if random.random() < 0.3:  # scales whose products are halves show the precision of multipliers
        return float(random.choice([0.05, 0.1, 0.02, 0.004])), zero
    return float(random.uniform(0.001, 0.01) if dtype == "int16" else random.uniform(0.01, 0.1)), zero


def operands(model, random, dtype, shape, results, fan_in, axis, has_bias=True):
    """Return weights and bias, and the scale and zero point of the result."""
    if dtype == "float32":
        weights = model.constant(random.standard_normal(shape).astype(np.float32))
        bias = model.constant(random.standard_normal(results).astype(np.float32)) if has_bias else None
        return weights, bias, None, 0
    data = model.graph.inputs[0]
    per_channel = dtype != "uint8" and random.random() < 0.7
    scales = random.uniform(0.001, 0.02, results if per_channel else 1) * random.choice([1, 1, 30])
    if random.random() < 0.3:
        scales[:] = random.choice([0.01, 0.003, 0.02])
    greatest = float(np.max(scales))
    if per_channel and random.random() < 0.3:
        scales[0] *= 2.0 ** -random.integers(10, 34)  # a dead channel
    kind, low = ("uint8", 0) if dtype == "uint8" else ("int8", -127)
    zero = int(random.integers(0, 256)) if dtype == "uint8" else 0
    weights = model.constant(random.integers(low, low + 255, shape).astype(kind), scales, zero, axis)
    bias_type = np.int64 if dtype == "int16" else np.int32
    bias = None
    if has_bias:
        bias = model.constant(random.integers(-900, 900, results).astype(bias_type), data.scale * scales, 0)
    _, target = quantised(random, dtype)
    spread = 70 * 18000 / 20000 if dtype == "int16" else 70 * 70 / 60
    scale = data.scale * greatest * spread * np.sqrt(fan_in) * random.uniform(0.7, 4)
    if random.random() < 0.3:
        scale = float(np.round(scale, 1 - int(np.floor(np.log10(scale)))))
    elif random.random() < 0.3:  # a power of two as multiplier: many sums are halves, rounded by its last bits
        exact = float(np.float32(data.scale) * np.float32(scales[-1]))
        scale = exact * 2.0 ** np.round(np.log2(scale / exact))
    return weights, bias, scale, target


def present(*inputs):
    """LiteRT does not accept an absent bias of a convolution as -1."""
    return [one for one in inputs if one is not None]


def windows(random):
    return {
        "padding": str(random.choice(["SAME", "VALID"])),
        "stride_h": int(random.integers(1, 4)),
        "stride_w": int(random.integers(1, 4)),
        "fused_activation_function": str(random.choice(ACTIVATIONS)),
    }


def dilation(random, options):
    if random.random() < 0.4:
        options.update(stride_h=1, stride_w=1)
        options.update(dilation_h_factor=int(random.integers(1, 4)), dilation_w_factor=int(random.integers(1, 4)))
    return options


def convolution(random, dtype):
    model = Model()
    groups = int(random.choice([1, 1, 1, 2])) if dtype in ("int8", "float32") else 1
    inner, results = int(random.integers(1, 9)), int(random.integers(1, 6)) * groups
    kh, kw = (1, 1) if random.random() < 0.3 else (int(random.integers(1, 4)), int(random.integers(1, 5)))
    batch = int(random.choice([1, 1, 2]))
    shape = (batch, int(random.integers(7, 11)), int(random.integers(10, 13)), inner * groups)
    data = model.input(dtype, shape, *quantised(random, dtype))
    fan = kh * kw * inner
    weights, bias, scale, zero = operands(model, random, dtype, (results, kh, kw, inner), results, fan, 0)
    options = dilation(random, windows(random))
    return model.ending_with("CONV_2D", present(data, weights, bias), (dtype, scale, zero), **options)


def depthwise(random, dtype):
    model = Model()
    channels, multiplier = int(random.integers(1, 9)), int(random.choice([1, 1, 2, 3]))
    kh, kw = int(random.integers(1, 4)), int(random.integers(1, 5))
    if random.random() < 0.2:
        kh, kw = 6, 7
    batch = int(random.choice([1, 1, 2]))
    image = (batch, int(random.integers(7, 20)), int(random.integers(10, 23)), channels)
    data = model.input(dtype, image, *quantised(random, dtype))
    results, has_bias = channels * multiplier, random.random() < 0.8
    shape = (1, kh, kw, results)
    weights, bias, scale, zero = operands(model, random, dtype, shape, results, kh * kw, 3, has_bias)
    options = {**windows(random), "depth_multiplier": multiplier}
    options["stride_h"] = options["stride_w"]
    dilation(random, options)
    if max(kh, kw) > 5:
        options["dilation_h_factor"] = 1
    options["dilation_w_factor"] = options.setdefault("dilation_h_factor", 1)
    return model.ending_with("DEPTHWISE_CONV_2D", present(data, weights, bias), (dtype, scale, zero), **options)


def dense(random, dtype):
    model = Model()
    length, results = int(random.integers(1, 40)), int(random.integers(1, 20))
    shape = [(int(random.integers(1, 4)), length), (1, 2, 3, length), (1, 1, 1, length)][int(random.integers(0, 3))]
    data = model.input(dtype, shape, *quantised(random, dtype))
    has_bias = random.random() < 0.8
    weights, bias, scale, zero = operands(model, random, dtype, (results, length), results, length, 0, has_bias)
    options = {"fused_activation_function": str(random.choice(ACTIVATIONS))}
    options["keep_num_dims"] = bool(random.integers(0, 2))
    return model.ending_with("FULLY_CONNECTED", [data, weights, bias], (dtype, scale, zero), **options)


KINDS = {"CONV_2D": convolution, "DEPTHWISE_CONV_2D": depthwise, "FULLY_CONNECTED": dense}


OF_CELLS = ("TANH", "TANH", "TANH", "RELU", "RELU6", "RELU_N1_TO_1")


class Recurrent:
    def __init__(self, random, parts=True):
        self.random = random
        self.batch, self.steps, self.length, self.cells = (int(n) for n in random.integers(1, 7, 4))
        self.time_major = bool(random.integers(0, 2))
        drawn = [bool(random.random() < 0.35) and parts for _ in range(4)]
        self.coupled, self.peepholes, self.projection, self.norms = drawn
        self.units = int(random.integers(1, 7)) if self.projection else self.cells
        self.inputs = 24 if self.norms else int(random.choice([20, 24]))

    @property
    def shape(self):
        return (self.steps, self.batch, self.length) if self.time_major else (self.batch, self.steps, self.length)

    def gates(self, make):
        """Return four inputs; that of the input gate is absent from coupled gates."""
        return [None if self.coupled and g == 0 else make(g) for g in range(4)]

    def inputs_of(self, data, matrix, states, peephole=None, bias=None, norm=None, projection_bias=None):
        """Return the inputs; `matrix`, `peephole`, `bias`, `norm` are functions that make constants of a shape."""
        inputs = [data, *self.gates(lambda g: matrix(self.cells, self.length))]
        inputs += self.gates(lambda g: matrix(self.cells, self.units))
        peepholes = self.gates(lambda g: peephole(self.cells) if self.peepholes else None)
        inputs += [peepholes[0], peepholes[1], peepholes[3]]
        inputs += self.gates(lambda g: bias(self.cells))
        has_bias = self.projection and self.random.random() < 0.5
        inputs.append(matrix(self.units, self.cells) if self.projection else None)
        inputs += [projection_bias(self.units) if has_bias else None, *states]
        if self.inputs == 24:
            inputs += self.gates(lambda g: norm(self.cells) if self.norms else None)
        return inputs

    def model(self, model, inputs, result, clips, activation="TANH", is_hybrid=False, **options):
        options |= {"fused_activation_function": activation, "time_major": self.time_major}
        options["cell_clip"] = float(self.random.choice(clips))
        options["proj_clip"] = float(self.random.choice([0, 0.3])) if self.projection else 0.0
        if is_hybrid:
            options["asymmetric_quantize_inputs"] = bool(self.random.integers(0, 2))
        return model.ending_with("UNIDIRECTIONAL_SEQUENCE_LSTM", inputs, result, **options)


def float_lstm(random, hybrid=False):
    """Return a model with float32 data; with int8 weights if `hybrid`."""
    layer, model = Recurrent(random), Model()

    def floats(*shape):
        return model.constant((0.5 * random.standard_normal(shape)).astype(np.float32))

    def weights(*shape):
        if not hybrid:
            return floats(*shape)
        return model.constant(random.integers(-127, 128, shape).astype(np.int8), float(random.uniform(0.002, 0.01)))

    data = model.input("float32", layer.shape)
    states = [model.variable("float32", (layer.batch, n)) for n in (layer.units, layer.cells)]
    inputs = layer.inputs_of(data, weights, states, weights, floats, floats, floats)
    activation, version = str(random.choice(OF_CELLS)), 3 if hybrid else 1
    return layer.model(model, inputs, ("float32",), [0, 0.5], activation, hybrid, version=version)


def byte_lstm(random):
    """Return a model with int8 data and the intermediate tensors that LiteRT requires."""
    layer, model = Recurrent(random), Model()
    if layer.peepholes and layer.projection:
        layer.units = layer.cells
    scales = [float(n) for n in random.uniform(0.004, 0.02, 3)]
    result = float(random.uniform(0.004, 0.012))
    zero, hidden_zero = (int(n) for n in random.integers(-30, 31, 2))
    hidden = (float(random.uniform(0.006, 0.01)), hidden_zero) if layer.projection else (result, zero)
    power = int(random.integers(-15, -10))

    def matrix(*shape):
        scale = float(random.uniform(0.3, 1) * scales[2])
        return model.constant(random.integers(-127, 128, shape).astype(np.int8), scale)

    def words(count):
        scale = float(random.uniform(1, 3)) * 3e-5
        return model.constant(random.integers(-32767, 32768, count).astype(np.int16), scale)

    def sums(most):
        return lambda count: model.constant(random.integers(-most, most + 1, count).astype(np.int32))

    data = model.input("int8", layer.shape, 4 * scales[0], int(random.integers(-60, 61)))
    states = [
        model.variable("int8", (layer.batch, layer.units), result, zero),
        model.variable("int16", (layer.batch, layer.cells), 2.0**power),
    ]
    biases = sums(30000 if layer.norms else 5000)
    inputs = layer.inputs_of(data, matrix, states, words, biases, words, sums(2000))
    inner = [model.inner("int16", float(random.uniform(1, 4)) * 2**-13) for _ in range(4)]
    inner.append(model.inner("int8", *hidden))
    return layer.model(model, inputs, ("int8", result, zero), [0, 0.5, 2], version=3, intermediates=inner)


def micro_lstm(random, dtype):
    """Return a model with int8 or int16 data and no intermediate tensors: LiteRT refuses it, tflite-micro runs it."""
    layer, model = Recurrent(random, parts=False), Model()
    layer.inputs = 24
    is_word = dtype == "int16"
    unit = 1 / 256 if is_word else 1.0
    zeros = [0, 0] if is_word else [int(n) for n in random.integers(-30, 31, 2)]
    result = float(random.uniform(0.004, 0.012)) * unit

    def matrix(*shape):
        return model.constant(random.integers(-127, 128, shape).astype(np.int8), float(random.uniform(0.004, 0.02)))

    def bias(count):
        most = int(5000 / unit)
        return model.constant(random.integers(-most, most + 1, count).astype(np.int64 if is_word else np.int32))

    data = model.input(dtype, layer.shape, float(random.uniform(0.01, 0.06)) * unit, zeros[0])
    states = [
        model.variable(dtype, (layer.batch, layer.cells), result, zeros[1]),
        model.variable("int16", (layer.batch, layer.cells), 2.0 ** int(random.integers(-15, -8))),
    ]
    inputs = layer.inputs_of(data, matrix, states, bias=bias)
    return layer.model(model, inputs, (dtype, result, zeros[1]), [0, 0.5, 2], version=3)
