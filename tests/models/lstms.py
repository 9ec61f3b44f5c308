# SPDX-License-Identifier: Apache-2.0
"""Files with an LSTM, with any combination of its parts."""

import numpy as np
from models.made import Model

ACTIVATIONS = ("TANH", "TANH", "TANH", "RELU", "RELU6", "RELU_N1_TO_1")


class Layer:
    """Sizes and parts of a random layer."""

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

    def inputs_of(self, data, matrix, peephole, bias, norm, projection, projection_bias, states):
        """Return the inputs; `matrix`, `peephole`, `bias`, `norm` are functions that make constants."""
        inputs = [data, *self.gates(lambda g: matrix(self.cells, self.length))]
        inputs += self.gates(lambda g: matrix(self.cells, self.units))
        peepholes = self.gates(lambda g: peephole() if self.peepholes else None)
        inputs += [peepholes[0], peepholes[1], peepholes[3]]
        inputs += self.gates(lambda g: bias())
        has_bias = self.projection and self.random.random() < 0.5
        inputs += [projection() if self.projection else None, projection_bias() if has_bias else None, *states]
        if self.inputs == 24:
            inputs += self.gates(lambda g: norm() if self.norms else None)
        return inputs


def float_lstm(random, hybrid=False):
    """Return a model with float32 data; with int8 weights if `hybrid`."""
    layer, model = Layer(random), Model()

    def floats(*shape):
        return model.constant((0.5 * random.standard_normal(shape)).astype(np.float32))

    def weights(*shape):
        if not hybrid:
            return floats(*shape)
        return model.constant(random.integers(-127, 128, shape).astype(np.int8), float(random.uniform(0.002, 0.01)))

    inputs = layer.inputs_of(
        model.input("float32", layer.shape),
        weights,
        lambda: weights(layer.cells),
        lambda: floats(layer.cells),
        lambda: floats(layer.cells),
        lambda: weights(layer.units, layer.cells),
        lambda: floats(layer.units),
        [model.variable("float32", (layer.batch, n)) for n in (layer.units, layer.cells)],
    )
    options = {
        "fused_activation_function": str(random.choice(ACTIVATIONS)),
        "time_major": layer.time_major,
        "cell_clip": float(random.choice([0, 0.5])),
        "proj_clip": float(random.choice([0, 0.3])) if layer.projection else 0.0,
    }
    if hybrid:
        options["asymmetric_quantize_inputs"] = bool(random.integers(0, 2))
    version = 3 if hybrid else 1
    model.output(model.operator("UNIDIRECTIONAL_SEQUENCE_LSTM", inputs, ("float32",), version=version, **options))
    return model


def byte_lstm(random):
    """Return a model with int8 data and the intermediate tensors that LiteRT requires."""
    layer, model = Layer(random), Model()
    if layer.peepholes and layer.projection:
        layer.units = layer.cells
    scales = [float(n) for n in random.uniform(0.004, 0.02, 3)]
    result = float(random.uniform(0.004, 0.012))
    zero, hidden_zero = (int(n) for n in random.integers(-30, 31, 2))
    hidden = float(random.uniform(0.006, 0.01)) if layer.projection else result
    hidden_zero = hidden_zero if layer.projection else zero
    power = int(random.integers(-15, -10))

    def matrix(*shape):
        scale = float(random.uniform(0.3, 1) * scales[2])
        return model.constant(random.integers(-127, 128, shape).astype(np.int8), scale)

    def words(count, scale):
        return model.constant(random.integers(-32767, 32768, count).astype(np.int16), scale)

    def sums(count, most):
        return model.constant(random.integers(-most, most + 1, count).astype(np.int32))

    inputs = layer.inputs_of(
        model.input("int8", layer.shape, 4 * scales[0], int(random.integers(-60, 61))),
        matrix,
        lambda: words(layer.cells, float(random.uniform(1, 3)) * 3e-5),
        lambda: sums(layer.cells, 30000 if layer.norms else 5000),
        lambda: words(layer.cells, float(random.uniform(1, 3)) * 3e-5),
        lambda: matrix(layer.units, layer.cells),
        lambda: sums(layer.units, 2000),
        [
            model.variable("int8", (layer.batch, layer.units), result, zero),
            model.variable("int16", (layer.batch, layer.cells), 2.0**power),
        ],
    )
    inner = [model.variable("int16", (), float(random.uniform(1, 4)) * 2**-13) for _ in range(4)]
    for one in inner:
        one.variable = False
    inner.append(model.variable("int8", (), hidden, hidden_zero))
    inner[-1].variable = False
    options = {
        "fused_activation_function": "TANH",
        "time_major": layer.time_major,
        "cell_clip": float(random.choice([0, 0.5, 2])),
        "proj_clip": float(random.choice([0, 0.3])) if layer.projection else 0.0,
    }
    target = ("int8", result, zero)
    model.output(
        model.operator("UNIDIRECTIONAL_SEQUENCE_LSTM", inputs, target, version=3, intermediates=inner, **options)
    )
    return model


def micro_lstm(random, dtype):
    """Return a model with int8 or int16 data and no intermediate tensors: LiteRT refuses it, tflite-micro runs it."""
    layer, model = Layer(random, parts=False), Model()
    layer.inputs = 24
    is_word = dtype == "int16"
    unit = 1 / 256 if is_word else 1.0
    zeros = [0, 0] if is_word else [int(n) for n in random.integers(-30, 31, 2)]
    result = float(random.uniform(0.004, 0.012)) * unit

    def matrix(*shape):
        return model.constant(random.integers(-127, 128, shape).astype(np.int8), float(random.uniform(0.004, 0.02)))

    def bias():
        most = int(5000 / unit)
        return model.constant(random.integers(-most, most + 1, layer.cells).astype(np.int64 if is_word else np.int32))

    data = model.input(dtype, layer.shape, float(random.uniform(0.01, 0.06)) * unit, zeros[0])
    states = [
        model.variable(dtype, (layer.batch, layer.cells), result, zeros[1]),
        model.variable("int16", (layer.batch, layer.cells), 2.0 ** int(random.integers(-15, -8))),
    ]
    inputs = layer.inputs_of(data, matrix, None, bias, None, None, None, states)
    options = {
        "fused_activation_function": "TANH",
        "time_major": layer.time_major,
        "cell_clip": float(random.choice([0, 0.5, 2])),
    }
    model.output(
        model.operator("UNIDIRECTIONAL_SEQUENCE_LSTM", inputs, (dtype, result, zeros[1]), version=3, **options)
    )
    return model
