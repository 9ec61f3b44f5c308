# SPDX-License-Identifier: Apache-2.0
"""Random layers with windows that are partly or completely in the padding."""

import dataclasses

import numpy as np
from opwest.compiler.ir.operations import Convolution, ConvolutionSum, Depthwise
from opwest.compiler.semantics.windows import Window
from opwest.tuning import random_layers

KINDS = {
    Convolution: random_layers.convolution,
    ConvolutionSum: random_layers.convolution_sum,
    Depthwise: random_layers.depthwise,
}
FLOAT_KINDS = {Convolution: random_layers.float_convolution, Depthwise: random_layers.float_depthwise}
DTYPES = {Convolution: ("int8", "int16"), ConvolutionSum: ("int8",), Depthwise: ("int8", "int16")}


def padded_layer(kind, number, dtype):
    """Return a random generator and a program of one layer over a few pixels; None if it has no window.

    Each side has up to three rows or columns of padding. Windows with a dilation, of up to three, have up to six.
    """
    random = np.random.default_rng((17, number))
    place = random.random()
    image = (1, 1) if place < 0.5 else tuple(map(int, random.integers(1, 5, 2)))
    size = (1, 1) if place < 0.3 or random.random() < 0.3 else tuple(map(int, random.integers(1, 4, 2)))
    batch = 1 if place < 0.3 else int(random.choice([1, 1, 2]))
    shape = (batch, *image, int(random.choice([1, 3, 4, 8, 16, 17])))
    make = (FLOAT_KINDS if dtype == "float32" else KINDS)[kind]
    made = make(random, shape=shape, size=size, dtype=dtype, same=True, dilation=(1, 1))
    [operation] = made.operations
    size = operation.window.size
    dilation = (1, 1) if place < 0.25 or random.random() < 0.5 else tuple(map(int, random.integers(1, 4, 2)))
    most = 1 if random.random() < 0.25 else 4 if dilation == (1, 1) else 7
    edges = [[int(one) for one in random.integers(0, most, 2)] for _ in range(2)]
    stride = tuple(map(int, random.integers(1, 4, 2)))
    if place < 0.25:  # one pixel that its only window does not reach, often by more than the width of the window
        before = int(random.integers(1, 4))
        stride, edges = (before + 1, before + 1), [[0, 0], [before, 0]]
    reach = [(size[axis] - 1) * dilation[axis] + 1 for axis in range(2)]
    counts = [(image[axis] + sum(edges[axis]) - reach[axis]) // stride[axis] + 1 for axis in range(2)]
    if min(counts) < 1:
        return random, None
    window = Window(size, stride, dilation, (edges[0][0], edges[1][0]), tuple(counts))
    result = random_layers.value("output", dtype, (batch, *counts, operation.results[0].shape[3]))
    data, *others = operation.inputs
    inputs = (data, *(random_layers.value("input", dtype, result.shape) for _ in others))
    layer = dataclasses.replace(operation, window=window, inputs=inputs, results=(result,))
    return random, random_layers.program(layer)
