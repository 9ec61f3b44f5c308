# SPDX-License-Identifier: Apache-2.0
"""The layers that the variants of convolutions accept."""

from __future__ import annotations

from typing import Any

import numpy as np

from opwest.importers.models.emit.convolution import folded, plain_weights
from opwest.importers.models.emit.kernels.mve.ending import Ending, ending_of
from opwest.importers.models.emit.matrix import bound_of
from opwest.importers.models.ir.operations import Convolution

ITEMS = {"int8": 1, "int16": 2}
"""The bytes of elements."""


def is_single(operation: Convolution) -> bool:
    """Whether the data is one window, hence one row of a matrix product."""
    data, window, (results, kh, kw, depth) = operation.inputs[0], operation.window, operation.weights.shape
    if data.size != kh * kw * depth or operation.results[0].size != results:
        return False
    image = (data.shape[1], data.shape[2]) if len(data.shape) == 4 else (1, 1)
    return image == (kh, kw) and not window.is_padded(image)


def layer_of(operation: Convolution) -> tuple[Any, Any, Ending] | None:
    """Return weights [o,kh,kw,c], biases and the end of a layer without groups; None for others.

    Sums have 32 bits: those of int16 data have to fit.
    """
    data, result = operation.inputs[0], operation.results[0]
    weights = plain_weights(operation.weights, operation.weight_zero)
    dtype = data.dtype
    if dtype not in ITEMS or result.dtype != dtype or str(weights.dtype) != "int8" or operation.groups != 1:
        return None
    bias = folded(weights, operation.bias, operation.zero, dtype)
    bias = np.zeros(len(weights), np.int64) if bias is None else bias
    bounds = bounds_of(weights, bias, dtype)
    ending = None if bounds is None else ending_of(operation.finish, len(weights), bounds, dtype)
    return None if ending is None else (weights, bias, ending)


def bounds_of(weights: Any, bias: Any, dtype: str) -> Any:
    """Return the greatest magnitude of the sums of each channel: weights [o, ...]. None: int16 data of 64-bit sums."""
    if dtype == "int8":
        return bound_of(weights, bias, "int8")
    # The bounds of int8 data without a bias, for data of 8 bits more.
    bounds = bound_of(weights, None, "int8") * 256 + np.abs(bias)
    return bounds if bounds.max() < 1 << 31 else None
