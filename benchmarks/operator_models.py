# SPDX-License-Identifier: Apache-2.0
"""Small models of operators beside convolutions: a block of a transformer, an LSTM, matrix products, float layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from held_out_models import Layers, Quantised

TOKENS, VALUES, HEADS, INNER = 64, 64, 4, 128
"""Of the block of a transformer."""


class _Block(Layers):
    """A block of a transformer in the making."""

    def _result(self, kind: str, inputs: list[Any], scale: float, zero: int, **options: Any) -> None:
        self.scale, self.zero = float(scale), zero
        self.data = self.model.operator(kind, inputs, (self.dtype, self.scale, self.zero), **options)

    def _indices(self, *numbers: int) -> Any:
        return self.model.constant(np.asarray(numbers, np.int32))

    def move(self, kind: str, *numbers: int) -> None:
        """Add RESHAPE or TRANSPOSE."""
        self._result(kind, [self.data, self._indices(*numbers)], self.scale, self.zero)

    def heads(self) -> None:
        """Divide the values of the tokens into heads [heads,tokens,values]."""
        self.move("RESHAPE", TOKENS, HEADS, VALUES // HEADS)
        self.move("TRANSPOSE", 1, 0, 2)

    def product(self, other: Quantised, *, is_swapped: bool, scale: float) -> None:
        """Add BATCH_MATMUL of the last tensor and another one."""
        self._result("BATCH_MATMUL", [self.data, other[0]], scale, 3, adj_x=False, adj_y=is_swapped)

    def gates(self, length: int, scale: float) -> list[Any]:
        """Return the weights and the bias of the three gates of a GRU."""
        weights = np.clip(np.rint(self.random.normal(0, 40, (3 * CELLS, length))), -127, 127).astype(np.int8)
        bias = self.random.integers(-500, 500, 3 * CELLS).astype(np.int32)
        return [self.model.constant(weights, 0.01), self.model.constant(bias, scale * 0.01)]

    def divided(self, data: Quantised, matrix: list[Any]) -> list[Quantised]:
        """Add FULLY_CONNECTED and SPLIT; return the parts of the gates."""
        options = {"fused_activation_function": "NONE", "keep_num_dims": False}
        self._result("FULLY_CONNECTED", [data[0], *matrix], 0.05, 3, **options)
        parts = [self.model.inner("int8", 0.05, 3) for _ in range(3)]
        self.model.operator("SPLIT", [self._indices(1), self.data], *parts, num_splits=3)
        return [(part, 0.05, 3) for part in parts]

    def constants(self, kind: str, values: Any, by: float, scale: float) -> None:
        """Add ADD or MUL of int8 constants."""
        constant = self.model.constant(np.asarray(values, np.int8), by, 0)
        options = {"fused_activation_function": "NONE"}
        self._result(kind, [self.data, constant], scale, 5, **options)

    def normalised(self) -> None:
        """Add a layer normalisation, as converters take it apart."""
        values = self.last
        self._result("MEAN", [self.data, self._indices(1)], self.scale, self.zero, keep_dims=True)
        mean = self.last
        self._result("SQUARED_DIFFERENCE", [values[0], mean[0]], values[1] ** 2 * 40, -128)
        self._result("MEAN", [self.data, self._indices(1)], self.scale, -128, keep_dims=True)
        self.constants("ADD", [[1]], self.scale / 30, self.scale)
        self._result("RSQRT", [self.data], 2 / np.sqrt(self.scale * 40) / 255, -128)
        factor = self.last
        self.last = mean
        self.pair("SUB", values)
        difference = self.last
        self.last = factor
        self.pair("MUL", difference)
        self.scale = 0.05
        self.data.scale = self.scale
        random = self.random
        self.constants("MUL", random.integers(60, 127, VALUES), 0.01, 0.05)
        self.constants("ADD", random.integers(-60, 60, VALUES), 0.01, 0.05)


def transformer() -> bytes:
    """Return a block of a transformer: 64 tokens of 64 values, 4 heads, layer normalisations, 128 inner values."""
    block = _Block(13, (TOKENS, VALUES))
    before, parts = block.last, []
    for _ in range(3):
        block.last = before
        block.dense(VALUES, VALUES, relu=False)
        block.heads()
        parts.append(block.last)
    query, key, value = parts
    block.last = query
    block.product(key, is_swapped=True, scale=query[1] * key[1] * 100)
    block.constants("MUL", [64], 0.25 / 64, block.scale / 4)
    block._result("SOFTMAX", [block.data], 1 / 256, -128, beta=1.0)
    block.product(value, is_swapped=False, scale=value[1])
    block.move("TRANSPOSE", 1, 0, 2)
    block.move("RESHAPE", TOKENS, VALUES)
    block.dense(VALUES, VALUES, relu=False)
    block.pair("ADD", before)
    block.normalised()
    before = block.last
    block.dense(INNER, VALUES)
    block.dense(VALUES, INNER, relu=False)
    block.pair("ADD", before)
    block.normalised()
    return block.build()


STEPS, FEATURES, CELLS = 28, 28, 20
"""Of the recurrent networks."""


def gru() -> bytes:
    """Return a GRU as Keras unrolls it: 28 steps of 28 values, 20 cells, three gates in one matrix."""
    layers = _Block(18, (1, STEPS, FEATURES))
    whole = layers.data
    pieces = [layers.model.inner("int8", layers.scale, layers.zero) for _ in range(STEPS)]
    layers.model.operator("UNPACK", [whole], *pieces, num=STEPS, axis=1)
    start = layers.model.constant(np.zeros((1, CELLS), np.int8), 1 / 128, 0)
    state: Quantised = (start, 1 / 128, 0)
    matrices = [layers.gates(FEATURES, 0.05), layers.gates(CELLS, 1 / 128)]
    ones = layers.model.constant(np.full((1,), 127, np.int8), 1 / 127, 0)
    for piece in pieces:
        given = layers.divided((piece, 0.05, -3), matrices[0])
        last = layers.divided(state, matrices[1])
        gates = []
        for one, other in zip(given[:2], last[:2], strict=True):
            layers.last = one
            layers.pair("ADD", other)
            layers.curve("LOGISTIC")
            gates.append(layers.last)
        update, reset = gates
        layers.last = last[2]
        layers.pair("MUL", reset)
        layers.pair("ADD", given[2])
        layers.curve("TANH")
        new = layers.last
        layers.last = update
        layers._result("SUB", [ones, update[0]], 1 / 256, -128, fused_activation_function="NONE")
        layers.pair("MUL", new)
        inner = layers.last
        layers.last = state
        layers.pair("MUL", update)
        layers.pair("ADD", inner)
        layers.scale, layers.zero, layers.data.scale, layers.data.zero = 1 / 128, 0, 1 / 128, 0
        state = layers.last
    layers.dense(10, CELLS, relu=False)
    return layers.build()


def lstm() -> bytes:
    """Return an LSTM as in tflite-micro's example for digits: 28 steps of 28 values, 20 cells, 10 scores."""
    layers = Layers(19, (1, STEPS, FEATURES))
    model, random = layers.model, layers.random
    matrices = [
        [
            model.constant(np.clip(np.rint(random.normal(0, 40, (CELLS, length))), -127, 127).astype(np.int8), 0.01)
            for _ in range(4)
        ]
        for length in (FEATURES, CELLS)
    ]
    biases = [model.constant(random.integers(-500, 500, CELLS).astype(np.int32)) for _ in range(4)]
    result, zero = 1 / 128, 3
    states = [model.variable("int8", (1, CELLS), result, zero), model.variable("int16", (1, CELLS), 2.0**-11)]
    none: list[Any] = [None]
    inputs = [layers.data, *matrices[0], *matrices[1], *(none * 3), *biases, *(none * 2), *states, *(none * 4)]
    options = {"fused_activation_function": "TANH", "cell_clip": 0.0, "proj_clip": 0.0, "time_major": False}
    kind = "UNIDIRECTIONAL_SEQUENCE_LSTM"
    layers.data = model.operator(kind, inputs, ("int8", result, zero), version=3, **options)
    layers.scale, layers.zero = result, zero
    layers.flatten(STEPS * CELLS)
    layers.dense(10, STEPS * CELLS, relu=False)
    return layers.build()


MATRICES = (4, 64, 16, 64)
"""Matrices, rows, products of a sum, columns."""


def matrix_product() -> bytes:
    """Return BATCH_MATMUL of two inputs: 4 matrices of 64x16 by 16x64."""
    count, rows, depth, columns = MATRICES
    block = _Block(14, (count, rows, depth))
    other: Quantised = (block.input((count, columns, depth), "other"), block.scale, block.zero)
    block.product(other, is_swapped=True, scale=block.scale**2 * 100)
    return block.build()


def transposed() -> bytes:
    """Return a transposed convolution: 12x12 values in 16 channels to 24x24 in 12 channels, window 3x3, stride 2."""
    layers = Layers(15, (1, 12, 12, 16))
    weights, bias = layers.constants_of((12, 3, 3, 16), 12, 9 * 16, 0)
    shape = layers.model.constant(np.asarray([1, 24, 24, 12], np.int32))
    layers.zero = 4
    result = (layers.dtype, layers.scale, layers.zero)
    options = {"padding": "SAME", "stride_h": 2, "stride_w": 2, "fused_activation_function": "NONE"}
    layers.data = layers.model.operator(
        "TRANSPOSE_CONV", [shape, weights, layers.data, bias], result, version=3, **options
    )
    return layers.build()


def grouped() -> bytes:
    """Return a convolution of 4 groups: 14x14 values in 32 channels to 32 channels, window 3x3."""
    layers = Layers(16, (1, 14, 14, 32))
    layers.convolution(32, (3, 3), 8)
    return layers.build()


def residual_float() -> bytes:
    """Return MLPerf Tiny's network for images in float32: ResNet-8, 32x32 values in 3 channels, random weights."""
    from models.made import Model

    model, random = Model(), np.random.default_rng(17)

    def layer(data: Any, results: int, size: int, channels: int, stride: int = 1, activation: str = "RELU") -> Any:
        weights = random.normal(0, 1 / np.sqrt(size * size * channels), (results, size, size, channels))
        arrays = [model.constant(one.astype(np.float32)) for one in (weights, random.normal(0, 0.1, results))]
        options = {"padding": "SAME", "stride_h": stride, "stride_w": stride, "fused_activation_function": activation}
        return model.operator(
            "CONV_2D", [data, *arrays], ("float32",), dilation_h_factor=1, dilation_w_factor=1, **options
        )

    data: Any = layer(model.input("float32", (1, 32, 32, 3), name="data"), 16, 3, 3)
    for channels, results, stride in ((16, 16, 1), (16, 32, 2), (32, 64, 2)):
        inner = layer(layer(data, results, 3, channels, stride), results, 3, results, activation="NONE")
        other = data if stride == 1 else layer(data, results, 1, channels, stride, "NONE")
        data = model.operator("ADD", [inner, other], ("float32",), fused_activation_function="RELU")
    pool = {"padding": "VALID", "stride_h": 8, "stride_w": 8, "filter_height": 8, "filter_width": 8}
    data = model.operator("AVERAGE_POOL_2D", [data], ("float32",), fused_activation_function="NONE", **pool)
    data = model.operator("RESHAPE", [data, model.constant(np.asarray([1, 64], np.int32))], ("float32",))
    arrays = [model.constant(random.normal(0, 0.1, shape).astype(np.float32)) for shape in ((10, 64), (10,))]
    data = model.operator("FULLY_CONNECTED", [data, *arrays], ("float32",), fused_activation_function="NONE")
    data.name = "scores"
    return bytes(model.output(data).build())


KINDS: dict[str, Callable[[], bytes]] = {
    "transformer": transformer,
    "gru": gru,
    "lstm": lstm,
    "matrix_product": matrix_product,
    "transposed": transposed,
    "grouped": grouped,
    "residual_float": residual_float,
}
"""The models by name."""
