# SPDX-License-Identifier: Apache-2.0
"""The results of operations by numpy, in 64-bit arithmetic."""

import numpy as np
from opwest.importers.models.interpret.layers import patches
from opwest.importers.models.ir.operations import Convolution, Depthwise


def results_of(operation, data):
    """Return the results of a layer."""
    return _LAYERS[type(operation)](operation, data)


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
    kh, kw, results = operation.weights.shape
    taken = patches(data.astype(np.float64) - operation.zero, operation.window, 0)
    taken = np.repeat(taken, results // data.shape[3], axis=-1)
    return _end(operation, np.einsum("nyxhwc,hwc->nyxc", taken, operation.weights.astype(np.float64)))


_LAYERS = {Convolution: _convolution, Depthwise: _depthwise}
