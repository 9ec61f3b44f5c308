# SPDX-License-Identifier: Apache-2.0
"""The results of operations by numpy, in 64-bit arithmetic."""

import numpy as np
from opwest.importers.models.interpret.layers import patches
from opwest.importers.models.ir.elements import Product
from opwest.importers.models.ir.operations import Convolution, Depthwise, Elementwise, Pool
from opwest.importers.models.operators.fixed_point import Rounding, scaled


def results_of(operation, *data):
    """Return the results of a layer."""
    return _LAYERS[type(operation)](operation, *data)


def _end(operation, sums):
    total = np.rint(sums).astype(np.int64)
    if operation.bias is not None:
        total = total + operation.bias
    if operation.inputs[0].dtype == "int8":
        total = total.astype(np.int32)
    return operation.finish.apply(total).astype(operation.results[0].dtype).reshape(operation.results[0].shape)


def _convolution(operation, data):
    # float64 is exact: sums are below 2**53.
    shaped = data if data.ndim == 4 else data.reshape(1, 1, 1, -1)
    taken = patches(shaped.astype(np.float64) - operation.zero, operation.window, 0)
    results, kh, kw, inner = operation.weights.shape
    flat = operation.weights.astype(np.float64).reshape(results, -1)
    return _end(operation, taken.reshape(-1, kh * kw * inner) @ flat.T)


def _depthwise(operation, data):
    results = operation.weights.shape[2]
    taken = patches(data.astype(np.float64) - operation.zero, operation.window, 0)
    taken = np.repeat(taken, results // data.shape[3], axis=-1)
    return _end(operation, np.einsum("nyxhwc,hwc->nyxc", taken, operation.weights.astype(np.float64)))


def _pool(operation, data):
    low, high = np.iinfo(data.dtype).min, np.iinfo(data.dtype).max
    if operation.kind == "maximum":
        found = patches(data.astype(np.int64), operation.window, low).max(axis=(3, 4))
    else:
        sums = patches(data.astype(np.int64), operation.window, 0).sum(axis=(3, 4))
        counts = patches(np.ones_like(data, np.int64), operation.window, 0).sum(axis=(3, 4))
        found = np.sign(sums) * ((np.abs(sums) + counts // 2) // counts)
    low = low if operation.low is None else operation.low
    high = high if operation.high is None else operation.high
    return np.clip(found, low, high).astype(data.dtype)


def _elements(operation, one, other):
    numbers = operation.function.numbers
    first, second = (a.astype(np.int64) - zero for a, zero in zip((one, other), numbers.zeros, strict=True))
    if isinstance(operation.function, Product):
        total, by = first * second, numbers.multiplier
    else:
        parts = [
            scaled(a << numbers.left_shift, m.fixed, m.shift, Rounding.TWICE)
            for a, m in zip((first, second), numbers.multipliers, strict=True)
        ]
        total, by = parts[0] - parts[1] if operation.function.subtract else parts[0] + parts[1], numbers.result
    found = scaled(total, by.fixed, by.shift, Rounding.TWICE) + numbers.zero
    return np.clip(found, numbers.low, numbers.high).astype(one.dtype)


_LAYERS = {Convolution: _convolution, Depthwise: _depthwise, Pool: _pool, Elementwise: _elements}
