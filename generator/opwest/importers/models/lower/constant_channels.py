# SPDX-License-Identifier: Apache-2.0
"""Channels of layers whose results do not depend on the data: sums below half of a step, or far beyond a limit.

Trained models contain them, with multipliers down to 2**-36 and biases of 2**30, which fast arithmetic cannot
represent. They become channels with the weights 0 and an ordinary multiplier. The results do not change.
"""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar

import numpy as np

from opwest.importers.models.ir.operations import Convolution, Depthwise
from opwest.importers.models.operators.fixed_point import RANGES, Multiplier, Requantisation, Rounding

Layer = TypeVar("Layer", bound=Convolution | Depthwise)
QUARTER = Multiplier(1 << 30, -1)


def without_constant_channels(layer: Layer) -> Layer:
    """Return a layer with plain numbers in such channels."""
    finish, dtype = layer.finish, layer.inputs[0].dtype
    if not isinstance(finish, Requantisation) or finish.rounding is Rounding.FLOAT or layer.weight_zero:
        return layer
    results = layer.results[0].shape[-1]
    if len(finish.multipliers) != results or max(one.shift for one in finish.multipliers) > 0:
        return layer
    is_depthwise = isinstance(layer, Depthwise)
    weights = layer.weights.astype(np.int64)
    flat = weights.reshape(-1, results).T if is_depthwise else weights.reshape(results, -1)
    bias = np.zeros(results, np.int64) if layer.bias is None else layer.bias.astype(np.int64)
    least, greatest = (limit - layer.zero for limit in RANGES[dtype])
    lows = bias + np.minimum(flat * least, flat * greatest).sum(axis=1)
    highs = bias + np.maximum(flat * least, flat * greatest).sum(axis=1)
    fits = (lows >= -(1 << 31)) & (highs < 1 << 31) if dtype != "int16" else np.abs(lows) + np.abs(highs) < 1 << 40
    first = finish.apply(lows)
    constant = fits & (first == finish.apply(highs))
    if not constant.any():
        return layer
    changed = layer.weights.copy()
    if is_depthwise:
        changed[..., constant] = 0
    else:
        changed[constant] = 0
    sums = np.where(constant, 4 * (first - finish.zero), bias)
    multipliers = [QUARTER if is_one else one for is_one, one in zip(constant, finish.multipliers, strict=True)]
    ending = dataclasses.replace(finish, multipliers=tuple(multipliers))
    given: dict[str, Any] = {"weights": changed, "bias": sums, "finish": ending}
    return dataclasses.replace(layer, **given)
