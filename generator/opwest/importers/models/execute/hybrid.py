# SPDX-License-Identifier: Apache-2.0
"""Layers with float32 data and int8 weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from opwest.importers.models.execute.layers import finished, grouped, transposed
from opwest.importers.models.execute.registry import Arrays, executes
from opwest.importers.models.interpret.hybrid import quantised
from opwest.importers.models.interpret.layers import patches
from opwest.importers.models.interpret.onnx import dynamically_quantised
from opwest.importers.models.ir.hybrid import HybridConvolution, HybridProduct, QuantiseRows
from opwest.importers.models.ir.onnx import DynamicQuantize


@executes(DynamicQuantize)
def dynamic(operation: DynamicQuantize, arrays: Arrays) -> Any:
    """Integers without the zero point, and the scale."""
    return dynamically_quantised(arrays[0])


@executes(QuantiseRows)
def rows(operation: QuantiseRows, arrays: Arrays) -> Any:
    """Each row has a scale, and perhaps a zero point."""
    [data] = arrays
    is_asymmetric = len(operation.results) == 3
    moved, scales = quantised(data.reshape(len(data), -1), is_asymmetric)
    if not is_asymmetric:
        return moved, scales
    # The rule returns differences from the zero point, which is that of the value 0.
    zeros = np.array([_zero_of(row, scale) for row, scale in zip(data.reshape(len(data), -1), scales, strict=True)])
    return moved + zeros[:, None], scales, zeros


def _zero_of(row: Any, scale: Any) -> int:
    """Return the zero point of a row. Source: TFLite's AsymmetricQuantizeFloats, in float64."""
    low, high = min(0.0, float(row.min())), max(0.0, float(row.max()))
    if low == high:
        return 0
    step = (high - low) / 255.0
    from_low, from_high = -128.0 - low / step, 127.0 - high / step
    zero = from_low if 128.0 + abs(low / step) < 127.0 + abs(high / step) else from_high
    return int(np.clip(np.floor(abs(zero) + 0.5) * np.sign(zero), -128, 127))


def _centred(arrays: Arrays) -> tuple[Any, Any]:
    """Return rows without their zero points as float64, and their scales."""
    data, scales, *zeros = arrays
    centred = data.astype(np.float64)
    if zeros:
        centred = centred - zeros[0].reshape(-1, *(1,) * (data.ndim - 1))
    return centred, scales


@executes(HybridProduct)
def product(operation: HybridProduct, arrays: Arrays) -> Any:
    """Products of rows and matrices [...,n,k]."""
    data, scales = _centred(arrays)
    shape = operation.data
    sums = data.reshape(shape) @ np.swapaxes(operation.weights.astype(np.float64), -1, -2)
    return sums.astype(np.float32) * (scales.reshape(*shape[:-1], 1) * np.float32(operation.scale))


@executes(HybridConvolution)
def convolution(operation: HybridConvolution, arrays: Arrays) -> Any:
    """Sums times the scale of the row and that of the weights."""
    data, scales = _centred(arrays)
    weights = operation.weights.astype(np.float64)
    if operation.is_depthwise:
        taken = np.repeat(patches(data, operation.window, 0), weights.shape[2] // data.shape[3], axis=-1)
        sums = np.einsum("nyxhwc,hwc->nyxc", taken, weights)
    elif operation.is_transposed:
        sums = transposed(data, weights, operation.window)
    else:
        sums = grouped(data, weights, operation.window, operation.groups)
    each = scales[:, None] * np.asarray(operation.scales, np.float32)
    return finished(sums.astype(np.float32) * each[:, None, None], operation.bias, operation.finish, "float32")
