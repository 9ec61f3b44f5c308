# SPDX-License-Identifier: Apache-2.0
"""The results of operations by numpy, in 64-bit arithmetic."""

import numpy as np
from opwest.compiler.ir.elements import AddQuantised
from opwest.compiler.ir.operations import (
    Convolution,
    ConvolutionSum,
    Depthwise,
    DirectConvolution,
    Elementwise,
    MatrixProduct,
    Pool,
    Sums,
)
from opwest.compiler.reference.layers import patches
from opwest.compiler.semantics.fixed_point import Rounding, scaled


def results_of(operation, *data):
    """`data`: the inputs of the operation that are no constants."""
    given = iter(data)
    operands = [value.content if value.role == "constant" else next(given) for value in operation.inputs]
    return _LAYERS[type(operation)](operation, *operands)


def _end(operation, sums, bias):
    total = np.rint(sums).astype(np.int64)
    if bias is not None:
        total = total + bias
    if operation.inputs[0].dtype == "int8":
        total = total.astype(np.int32)
    if isinstance(operation.finish, Sums):
        return total
    return operation.finish.apply(total).astype(operation.results[0].dtype).reshape(operation.results[0].shape)


def _convolution(operation, data):
    # float64 is exact: sums are below 2**53.
    shaped = data if data.ndim == 4 else data.reshape(1, 1, 1, -1)
    taken = patches(shaped.astype(np.float64) - operation.zero, operation.window, 0)
    results, kh, kw, inner = operation.weights.shape
    flat = np.split(operation.weights.astype(np.float64).reshape(results, -1), operation.groups)
    data = np.split(taken, operation.groups, axis=-1)
    sums = [one.reshape(-1, kh * kw * inner) @ by.T for one, by in zip(data, flat, strict=True)]
    return _end(operation, np.concatenate(sums, axis=1), operation.bias)


def _depthwise(operation, data):
    results = operation.weights.shape[2]
    taken = patches(data.astype(np.float64) - operation.zero, operation.window, 0)
    taken = np.repeat(taken, results // data.shape[3], axis=-1)
    return _end(operation, np.einsum("nyxhwc,hwc->nyxc", taken, operation.weights.astype(np.float64)), operation.bias)


def _product(operation, one, other, bias=None):
    operands = [x.astype(np.int64) - zero for x, zero in zip((one, other), operation.zeros, strict=True)]
    one, other = (
        np.swapaxes(x, -1, -2) if is_swapped else x for x, is_swapped in zip(operands, operation.swaps, strict=True)
    )
    return _end(operation, one @ other, bias)


def _transposed(operation, data, weights, bias=None):
    """Each element of the data is added to the results that it reaches."""
    data, weights = (x.astype(np.int64) - zero for x, zero in zip((data, weights), operation.zeros, strict=True))
    (n, height, width, _), (results, kh, kw, _), window = data.shape, weights.shape, operation.window
    (sy, sx), (top, left), (rows, columns) = window.stride, window.before, window.result
    sums = np.zeros((n, top + height * sy + kh + rows, left + width * sx + kw + columns, results), np.int64)
    for ky in range(kh):
        for kx in range(kw):
            sums[:, ky : ky + height * sy : sy, kx : kx + width * sx : sx] += data @ weights[:, ky, kx].T
    return _end(operation, sums[:, top : top + rows, left : left + columns], bias)


def _pool(operation, data):
    counts = patches(np.ones((1, *data.shape[1:3], 1), np.int64), operation.window, 0).sum(axis=(3, 4))
    if operation.kind == "average":
        sums = patches(data.astype(np.int64), operation.window, 0).sum(axis=(3, 4))
        half = np.where(sums > 0, counts // 2, -(counts // 2))
        found = np.trunc((sums + half) / counts).astype(np.int64)
    else:
        found = patches(data.astype(np.int64), operation.window, -(1 << 40)).max(axis=(3, 4))
    return np.clip(found, operation.low, operation.high).astype(operation.results[0].dtype)


def _twice(values, by):
    return scaled(values, by.fixed, by.shift, Rounding.TWICE)


def _elementwise(operation, one, other):
    numbers = operation.function.numbers
    a, b = (x.astype(np.int64) - zero for x, zero in zip((one, other), numbers.zeros, strict=True))
    if isinstance(operation.function, AddQuantised):
        a, b = (_twice(x << numbers.left_shift, by) for x, by in zip((a, b), numbers.multipliers, strict=True))
        value = _twice(a - b if operation.function.subtract else a + b, numbers.result)
    else:
        value = _twice(a * b, numbers.multiplier)
    return np.clip(value + numbers.zero, numbers.low, numbers.high).astype(operation.results[0].dtype)


def _convolution_sum(operation, data, other):
    part = _convolution(operation, data)
    operands = (other, part) if operation.place else (part, other)
    return _elementwise(operation, *operands)


_LAYERS = {
    Convolution: _convolution,
    ConvolutionSum: _convolution_sum,
    Depthwise: _depthwise,
    DirectConvolution: _transposed,
    Elementwise: _elementwise,
    MatrixProduct: _product,
    Pool: _pool,
}
